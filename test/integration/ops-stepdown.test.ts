// Moving leadership on purpose, against a real cluster: success means effect, and a refusal changes nothing (cases
// 30, 32, 33, 36).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
let lab: PrivateCluster;

interface Document {
  ok: boolean;
  data: Record<string, never>;
  error: { code: string; message: string; changed: string; next: string[] } | null;
}

async function seq(...args: string[]) {
  const ran = await runSeq(home, [
    ...args,
    ...lab.nodeFlags.flatMap((node) => ['--node', node]),
    '--node-timeout',
    '1s',
    '-o',
    'json',
  ]);
  const document = JSON.parse(ran.stdout) as Document;
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, document, data: document.data as Record<string, never>, error: document.error };
}

/**
 * Ready for the next leader is what the nodes say of a sequencer: its presence record may be older than what it says
 * itself.
 */
/**
 * A sequencer that was paused is behind when it goes on, while its record still calls it ready. So it catches up first:
 * whatever it announces from then on is ready.
 */
async function readyOnNodes(id: string): Promise<void> {
  const leader = await lab.waitForLeader();
  await lab.waitForHeight(id, Number((await lab.status(leader))?.['height']));
  await lab.waitFor(`the nodes to show ${id} as ready`, 120_000, async () =>
    (await seq('stepdown', '--dry-run', '--to', id)).code === 0 ? true : undefined,
  );
}

beforeAll(async () => {
  // A lease that outlasts a command on a busy machine: a hanging leader's lock ends because it is revoked, and never
  // by itself.
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: 10_000, blockTimeMs: 150 });
  await lab.waitForLeader(40_000);
  await lab.waitForHeight('seq-a', 3);
  await lab.waitForHeight('seq-b', 3);
  await readyOnNodes((await lab.waitForLeader()) === 'seq-a' ? 'seq-b' : 'seq-a');
}, 300_000);
afterAll(async () => {
  await lab.close();
});

describe('stepdown', () => {
  test.each([
    ['no --yes and no terminal', [], 81, 'CONFIRMATION_NEEDED'],
    ['unknown target', ['--to', 'seq-zz', '--yes'], 66, 'CANDIDATE_NOT_FOUND'],
    ['another leader expected', ['--expect-leader', 'seq-zz', '--yes'], 76, 'EXPECTATION'],
    ['another epoch expected', ['--expect-epoch', '999', '--yes'], 76, 'EXPECTATION'],
    ['revoke on a leader that writes', ['--revoke', '--yes'], 81, 'LEADER_ANSWERS'],
  ])('stepdown: %s → refused, nothing changed', async (_, args, code, error) => {
    const leader = await lab.waitForLeader();
    const ran = await seq('stepdown', ...args);
    expect([ran.code, ran.error?.code, ran.error?.changed]).toEqual([code, error, 'nothing']);
    expect(await lab.leader()).toBe(leader);
  });

  test('stepdown: the leader itself as target → refused by name', async () => {
    const leader = await lab.waitForLeader();
    const ran = await seq('stepdown', '--to', leader, '--yes');
    expect([ran.code, ran.error?.code]).toEqual([76, 'CANDIDATE_NOT_READY']);
    expect(ran.error?.message).toContain(leader);
  });

  test('stepdown: --dry-run → candidates, nothing sent', async () => {
    const leader = await lab.waitForLeader();
    const { code, data } = await seq('stepdown', '--dry-run');
    expect([code, data]).toMatchObject([
      0,
      {
        from: leader,
        to: leader === 'seq-a' ? 'seq-b' : 'seq-a',
        epochTo: null,
        gapMs: null,
        dryRun: true,
        candidates: [{ ready: true, configDrift: false }],
      },
    ]);
    expect(await lab.leader()).toBe(leader);
  });

  test(
    'stepdown: there and back, by name and by default → the successor has committed under a higher ' +
      'epoch, the gap is told',
    async () => {
      for (const named of [true, false]) {
        const from = await lab.waitForLeader();
        const to = from === 'seq-a' ? 'seq-b' : 'seq-a';
        await readyOnNodes(to);
        const { code, data, error } = await seq(
          'stepdown',
          '--yes',
          '--reason',
          'test',
          ...(named ? ['--to', to] : []),
        );
        expect([code, error, data]).toMatchObject([0, null, { from, to, blockTimeMs: 150, dryRun: false }]);
        expect(Number(data['epochTo'])).toBeGreaterThan(Number(data['epochFrom']));
        // The end of the term (history, below) shows that nobody waited for the lease. The bench measures how long it
        // took.
        expect(data['gapMs']).toBeGreaterThanOrEqual(0);
        expect(await lab.waitForLeader()).toBe(to);
        // The nodes show the block a moment before its own store has it.
        await lab.waitForHeight(to, Number(data['height']));
      }
    },
  );

  test('history: after two hand-overs → who led when, what it cost, who asked for it', async () => {
    const { code, data } = await seq('history');
    const terms = data['terms'] as unknown as {
      leader: string;
      epoch: string;
      ended: string;
      current: boolean;
      gapBeforeMs: number | null;
    }[];
    expect(code).toBe(0);
    expect(terms.length).toBeGreaterThanOrEqual(3);
    expect(terms.map((one) => Number(one.epoch))).toEqual(terms.map((one) => Number(one.epoch)).sort((a, b) => b - a));
    expect(terms[0]).toMatchObject({ current: true, ended: '' });
    expect(terms[1]?.ended).toMatch(/^stepdown by .+@.+: test$/);
    expect(terms[0]?.gapBeforeMs).toBeGreaterThanOrEqual(0);
    expect(data['changes']).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          what: 'stepdown',
          reason: 'test',
          outcome: expect.stringContaining('committed height'),
        }),
      ]),
    );
  });

  test('stepdown: the only other sequencer hangs → refused as not ready, and the leader goes on', async () => {
    const leader = await lab.waitForLeader();
    const other = leader === 'seq-a' ? 'seq-b' : 'seq-a';
    await lab.pause(other);
    try {
      const ran = await lab.waitFor('the silence to be noticed', 120_000, async () => {
        const seen = await seq('stepdown', '--dry-run', '--to', other);
        return seen.code === 0 ? undefined : seen;
      });
      expect(['CANDIDATE_NOT_READY', 'CANDIDATE_NOT_FOUND']).toContain(ran.error?.code);
      const any = await seq('stepdown', '--yes');
      expect([any.code, any.error?.code, any.error?.changed]).toEqual([76, 'NO_SUCCESSOR', 'nothing']);
      expect(await lab.leader()).toBe(leader);
    } finally {
      lab.unpause(other);
    }
  });

  test(
    'stepdown --revoke: a leader that hangs → its lock is deleted, the other one commits long before ' +
      'the lease would have ended',
    async () => {
      const leader = await lab.waitForLeader();
      const other = leader === 'seq-a' ? 'seq-b' : 'seq-a';
      await readyOnNodes(other);
      await lab.pause(leader);
      try {
        const { code, data, error } = await seq(
          'stepdown',
          '--revoke',
          '--expect-leader',
          leader,
          '--yes',
          '--reason',
          'it hangs',
        );
        expect([code, error, data]).toMatchObject([0, null, { from: leader, to: other }]);
      } finally {
        lab.unpause(leader);
      }
      await lab.waitForHeight(leader, Number((await lab.status(other))?.['height']));
      expect(await lab.waitForLeader()).toBe(other);
    },
  );
});
