// A node that missed 10,000 blocks of 1 KB is repaired by `seq repair`: by the leader's term while it works, and by a
// term of the command while nobody leads. It measures blocks per second, as the command reports them and as the node's
// head grows.
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { atLeast, type Bench, type Measuring } from './harness/words.js';
import { itemsBody, submitClient } from './support/load.js';
import { runSeq } from './support/program.js';

const BEHIND = 10_000;
const ITEM_BYTES = 1024;
const LIMIT_MS = 120_000;
const GOAL = atLeast(5000);

interface Plan {
  data: { digest: string; by: string };
}
/** `done` is null when the leader was faster than the command, because a leader repairs reachable nodes by itself. */
interface Applied {
  data: { done: { blocks: number; ms: number } | null };
}

export const bench: Bench = {
  title: `repair of a node ${BEHIND.toLocaleString('en-US')} blocks of 1 KB behind`,
  limitS: 120,
  fullLimitS: 300,
  async run(on: Measuring) {
    const cluster = await PrivateCluster.start({
      nodes: 3,
      sequencers: 1,
      ttlMs: 5000,
      blockTimeMs: 1000,
      eager: true,
      proxies: true,
      runArgs: ['--retain-blocks', '100000', '--retain-bytes', '1GiB'],
    });
    const client = new Redis(cluster.port('r3'), '127.0.0.1', { protocol: 2 });
    const nodes = [...cluster.nodeFlags.flatMap((flag) => ['--node', flag]), '--node-timeout', '1s', '-o', 'json'];
    const head = async (): Promise<number> => Number((await client.hget('seq:node:admission', 'head')) ?? 0);
    try {
      const leader = await cluster.waitForLeader();
      const proxy = cluster.proxy(leader, 'r3');
      const fallBehind = async (): Promise<void> => {
        proxy.onConnect('refuse');
        proxy.cut();
        const until = Number((await cluster.status(leader))?.['height']) + BEHIND;
        const sender = submitClient(cluster.port(leader), itemsBody(1, ITEM_BYTES), 1);
        while (Number((await cluster.status(leader))?.['height']) < until)
          for (let at = 0; at < 200; at += 1) await sender.send();
        sender.close();
      };
      const repair = async (by: string, begin: () => void): Promise<void> => {
        const { data: plan } = JSON.parse(
          (await runSeq(['repair', 'plan', ...nodes], { limitMs: LIMIT_MS, keep: 1 << 20 })).output,
        ) as Plan;
        if (plan.by !== by) throw new Error(`the plan is by ${plan.by}, not by ${by}`);
        const from = await head();
        let [startedAt, endedAt, to] = [0, 0, from];
        let watching = true;
        begin();
        const watch = (async () => {
          while (watching) {
            const now = await head();
            if (now > from && startedAt === 0) startedAt = performance.now();
            if (now > to && now - from <= BEHIND) [to, endedAt] = [now, performance.now()];
          }
        })();
        const { data } = JSON.parse(
          (await runSeq(['repair', 'apply', '--confirm', plan.digest, ...nodes], { limitMs: LIMIT_MS, keep: 1 << 20 }))
            .output,
        ) as Applied;
        watching = false;
        await watch;
        if (data.done !== null)
          on.figure({
            what:
              `repair by ${by}: blocks per second as the command tells it ` +
              `(${data.done.blocks} in ${data.done.ms} ms)`,
            value: data.done.blocks / (data.done.ms / 1000),
            unit: '1/s',
            goal: GOAL,
          });
        on.figure({
          what: `repair by ${by}: growth of the node's head, ${to - from} blocks`,
          value: (to - from) / ((endedAt - startedAt) / 1000),
          unit: '1/s',
          goal: GOAL,
        });
      };
      await fallBehind();
      await repair('leader', () => proxy.heal());
      await fallBehind();
      await cluster.kill(leader);
      await cluster.waitFor(
        'every lock to end',
        LIMIT_MS,
        async () =>
          (
            await Promise.all(
              cluster.nodes.map(async ({ port }) => {
                const one = new Redis(port, '127.0.0.1', { protocol: 2 });
                const lock = await one.get('seq:leader:lock');
                one.disconnect();
                return lock === null;
              }),
            )
          ).every(Boolean) || undefined,
        50,
      );
      await repair('own-term', () => undefined);
    } finally {
      client.disconnect();
      await cluster.close();
    }
  },
};
