// A master that was a replica in between has another's memory, though it is the same process (docs/PROTOCOL.md
// section 8).
import { afterAll, expect, test } from 'vitest';
import type { Redis } from 'ioredis';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { chain, lead, LIMIT, must, openNode, plainClient, write } from './fixture.js';

const closers: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

async function open(): Promise<{ server: RedisServer; redis: Redis }> {
  const server = await startRedis();
  closers.push(() => server.stop());
  const redis = plainClient(server);
  closers.push(() => redis.disconnect());
  return { server, redis };
}
const info = (redis: Redis, field: string) => async (): Promise<string> =>
  new RegExp(`^${field}:(.*?)\r?$`, 'm').exec(await redis.info('replication'))?.[1] ?? '';
const follow = async (replica: Redis, master: RedisServer): Promise<void> => {
  await replica.replicaof('127.0.0.1', master.port);
  await expect.poll(info(replica, 'master_link_status'), { timeout: 120_000 }).toBe('up');
};

test(
  'failed over to a replica that lagged, and back → not admitted: restarted; a replica that only ' +
    'came and went changes nothing',
  async () => {
    const [first, second] = [await open(), await open()];
    const blocks = chain(4);
    const node = openNode(first.server);
    closers.push(() => node.close());
    await lead(node, blocks.slice(0, 2));
    await follow(second.redis, first.server);
    await must(node, write(blocks[2]!));
    await expect.poll(() => second.redis.xlen('seq:block:stream')).toBe(3);
    await second.redis.replicaof('NO', 'ONE');
    await must(node, write(blocks[3]!)); // acknowledged by the first alone
    await follow(first.redis, second.server);
    await first.redis.replicaof('NO', 'ONE');
    expect(await first.redis.xlen('seq:block:stream')).toBe(3);
    expect(await must(node, { script: 'inspect' })).toMatchObject({ value: { admission: 'restarted' } });
    expect(await node.call(write(blocks[3]!), LIMIT)).toMatchObject({
      outcome: 'refused',
      reason: 'NOT_ADMITTED',
      detail: { why: 'restarted' },
    });
    expect(
      await node.read({ from: 1, to: 9, limit: 9, data: false }, LIMIT),
      'what it holds counts towards nothing',
    ).toMatchObject({ outcome: 'accepted', incarnation: '' });
  },
  300_000,
);
