// Sees commits where they happen: it tails every node of a cluster of three.
import { Redis } from 'ioredis';

interface Commit {
  height: number;
  epoch: number;
  at: number;
  items: boolean;
}

/** Tails the streams of all nodes. A block counts once two nodes of three have shown it under one epoch. */
export class CommitWatch {
  private readonly commits: Commit[] = [];
  private readonly seen = new Map<string, number>();
  private stopped = false;
  private readonly clients: Redis[];

  constructor(ports: number[]) {
    this.clients = ports.map((port) => new Redis(port, '127.0.0.1', { protocol: 2 }));
    for (const client of this.clients) void this.follow(client);
  }

  /** Highest block of this epoch, or of any epoch. */
  last(epoch?: number): Commit | undefined {
    return this.commits
      .filter((one) => epoch === undefined || one.epoch === epoch)
      .reduce<Commit | undefined>(
        (best, one) => (best === undefined || one.height >= best.height ? one : best),
        undefined,
      );
  }

  /** The first block above `height` under a later epoch. With `items`, the first such block that holds items. */
  firstAfter(epoch: number, height: number, items = false): Commit | undefined {
    return this.commits
      .filter((one) => one.epoch > epoch && one.height > height && (one.items || !items))
      .sort((a, b) => a.at - b.at)[0];
  }

  /**
   * A round searches its own commits every other millisecond. With the commits of a hundred rounds, the search would
   * cost more than the measured work.
   */
  forget(): void {
    this.commits.length = 0;
    this.seen.clear();
  }

  private async follow(client: Redis): Promise<void> {
    let after = '$';
    while (!this.stopped) {
      const answer = await client
        .xread('COUNT', 100, 'BLOCK', 200, 'STREAMS', 'seq:block:stream', after)
        .catch(() => null);
      const at = Date.now();
      for (const [id, fields] of answer?.[0]?.[1] ?? []) {
        after = id;
        const count = (this.seen.get(id) ?? 0) + 1;
        this.seen.set(id, count);
        if (count !== 2) continue;
        const [height, epoch] = id.split('-').map(Number);
        this.commits.push({ height: height!, epoch: epoch!, at, items: fields[fields.indexOf('data') + 1] !== '' });
      }
    }
  }

  stop(): void {
    this.stopped = true;
    for (const client of this.clients) client.disconnect();
  }
}

/** The wall clock ms at which the lock has expired on two of three nodes. */
export async function leaseEnd(clients: Redis[]): Promise<number> {
  const ends = await Promise.all(
    clients.map(async (client) => Number(await client.call('PEXPIRETIME', 'seq:leader:lock'))),
  );
  return ends.sort((a, b) => a - b)[1]!;
}
