// How long does a cluster of three take to become one of five, with 10 MB retained and a client that never pauses, and
// how long is the longest gap between two commits meanwhile? Real processes, and the command as an operator runs it.
// Then every acknowledged item must be in the chain exactly once (docs/PROTOCOL.md section 8).
import { decodeBlockData } from '../src/core/chain/items.js';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { startRedis } from '../test/support/redis-server.js';
import { quantile, spread } from './harness/statistics.js';
import { atMost, type Bench } from './harness/words.js';
import { itemsBody, submitClient } from './support/load.js';

const BLOCKS = 1000;
const BLOCK_BYTES = 10_000;
const BLOCK_TIME_MS = 100;
const LIMIT_MS = 60_000;

export const bench: Bench = {
  title: 'three nodes become five with 10 MB retained and a client without a pause: how long, and the longest gap',
  limitS: 200,
  fullLimitS: 400,
  async run(on) {
    const cluster = await PrivateCluster.start({
      nodes: 3,
      sequencers: 1,
      persist: 'none',
      ttlMs: 3000,
      blockTimeMs: BLOCK_TIME_MS,
      eager: true,
      runArgs: ['--retain-blocks', String(BLOCKS)],
    });
    const spares = [await startRedis(), await startRedis()];
    try {
      const leader = await cluster.waitForLeader();
      const big = submitClient(cluster.port(leader), itemsBody(1, BLOCK_BYTES), 1);
      for (let at = 0; at < BLOCKS; at += 1) await big.send();
      big.close();
      const totals: number[] = [];
      const waits: number[] = [];
      const gaps: number[] = [];
      const client = new Client(cluster, leader);
      for (let round = 0; round < on.pick(3, 1); round += 1) {
        if (round > 0) {
          for (const id of ['r4', 'r5']) await resize(cluster, ['--remove', id]);
          for (const spare of spares) await spare.restart({ wipe: true });
        }
        await client.more(20);
        const from = performance.now();
        let waited = 0;
        for (const [at, spare] of spares.entries())
          waited += await resize(cluster, ['--add', `r${at + 4}=${spare.url}`]);
        totals.push(performance.now() - from);
        waits.push(waited);
        await client.more(20);
        gaps.push(client.longestGap(from));
        on.say(
          `round ${round + 1}: ${Math.round(totals.at(-1)!)} ms, longest gap ${gaps.at(-1)!.toFixed(1)} ms, waited ${waited} ms`,
        );
      }
      await client.stop();
      const { lost, doubled } = await client.compare();
      on.figure({
        what: 'three → five, both commands',
        value: spread(totals).value / 1000,
        unit: 's',
        goal: atMost(5),
      });
      on.figure({
        what: '… of that, waiting for the leader (not the start of the commands)',
        value: spread(waits).value / 1000,
        unit: 's',
      });
      on.figure({
        what: `longest gap between two commits (block time ${BLOCK_TIME_MS} ms)`,
        value: quantile(gaps, 1),
        unit: 'ms',
        goal: atMost(BLOCK_TIME_MS + 50),
      });
      on.figure({ what: 'longest gap while nothing changes', value: client.quietGap, unit: 'ms' });
      on.note(`${client.keys.length} items acknowledged, ${lost} lost, ${doubled} doubled`);
      if (lost + doubled > 0) throw new Error(`${lost} items lost, ${doubled} doubled`);
    } finally {
      await cluster.close();
      for (const spare of spares) await spare.stop();
    }
  },
};

/** How long the command waited for the leader, ms. */
async function resize(cluster: PrivateCluster, args: string[]): Promise<number> {
  const data = await cluster.ask(['cluster', 'resize', ...args, '--yes'], LIMIT_MS);
  return (data as { waitedMs: number }).waitedMs;
}

/** One client: an item, its receipt, the next item. */
class Client {
  readonly keys: string[] = [];
  /** The longest gap between two commits before the first change. */
  quietGap = 0;
  private readonly at: number[] = [];
  private running = true;
  private readonly done: Promise<void>;

  constructor(
    private readonly cluster: PrivateCluster,
    private readonly to: string,
  ) {
    this.done = this.run();
  }

  async more(count: number): Promise<void> {
    const goal = this.keys.length + count;
    await this.cluster.waitFor(`${count} more items`, LIMIT_MS, () => this.keys.length >= goal || undefined);
    if (this.quietGap === 0) this.quietGap = this.longestGap(0);
  }

  longestGap(from: number): number {
    const since = this.at.filter((at) => at >= from);
    return Math.max(...since.slice(1).map((at, i) => at - since[i]!));
  }

  async stop(): Promise<void> {
    this.running = false;
    await this.done;
  }

  async compare(): Promise<{ lost: number; doubled: number }> {
    const height = Number((await this.cluster.status(this.to))?.['height']);
    const answer = await this.cluster.http(this.to, 'GET', `/v1/blocks?from=1&to=${height}`, { limitMs: LIMIT_MS });
    const found = new Map<string, number>();
    for (const line of answer.body.trim().split('\n')) {
      const content = decodeBlockData(
        new Uint8Array(Buffer.from((JSON.parse(line) as { data: string }).data, 'base64')),
      );
      if (content.format !== 'items') continue;
      for (const { key } of content.items) if (key) found.set(key, (found.get(key) ?? 0) + 1);
    }
    const lost = this.keys.filter((key) => !found.has(key)).length;
    return { lost, doubled: [...found.values()].filter((count) => count > 1).length };
  }

  private async run(): Promise<void> {
    for (let n = 0; this.running; n += 1) {
      const item = { key: `k${n}`, data: 'x'.repeat(200) };
      for (;;) {
        const answer = await this.cluster.submit(this.to, [item], 10_000).catch(() => null);
        if (answer?.status === 200) break;
      }
      this.keys.push(item.key);
      this.at.push(performance.now());
    }
  }
}
