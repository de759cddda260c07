// A repair by the leader whose answer is long in coming while the nodes fall silent for the one who asked: silence is
// not "the request is gone".
import { describe, expect, test } from 'vitest';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { withLab } from '../support/lab.js';
import { newHome, runSeq } from '../support/spawn-seq.js';
import { meddle } from '../support/node-hands.js';

const home = newHome();
interface Answer {
  data: { digest: string; by: string } | null;
  error: { code: string } | null;
}

describe('repair while the nodes are silent', () => {
  test(
    'repair: the leader works on it, two of three nodes do not answer for 4 s → waited for, and done ' +
      'when they are back',
    async () => {
      await withLab({ sequencers: 1, ttlMs: 10_000, blockTimeMs: 200, proxies: true }, async (lab) => {
        const leader = await lab.waitForLeader();
        const height = await lab.waitForHeight(leader, 3);
        const cut = lab.proxy(leader, 'r3');
        cut.onConnect('refuse');
        cut.cut();
        await lab.waitForHeight(leader, height + 10);
        const mine: TcpProxy[] = await Promise.all(lab.nodes.map(({ port }) => startTcpProxy(port)));
        try {
          const flags = [
            ...lab.nodes.flatMap(({ name }, at) => ['--node', `${name}=${mine[at]!.url}`]),
            '--node-timeout',
            '1s',
            '-o',
            'json',
          ];
          const plan = JSON.parse(
            (await runSeq(home, ['repair', 'plan', ...flags], { limitMs: 120_000 })).stdout,
          ) as Answer;
          expect(plan.data?.by).toBe('leader');
          const ran = await runSeq(
            home,
            ['repair', 'apply', '--confirm', plan.data!.digest, '--timeout', '60s', ...flags],
            {
              limitMs: 120_000,
              during: async () => {
                await lab.waitFor('the request to stand on r1', 120_000, async () =>
                  (await meddle(lab, 'r1', (redis) => redis.exists('seq:leader:request'))) === 1 ? true : undefined,
                );
                for (const proxy of mine.slice(0, 2)) proxy.blackHole();
                const from = performance.now();
                await lab.waitFor(
                  'four seconds of silence',
                  120_000,
                  () => (performance.now() - from > 4000 ? true : undefined),
                  50,
                );
                // Connections that lost something on the way are of no use any more: cut, so that new ones are made.
                for (const proxy of mine.slice(0, 2)) {
                  proxy.heal();
                  proxy.cut();
                }
                cut.heal();
              },
            },
          );
          const answer = JSON.parse(ran.stdout) as Answer;
          expect([ran.code, answer.error], ran.stdout).toEqual([0, null]);
        } finally {
          await Promise.all(mine.map((proxy) => proxy.close()));
        }
      });
    },
    300_000,
  );
});
