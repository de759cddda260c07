// How long nobody writes: from the end of a killed leader's lease to its successor's first commit (kill -9), and from the last commit of one
// leader to the first of the next (SIGTERM, eager). Real processes, three nodes, two sequencers, items waiting all the while.
// Commits are seen where they happen: a tail on every node; a block counts once two nodes have shown it.
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { rowOf, quantile, spread } from './harness/statistics.js';
import { atMost, type Bench, type Measuring } from './harness/words.js';

const BLOCK_MS = 100;
/** The published estimate: 100 ms until the expiry is noticed, 10 ms to take over. */
const PUBLISHED_MS = 110;
const LIMIT_MS = 20_000;

interface Commit { height: number; epoch: number; at: number }

/** Watches the streams of all nodes; `commits` grows with every block that two nodes have shown under one epoch. */
class Watch {
  readonly commits: Commit[] = [];
  private readonly seen = new Map<string, number>();
  private stopped = false;
  private readonly clients: Redis[];

  constructor(ports: number[]) {
    this.clients = ports.map((port) => new Redis(port, '127.0.0.1', { protocol: 2 }));
    for (const client of this.clients) void this.follow(client);
  }

  /** Highest block of this epoch, or of any. */
  last(epoch?: number): Commit | undefined {
    return this.commits.filter((one) => epoch === undefined || one.epoch === epoch).reduce<Commit | undefined>((best, one) => (best === undefined || one.height >= best.height ? one : best), undefined);
  }

  /** The first block above `height` under a later epoch. */
  firstAfter(epoch: number, height: number): Commit | undefined {
    return this.commits.filter((one) => one.epoch > epoch && one.height > height).sort((a, b) => a.at - b.at)[0];
  }

  private async follow(client: Redis): Promise<void> {
    let after = '$';
    while (!this.stopped) {
      const answer = await client.xread('COUNT', 100, 'BLOCK', 200, 'STREAMS', 'seq:block:stream', after).catch(() => null);
      const at = Date.now();
      for (const [id] of answer?.[0]?.[1] ?? []) {
        after = id;
        const count = (this.seen.get(id) ?? 0) + 1;
        this.seen.set(id, count);
        if (count !== 2) continue;
        const [height, epoch] = id.split('-').map(Number);
        this.commits.push({ height: height!, epoch: epoch!, at });
      }
    }
  }

  stop(): void {
    this.stopped = true;
    for (const client of this.clients) client.disconnect();
  }
}

/** When q nodes' locks have run out, wall clock ms. */
async function leaseEnd(clients: Redis[]): Promise<number> {
  const ends = await Promise.all(clients.map(async (client) => Number(await client.call('PEXPIRETIME', 'seq:leader:lock'))));
  return ends.sort((a, b) => a - b)[1]!;
}

/** One leader after the other is ended; ms per round. */
async function runs(on: Measuring, cluster: PrivateCluster, watch: Watch, clients: Redis[], signal: 'SIGKILL' | 'SIGTERM', count: number): Promise<{ gaps: number[]; beyondLease: number[] }> {
  const beyondLease: number[] = [];
  const gaps: number[] = [];
  for (let round = 1; round <= count; round += 1) {
    const leader = await cluster.waitForLeader(LIMIT_MS);
    // A hand-over is to somebody who could take over: the successor is measured, not its start.
    await cluster.waitFor('a successor that is ready', LIMIT_MS, async () => {
      const others = await Promise.all(cluster.sequencers.filter(({ name }) => name !== leader).map(({ name }) => cluster.status(name)));
      return others.some((status) => status?.['ready'] === true) || undefined;
    });
    await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 200));
    const { epoch } = await cluster.waitFor('a commit', LIMIT_MS, () => watch.last());
    process.kill(cluster.pid(leader), signal);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const end = signal === 'SIGKILL' ? await leaseEnd(clients) : 0;
    const next = await cluster.waitFor('the successor\'s first commit', LIMIT_MS, () => watch.firstAfter(epoch, watch.last(epoch)!.height), 2);
    gaps.push(next.at - watch.last(epoch)!.at);
    if (signal === 'SIGKILL') beyondLease.push(next.at - end);
    await cluster.waitFor('the old one to be gone', LIMIT_MS, () => cluster.state(leader) === 'dead' || undefined);
    await cluster.startProcess(leader);
    if (round % 10 === 0) on.say(`${signal}: ${round} of ${count}`);
  }
  return { gaps, beyondLease };
}

export const bench: Bench = {
  title: 'how long nobody writes: kill -9, and a planned hand-over',
  limitS: 150,
  async run(on) {
    const count = on.pick(100, 20);
    const ttlMs = on.pick(1000, 500);
    const cluster = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs, blockTimeMs: BLOCK_MS, eager: true });
    const ports = cluster.nodes.map((node) => node.port);
    const clients = ports.map((port) => new Redis(port, '127.0.0.1', { protocol: 2 }));
    const watch = new Watch(ports);
    let sending = true;
    const load = (async () => {
      for (let i = 0; sending; i += 1) {
        for (const { name } of cluster.sequencers) void cluster.submit(name, [{ key: `k${i}`, data: 'x'.repeat(200) }], 2000).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    const tenth = (values: number[]): number[][] => Array.from({ length: 10 }, (_, at) => values.filter((__, index) => index % 10 === at)).filter((list) => list.length > 0);
    const ratio = (values: number[], q: number) => ({ ...spread(tenth(values).map((part) => quantile(part, q) / PUBLISHED_MS)), value: quantile(values, q) / PUBLISHED_MS });
    try {
      if (on.wants('kill')) {
        const { gaps, beyondLease } = await runs(on, cluster, watch, clients, 'SIGKILL', count);
        on.table({ title: `kill -9, ttl ${ttlMs} ms, block time ${BLOCK_MS} ms`, unit: 'ms', rows: [rowOf('end of the lease → next commit', tenth(beyondLease), 0), rowOf('last commit → next commit', tenth(gaps), 0)] });
        on.figure({ what: 'kill -9: expiry → next commit, p50', value: quantile(beyondLease, 0.5), unit: 'ms', goal: atMost(10) });
        on.figure({ what: 'kill -9: expiry → next commit, p99', value: quantile(beyondLease, 0.99), unit: 'ms', goal: atMost(60) });
        on.ratio({ id: 'failover.kill.p50', what: `kill -9: expiry → next commit, over the published ${PUBLISHED_MS} ms`, ...ratio(beyondLease, 0.5), goal: atMost(10 / PUBLISHED_MS), tolerance: 1 });
      }
      if (on.wants('hand-over')) {
        const { gaps } = await runs(on, cluster, watch, clients, 'SIGTERM', count);
        on.table({ title: 'planned hand-over (SIGTERM), --eager, items waiting', unit: 'ms', rows: [rowOf('last commit of one → first of the other', tenth(gaps), 0)] });
        on.figure({ what: 'hand-over: last commit → first commit, p50', value: quantile(gaps, 0.5), unit: 'ms', goal: atMost(10) });
        on.figure({ what: 'hand-over: last commit → first commit, p99', value: quantile(gaps, 0.99), unit: 'ms', goal: atMost(40) });
        on.ratio({ id: 'failover.handover.p50', what: `hand-over: last → first commit, over the published ${PUBLISHED_MS} ms`, ...ratio(gaps, 0.5), goal: atMost(10 / PUBLISHED_MS), tolerance: 1 });
      }
      on.note('p99 of fewer than 100 runs is the worst run, or near it.');
    } finally {
      sending = false;
      await load;
      watch.stop();
      for (const client of clients) client.disconnect();
      await cluster.close();
    }
  },
};
