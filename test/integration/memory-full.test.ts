// All nodes reach maxmemory together, for they hold the same: the leader keeps fewer blocks there, says so, and goes
// on; what is forgotten there is in the stores (docs/PROTOCOL.md section 6).
import { describe, expect, it } from 'vitest';
import { clusterOf, probe, untilAdmitted, untilIdentical } from '../support/node-hands.js';
import { withLab } from '../support/lab.js';

describe('memory: full', () => {
  it(
    'memory: every node is full under load, one restarts empty meanwhile → fewer blocks are kept and ' +
      'it is said; nothing lost, no new term, the node admitted',
    async () => {
      await withLab(
        { sequencers: 2, ttlMs: 3000, blockTimeMs: 500, eager: true, redisLines: ['maxmemory 12mb'] },
        async (lab) => {
          const cluster = await clusterOf(lab);
          const leader = await lab.waitForLeader();
          const { epoch } = (await lab.status(leader)) as { epoch: string };
          let sent = 0;
          let loading = true;
          const load = (async () => {
            while (loading) {
              const items = Array.from({ length: 10 }, () => ({ key: `k${sent++}`, data: 'x'.repeat(10_000) }));
              const answer = await lab.submit(leader, items, 30_000);
              expect(answer.status, answer.body).toBe(200);
            }
          })();
          const narrowed = () =>
            lab.waitFor(
              'the status to say it',
              120_000,
              async () => {
                const { findings } = (await lab.ask(['status', '--node-timeout', '2s'])) as {
                  findings: { code: string; reason: string; verdict: string }[];
                };
                return findings.find(({ code }) => code === 'RETENTION_NARROWED');
              },
              100,
            );
          try {
            expect(await narrowed()).toMatchObject({
              verdict: 'WARN',
              reason: expect.stringMatching(/keep|kept.*maxmemory/),
            });
            await lab.waitFor(
              'a judge to say it too',
              120_000,
              async () => {
                const { reasonCode } = (await lab.ask(['check', 'nodes', '--node-timeout', '2s'])) as {
                  reasonCode: string;
                };
                return reasonCode === 'RETENTION_NARROWED' ? true : undefined;
              },
              100,
            );
            const before = await probe(lab, 'r2', cluster);
            await lab.kill('r2');
            await lab.startProcess('r2');
            await untilAdmitted(lab, 'r2', cluster, before.incarnation);
          } finally {
            loading = false;
            await load;
          }
          const after = await probe(lab, 'r2', cluster);
          await lab.waitForHeight(leader, after.head + 2);
          expect(await lab.status(leader), 'one term').toMatchObject({ role: 'leader', epoch });
          expect(after.floor, 'blocks were trimmed').toBeGreaterThan(0);
          expect(lab.log(leader, 5000).filter((line) => line.includes('"event":"window"'))[0]).toMatch(
            /"level":"warn".*r1 uses \d+ % of its maxmemory/,
          );
          await untilIdentical(lab);
          // Every item, from the follower's store: the nodes have forgotten most of them.
          const follower = lab.sequencers.find(({ name }) => name !== leader)!.name;
          const { height } = (await lab.status(leader)) as { height: string };
          await lab.waitForHeight(follower, Number(height));
          const feed = await lab.http(follower, 'GET', `/v1/blocks?from=1&to=${height}`, { limitMs: 120_000 });
          const found = new Set(
            [
              ...Buffer.from(
                feed.body
                  .split('\n')
                  .filter(Boolean)
                  .map((line) => Buffer.from((JSON.parse(line) as { data: string }).data, 'base64').toString('latin1'))
                  .join('\n'),
                'latin1',
              )
                .toString('latin1')
                .matchAll(/k(\d+)/g),
            ].map(([, n]) => Number(n)),
          );
          expect(Array.from({ length: sent }, (_, at) => at).filter((at) => !found.has(at))).toEqual([]);
        },
      );
    },
    300_000,
  );
});
