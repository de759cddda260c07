import { makeBlock } from '../../src/core/chain/block.js';
import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { RedisNode } from '../../src/core/redis/node.js';
import type { Block, NodeCall } from '../../src/core/protocol/types.js';
import {
  A,
  B,
  chain,
  GENESIS,
  lead,
  LIMIT,
  must,
  picture,
  refusedUnchanged,
  TTL,
  write,
  withOneServer,
} from './fixture.js';

let node: RedisNode;
let redis: Redis;
withOneServer((one) => ({ node, redis } = one));

const blocks = chain(8);
const at = (height: number): Block => blocks[height - 1] as Block;
const rival = (height: number): Block => chain(1, height === 1 ? undefined : at(height - 1), ' rival')[0] as Block;

describe('write_block', () => {
  test('1: next height → appended, lease renewed, all fields there, binary data unchanged', async () => {
    await lead(node);
    await redis.pexpire('seq:leader:lock', 5000);
    const block = makeBlock({
      height: 1,
      parent: GENESIS,
      timestamp: 7,
      data: Buffer.from([0, 255, 10, 13, 128, 0xc3, 0x28]),
    });
    expect((await must(node, write(block))).value).toEqual({ head: 1 });
    expect(await redis.pttl('seq:leader:lock')).toBeGreaterThan(50_000);
    const read = await node.read({ from: 1, to: 1, limit: 5, data: true }, LIMIT);
    expect(read).toMatchObject({ outcome: 'accepted', incarnation: 'boot', value: { damaged: [], lastId: '1-1' } });
    if (read.outcome !== 'accepted') return;
    const [entry] = read.value.entries;
    expect(entry).toMatchObject({
      height: 1,
      epoch: 1,
      owner: A,
      hash: block.hash,
      parent: GENESIS,
      timestamp: 7,
      size: 7,
    });
    expect(Buffer.from(entry?.data ?? []).equals(Buffer.from(block.data))).toBe(true);
  });
  test('1: first block on another chain, or next on another head → PARENT_MISMATCH', async () => {
    await lead(node);
    const alien = makeBlock({ height: 1, parent: 'ab'.repeat(32), timestamp: 7, data: Buffer.from('x') });
    await refusedUnchanged(node, redis, write(alien), 'PARENT_MISMATCH', { head: 0, epoch: 0, hash: GENESIS });
    await must(node, write(at(1)));
    const [, second] = chain(2, undefined, ' rival');
    await refusedUnchanged(node, redis, write(second as Block), 'PARENT_MISMATCH', {
      head: 1,
      epoch: 1,
      hash: at(1).hash,
    });
  });
  test('2: the head again → accepted, nothing written; under a higher epoch → re-stamped', async () => {
    await lead(node, blocks.slice(0, 3));
    const stream = await redis.dumpBuffer('seq:block:stream');
    expect((await must(node, write(at(3)))).value).toEqual({ head: 3 });
    expect(await redis.dumpBuffer('seq:block:stream')).toEqual(stream);
    await must(node, write(at(3), { epoch: 4, mode: 'repair' }));
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({
      head: 3,
      headEpoch: 4,
      length: 3,
      epoch: 4,
      admission: 'admitted',
    });
    const read = await node.read({ from: 1, to: 9, limit: 9, data: true }, LIMIT);
    expect(read.outcome === 'accepted' && read.value.entries.map((one) => `${one.height}-${one.epoch}`)).toEqual([
      '1-1',
      '2-1',
      '3-4',
    ]);
    // A copy with an older epoch is still the same block, and changes no epoch.
    await must(node, write(at(3), { epoch: 4, entryEpoch: 2, mode: 'repair' }));
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({ headEpoch: 4 });
  });
  test('3: another block at the head, same epoch → CONFLICT', async () => {
    await lead(node, blocks.slice(0, 3));
    for (const mode of ['append', 'repair'] as const) {
      await refusedUnchanged(node, redis, write(rival(3), { mode }), 'CONFLICT', { epoch: 1, hash: at(3).hash });
    }
  });
  test('3: another block at the head, lower epoch, append → HEIGHT_EXISTS with what is there', async () => {
    await lead(node, blocks.slice(0, 3));
    await refusedUnchanged(node, redis, write(rival(3), { epoch: 2 }), 'HEIGHT_EXISTS', { epoch: 1, hash: at(3).hash });
  });
  test('3: head of a higher epoch → HEIGHT_EXISTS, also for repair', async () => {
    await lead(node, blocks.slice(0, 2));
    await must(node, write(at(3), { epoch: 5 }));
    await refusedUnchanged(node, redis, write(rival(3), { epoch: 5, entryEpoch: 3, mode: 'repair' }), 'HEIGHT_EXISTS', {
      epoch: 5,
      hash: at(3).hash,
    });
  });
  test('3: another block, lower epoch, repair → superseded, the old one kept as evidence', async () => {
    await lead(node, blocks.slice(0, 3));
    const call = write(rival(3), { epoch: 2, mode: 'repair' });
    expect((await must(node, call)).value).toEqual({ head: 3 });
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({
      head: 3,
      headEpoch: 2,
      headHash: rival(3).hash,
      length: 3,
      admission: 'admitted',
    });
    const orphans = await redis.xrange('seq:block:orphans', '-', '+');
    expect(orphans).toHaveLength(1);
    const fields = orphans[0]?.[1] ?? [];
    expect(fields).toEqual(
      expect.arrayContaining([
        'height',
        '3',
        'hash',
        at(3).hash,
        'data',
        at(3).data.toString(),
        'superseded_by',
        rival(3).hash,
        'at',
      ]),
    );
    // Repeats are accepted and make no second orphan. The chain continues on the new head.
    await must(node, call);
    expect(await redis.xlen('seq:block:orphans')).toBe(1);
    await must(node, write(chain(1, rival(3))[0] as Block, { epoch: 2 }));
  });
  test('3: repair with another parent than the old entry has → CONFLICT', async () => {
    await lead(node, blocks.slice(0, 3));
    const block = makeBlock({ height: 3, parent: 'cd'.repeat(32), timestamp: 7, data: Buffer.from('x') });
    await refusedUnchanged(node, redis, write(block, { epoch: 2, mode: 'repair' }), 'CONFLICT', {
      epoch: 1,
      hash: at(3).hash,
    });
  });
  test('4: below the head → accepted for the same block, CONFLICT for another', async () => {
    await lead(node, blocks.slice(0, 4));
    const stream = await redis.dumpBuffer('seq:block:stream');
    expect((await must(node, write(at(2), { mode: 'repair' }))).value).toEqual({ head: 4 });
    expect(await redis.dumpBuffer('seq:block:stream')).toEqual(stream);
    await refusedUnchanged(node, redis, write(rival(2), { epoch: 3, mode: 'repair' }), 'CONFLICT', {
      epoch: 1,
      hash: at(2).hash,
    });
  });
  test('5: beyond the next height → GAP', async () => {
    await lead(node, blocks.slice(0, 2));
    await refusedUnchanged(node, redis, write(at(4)), 'GAP', { head: 2 });
  });
  test('trim: floor moves with an append, below it → TRIMMED; exact; never the last two', async () => {
    await lead(node, blocks.slice(0, 4));
    await must(node, write(at(5), { trim: { to: 3, hash: at(3).hash } }));
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({
      floor: 3,
      floorHash: at(3).hash,
      head: 5,
      length: 2,
      admission: 'admitted',
    });
    for (const height of [1, 3])
      await refusedUnchanged(node, redis, write(at(height), { mode: 'repair' }), 'TRIMMED', { floor: 3 });
    await refusedUnchanged(node, redis, write(at(6), { trim: { to: 5, hash: at(5).hash } }), 'BAD_ARGUMENT', {
      why: 'trim',
    });
    // If the floor is already there, nothing is done.
    await must(node, write(at(6), { trim: { to: 2, hash: at(2).hash } }));
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({ floor: 3, head: 6 });
  });
  test('fencing: another owner, lower epoch, equal epoch of another term → FENCING_ERROR (I3)', async () => {
    await lead(node, blocks.slice(0, 2));
    await refusedUnchanged(node, redis, write(at(3), { owner: B, epoch: 9 }), 'FENCING_ERROR', {
      check: 'lock',
      holder: A,
    });
    await must(node, { script: 'claim', owner: A, epoch: 4 });
    await refusedUnchanged(node, redis, write(at(3), { epoch: 3 }), 'FENCING_ERROR', { check: 'epoch', epoch: 4 });
    await redis.set('seq:leader:lock', B);
    await refusedUnchanged(node, redis, write(at(3), { owner: B, epoch: 4 }), 'FENCING_ERROR', {
      check: 'epoch',
      epoch: 4,
    });
    await redis.del('seq:leader:lock');
    await refusedUnchanged(node, redis, write(at(3), { epoch: 4 }), 'FENCING_ERROR', { check: 'lock' });
  });
  test('a higher epoch under my lock raises the node', async () => {
    await lead(node, blocks.slice(0, 2));
    await must(node, write(at(2), { epoch: 8, entryEpoch: 1, mode: 'repair' }));
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({ epoch: 8, headEpoch: 1, claimant: A });
  });
  test('a request for this epoch comes with the reply, one for another epoch does not', async () => {
    await lead(node);
    const request = { id: 'q1', kind: 'stepdown' as const, to: 'seq-b', plan: 'p', by: 'op', reason: 'why', epoch: 1 };
    await must(node, { script: 'request_leader', request, ttlMs: TTL });
    expect((await must(node, write(at(1)))).value).toEqual({ head: 1, request });
    expect((await must(node, write(at(2), { epoch: 2 }))).value).toEqual({ head: 2 });
    await redis.del('seq:leader:request');
    await redis.set('seq:leader:request', 'not a hash');
    expect((await must(node, write(at(3), { epoch: 2 }))).value).toEqual({ head: 3 });
  });
  test('orphans are capped by bytes: the newest stays', async () => {
    await lead(node);
    const data = Buffer.alloc(9 * 1024 * 1024, 7);
    for (let epoch = 1; epoch <= 6; epoch += 1) {
      data[0] = epoch;
      const block = makeBlock({ height: 1, parent: GENESIS, timestamp: epoch, data });
      await must(node, write(block, { epoch, mode: 'repair' }));
    }
    expect(await redis.xlen('seq:block:orphans')).toBe(3);
    const newest = await redis.xrevrange('seq:block:orphans', '+', '-', 'COUNT', 1);
    expect(newest[0]?.[1]).toEqual(expect.arrayContaining(['epoch', '5']));
  });
});

describe('backfill (pipelined write_block)', () => {
  test('a run of blocks → one reply each; it stops at the first that is not accepted', async () => {
    await lead(node, blocks.slice(0, 2));
    const batch = (list: Block[]) => ({
      owner: A,
      epoch: 1,
      ttlMs: TTL,
      mode: 'repair' as const,
      blocks: list.map((block) => ({ block, entryEpoch: 1 })),
    });
    await redis.script('FLUSH');
    const replies = await node.backfill(batch(blocks.slice(2, 6)), LIMIT);
    expect(replies.map((reply) => reply.outcome === 'accepted' && reply.value.head)).toEqual([3, 4, 5, 6]);
    const mixed = await node.backfill(batch([at(7), rival(7), at(8)]), LIMIT);
    expect(mixed.map((reply) => (reply.outcome === 'refused' ? reply.reason : reply.outcome))).toEqual([
      'accepted',
      'CONFLICT',
    ]);
    expect(await node.backfill(batch([]), LIMIT)).toEqual([]);
  });
});

describe('rebase', () => {
  const rebase = (over: Partial<Extract<NodeCall, { script: 'rebase' }>> = {}): NodeCall => ({
    script: 'rebase',
    owner: A,
    epoch: 1,
    floor: 6,
    floorHash: at(6).hash,
    nonce: 'n1',
    keepMs: TTL,
    ...over,
  });
  test('behind → stream set aside with a time, floor = head, still admitted; appends go on', async () => {
    await lead(node, blocks.slice(0, 3));
    expect((await must(node, rebase())).value).toEqual({
      head: 6,
      headEpoch: 0,
      headHash: at(6).hash,
      floor: 6,
      floorHash: at(6).hash,
    });
    expect(await redis.xlen('seq:block:orphans:n1')).toBe(3);
    expect(await redis.pttl('seq:block:orphans:n1')).toBeGreaterThan(0);
    await must(node, write(at(7)));
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({
      head: 7,
      floor: 6,
      length: 1,
      admission: 'admitted',
      incarnation: 'boot',
      epoch: 1,
    });
    await must(node, rebase({ floor: 100, nonce: 'n2' }));
    expect(await redis.exists('seq:block:orphans:n1')).toBe(0);
    expect(await redis.xlen('seq:block:orphans:n2')).toBe(1);
  });
  test('not behind, or fenced → refused', async () => {
    await lead(node, blocks.slice(0, 6));
    await refusedUnchanged(node, redis, rebase(), 'NOT_BEHIND', { head: 6 });
    await refusedUnchanged(node, redis, rebase({ floor: 100, owner: B }), 'FENCING_ERROR', {
      check: 'lock',
      holder: A,
    });
    await refusedUnchanged(node, redis, rebase({ floor: 100, epoch: 0 }), 'FENCING_ERROR', { check: 'epoch' });
  });
});

test('reading: ranges, newest first, limits, and no incarnation on a node that is not admitted', async () => {
  await lead(node, blocks);
  const heights = async (range: Parameters<RedisNode['read']>[0]): Promise<unknown> => {
    const reply = await node.read(range, LIMIT);
    return reply.outcome === 'accepted' ? reply.value.entries.map((one) => one.height) : reply;
  };
  expect(await heights({ from: 3, to: 5, limit: 9, data: true })).toEqual([3, 4, 5]);
  expect(await heights({ from: 0, to: 2 ** 53, limit: 2, data: false })).toEqual([1, 2]);
  expect(await heights({ from: 0, to: 5, limit: 2, data: false, newestFirst: true })).toEqual([5, 4]);
  expect(await heights({ from: 5, to: 4, limit: 2, data: false })).toEqual([]);
  await redis.hset('seq:node:admission', 'run', 'f'.repeat(40));
  expect(await node.read({ from: 1, to: 1, limit: 1, data: false }, LIMIT)).toMatchObject({
    outcome: 'accepted',
    incarnation: '',
  });
  await redis.hset('seq:node:admission', 'cluster', 'other.1');
  expect(await node.read({ from: 1, to: 1, limit: 1, data: false }, LIMIT)).toMatchObject({
    outcome: 'refused',
    reason: 'WRONG_CLUSTER',
  });
});

test('tail: waits for what comes next, on a connection of its own', async () => {
  await lead(node, blocks.slice(0, 2));
  expect(await node.tail('', 50, 10)).toMatchObject({ value: { lastId: '2-1' } });
  const waiting = node.tail('2-1', 5000, 10);
  await must(node, write(at(3)));
  expect(await waiting).toMatchObject({
    outcome: 'accepted',
    incarnation: 'boot',
    value: { lastId: '3-1', entries: [{ height: 3, hash: at(3).hash }] },
  });
  const before = await picture(redis);
  expect(await node.tail('3-1', 20, 10)).toMatchObject({ outcome: 'accepted', value: { entries: [], lastId: '' } });
  expect(await picture(redis)).toEqual(before);
});
