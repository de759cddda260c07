// What the Lua and connection tests share: one identity, chains of blocks, a node in a known state, and a picture of
// all data. `withoutShortcuts` makes all of them go the plain way (plain-way.test.ts).
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import type { Block, NodeCall, NodeReply, ReplyTo } from '../../src/core/protocol/types.js';
import { RedisNode, type RedisNodeOptions } from '../../src/core/redis/node.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

export const IDENTITY = { cluster: 'test.1', lane: '' };
export const GENESIS = genesisHash('test', '');
export const A = 'seq-a/00000000000000aa';
export const B = 'seq-b/00000000000000bb';
export const LIMIT = 20_000;
export const TTL = 60_000;

/** Blocks 1…n (or n blocks on top of `after`), each with its own content. */
export function chain(n: number, after?: Block, salt = ''): Block[] {
  const blocks: Block[] = [];
  let parent = after;
  for (let i = 0; i < n; i += 1) {
    const height = (parent?.height ?? 0) + 1;
    parent = makeBlock({
      height,
      parent: parent?.hash ?? GENESIS,
      timestamp: 1000 + height,
      data: Buffer.from(`block ${height}${salt}`),
    });
    blocks.push(parent);
  }
  return blocks;
}

let plain = false;

/** From now on, nodes are opened without the fast append and the own RESP reader. Returns how to end that. */
export function withoutShortcuts(): () => void {
  plain = true;
  return () => {
    plain = false;
  };
}

/** A node as `seq` opens it: r1 of the test's identity, unless `options` say otherwise. */
export function nodeOf(options: Omit<RedisNodeOptions, 'id' | 'identity'> & Partial<RedisNodeOptions>): RedisNode {
  return new RedisNode({ id: 'r1', identity: IDENTITY, ...(plain ? { ownResp: false } : {}), ...options });
}

export function openNode(server: RedisServer, id = 'r1', lane = ''): RedisNode {
  return nodeOf({ id, url: server.url, identity: { ...IDENTITY, lane } });
}

export function plainClient(server: RedisServer): Redis {
  const client = new Redis(server.port, '127.0.0.1', {
    protocol: 2,
    retryStrategy: () => 50,
    maxRetriesPerRequest: 20,
  });
  client.on('error', () => undefined);
  return client;
}

export async function must<C extends NodeCall>(
  node: RedisNode,
  call: C,
): Promise<Extract<ReplyTo<C>, { outcome: 'accepted' }>> {
  const reply: NodeReply<unknown> = await node.call(call, LIMIT);
  if (reply.outcome !== 'accepted') throw new Error(`${call.script}: ${JSON.stringify(reply)}`);
  return reply as Extract<ReplyTo<C>, { outcome: 'accepted' }>;
}

export async function bootstrap(node: RedisNode, nonce = 'boot'): Promise<void> {
  await must(node, { script: 'bootstrap_prepare', nonce });
  await must(node, { script: 'bootstrap_commit', nonce });
}

export function write(
  block: Block,
  over: Partial<Extract<NodeCall, { script: 'write_block' }>> = {},
): Extract<NodeCall, { script: 'write_block' }> {
  const epoch = over.epoch ?? 1;
  return {
    script: 'write_block',
    owner: A,
    epoch,
    ttlMs: TTL,
    mode: 'append',
    block,
    entryEpoch: over.entryEpoch ?? epoch,
    ...over,
  };
}

/** A leads at epoch 1 and has written `blocks`. */
export async function lead(node: RedisNode, blocks: Block[] = []): Promise<void> {
  await bootstrap(node);
  await must(node, { script: 'promote_leader', owner: A, expectedEpoch: 0, ttlMs: TTL });
  await must(node, { script: 'claim', owner: A, epoch: 1 });
  for (const block of blocks) await must(node, write(block));
}

/** DUMP of every key (of a hash its fields), and how long each has left, to tell "nothing was changed" byte by byte. */
export async function picture(client: Redis): Promise<Record<string, string>> {
  const keys = (await client.keys('*')).sort();
  const result: Record<string, string> = {};
  for (const key of keys) {
    const expires = (await client.call('PEXPIRETIME', key)) as number;
    result[key] = `${await contents(client, key)} ${expires}`;
  }
  return result;
}

/** The fields of a hash may change their order without any change of value. */
async function contents(client: Redis, key: string): Promise<string> {
  if ((await client.type(key)) === 'hash') return JSON.stringify(Object.entries(await client.hgetall(key)).sort());
  return (await client.dumpBuffer(key))?.toString('base64') ?? '';
}

/** The call is refused with exactly this reason (and at least this detail), twice, and not a byte has changed. */
export async function refusedUnchanged(
  node: RedisNode,
  client: Redis,
  call: NodeCall,
  reason: string,
  detail: Record<string, unknown> = {},
): Promise<void> {
  const before = await picture(client);
  for (let round = 0; round < 2; round += 1) {
    const reply: NodeReply<unknown> = await node.call(call, LIMIT);
    if (reply.outcome !== 'refused' || reply.reason !== reason)
      throw new Error(`${call.script}: ${reason} expected, got ${JSON.stringify(reply)}`);
    for (const [name, value] of Object.entries(detail)) {
      const there = (reply.detail as Record<string, unknown>)[name];
      if (there !== value)
        throw new Error(
          `${call.script}: ${reason} with ${name} ${String(value)} expected, got ${JSON.stringify(reply)}`,
        );
    }
  }
  const after = await picture(client);
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (before[key] !== after[key]) throw new Error(`${call.script} refused with ${reason}, yet ${key} changed`);
  }
}

export interface OneServer {
  server: RedisServer;
  node: RedisNode;
  redis: Redis;
}

/** One server for all tests of a file, emptied before each: the node as `seq` opens it, and a plain client. */
export function withOneServer(opened: (one: OneServer) => void): void {
  let one: OneServer;
  beforeAll(async () => {
    const server = await startRedis();
    one = { server, node: openNode(server), redis: plainClient(server) };
    opened(one);
  });
  afterAll(async () => {
    await one.node.close();
    one.redis.disconnect();
    await one.server.stop();
  });
  beforeEach(async () => {
    await one.redis.flushall();
  });
}
