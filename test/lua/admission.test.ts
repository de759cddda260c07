import type { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import type { RedisNode } from '../../src/core/redis/node.js';
import type { Block, NodeCall } from '../../src/core/protocol/types.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import {
  A,
  B,
  bootstrap,
  chain,
  GENESIS,
  IDENTITY,
  lead,
  LIMIT,
  must,
  nodeOf,
  openNode,
  picture,
  refusedUnchanged,
  TTL,
  write,
  withOneServer,
} from './fixture.js';

let server: RedisServer;
let node: RedisNode;
let redis: Redis;
withOneServer((one) => ({ server, node, redis } = one));

const blocks = chain(8);
const at = (height: number): Block => blocks[height - 1] as Block;
const RECORD = 'seq:node:admission';
const view = async (): Promise<Record<string, unknown>> => ({ ...(await must(node, { script: 'inspect' })).value });

/** Every call but inspect and those that do not ask for admission, well-formed. */
const NEEDS_ADMISSION: NodeCall[] = [
  { script: 'promote_leader', owner: B, expectedEpoch: 1, ttlMs: TTL },
  { script: 'claim', owner: A, epoch: 1 },
  write(chain(3)[2] as Block),
  { script: 'rebase', owner: A, epoch: 1, floor: 6, floorHash: GENESIS, nonce: 'n', keepMs: TTL },
  { script: 'raise_epoch', value: 5, highestSeen: 5, mayDepose: true },
  { script: 'set_hold', by: 'op', reason: 'r', ttlMs: TTL },
  { script: 'clear_hold' },
  {
    script: 'request_leader',
    request: { id: 'q', kind: 'repair', to: '', plan: '', by: '', reason: '', epoch: 1 },
    ttlMs: TTL,
  },
  { script: 'clear_request', id: 'q' },
  { script: 'extend_lock', owner: A, epoch: 1, ttlMs: TTL },
  { script: 'note_lanes', version: '', entries: [{ name: 'a', text: '1 open 0a at=1 by=x' }] },
  { script: 'read_lanes' },
];
const IDENTITY_ONLY: NodeCall[] = [
  { script: 'release_lock', owner: A },
  {
    script: 'announce',
    presence: { id: 's', role: 'follower', height: 0, version: '', url: '', pid: 1, configDigest: '', extra: {} },
    ttlMs: TTL,
  },
  { script: 'audit', record: { what: 'x' }, maxRecords: 3 },
  { script: 'bootstrap_prepare', nonce: 'other' },
  { script: 'bootstrap_commit', nonce: 'other' },
  { script: 'begin_admission', owner: A, epoch: 1, nonce: 'n', floor: 0, floorHash: GENESIS, keepMs: TTL },
  { script: 'backfill', owner: A, epoch: 1, nonce: 'n', block: chain(1)[0] as Block, entryEpoch: 1 },
  { script: 'admit', owner: A, epoch: 1, nonce: 'n', ttlMs: TTL, head: 0, headHash: GENESIS },
];

describe('identity', () => {
  test('another cluster, generation or node → WRONG_CLUSTER for every script but inspect', async () => {
    await lead(node, blocks.slice(0, 2));
    for (const [cluster, id, why, actual] of [
      ['test.2', 'r1', 'cluster', 'test.1'],
      ['prod.1', 'r1', 'cluster', 'test.1'],
      ['test.1', 'r2', 'node', 'r1'],
    ] as const) {
      const stranger = nodeOf({ id, url: server.url, identity: { cluster, lane: '' } });
      for (const call of [...NEEDS_ADMISSION, ...IDENTITY_ONLY])
        await refusedUnchanged(stranger, redis, call, 'WRONG_CLUSTER', { why, actual });
      expect((await must(stranger, { script: 'inspect' })).value).toMatchObject({
        admission: 'foreign',
        cluster: 'test.1',
        node: 'r1',
      });
      await stranger.close();
    }
  });
  test(
    'an asker that knows neither cluster nor id → not foreign; for everything else it is a stranger ' + 'all the same',
    async () => {
      await lead(node, blocks.slice(0, 2));
      const asker = nodeOf({ id: 'n1', url: server.url, identity: { cluster: '', lane: '' }, guessed: true });
      expect((await must(asker, { script: 'inspect' })).value).toMatchObject({
        admission: 'admitted',
        cluster: 'test.1',
        node: 'r1',
        head: 2,
      });
      for (const call of NEEDS_ADMISSION)
        await refusedUnchanged(asker, redis, call, 'WRONG_CLUSTER', { why: 'cluster', actual: 'test.1' });
      await asker.close();
    },
  );
  test('two lanes of one server know nothing of each other', async () => {
    await lead(node, blocks.slice(0, 2));
    const other = openNode(server, 'r1', 'blue');
    expect((await must(other, { script: 'inspect' })).value.admission).toBe('pristine');
    await bootstrap(other);
    expect((await must(other, { script: 'inspect' })).value).toMatchObject({ admission: 'admitted', head: 0 });
    expect((await view())['head']).toBe(2);
    await other.close();
  });
});

describe('bootstrap', () => {
  test('two phases → admitted at floor 0, epoch 0; each may be repeated', async () => {
    expect(await view()).toMatchObject({ admission: 'pristine', epoch: 0, cluster: '' });
    for (const call of NEEDS_ADMISSION) await refusedUnchanged(node, redis, call, 'NOT_ADMITTED', { why: 'wiped' });
    await must(node, { script: 'bootstrap_prepare', nonce: 'x' });
    await must(node, { script: 'bootstrap_prepare', nonce: 'x' });
    expect(await view()).toMatchObject({ admission: 'bootstrap', pending: 'bootstrap:x' });
    for (const call of NEEDS_ADMISSION) await refusedUnchanged(node, redis, call, 'NOT_ADMITTED', { why: 'bootstrap' });
    await refusedUnchanged(node, redis, { script: 'bootstrap_prepare', nonce: 'y' }, 'NOT_PRISTINE', {
      why: 'bootstrap',
    });
    await refusedUnchanged(node, redis, { script: 'bootstrap_commit', nonce: 'y' }, 'STALE_NONCE', {
      actual: 'bootstrap:x',
    });
    await must(node, { script: 'bootstrap_commit', nonce: 'x' });
    const done = await picture(redis);
    await must(node, { script: 'bootstrap_commit', nonce: 'x' });
    expect(await picture(redis)).toEqual(done);
    expect(await view()).toMatchObject({
      admission: 'admitted',
      incarnation: 'x',
      pending: '',
      epoch: 0,
      head: 0,
      headHash: GENESIS,
      floor: 0,
      floorHash: GENESIS,
      claimant: '',
    });
    await refusedUnchanged(node, redis, { script: 'bootstrap_prepare', nonce: 'x' }, 'NOT_PRISTINE', {
      why: 'admitted',
    });
    await refusedUnchanged(node, redis, { script: 'bootstrap_commit', nonce: 'y' }, 'STALE_NONCE');
    await must(node, { script: 'promote_leader', owner: A, expectedEpoch: 0, ttlMs: TTL });
    await refusedUnchanged(node, redis, { script: 'bootstrap_commit', nonce: 'x' }, 'STALE_NONCE');
  });
  test('any key of a former life → NOT_PRISTINE; commit without a mark → STALE_NONCE', async () => {
    await refusedUnchanged(node, redis, { script: 'bootstrap_commit', nonce: 'x' }, 'STALE_NONCE', { actual: '' });
    for (const [key, make] of [
      ['seq:epoch:token', () => redis.set('seq:epoch:token', '4')],
      ['seq:leader:lock', () => redis.set('seq:leader:lock', A)],
      ['seq:block:stream', () => redis.xadd('seq:block:stream', '1-1', 'a', 'b')],
      ['seq:block:orphans', () => redis.xadd('seq:block:orphans', '*', 'a', 'b')],
    ] as const) {
      await make();
      await refusedUnchanged(node, redis, { script: 'bootstrap_prepare', nonce: 'x' }, 'NOT_PRISTINE', {
        why: 'wiped',
      });
      expect((await view())['admission'], key).toBe('wiped');
      await redis.del(key);
    }
  });
  test('presence and audit records do not make a node old', async () => {
    await must(node, IDENTITY_ONLY[1] as NodeCall);
    await must(node, IDENTITY_ONLY[2] as NodeCall);
    await bootstrap(node);
  });
});

describe('memory', () => {
  const spoil: [string, string, () => Promise<unknown>][] = [
    ['run id of another process', 'restarted', () => redis.hset(RECORD, 'run', 'a'.repeat(40))],
    ['record gone', 'wiped', () => redis.del(RECORD)],
    ['epoch key gone', 'damaged', () => redis.del('seq:epoch:token')],
    ['epoch key not a number', 'damaged', () => redis.set('seq:epoch:token', '1e3')],
    ['epoch key of 2^48 + 1', 'damaged', () => redis.set('seq:epoch:token', '281474976710657')],
    ['epoch key of 2^53 - 1', 'damaged', () => redis.set('seq:epoch:token', '9007199254740991')],
    ['epoch key above 2^53', 'damaged', () => redis.set('seq:epoch:token', '9007199254740993')],
    ['an entry deleted', 'damaged', () => redis.xdel('seq:block:stream', '2-1')],
    ['the head deleted', 'damaged', () => redis.xdel('seq:block:stream', '4-1')],
    ['trimmed by hand', 'damaged', () => redis.xtrim('seq:block:stream', 'MAXLEN', 2)],
    ['an entry added', 'damaged', () => redis.xadd('seq:block:stream', '5-1', 'height', '5')],
    [
      'one deleted, one added',
      'damaged',
      async () => {
        await redis.xdel('seq:block:stream', '2-1');
        await redis.xadd('seq:block:stream', '4-2', 'height', '4');
      },
    ],
    ['stream gone', 'damaged', () => redis.del('seq:block:stream')],
    ['record without a head', 'damaged', () => redis.hdel(RECORD, 'head_hash')],
    ...['head', 'head_epoch', 'floor'].map((field): [string, string, () => Promise<unknown>] => [
      `record with a ${field} of 2^48 + 1`,
      'damaged',
      () => redis.hset(RECORD, field, '281474976710657'),
    ]),
    ['record with a head of nonsense', 'damaged', () => redis.hset(RECORD, 'head', '0x4')],
  ];
  test.each(spoil)('%s → NOT_ADMITTED %s', async (_what, why, act) => {
    await lead(node, blocks.slice(0, 4));
    await act();
    expect((await view())['admission']).toBe(why);
    for (const call of NEEDS_ADMISSION) await refusedUnchanged(node, redis, call, 'NOT_ADMITTED', { why });
  });
  test.each([['seq:leader:lock'], ['seq:epoch:token'], [RECORD], ['seq:block:stream']])(
    '%s of another type → WRONG_TYPE, inspect says damaged',
    async (key) => {
      await lead(node, blocks.slice(0, 4));
      await redis.del(key);
      await redis.rpush(key, 'x');
      for (const call of NEEDS_ADMISSION) await refusedUnchanged(node, redis, call, 'WRONG_TYPE', { why: key });
      expect(await view()).toMatchObject({ admission: 'damaged', admissionWhy: `${key} holds another type` });
    },
  );
  test.each([
    ['seq:leader:hold', { script: 'set_hold', by: 'o', reason: 'r', ttlMs: TTL }],
    ['seq:leader:request', NEEDS_ADMISSION[7]],
    [
      'seq:leader:handover',
      { script: 'promote_leader', owner: 'seq-a/00000000000000ab', previousOwner: A, expectedEpoch: 1, ttlMs: TTL },
    ],
    ['seq:leader:handover', { script: 'release_lock', owner: A }],
    ['seq:block:orphans', write(chain(1, at(3), ' rival')[0] as Block, { epoch: 2, mode: 'repair' })],
    ['seq:ops:audit', IDENTITY_ONLY[2]],
    ['seq:sequencers', IDENTITY_ONLY[1]],
    ['seq:sequencer:s', IDENTITY_ONLY[1]],
  ] as [string, NodeCall][])(
    '%s of another type → WRONG_TYPE for the script that writes it (%#)',
    async (key, call) => {
      await lead(node, blocks.slice(0, 4));
      await redis.rpush(key, 'x');
      await refusedUnchanged(node, redis, call, 'WRONG_TYPE', { why: key });
    },
  );
});

describe('real restarts', () => {
  const servers: RedisServer[] = [];
  afterEach(async () => {
    for (const one of servers.splice(0)) await one.stop();
  });
  test.each([
    ['always', 'restarted', 3],
    ['none', 'wiped', 0],
  ] as const)('append-only file %s, kill -9, start again → %s', async (persist, why, head) => {
    const own = await startRedis({ persist });
    servers.push(own);
    const mine = openNode(own);
    await lead(mine, blocks.slice(0, 3));
    const generation = mine.connectionGeneration;
    await own.restart();
    await expect
      .poll(async () => (await mine.call({ script: 'inspect' }, LIMIT)).outcome, { timeout: 120_000 })
      .toBe('accepted');
    expect(mine.connectionGeneration).toBeGreaterThan(generation);
    const seen = (await must(mine, { script: 'inspect' })).value;
    expect(seen).toMatchObject({ admission: why === 'wiped' ? 'pristine' : why, head, length: head });
    for (const call of NEEDS_ADMISSION)
      expect(await mine.call(call, LIMIT)).toMatchObject({
        outcome: 'refused',
        reason: 'NOT_ADMITTED',
        detail: { why },
      });
    await mine.close();
  });
});

describe('re-admission', () => {
  const begin = (over: Partial<Extract<NodeCall, { script: 'begin_admission' }>> = {}): NodeCall => ({
    script: 'begin_admission',
    owner: A,
    epoch: 4,
    nonce: 'n1',
    floor: 2,
    floorHash: at(2).hash,
    keepMs: TTL,
    ...over,
  });
  const fill = (
    block: Block,
    over: Partial<Extract<NodeCall, { script: 'backfill' }>> = {},
  ): Extract<NodeCall, { script: 'backfill' }> => ({
    script: 'backfill',
    owner: A,
    epoch: 4,
    nonce: 'n1',
    block,
    entryEpoch: 3,
    ...over,
  });
  const admit = (over: Partial<Extract<NodeCall, { script: 'admit' }>> = {}): NodeCall => ({
    script: 'admit',
    owner: A,
    epoch: 4,
    nonce: 'n1',
    ttlMs: TTL,
    head: 5,
    headHash: at(5).hash,
    ...over,
  });
  const spoil = async (): Promise<unknown> => redis.hset(RECORD, 'run', 'a'.repeat(40));

  test('begin, backfill, admit → counts again, under lock, epoch and incarnation of the admission', async () => {
    await lead(node, blocks.slice(0, 4));
    await spoil();
    await must(node, begin());
    expect(await view()).toMatchObject({
      admission: 'admitting',
      pending: 'n1',
      head: 2,
      headHash: at(2).hash,
      floor: 2,
      length: 0,
      incarnation: '',
    });
    expect(await redis.xlen('seq:block:orphans:n1')).toBe(4);
    for (const call of NEEDS_ADMISSION) await refusedUnchanged(node, redis, call, 'NOT_ADMITTED', { why: 'admitting' });
    const until = await redis.call('PEXPIRETIME', 'seq:leader:lock');
    for (const height of [3, 4, 5]) expect((await must(node, fill(at(height)))).value).toEqual({ head: height });
    const filled = await picture(redis);
    for (const height of [3, 5]) expect((await must(node, fill(at(height)))).value).toEqual({ head: 5 });
    expect(await picture(redis)).toEqual(filled);
    expect(await redis.call('PEXPIRETIME', 'seq:leader:lock')).toBe(until);
    expect(await redis.get('seq:epoch:token')).toBe('1');
    expect((await must(node, admit())).value).toEqual({
      head: 5,
      headEpoch: 3,
      headHash: at(5).hash,
      floor: 2,
      floorHash: at(2).hash,
    });
    expect(await view()).toMatchObject({
      admission: 'admitted',
      incarnation: 'n1',
      pending: '',
      epoch: 4,
      claimant: A,
      lock: { owner: A },
    });
    await must(node, write(at(6), { epoch: 4 }));
    await refusedUnchanged(node, redis, admit(), 'STALE_NONCE', { actual: '' });
    await refusedUnchanged(node, redis, begin(), 'STALE_NONCE', { actual: '' });
    await refusedUnchanged(node, redis, fill(at(6)), 'STALE_NONCE', { actual: '' });
  });
  test('wiped server → admitted from nothing', async () => {
    await must(node, begin({ floor: 4, floorHash: at(4).hash }));
    await must(node, fill(at(5)));
    await must(node, admit());
    expect(await view()).toMatchObject({ admission: 'admitted', epoch: 4, head: 5, floor: 4 });
  });
  test('backfill follows the height rules of a fresh stream that starts at the floor', async () => {
    await must(node, begin());
    const alien = chain(1, at(3), ' rival')[0] as Block;
    await refusedUnchanged(node, redis, fill(at(2)), 'TRIMMED', { floor: 2 });
    await refusedUnchanged(node, redis, fill(at(4)), 'GAP', { head: 2 });
    await refusedUnchanged(node, redis, fill(chain(3, undefined, ' rival')[2] as Block), 'PARENT_MISMATCH', {
      head: 2,
      hash: at(2).hash,
    });
    await must(node, fill(at(3)));
    await must(node, fill(at(4)));
    await refusedUnchanged(node, redis, fill(alien), 'CONFLICT', { epoch: 3, hash: at(4).hash });
    await refusedUnchanged(node, redis, fill(at(5), { entryEpoch: 5 }), 'BAD_ARGUMENT', { why: 'entry_epoch' });
    await refusedUnchanged(node, redis, admit(), 'NOT_READY', { head: 4, hash: at(4).hash });
  });
  test("not this term's, unknown nonce, restarted in between, stream meddled with → refused", async () => {
    await refusedUnchanged(node, redis, fill(at(3)), 'NOT_ADMITTED', { why: 'wiped' });
    await refusedUnchanged(node, redis, admit(), 'NOT_ADMITTED', { why: 'wiped' });
    await must(node, begin());
    for (const call of [fill(at(3), { nonce: 'zz' }), admit({ nonce: 'zz' })])
      await refusedUnchanged(node, redis, call, 'STALE_NONCE', { actual: 'n1' });
    for (const call of [
      fill(at(3), { owner: B }),
      admit({ owner: B }),
      fill(at(3), { epoch: 5 }),
      admit({ epoch: 5 }),
    ]) {
      await refusedUnchanged(node, redis, call, 'FENCING_ERROR', { check: 'epoch', epoch: 4 });
    }
    await must(node, fill(at(3)));
    await redis.xdel('seq:block:stream', '3-3');
    for (const call of [fill(at(4)), admit({ head: 3, headHash: at(3).hash })])
      await refusedUnchanged(node, redis, call, 'NOT_ADMITTED', { why: 'damaged' });
    await spoil();
    for (const call of [fill(at(4)), admit()])
      await refusedUnchanged(node, redis, call, 'NOT_ADMITTED', { why: 'restarted' });
  });
  test('another unfinished admission → only a higher epoch takes it over; a used nonce never', async () => {
    await must(node, begin());
    await must(node, fill(at(3)));
    await refusedUnchanged(node, redis, begin({ owner: B, nonce: 'n2' }), 'FENCING_ERROR', {
      check: 'epoch',
      epoch: 4,
    });
    await refusedUnchanged(node, redis, begin({ owner: A, nonce: 'n2', epoch: 3 }), 'FENCING_ERROR', {
      check: 'epoch',
      epoch: 4,
    });
    await must(node, begin({ nonce: 'n2' }));
    expect(await redis.exists('seq:block:stream')).toBe(0);
    await must(node, begin({ owner: B, nonce: 'n3', epoch: 5 }));
    await refusedUnchanged(node, redis, begin({ owner: B, nonce: 'n1', epoch: 6 }), 'STALE_NONCE', { actual: 'n3' });
    for (let i = 10; i < 30; i += 1) await must(node, begin({ owner: B, nonce: `m${i}`, epoch: i }));
    expect((await redis.hget(RECORD, 'used'))?.split(' ')).toHaveLength(16);
  });
  test(
    'an intact node → only under its own lock and epoch, and only the incarnation that was seen; the ' +
      'stream set aside is kept, the one before it goes',
    async () => {
      await lead(node, blocks.slice(0, 4));
      await refusedUnchanged(node, redis, begin({ owner: B }), 'FENCING_ERROR', { check: 'lock', holder: A });
      await refusedUnchanged(node, redis, begin({ epoch: 0 }), 'FENCING_ERROR', { check: 'epoch', epoch: 1 });
      const incarnation = String((await view())['incarnation']);
      await refusedUnchanged(node, redis, begin({ epoch: 1 }), 'STALE_NONCE', { actual: incarnation });
      await refusedUnchanged(node, redis, begin({ epoch: 1, replaces: 'another' }), 'STALE_NONCE', {
        actual: incarnation,
      });
      await must(node, begin({ epoch: 1, replaces: incarnation }));
      expect(await redis.xlen('seq:block:orphans:n1')).toBe(4);
      for (const height of [3, 4]) await must(node, fill(at(height), { epoch: 1, entryEpoch: 1 }));
      await must(node, admit({ epoch: 1, head: 4, headHash: at(4).hash }));
      await must(node, begin({ epoch: 1, nonce: 'n2', replaces: 'n1' }));
      expect(await redis.exists('seq:block:orphans:n1')).toBe(0);
      expect(await redis.xlen('seq:block:orphans:n2')).toBe(2);
    },
  );
  test('the node knows a higher epoch → FENCING_ERROR: it never falls', async () => {
    await lead(node, blocks.slice(0, 2));
    await spoil();
    await redis.set('seq:epoch:token', '9');
    await refusedUnchanged(node, redis, begin(), 'FENCING_ERROR', { check: 'epoch', epoch: 9 });
    await redis.set('seq:epoch:token', '3');
    await must(node, begin({ floor: 5, floorHash: at(5).hash }));
    await redis.set('seq:epoch:token', '9');
    await refusedUnchanged(node, redis, admit(), 'FENCING_ERROR', { check: 'epoch', epoch: 9 });
  });
  test('the mark of a bootstrap → taken like an empty node; no phase 2 finds its mark afterwards', async () => {
    await must(node, { script: 'bootstrap_prepare', nonce: 'x' });
    await must(node, begin());
    await refusedUnchanged(node, redis, { script: 'bootstrap_commit', nonce: 'x' }, 'STALE_NONCE', { actual: 'n1' });
  });
  test('a stream key of another type is set aside like any damage', async () => {
    await lead(node, blocks.slice(0, 2));
    await redis.del('seq:block:stream');
    await redis.rpush('seq:block:stream', 'x');
    await must(node, begin());
    expect(await redis.exists('seq:block:stream')).toBe(0);
    expect(IDENTITY.lane).toBe('');
    expect(await node.call({ script: 'inspect' }, LIMIT)).toMatchObject({ value: { admission: 'admitting' } });
  });
});
