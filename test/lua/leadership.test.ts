import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RedisNode } from '../../src/core/redis/node.js';
import type { NodeCall } from '../../src/core/protocol/types.js';
import {
  A,
  B,
  bootstrap,
  chain,
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

const promote = (owner = A, expectedEpoch = 0, previousOwner?: string): NodeCall => ({
  script: 'promote_leader',
  owner,
  expectedEpoch,
  ttlMs: TTL,
  ...(previousOwner === undefined ? {} : { previousOwner }),
});

describe('promote_leader', () => {
  beforeEach(() => bootstrap(node));

  test('free lock, epoch as expected → lock, epoch + 1, claimant', async () => {
    expect((await must(node, promote())).value).toEqual({ epoch: 1 });
    expect((await must(node, { script: 'inspect' })).value).toMatchObject({
      lock: { owner: A },
      epoch: 1,
      claimant: A,
    });
  });
  test('the same call once more → LOCK_HELD, never a second epoch', async () => {
    await must(node, promote());
    await refusedUnchanged(node, redis, promote(), 'LOCK_HELD', { holder: A });
  });
  test('late copy after a release → EPOCH_MOVED', async () => {
    await must(node, promote());
    await must(node, { script: 'release_lock', owner: A });
    await refusedUnchanged(node, redis, promote(), 'EPOCH_MOVED', { epoch: 1 });
  });
  test('lock of another → LOCK_HELD with holder and time', async () => {
    await must(node, promote(B));
    await refusedUnchanged(node, redis, promote(A, 1), 'LOCK_HELD', { holder: B });
  });
  test('hold → HELD; a renewed term is not stopped', async () => {
    await must(node, promote());
    await must(node, { script: 'set_hold', by: 'op', reason: 'drill', ttlMs: TTL });
    const next = 'seq-a/00000000000000ac';
    expect((await must(node, promote(next, 1, A))).value).toEqual({ epoch: 2 });
    await must(node, { script: 'release_lock', owner: next });
    await refusedUnchanged(node, redis, promote(B, 2), 'HELD', { by: 'op', why: 'drill' });
    await refusedUnchanged(node, redis, promote(B, 2, next), 'HELD');
  });
  test('handover → HANDOVER for all but the one named', async () => {
    await must(node, promote());
    await must(node, { script: 'release_lock', owner: A, handover: { to: 'seq-b', ttlMs: TTL } });
    await refusedUnchanged(node, redis, promote('seq-c/00000000000000cc', 1), 'HANDOVER', { to: 'seq-b' });
    expect((await must(node, promote(B, 1))).value).toEqual({ epoch: 2 });
  });
  test('renewal of a term that is not there any more → as any other', async () => {
    await must(node, promote(B));
    await refusedUnchanged(node, redis, promote('seq-a/00000000000000ad', 1, A), 'LOCK_HELD', { holder: B });
  });
});

describe('claim', () => {
  test('higher epoch under my lock → raised, head returned, again → the same', async () => {
    const blocks = chain(2);
    await lead(node, blocks);
    const claim: NodeCall = { script: 'claim', owner: A, epoch: 5 };
    const first = await must(node, claim);
    expect(first.value).toMatchObject({ head: 2, headEpoch: 1, headHash: blocks[1]?.hash, floor: 0 });
    const between = await picture(redis);
    expect(await must(node, claim)).toEqual(first);
    expect(await picture(redis)).toEqual(between);
    expect(await redis.get('seq:epoch:token')).toBe('5');
  });
  test('lock of another, free lock, lower epoch, equal epoch of another → FENCING_ERROR', async () => {
    await lead(node);
    await refusedUnchanged(node, redis, { script: 'claim', owner: B, epoch: 9 }, 'FENCING_ERROR', {
      check: 'lock',
      holder: A,
    });
    await refusedUnchanged(node, redis, { script: 'claim', owner: A, epoch: 0 }, 'FENCING_ERROR', {
      check: 'epoch',
      epoch: 1,
    });
    await must(node, { script: 'release_lock', owner: A });
    await refusedUnchanged(node, redis, { script: 'claim', owner: A, epoch: 9 }, 'FENCING_ERROR', { check: 'lock' });
    await refusedUnchanged(node, redis, { script: 'claim', owner: B, epoch: 1, acquireTtlMs: TTL }, 'FENCING_ERROR', {
      check: 'epoch',
      epoch: 1,
    });
  });
  test('acquire: a free lock is taken for its full time, a lock of mine is not prolonged', async () => {
    await lead(node);
    await must(node, { script: 'release_lock', owner: A });
    await must(node, { script: 'claim', owner: A, epoch: 1, acquireTtlMs: 30_000 });
    expect(await redis.get('seq:leader:lock')).toBe(A);
    const until = await redis.call('PEXPIRETIME', 'seq:leader:lock');
    await must(node, { script: 'claim', owner: A, epoch: 2, acquireTtlMs: TTL });
    expect(await redis.call('PEXPIRETIME', 'seq:leader:lock')).toBe(until);
  });
});

describe('release_lock', () => {
  test('mine → gone and published; again → FENCING_ERROR', async () => {
    await lead(node);
    const heard: string[] = [];
    const stop = node.onHint((hint) => heard.push(hint));
    await expect.poll(async () => ((await redis.call('PUBSUB', 'NUMSUB', 'seq:hints')) as [string, number])[1]).toBe(1);
    await must(node, { script: 'release_lock', owner: A });
    await expect.poll(() => heard).toContain('released');
    stop();
    await refusedUnchanged(node, redis, { script: 'release_lock', owner: A }, 'FENCING_ERROR', { check: 'lock' });
  });
  test('mine, for somebody → whoever hears of it has to look whose it is', async () => {
    await lead(node);
    const heard: string[] = [];
    const stop = node.onHint((hint) => heard.push(hint));
    await expect.poll(async () => ((await redis.call('PUBSUB', 'NUMSUB', 'seq:hints')) as [string, number])[1]).toBe(1);
    await must(node, { script: 'release_lock', owner: A, handover: { to: 'x', ttlMs: TTL } });
    await expect.poll(() => heard).toContain('gone');
    stop();
    expect(heard).not.toContain('released');
  });
  test('of another → FENCING_ERROR with holder', async () => {
    await lead(node);
    await refusedUnchanged(
      node,
      redis,
      { script: 'release_lock', owner: B, handover: { to: 'x', ttlMs: TTL } },
      'FENCING_ERROR',
      { check: 'lock', holder: A },
    );
  });
  test('on a node that is not admitted → gone all the same', async () => {
    await lead(node);
    await redis.hset('seq:node:admission', 'run', '0'.repeat(40));
    await refusedUnchanged(node, redis, write(chain(1)[0]!), 'NOT_ADMITTED', { why: 'restarted' });
    await must(node, { script: 'release_lock', owner: A });
    expect(await redis.exists('seq:leader:lock')).toBe(0);
  });
});

describe('raise_epoch', () => {
  const raise = (value: number, over = {}): NodeCall => ({
    script: 'raise_epoch',
    value,
    highestSeen: 10,
    mayDepose: false,
    ...over,
  });
  test('free lock → raised, nobody is claimant; lower or equal → accepted with what is there', async () => {
    await bootstrap(node);
    expect((await must(node, raise(7))).value).toEqual({ epoch: 7 });
    const between = await picture(redis);
    expect((await must(node, raise(7))).value).toEqual({ epoch: 7 });
    expect((await must(node, raise(3))).value).toEqual({ epoch: 7 });
    expect(await picture(redis)).toEqual(between);
    await must(node, promote(A, 7));
  });
  test('lock held → WOULD_DEPOSE unless meant, or of the holder', async () => {
    await lead(node);
    await refusedUnchanged(node, redis, raise(7), 'WOULD_DEPOSE', { holder: A });
    await must(node, raise(7, { ofOwner: A }));
    await must(node, write(chain(1)[0]!, { epoch: 7 }));
    await must(node, raise(9, { mayDepose: true }));
    await refusedUnchanged(node, redis, write(chain(2)[1]!, { epoch: 9 }), 'FENCING_ERROR', {
      check: 'epoch',
      epoch: 9,
    });
  });
  test('more than 2^32 above the highest seen → BAD_ARGUMENT', async () => {
    await bootstrap(node);
    await refusedUnchanged(node, redis, raise(2 ** 32 + 11), 'BAD_ARGUMENT', { why: 'value' });
    await must(node, raise(2 ** 32 + 10));
  });
});

test(
  'hints: keyspace events of the lock are heard where they are switched on (case: release is a ' +
    'DEL, expiry is an x)',
  async () => {
    await redis.config('SET', 'notify-keyspace-events', 'Exg');
    await bootstrap(node);
    const heard: string[] = [];
    const stop = node.onHint((hint) => heard.push(hint));
    await expect
      .poll(async () => ((await redis.call('PUBSUB', 'NUMSUB', '__keyevent@0__:expired')) as [string, number])[1])
      .toBe(1);
    await must(node, { script: 'promote_leader', owner: A, expectedEpoch: 0, ttlMs: 30 });
    await expect
      .poll(async () => {
        await node.call({ script: 'inspect' }, LIMIT);
        return heard;
      })
      .toContain('gone');
    stop();
    await redis.config('SET', 'notify-keyspace-events', '');
  },
);
