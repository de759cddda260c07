// Many lanes over the connections of one process to one server: what one lane is told is its own, and the server has
// five connections however many lanes there are.
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import type { RedisNode } from '../../src/core/redis/node.js';
import { LinePool } from '../../src/core/redis/shared/lines.js';
import type { Block } from '../../src/core/protocol/types.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { A, IDENTITY, LIMIT, must, nodeOf, plainClient, TTL } from './fixture.js';

let server: RedisServer;
let redis: Redis;
let pool: LinePool;
beforeAll(async () => {
  server = await startRedis();
  redis = plainClient(server);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
beforeEach(async () => {
  await redis.flushall();
  pool = new LinePool();
});
afterEach(() => pool.close());

const laneNode = (lane: string): RedisNode => nodeOf({ url: server.url, identity: { ...IDENTITY, lane }, pool });

/** A led node of that lane, with its first blocks. */
async function led(lane: string, count: number): Promise<{ node: RedisNode; blocks: Block[] }> {
  const node = laneNode(lane);
  await must(node, { script: 'bootstrap_prepare', nonce: 'n' });
  const { challenge } = (await must(node, { script: 'inspect' })).value;
  await must(node, { script: 'bootstrap_commit', nonce: 'n', challenge: challenge ?? '' });
  await must(node, { script: 'promote_leader', owner: A, expectedEpoch: 0, ttlMs: TTL });
  await must(node, { script: 'claim', owner: A, epoch: 1 });
  const blocks: Block[] = [];
  for (let height = 1; height <= count; height++) {
    const parent = blocks[height - 2]?.hash ?? genesisHash('test', lane);
    blocks.push(makeBlock({ height, parent, timestamp: 1000, data: Buffer.from(`${lane} ${height}`) }));
    await write(node, blocks.at(-1)!);
  }
  return { node, blocks };
}
const write = (node: RedisNode, block: Block) =>
  must(node, { script: 'write_block', owner: A, epoch: 1, ttlMs: TTL, mode: 'append', block, entryEpoch: 1 });

async function connections(): Promise<number> {
  return (
    String(await redis.client('LIST'))
      .trim()
      .split('\n').length - 1
  );
}

test('shared lines: each lane reads its own stream, with its own record', async () => {
  const lanes = ['a', 'a-b', 'b'];
  const all = await Promise.all(lanes.map((lane, i) => led(lane, i + 1)));
  const read = await Promise.all(all.map(({ node }) => node.tail('0-0', 5000, 10)));
  read.forEach((reply, i) => {
    expect(reply).toMatchObject({ outcome: 'accepted', incarnation: 'n' });
    const entries = reply.outcome === 'accepted' ? reply.value.entries : [];
    expect(entries.map(({ hash }) => hash)).toEqual(all[i]!.blocks.map(({ hash }) => hash));
  });
});

test('shared lines: an entry that comes later ends the wait of its own lane alone', async () => {
  const [a, b] = await Promise.all([led('a', 1), led('b', 1)]);
  const waits = { a: a.node.tail('1-1', 60_000, 10), b: b.node.tail('1-1', 300, 10) };
  // Nothing came in lane b: the answer still says whose memory it is.
  expect(await waits.b).toMatchObject({ outcome: 'accepted', incarnation: 'n', value: { entries: [], lastId: '' } });
  const next = makeBlock({ height: 2, parent: a.blocks[0]!.hash, timestamp: 1000, data: Buffer.from('next') });
  await write(a.node, next);
  expect(await waits.a).toMatchObject({ value: { entries: [{ hash: next.hash }], lastId: '2-1' } });
});

test('shared lines: a lane that is wiped shows no incarnation, the other one goes on', async () => {
  const [a, b] = await Promise.all([led('a', 1), led('b', 1)]);
  await redis.del('seq:a:node:admission');
  expect(await a.node.tail('0-0', 1000, 10)).toMatchObject({ outcome: 'accepted', incarnation: '' });
  expect(await b.node.tail('0-0', 1000, 10)).toMatchObject({ outcome: 'accepted', incarnation: 'n' });
});

test('shared lines: a released lock is told to the listeners of that lane alone, until they leave', async () => {
  const [a, b] = await Promise.all([led('a', 1), led('b', 1)]);
  const heard: string[] = [];
  const stopA = a.node.onHint((hint) => heard.push(`a ${hint}`));
  b.node.onHint((hint) => heard.push(`b ${hint}`));
  const subscribed = async () => ((await redis.pubsub('CHANNELS', 'seq:*')) as string[]).sort();
  await expect.poll(subscribed).toEqual(['seq:a:hints', 'seq:b:hints']);
  await must(a.node, { script: 'release_lock', owner: A });
  await expect.poll(() => heard).toEqual(['a released']);
  stopA();
  await expect.poll(subscribed).toEqual(['seq:b:hints']);
  await must(b.node, { script: 'release_lock', owner: A });
  await expect.poll(() => heard).toEqual(['a released', 'b released']);
});

test('shared lines: fifty lanes → five connections; one lane that closes leaves them open', async () => {
  const before = await connections();
  const nodes = Array.from({ length: 50 }, (_, i) => laneNode(`t${i}`));
  for (const node of nodes) node.onHint(() => undefined);
  await Promise.all(
    nodes.flatMap((node) => [node.prepare(LIMIT), node.tail('0-0', 50, 1), node.call({ script: 'inspect' }, LIMIT)]),
  );
  expect((await connections()) - before).toBe(5);
  await nodes[0]!.close();
  expect(await nodes[1]!.call({ script: 'inspect' }, LIMIT)).toMatchObject({ outcome: 'accepted' });
  pool.close();
  await expect.poll(connections).toBe(before);
});

test('shared lines: the connection is lost → every lane sees another generation, and what waited is unknown', async () => {
  const [a, b] = await Promise.all([led('a', 1), led('b', 1)]);
  const before = [a, b].map(({ node }) => node.connectionGeneration);
  const waits = [a.node.tail('1-1', 60_000, 1), b.node.tail('1-1', 60_000, 1)];
  await expect.poll(async () => String(await redis.client('LIST'))).toContain('cmd=xread');
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  for (const reply of await Promise.all(waits)) expect(reply.outcome).toBe('unknown');
  [a, b].forEach(({ node }, i) => expect(node.connectionGeneration).toBeGreaterThan(before[i]!));
  await expect.poll(() => a.node.call({ script: 'inspect' }, LIMIT)).toMatchObject({ outcome: 'accepted' });
});
