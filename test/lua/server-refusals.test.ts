// What Redis itself refuses: nothing was executed, or it is not a refusal (docs/PROTOCOL.md section 1).
import { rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import type { RedisNode } from '../../src/core/redis/node.js';
import type { Block, NodeCall } from '../../src/core/protocol/types.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import {
  A,
  B,
  chain,
  GENESIS,
  lead,
  LIMIT,
  must,
  nodeOf,
  openNode,
  picture,
  plainClient,
  refusedUnchanged,
  TTL,
  write,
} from './fixture.js';

const blocks = chain(5);
const at = (height: number): Block => blocks[height - 1] as Block;
const rival = chain(1, at(1), ' rival')[0] as Block;
const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function open(args: string[] = []): Promise<{ server: RedisServer; node: RedisNode; redis: Redis }> {
  const server = await startRedis({ args });
  const node = openNode(server);
  const redis = plainClient(server);
  closers.push(
    () => server.stop(),
    () => redis.disconnect(),
    () => node.close(),
  );
  return { server, node, redis };
}

/** One call of every script that writes, each of which would be accepted. */
const WRITES: NodeCall[] = [
  write(at(3)),
  write(rival, { epoch: 2, mode: 'repair' }),
  { script: 'claim', owner: A, epoch: 5 },
  { script: 'extend_lock', owner: A, epoch: 1, ttlMs: TTL },
  { script: 'rebase', owner: A, epoch: 1, floor: 9, floorHash: GENESIS, nonce: 'n', keepMs: TTL },
  { script: 'promote_leader', owner: 'seq-a/00000000000000ab', expectedEpoch: 1, ttlMs: TTL, previousOwner: A },
  { script: 'raise_epoch', value: 9, highestSeen: 9, mayDepose: true },
  { script: 'set_hold', by: 'o', reason: 'r', ttlMs: TTL },
  {
    script: 'request_leader',
    request: { id: 'q', kind: 'admit', to: '', plan: '', by: '', reason: '', epoch: 1 },
    ttlMs: TTL,
  },
  {
    script: 'announce',
    presence: { id: 's', role: 'follower', height: 0, version: '', url: '', pid: 1, configDigest: '', extra: {} },
    ttlMs: TTL,
  },
  { script: 'audit', record: { a: 'b' }, maxRecords: 5 },
  {
    script: 'note_lanes',
    version: '',
    entries: [{ name: 'a', text: '1 open 0a at=1 by=x' }],
    fills: { incarnation: 'boot', marks: true },
  },
  {
    script: 'begin_admission',
    owner: A,
    epoch: 1,
    nonce: 'n',
    floor: 0,
    floorHash: GENESIS,
    keepMs: TTL,
    replaces: 'boot',
  },
  { script: 'release_lock', owner: A },
];

test('OOM: a node without memory still commits, supersedes and trims; what can wait is refused, unharmed', async () => {
  const { node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  await redis.config('SET', 'maxmemory', '1');
  await must(node, write(rival, { epoch: 2, mode: 'repair' }));
  await must(node, write(chain(1, rival)[0] as Block, { epoch: 2, trim: { to: 1, hash: at(1).hash } }));
  await must(node, {
    script: 'promote_leader',
    owner: 'seq-a/00000000000000ab',
    expectedEpoch: 2,
    ttlMs: TTL,
    previousOwner: A,
  });
  await must(node, {
    script: 'begin_admission',
    owner: 'seq-a/00000000000000ab',
    epoch: 3,
    nonce: 'n',
    floor: 0,
    floorHash: GENESIS,
    keepMs: TTL,
    replaces: 'boot',
  });
  await refusedUnchanged(
    node,
    redis,
    { script: 'backfill', owner: 'seq-a/00000000000000ab', epoch: 3, nonce: 'n', block: at(1), entryEpoch: 1 },
    'OOM',
  );
  expect((await must(node, { script: 'inspect' })).value).toMatchObject({ admission: 'admitting', length: 0 });
});

test('READONLY: a replica refuses every write, inspect still answers', async () => {
  const { node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  await redis.call('REPLICAOF', '127.0.0.1', '1');
  for (const call of WRITES) await refusedUnchanged(node, redis, call, 'READONLY');
  expect((await must(node, { script: 'inspect' })).value).toMatchObject({ head: 2, info: { role: 'slave' } });
});

test('NOREPLICAS: too few replicas → refused, unchanged', async () => {
  const { node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  await redis.config('SET', 'min-replicas-to-write', '1');
  for (const call of WRITES) await refusedUnchanged(node, redis, call, 'NOREPLICAS');
});

test('MISCONF: snapshots fail → refused, unchanged', async () => {
  const { server, node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  await redis.config('SET', 'save', '3600 1000000');
  rmSync(server.dir, { recursive: true });
  await redis.bgsave();
  await expect.poll(() => redis.info('persistence')).toContain('rdb_last_bgsave_status:err');
  for (const call of WRITES) await refusedUnchanged(node, redis, call, 'MISCONF');
});

test('BUSY: a script that does not end → refused', async () => {
  const { node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  await redis.config('SET', 'lua-time-limit', '20');
  const busy = new Redis(redis.options.port as number, '127.0.0.1', { protocol: 2 });
  busy.on('error', () => undefined);
  closers.push(() => busy.disconnect());
  const endless = busy.eval('while true do end', 0).catch(() => 'killed');
  await expect.poll(() => node.call(write(at(3)), LIMIT)).toMatchObject({ outcome: 'refused', reason: 'BUSY' });
  await redis.call('SCRIPT', 'KILL');
  expect(await endless).toBe('killed');
  await must(node, write(at(3)));
});

test(
  'NOPERM: refused when nothing ran; after the first write it is unknown, with an alarm, and never ' +
    'looks like a refusal',
  async () => {
    const { server, node, redis } = await open();
    await lead(node, blocks.slice(0, 2));
    const as = (user: string, ...rules: string[]): Promise<RedisNode> =>
      redis.call('ACL', 'SETUSER', user, 'on', '>pw', '~*', '&*', '+@all', ...rules).then(() => {
        const mine = nodeOf({ url: server.url, username: user, password: 'pw' });
        closers.push(() => mine.close());
        return mine;
      });
    await refusedUnchanged(await as('noscripts', '-evalsha'), redis, write(at(3)), 'NOPERM');
    await refusedUnchanged(await as('noreads', '-hmget'), redis, write(at(3)), 'NOPERM');
    await refusedUnchanged(await as('noinfo', '-info'), redis, write(at(3)), 'NOPERM');
    await refusedUnchanged(await as('noexpire', '-pexpire'), redis, write(at(3)), 'NOPERM');
    await refusedUnchanged(await as('nokeys', 'resetkeys', '~other:*'), redis, write(at(3)), 'NOPERM');
    const half = await (await as('noadd', '-xadd')).call(write(at(3)), LIMIT);
    expect(half).toMatchObject({ outcome: 'unknown', step: 'reply', alarm: true });
    // Publishing comes last and is only a hint.
    await must(await as('nopublish', '-publish'), { script: 'release_lock', owner: A });
  },
);

test('SCRIPT FLUSH between calls: loaded again, run once', async () => {
  const { node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  await redis.script('FLUSH');
  await must(node, write(at(3)));
  expect(await redis.xlen('seq:block:stream')).toBe(3);
});

test('Redis Cluster: recognised by probe; its refusal of several keys is an alarm, not a no', async () => {
  const { node } = await open(['--cluster-enabled', 'yes']);
  expect(await node.probe(LIMIT)).toMatchObject({
    outcome: 'accepted',
    value: { clusterEnabled: true, version: /^\d/ },
  });
  expect(await node.call({ script: 'inspect' }, LIMIT)).toMatchObject({ outcome: 'unknown', alarm: true });
});

test('damaged entries: found by their hash, their fields, their id; the good ones are still there', async () => {
  const { node, redis } = await open();
  await lead(node, blocks.slice(0, 2));
  const fields = (block: Block, over: Record<string, string> = {}): string[] =>
    Object.entries({
      height: String(block.height),
      data: block.data.toString(),
      epoch: '1',
      timestamp: String(block.timestamp),
      parent: block.parent,
      hash: block.hash,
      owner: B,
      ...over,
    }).flat();
  await redis.xadd('seq:block:stream', '3-1', ...fields(at(3), { data: 'tampered' }));
  await redis.xadd('seq:block:stream', '4-1', ...fields(at(4), { height: '9' }));
  await redis.xadd('seq:block:stream', '5-1', 'height', '5', 'data', 'x', 'epoch', '1');
  await redis.xadd('seq:block:stream', '6-1', ...fields(at(5), { height: '6', timestamp: '1e3' }));
  await redis.xadd('seq:block:stream', '18446744073709551615-1', 'a', 'b');
  const read = async (data: boolean) => {
    const reply = await node.read({ from: 1, to: Infinity, limit: 99, data }, LIMIT);
    return reply.outcome === 'accepted'
      ? [
          reply.value.entries.map((one) => one.height),
          reply.value.damaged.map((one) => `${one.height} ${one.why}`),
          reply.value.lastId,
        ]
      : reply;
  };
  const shapes = [
    '4 its fields say 9-1',
    '5 field owner is missing',
    '6 field timestamp is not a whole number of at most 2^48',
    'null field height is missing',
  ];
  expect(await read(true)).toEqual([
    [1, 2],
    ['3 its hash is not that of its content', ...shapes],
    '18446744073709551615-1',
  ]);
  expect(await read(false)).toEqual([[1, 2, 3], shapes, '18446744073709551615-1']);
  expect(await picture(redis)).toEqual(await picture(redis));
});
