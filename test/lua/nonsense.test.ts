// Zero, nonsense and numbers above 2^48 in every numeric argument of every script (case: `1e3`, `0x10`, epochs above
// 2^53).
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RedisNode } from '../../src/core/redis/node.js';
import { MAX_NUMBER, type Block, type NodeCall } from '../../src/core/protocol/types.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { A, chain, GENESIS, lead, LIMIT, must, openNode, picture, plainClient, TTL, write } from './fixture.js';

let server: RedisServer;
let node: RedisNode;
let redis: Redis;
const blocks = chain(4);
const next = blocks[3] as Block;
beforeAll(async () => {
  server = await startRedis();
  node = openNode(server);
  redis = plainClient(server);
  await lead(node, blocks.slice(0, 3));
});
afterAll(async () => {
  await node.close();
  redis.disconnect();
  await server.stop();
});

const NUMBERS = [
  '1e3',
  '0x10',
  '-1',
  '1.5',
  '',
  ' 1',
  '1 ',
  '01',
  '281474976710657',
  '9007199254740991',
  '9007199254740992',
  '99999999999999999999',
  'NaN',
  'Infinity',
  'ten',
];
const num = (text: string): number => text as unknown as number;

type Make = (text: string) => NodeCall;
const FIELDS: [string, Make][] = [
  ['promote_leader expectedEpoch', (x) => ({ script: 'promote_leader', owner: A, expectedEpoch: num(x), ttlMs: TTL })],
  ['promote_leader ttl', (x) => ({ script: 'promote_leader', owner: A, expectedEpoch: 1, ttlMs: num(x) })],
  ['claim epoch', (x) => ({ script: 'claim', owner: A, epoch: num(x) })],
  ['write_block epoch', (x) => write(next, { epoch: num(x), entryEpoch: 1 })],
  ['write_block ttl', (x) => write(next, { ttlMs: num(x) })],
  ['write_block height', (x) => write({ ...next, height: num(x) })],
  ['write_block timestamp', (x) => write({ ...next, timestamp: num(x) })],
  ['write_block entryEpoch', (x) => write(next, { entryEpoch: num(x) })],
  [
    'rebase epoch',
    (x) => ({ script: 'rebase', owner: A, epoch: num(x), floor: 9, floorHash: GENESIS, nonce: 'n', keepMs: TTL }),
  ],
  [
    'rebase floor',
    (x) => ({ script: 'rebase', owner: A, epoch: 1, floor: num(x), floorHash: GENESIS, nonce: 'n', keepMs: TTL }),
  ],
  [
    'rebase keep',
    (x) => ({ script: 'rebase', owner: A, epoch: 1, floor: 9, floorHash: GENESIS, nonce: 'n', keepMs: num(x) }),
  ],
  ['release_lock handover ttl', (x) => ({ script: 'release_lock', owner: A, handover: { to: 'b', ttlMs: num(x) } })],
  ['raise_epoch value', (x) => ({ script: 'raise_epoch', value: num(x), highestSeen: 5, mayDepose: true })],
  ['raise_epoch highestSeen', (x) => ({ script: 'raise_epoch', value: 5, highestSeen: num(x), mayDepose: true })],
  [
    'begin_admission epoch',
    (x) => ({
      script: 'begin_admission',
      owner: A,
      epoch: num(x),
      nonce: 'n',
      floor: 0,
      floorHash: GENESIS,
      keepMs: TTL,
    }),
  ],
  [
    'begin_admission floor',
    (x) => ({
      script: 'begin_admission',
      owner: A,
      epoch: 1,
      nonce: 'n',
      floor: num(x),
      floorHash: GENESIS,
      keepMs: TTL,
    }),
  ],
  ['backfill epoch', (x) => ({ script: 'backfill', owner: A, epoch: num(x), nonce: 'n', block: next, entryEpoch: 1 })],
  [
    'backfill height',
    (x) => ({ script: 'backfill', owner: A, epoch: 1, nonce: 'n', block: { ...next, height: num(x) }, entryEpoch: 1 }),
  ],
  [
    'backfill entryEpoch',
    (x) => ({ script: 'backfill', owner: A, epoch: 1, nonce: 'n', block: next, entryEpoch: num(x) }),
  ],
  [
    'admit epoch',
    (x) => ({ script: 'admit', owner: A, epoch: num(x), nonce: 'n', ttlMs: TTL, head: 0, headHash: GENESIS }),
  ],
  [
    'admit ttl',
    (x) => ({ script: 'admit', owner: A, epoch: 1, nonce: 'n', ttlMs: num(x), head: 0, headHash: GENESIS }),
  ],
  [
    'admit head',
    (x) => ({ script: 'admit', owner: A, epoch: 1, nonce: 'n', ttlMs: TTL, head: num(x), headHash: GENESIS }),
  ],
  ['extend_lock epoch', (x) => ({ script: 'extend_lock', owner: A, epoch: num(x), ttlMs: TTL })],
  ['extend_lock ttl', (x) => ({ script: 'extend_lock', owner: A, epoch: 1, ttlMs: num(x) })],
  ['set_hold ttl', (x) => ({ script: 'set_hold', by: 'o', reason: 'r', ttlMs: num(x) })],
  [
    'request_leader ttl',
    (x) => ({
      script: 'request_leader',
      request: { id: 'q', kind: 'admit', to: '', plan: '', by: '', reason: '', epoch: 1 },
      ttlMs: num(x),
    }),
  ],
  [
    'request_leader epoch',
    (x) => ({
      script: 'request_leader',
      request: { id: 'q', kind: 'admit', to: '', plan: '', by: '', reason: '', epoch: num(x) },
      ttlMs: TTL,
    }),
  ],
  [
    'announce ttl',
    (x) => ({
      script: 'announce',
      presence: { id: 's', role: 'follower', height: 0, version: '', url: '', pid: 1, configDigest: '', extra: {} },
      ttlMs: num(x),
    }),
  ],
  ['audit maxRecords', (x) => ({ script: 'audit', record: { a: 'b' }, maxRecords: num(x) })],
];
const ZERO_IS_NONSENSE = [
  'promote_leader ttl',
  'write_block ttl',
  'rebase keep',
  'release_lock handover ttl',
  'admit ttl',
  'set_hold ttl',
  'extend_lock ttl',
  'request_leader ttl',
  'announce ttl',
  'audit maxRecords',
];

test.each(FIELDS)('%s: nonsense → BAD_ARGUMENT, nothing changed', async (field, make) => {
  const before = await picture(redis);
  for (const text of ZERO_IS_NONSENSE.includes(field) ? [...NUMBERS, '0'] : NUMBERS) {
    expect(await node.call(make(text), LIMIT), `${field} '${text}'`).toMatchObject({
      outcome: 'refused',
      reason: 'BAD_ARGUMENT',
    });
  }
  expect(await picture(redis)).toEqual(before);
});

const ENTRY = '1 open 0a at=1 by=x';
const lanes = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `t${i}`, text: ENTRY }));
/** Entries that no version of seq writes. */
const ODD_ENTRIES: [string, string][] = [
  ['without a version', 'open 0a at=1 by=x'],
  ['version with a leading zero', '01 open 0a at=1 by=x'],
  ['version above 2^48', `${MAX_NUMBER + 1} open 0a at=1 by=x`],
  ['a state that there is not', '1 gone 0a at=1 by=x'],
  ['a writer that is no hex', '1 open 0A at=1 by=x'],
  ['no time', '1 open 0a by=x'],
  ['nobody', '1 open 0a at=1 by='],
  ['another character', '1 open 0a at=1 by=ö'],
  ['above 512 bytes', `${ENTRY}${'x'.repeat(512 - ENTRY.length + 1)}`],
];

const ODD: [string, NodeCall][] = [
  ['owner without a slash', { script: 'claim', owner: 'seq-a', epoch: 1 }],
  ['empty owner', { script: 'promote_leader', owner: '', expectedEpoch: 1, ttlMs: TTL }],
  ['empty nonce', { script: 'bootstrap_prepare', nonce: '' }],
  ['hash in capitals', write({ ...next, hash: next.hash.toUpperCase() })],
  ['short parent', write({ ...next, parent: 'ab' })],
  ['mode', write(next, { mode: 'force' as 'append' })],
  ["entry epoch above the writer's", write(next, { entryEpoch: 2 })],
  [
    'kind of request',
    {
      script: 'request_leader',
      request: { id: 'q', kind: 'dance' as 'admit', to: '', plan: '', by: '', reason: '', epoch: 1 },
      ttlMs: TTL,
    },
  ],
  [
    'plan above 64 KiB',
    {
      script: 'request_leader',
      request: { id: 'q', kind: 'admit', to: '', plan: 'x'.repeat(65_537), by: '', reason: '', epoch: 1 },
      ttlMs: TTL,
    },
  ],
  ['empty audit record', { script: 'audit', record: {}, maxRecords: 5 }],
  ['no lane', { script: 'note_lanes', version: '', entries: [] }],
  ['more lanes than a call takes', { script: 'note_lanes', version: '', entries: lanes(129) }],
  ['version of no configuration', { script: 'note_lanes', version: '1.x', entries: lanes(1) }],
  ['mark for no memory', { script: 'note_lanes', version: '', entries: [], fills: { incarnation: '', marks: true } }],
  ['name of a lane', { script: 'note_lanes', version: '', entries: [{ name: 'a:b', text: ENTRY }] }],
  ['lane without a name', { script: 'note_lanes', version: '', entries: [{ name: '', text: ENTRY }] }],
  ...ODD_ENTRIES.map(([what, text]): [string, NodeCall] => [
    `entry: ${what}`,
    { script: 'note_lanes', version: '', entries: [{ name: 'a', text }] },
  ]),
  ['expected epoch', { script: 'clear_hold', expect: { epoch: num('1e3') } }],
];
test.each(ODD)('%s → BAD_ARGUMENT, nothing changed', async (_what, call) => {
  const before = await picture(redis);
  expect(await node.call(call, LIMIT)).toMatchObject({ outcome: 'refused', reason: 'BAD_ARGUMENT' });
  expect(await picture(redis)).toEqual(before);
});

test('numbers: 2^48 is exact in and out, and is the end', async () => {
  const top = MAX_NUMBER;
  await redis.flushall();
  await lead(node);
  expect((await must(node, { script: 'claim', owner: A, epoch: top - 1 })).outcome).toBe('accepted');
  expect((await must(node, { script: 'inspect' })).value.epoch).toBe(top - 1);
  await must(node, write(blocks[0] as Block, { epoch: top, entryEpoch: top }));
  expect((await must(node, { script: 'inspect' })).value).toMatchObject({
    epoch: top,
    headEpoch: top,
    admission: 'admitted',
  });
  expect(await node.read({ from: 1, to: 1, limit: 1, data: true }, LIMIT)).toMatchObject({
    value: { entries: [{ epoch: top }], damaged: [], lastId: `1-${top}` },
  });
  await must(node, write(blocks[1] as Block, { epoch: top, entryEpoch: 1 }));
  expect(await node.call({ script: 'promote_leader', owner: A, expectedEpoch: top, ttlMs: TTL }, LIMIT)).toMatchObject({
    reason: 'BAD_ARGUMENT',
  });
});
