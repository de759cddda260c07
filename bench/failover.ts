// How long nobody writes: from the end of a killed leader's lease to its successor's first commit (kill -9), and from the last commit of one
// leader to the first of the next (SIGTERM). Real processes, three nodes, two sequencers, items waiting all the while.
// Commits are seen where they happen: a tail on every node; a block counts once two nodes have shown it.
// npm run bench -- failover [rounds, default 30] [kill|term|both]
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';

const rounds = Number(process.argv[2] ?? 30);
const which = process.argv[3] ?? 'both';
const TTL_MS = 1000;
const BLOCK_MS = 100;

interface Commit { height: number; epoch: number; at: number }

const quantile = (values: number[], q: number): number => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? NaN;
const row = (name: string, values: number[]): string =>
  `${name.padEnd(58)} n=${values.length}  p50 ${quantile(values, 0.5).toFixed(1)}  p90 ${quantile(values, 0.9).toFixed(1)}  p99 ${quantile(values, 0.99).toFixed(1)}  max ${Math.max(...values).toFixed(1)} ms\n`;

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

const cluster = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: TTL_MS, blockTimeMs: BLOCK_MS, eager: true });
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

try {
  for (const signal of (which === 'both' ? ['SIGKILL', 'SIGTERM'] : [which === 'kill' ? 'SIGKILL' : 'SIGTERM']) as NodeJS.Signals[]) {
    const beyondLease: number[] = [];
    const gaps: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const leader = await cluster.waitForLeader(20_000);
      await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 200));
      const epoch = watch.commits.at(-1)!.epoch;
      process.kill(cluster.pid(leader), signal);
      await new Promise((resolve) => setTimeout(resolve, 20));
      const end = signal === 'SIGKILL' ? await leaseEnd(clients) : 0;
      const next = await cluster.waitFor('the successor', 20_000, () => watch.commits.find((commit) => commit.epoch > epoch && commit.height > Math.max(...watch.commits.filter((one) => one.epoch === epoch).map((one) => one.height))), 5);
      const last = watch.commits.filter((commit) => commit.epoch === epoch).at(-1)!;
      gaps.push(next.at - last.at);
      if (signal === 'SIGKILL') beyondLease.push(next.at - end);
      await cluster.waitFor('the old one to be gone', 10_000, () => cluster.state(leader) === 'dead' || undefined);
      await cluster.startProcess(leader);
    }
    if (signal === 'SIGKILL') process.stdout.write(row(`kill -9: end of the lease (ttl ${TTL_MS} ms) → next commit`, beyondLease));
    process.stdout.write(row(signal === 'SIGKILL' ? 'kill -9: last commit → next commit' : 'SIGTERM: last commit of one → first commit of the other', gaps));
  }
} finally {
  sending = false;
  await load;
  watch.stop();
  for (const client of clients) client.disconnect();
  await cluster.close();
}
