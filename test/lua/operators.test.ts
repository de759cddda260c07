import type { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import type { RedisNode } from '../../src/core/redis/node.js';
import type { Expectation, NodeCall, Presence } from '../../src/core/protocol/types.js';
import { A, bootstrap, lead, must, picture, refusedUnchanged, TTL, withOneServer } from './fixture.js';

let node: RedisNode;
let redis: Redis;
withOneServer((one) => ({ node, redis } = one));

const view = async () => (await must(node, { script: 'inspect' })).value;
const request = {
  id: 'q1',
  kind: 'repair' as const,
  to: '',
  plan: '{"a":1}',
  by: 'op@host',
  reason: 'Grund: ä',
  epoch: 1,
};

test('hold: set, seen, set anew, cleared, cleared again', async () => {
  await bootstrap(node);
  await must(node, { script: 'set_hold', by: 'op', reason: 'drill ü', ttlMs: TTL });
  await must(node, { script: 'set_hold', by: 'op2', reason: 'more', ttlMs: 5000 });
  expect((await view()).hold).toMatchObject({ by: 'op2', reason: 'more' });
  expect((await view()).hold?.pttlMs).toBeLessThanOrEqual(5000);
  await must(node, { script: 'clear_hold' });
  const cleared = await picture(redis);
  await must(node, { script: 'clear_hold' });
  expect(await picture(redis)).toEqual(cleared);
  expect((await view()).hold).toBeNull();
});

test('request: left, published, replaced, cleared by its own id only', async () => {
  await lead(node);
  const heard: string[] = [];
  const stop = node.onHint((hint) => heard.push(hint));
  await expect.poll(async () => ((await redis.call('PUBSUB', 'NUMSUB', 'seq:hints')) as [string, number])[1]).toBe(1);
  await must(node, { script: 'request_leader', request, ttlMs: TTL });
  await expect.poll(() => heard).toEqual(['request']);
  stop();
  expect((await view()).request).toEqual(request);
  await must(node, { script: 'request_leader', request: { ...request, id: 'q2' }, ttlMs: TTL });
  const before = await picture(redis);
  await must(node, { script: 'clear_request', id: 'q1' });
  expect(await picture(redis)).toEqual(before);
  await must(node, { script: 'clear_request', id: 'q2' });
  await must(node, { script: 'clear_request', id: 'q2' });
  expect((await view()).request).toBeNull();
});

describe('expectations', () => {
  const calls: ((expect: Expectation) => NodeCall)[] = [
    (expectation) => ({ script: 'set_hold', by: 'o', reason: 'r', ttlMs: TTL, expect: expectation }),
    (expectation) => ({ script: 'clear_hold', expect: expectation }),
    (expectation) => ({ script: 'request_leader', request, ttlMs: TTL, expect: expectation }),
  ];
  test.each(calls.map((make, index) => [index, make] as const))(
    'what is there differs → EXPECTATION with what is there (%i)',
    async (_index, make) => {
      await lead(node);
      await refusedUnchanged(node, redis, make({ leader: 'seq-b' }), 'EXPECTATION', { why: 'leader', actual: 'seq-a' });
      await refusedUnchanged(node, redis, make({ leader: '' }), 'EXPECTATION', { why: 'leader', actual: 'seq-a' });
      await refusedUnchanged(node, redis, make({ leader: 'seq-a', epoch: 2 }), 'EXPECTATION', {
        why: 'epoch',
        actual: '1',
      });
      await must(node, make({ leader: 'seq-a', epoch: 1 }));
      await must(node, { script: 'release_lock', owner: A });
      await refusedUnchanged(node, redis, make({ leader: 'seq-a' }), 'EXPECTATION', { why: 'leader', actual: '' });
      await must(node, make({ leader: '' }));
    },
  );
});

describe('presence', () => {
  const presence = (id: string, extra: Record<string, string> = {}): Omit<Presence, 'pttlMs'> => ({
    id,
    role: 'follower',
    height: 7,
    version: '0.1.0',
    url: 'http://127.0.0.1:1',
    pid: 42,
    configDigest: 'abc',
    extra,
  });
  test('announced, also before bootstrap → seen by inspect with all fields; expired → gone', async () => {
    await must(node, { script: 'announce', presence: presence('seq-b', { host: 'h', ttlMs: '3000' }), ttlMs: TTL });
    await must(node, { script: 'announce', presence: presence('seq-a'), ttlMs: TTL });
    await must(node, { script: 'announce', presence: { ...presence('seq-a'), role: 'leader', height: 8 }, ttlMs: TTL });
    const { sequencers } = await view();
    expect(sequencers.map((one) => one.id)).toEqual(['seq-a', 'seq-b']);
    expect(sequencers[0]).toMatchObject({ role: 'leader', height: 8 });
    expect(sequencers[1]).toMatchObject({ ...presence('seq-b'), extra: { host: 'h', ttlMs: '3000' } });
    await redis.del('seq:sequencer:seq-a');
    expect((await view()).sequencers.map((one) => one.id)).toEqual(['seq-b']);
  });
  test('the index forgets ids of yesterday and keeps the newest 64', async () => {
    await redis.zadd('seq:sequencers', Date.now() - 86_400_001 - 1000, 'old', Date.now() - 3600_000, 'recent');
    for (let i = 0; i < 70; i += 1) await must(node, { script: 'announce', presence: presence(`s${i}`), ttlMs: TTL });
    expect(await redis.zcard('seq:sequencers')).toBe(64);
    expect(await redis.zscore('seq:sequencers', 'old')).toBeNull();
    expect((await view()).sequencers).toHaveLength(64);
  });
  test("a stranger's hash under our name does not blind inspect", async () => {
    await must(node, { script: 'announce', presence: presence('seq-a'), ttlMs: TTL });
    await redis.zadd('seq:sequencers', Date.now(), 'odd', Date.now(), 'list');
    await redis.hset('seq:sequencer:odd', 'role', 'king');
    await redis.rpush('seq:sequencer:list', 'x');
    expect((await view()).sequencers.map((one) => one.id)).toEqual(['seq-a']);
  });
});

test('audit: records are appended as they are, the newest max_records stay', async () => {
  for (let i = 0; i < 5; i += 1)
    await must(node, { script: 'audit', record: { what: 'hold', n: String(i), reason: 'ß' }, maxRecords: 3 });
  const records = await redis.xrange('seq:ops:audit', '-', '+');
  expect(records.map((one) => one[1])).toEqual(['2', '3', '4'].map((n) => ['what', 'hold', 'n', n, 'reason', 'ß']));
});
