// Hold, resume and the epochs, against a real cluster: read back from a quorum, recorded, refused before anything is
// done (cases 30, 39).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
let lab: PrivateCluster;
let node: RedisNode;

async function seq(...args: string[]) {
  const ran = await runSeq(home, [
    ...args,
    ...lab.nodeFlags.flatMap((flag) => ['--node', flag]),
    '--node-timeout',
    '1s',
    '-o',
    'json',
  ]);
  const document = JSON.parse(ran.stdout) as {
    data: Record<string, never>;
    error: { code: string; message: string; changed: string; next: string[] } | null;
    warnings: string[];
  };
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, ...document };
}

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 2000, blockTimeMs: 200 });
  await lab.waitForLeader();
  await lab.waitForHeight('seq-a', 2);
  const { data } = await seq('status');
  node = new RedisNode({
    id: 'r3',
    url: lab.url('r3'),
    identity: { cluster: data['cluster'] as unknown as string, lane: '' },
  });
}, 300_000);
afterAll(async () => {
  await node.close();
  await lab.close();
});

describe('hold and resume', () => {
  test.each([
    ['no reason', ['hold', '--for', '10s'], 64, 'USAGE'],
    ['bare duration', ['hold', '--for', '10', '--reason', 'x'], 64, 'BAD_VALUE'],
    [
      'another leader expected',
      ['hold', '--for', '10s', '--reason', 'x', '--expect-leader', 'seq-zz'],
      76,
      'EXPECTATION',
    ],
  ])('hold: %s → refused, nothing changed', async (_, args, code, error) => {
    const ran = await seq(...args);
    expect([ran.code, ran.error?.code, ran.error?.changed]).toEqual([code, error, 'nothing']);
  });

  test('hold: on, seen by status and stepdown, ended by resume → each read back; resume again is success', async () => {
    const held = await seq('hold', '--for', '1m', '--reason', 'moving r2', '--expect-leader', 'seq-a');
    expect([held.code, held.data, held.warnings]).toMatchObject([
      0,
      { hold: { reason: 'moving r2', nodes: 3 }, replaced: null, leader: 'seq-a', forMs: 60_000 },
      [],
    ]);
    expect((await seq('status')).data).toMatchObject({ verdict: 'WARN', reasonCode: 'HELD' });
    expect((await seq('stepdown', '--yes')).error).toMatchObject({ code: 'HELD', changed: 'nothing' });
    const resumed = await seq('resume');
    expect([resumed.code, resumed.data]).toMatchObject([0, { released: { reason: 'moving r2' }, hold: null }]);
    const again = await seq('resume');
    expect([again.code, again.data]).toMatchObject([0, { released: null, hold: null }]);
  });
});

describe('epochs', () => {
  test("epoch show: a healthy cluster → one epoch, the leader's", async () => {
    const { code, data } = await seq('epoch', 'show');
    expect([code, data]).toMatchObject([
      0,
      {
        verdict: 'OK',
        leader: { id: 'seq-a' },
        nodes: ['r1', 'r2', 'r3'].map((id) => ({ id, standing: 'same', claimant: 'seq-a' })),
      },
    ]);
    expect((await seq('epoch', 'heal', '--dry-run')).data).toMatchObject({ steps: [], deposes: false });
  });

  test(
    "epoch heal: above the leader's epoch → needs the flag, then the digest; then the leader renews " + 'above it',
    async () => {
      const before = Number((await seq('epoch', 'show')).data['epoch']);
      const to = String(before + 10);
      const bare = await seq('epoch', 'heal', '--to', to);
      expect([bare.code, bare.error?.code, bare.error?.changed]).toEqual([81, 'CONFIRMATION_NEEDED', 'nothing']);
      expect(bare.error?.next[0]).toContain('--depose-leader');
      const yes = await seq('epoch', 'heal', '--to', to, '--depose-leader', '--yes');
      expect([yes.code, yes.error?.code]).toEqual([81, 'CONFIRMATION_NEEDED']);
      const wrong = await seq('epoch', 'heal', '--to', to, '--depose-leader', '--confirm', 'ffffffff');
      expect([wrong.code, wrong.error?.code]).toEqual([76, 'PLAN_STALE']);
      const { digest } = (await seq('epoch', 'heal', '--to', to, '--depose-leader', '--dry-run')).data;
      const done = await seq(
        'epoch',
        'heal',
        '--to',
        to,
        '--depose-leader',
        '--confirm',
        digest as unknown as string,
        '--reason',
        'test',
      );
      expect([done.code, done.error, done.data]).toMatchObject([
        0,
        null,
        {
          epoch: to,
          deposes: true,
          nodes: [{ outcome: 'accepted' }, { outcome: 'accepted' }, { outcome: 'accepted' }],
        },
      ]);
      await lab.waitFor('a leader above it', 120_000, async () => {
        const { data } = await seq('epoch', 'show');
        return data['leader'] !== null && Number(data['epoch']) > before + 10 && data['verdict' as never] === 'OK'
          ? true
          : undefined;
      });
    },
  );

  test('epoch heal: without a leader, one node ahead → the others are raised to it, nothing else', async () => {
    await lab.kill('seq-a', 'SIGTERM');
    const { data: shown } = await seq('epoch', 'show');
    const ahead = Number(shown['epoch']) + 5;
    await node.call({ script: 'raise_epoch', value: ahead, highestSeen: ahead, mayDepose: false }, 1000);
    const uneven = await seq('epoch', 'show');
    expect(uneven.data).toMatchObject({ epoch: String(ahead), leader: null });
    expect(uneven.data['verdict']).not.toBe('OK');
    const plan = await seq('epoch', 'heal', '--dry-run');
    expect(plan.data).toMatchObject({ steps: [{ node: 'r1' }, { node: 'r2' }], deposes: false, dryRun: true });
    const done = await seq('epoch', 'heal', '--confirm', String(plan.data['digest']).slice(0, 8));
    expect([done.code, done.error]).toEqual([0, null]);
    // Whether somebody may lead is another question: nobody is there.
    expect((await seq('epoch', 'show')).data).toMatchObject({
      nodes: [{ standing: 'same' }, { standing: 'same' }, { standing: 'same' }],
    });
  });
});
