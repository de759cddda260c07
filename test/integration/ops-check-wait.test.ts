// check and wait against a real cluster in good and bad states: one exit code per verdict, formats of their own
// (cases 31, 36, 37).
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
let lab: PrivateCluster;

const raw = (...args: string[]) =>
  runSeq(home, [...args, ...lab.nodeFlags.flatMap((flag) => ['--node', flag]), '--node-timeout', '500ms']);
async function seq(...args: string[]) {
  const ran = await raw(...args, '-o', 'json');
  const document = JSON.parse(ran.stdout) as {
    ok: boolean;
    data: Record<string, never>;
    error: { code: string } | null;
  };
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, ...document };
}
/** `leader OK` per check, worst exit code first. */
async function all(...args: string[]): Promise<[number | null, string[]]> {
  const { code, data } = await seq('check', 'all', ...args);
  return [
    code,
    (data['checks'] as unknown as { check: string; verdict: string }[]).map((one) => `${one.check} ${one.verdict}`),
  ];
}

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: 3000, blockTimeMs: 200 });
  await lab.waitForLeader();
}, 300_000);
afterAll(async () => {
  await lab.close();
});

describe('check and wait', () => {
  test(
    'wait: leader, height, follower, healthy, epoch → met, 0; out of reach → 1 at the limit, not an ' + 'error',
    async () => {
      const leader = await lab.waitForLeader();
      const other = leader === 'seq-a' ? 'seq-b' : 'seq-a';
      await Promise.all(
        ['leader', 'height=3', `follower=${other}`, 'healthy', 'epoch>0'].map(async (condition) => {
          const { code, data } = await seq('wait', '--for', condition, '--timeout', '20s');
          expect([condition, code, data]).toMatchObject([condition, 0, { result: 'met' }]);
        }),
      );
      const never = await seq('wait', '--for', 'height=999999', '--timeout', '300ms');
      expect([never.code, never.ok, never.data]).toMatchObject([1, true, { result: 'not-met' }]);
      expect(await seq('wait', '--for', 'follower=seq-zz', '--timeout', '200ms')).toMatchObject({
        code: 1,
        data: { now: 'no node shows seq-zz' },
      });
      expect((await seq('wait', '--for', 'height>3')).code).toBe(64);
    },
  );

  test('check all: in order → 0; nagios and prometheus carry the same', async () => {
    await seq('wait', '--for', 'healthy', '--timeout', '10s');
    expect(await all()).toEqual([0, ['leader OK', 'quorum OK', 'epoch OK', 'stream OK', 'lag OK', 'nodes OK']]);
    const nagios = await raw('check', 'leader', '-o', 'nagios');
    expect([nagios.code, nagios.stderr]).toEqual([0, '']);
    expect(nagios.stdout).toMatch(
      /^SEQ LEADER OK - seq-[ab] leads under epoch \d+ \| 'leader'=1;;;0 'epoch'=\d+;;;0 'lease'=\d+ms;;;0\n$/,
    );
    const prometheus = await raw('check', 'quorum', '-o', 'prometheus');
    expect(prometheus.stdout).toMatch(/^seq_check_status\{cluster="[^"]+",check="quorum"\} 0$/m);
    expect(prometheus.stdout).toMatch(/^seq_check_quorum_margin\{cluster="[^"]+"\} 1$/m);
    expect((await seq('check', 'quorum', '--margin-warn', '2')).code).toBe(1);
    expect((await seq('check', 'quorum', '--margin-warn', '2', '--margin-crit', '2')).code).toBe(2);
  });

  test.each([
    ['unknown flag', ['--bogus']],
    ['bare duration', ['--timeout', '5']],
    ['a threshold upside down', ['--lag-warn', '9', '--lag-crit', '3']],
    ['no such node', ['--on', 'zz']],
  ])('check: %s → 3, in json and for nagios', async (_, args) => {
    const [json, nagios] = await Promise.all([
      raw('check', 'lag', ...args, '-o', 'json'),
      raw('check', 'lag', ...args, '-o', 'nagios'),
    ]);
    const document = JSON.parse(json.stdout) as { error: { exit: number } };
    expect([json.code, document.error.exit, schemaProblems(document), nagios.code]).toEqual([3, 3, [], 3]);
    expect(nagios.stdout).toMatch(/^SEQ LAG UNKNOWN - .+\n$/);
  });

  test(
    'check: a node hangs, then a hold, then no quorum → WARNING, WARNING, CRITICAL; a silent node is ' + 'not UNKNOWN',
    async () => {
      await lab.pause('r3');
      const [code, verdicts] = await all();
      expect([code, verdicts]).toEqual([
        1,
        ['leader OK', 'quorum WARN', 'epoch OK', 'stream OK', 'lag OK', 'nodes WARN'],
      ]);
      await seq('hold', '--for', '1m', '--reason', 'test');
      expect(await seq('check', 'leader')).toMatchObject({ code: 1, data: { reasonCode: 'HELD' } });
      await lab.pause('r2');
      await Promise.all(
        ['leader', 'quorum', 'nodes'].map(async (check) =>
          expect(await seq('check', check)).toMatchObject({ code: 2, data: { reasonCode: 'NO_QUORUM' } }),
        ),
      );
      expect((await seq('wait', '--for', 'leader', '--timeout', '300ms')).code).toBe(1);
      await lab.pause('r1');
      expect((await seq('check', 'quorum')).code).toBe(2);
      for (const name of ['r1', 'r2', 'r3']) lab.unpause(name);
    },
  );
});
