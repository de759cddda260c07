// One lane that this process leads through the real port, without a sequencer. A commit is a write_block to every node,
// and it waits for q of them. Several lanes may share servers, so lanes with different length, size or options can be
// compared in the same rounds.
import { Redis } from 'ioredis';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { quorumOf } from '../../src/core/config.js';
import type { Block, NodeCall } from '../../src/core/protocol/types.js';
import { RedisNode, type RedisNodeOptions } from '../../src/core/redis/node.js';
import { startRedis, type RedisServer } from '../../test/support/redis-server.js';
import { nowAndThen } from '../harness/progress.js';

export const CLUSTER = 'bench';
export const OWNER = 'bench/0123456789abcdef';
const LIMIT_MS = 10_000;
const TTL_MS = 600_000;

export type Persistence = 'none' | 'everysec' | 'always';

/**
 * Resolves when `needed` promises have resolved. The rest may finish later. Rejects when `needed` cannot be reached any
 * more.
 */
export function someOf(works: readonly Promise<unknown>[], needed: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let done = 0;
    let failed = 0;
    for (const work of works) {
      work.then(
        () => {
          if (++done === needed) resolve();
        },
        (error: unknown) => {
          if (++failed > works.length - needed) reject(error as Error);
        },
      );
    }
  });
}

export class Servers {
  private constructor(
    readonly all: RedisServer[],
    readonly bare: Redis[],
  ) {}

  static async start(count: number, persist: Persistence, args: string[] = []): Promise<Servers> {
    const all: RedisServer[] = [];
    for (let at = 0; at < count; at += 1) all.push(await startRedis({ persist, args }));
    return new Servers(
      all,
      all.map((server) => new Redis(server.port, '127.0.0.1', { protocol: 2 })),
    );
  }

  get quorum(): number {
    return quorumOf(this.all.length);
  }

  /** Sends the same bytes to the same servers, and nothing else. */
  async set(key: string, data: Buffer): Promise<void> {
    await someOf(
      this.bare.map((client) => client.set(key, data)),
      this.quorum,
    );
  }

  /** One number of INFO per server. */
  async info(field: string): Promise<number[]> {
    return Promise.all(
      this.bare.map(async (client) =>
        Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(await client.info())?.[1] ?? NaN),
      ),
    );
  }

  /** The processor time of all server processes so far. This section of INFO alone is a small answer. */
  async processorSeconds(): Promise<number> {
    const answers = await Promise.all(this.bare.map((client) => client.info('cpu')));
    return answers
      .flatMap((text) => [...text.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)])
      .reduce((sum, [, seconds]) => sum + Number(seconds), 0);
  }

  async stop(): Promise<void> {
    for (const client of this.bare) client.disconnect();
    await Promise.all(this.all.map((server) => server.stop()));
  }
}

export class Lane {
  readonly nodes: RedisNode[];
  private tip: Block | undefined;
  private readonly hashes: string[];
  /** The last write to each node. Like a leader, a lane sends a node the next block when the node has answered. */
  private readonly under: Promise<unknown>[] = [];
  private readonly quorum: number;

  constructor(
    servers: Servers,
    readonly lane: string,
    private readonly retained: number,
    private readonly data: Buffer,
    options: Pick<RedisNodeOptions, 'fastAppend' | 'ownResp'> = {},
  ) {
    const identity = { cluster: `${CLUSTER}.1`, lane };
    this.nodes = servers.all.map(
      (server, at) => new RedisNode({ id: `r${at + 1}`, url: server.url, identity, ...options }),
    );
    this.hashes = [genesisHash(CLUSTER, lane)];
    this.quorum = servers.quorum;
  }

  get height(): number {
    return this.tip?.height ?? 0;
  }

  /** Admits, promotes and claims the nodes, then fills them with as many blocks as the lane retains. */
  async begin(progress: (text: string) => void = () => {}): Promise<this> {
    for (const node of this.nodes) {
      await accepted(node, { script: 'bootstrap_prepare', nonce: 'b' });
      await accepted(node, { script: 'bootstrap_commit', nonce: 'b' });
      await accepted(node, { script: 'promote_leader', owner: OWNER, expectedEpoch: 0, ttlMs: TTL_MS });
      await accepted(node, { script: 'claim', owner: OWNER, epoch: 1 });
    }
    const batch = Math.max(1, Math.min(500, Math.floor(4_000_000 / this.data.length)));
    const say = nowAndThen(progress);
    while (this.height < this.retained) {
      await this.fill(Math.min(batch, this.retained - this.height));
      say(`lane ${this.lane}: ${this.height} of ${this.retained} blocks`);
    }
    return this;
  }

  /** Writes `count` blocks, pipelined, to every node. */
  async fill(count: number): Promise<void> {
    const blocks = Array.from({ length: count }, () => ({ block: this.next(), entryEpoch: 1 }));
    const replies = await Promise.all(
      this.nodes.map((node) =>
        node.backfill({ owner: OWNER, epoch: 1, ttlMs: TTL_MS, mode: 'append', blocks }, 60_000),
      ),
    );
    const bad = replies.map((list) => list.at(-1)).find((reply) => reply?.outcome !== 'accepted');
    if (bad !== undefined) throw new Error(`filling lane ${this.lane}: ${JSON.stringify(bad)}`);
  }

  /**
   * Writes the next block to q nodes, and trims. Its content is ready before. Its hash is part of the work, as for a
   * leader.
   */
  async commit(): Promise<void> {
    const block = this.next();
    const to = block.height - 1 - this.retained;
    const write: NodeCall = {
      script: 'write_block',
      owner: OWNER,
      epoch: 1,
      ttlMs: TTL_MS,
      mode: 'append',
      block,
      entryEpoch: 1,
      ...(to > 0 ? { trim: { to, hash: this.hashes[to] as string } } : {}),
    };
    await someOf(
      this.nodes.map((node, at) => {
        const before = this.under[at];
        return (this.under[at] =
          before === undefined ? accepted(node, write) : before.then(() => accepted(node, write)));
      }),
      this.quorum,
    );
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()));
  }

  private next(): Block {
    const height = this.height + 1;
    this.tip = makeBlock({ height, parent: this.hashes[height - 1] as string, timestamp: 1, data: this.data });
    this.hashes[height] = this.tip.hash;
    return this.tip;
  }
}

export async function accepted(node: RedisNode, call: Parameters<RedisNode['call']>[0]): Promise<void> {
  const reply = await node.call(call, LIMIT_MS);
  if (reply.outcome !== 'accepted') throw new Error(`${call.script}: ${JSON.stringify(reply)}`);
}
