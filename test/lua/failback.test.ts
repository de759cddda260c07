// Whose memory is it? One row for each act that gives the data of a server another history, or another name
// (docs/PROTOCOL.md section 8). What may have been forgotten counts no more, for any verb, now and later. What was not
// forgotten goes on, on the connection that was there all the time; and no such act makes a node useless for ever.
import { afterEach, describe, expect, test } from 'vitest';
import type { Redis } from 'ioredis';
import type { NodeCall, NodeView } from '../../src/core/protocol/types.js';
import type { RedisNode } from '../../src/core/redis/node.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { A, bootstrap, chain, lead, LIMIT, must, openNode, plainClient, TTL, write } from './fixture.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Server {
  server: RedisServer;
  redis: Redis;
}
// No ping to a replica: it would put the history of the master ahead by itself.
const ARGS = ['--enable-debug-command', 'yes', '--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '3600'];

async function open(args: string[] = []): Promise<Server> {
  const server = await startRedis({ args: [...ARGS, ...args] });
  closers.push(() => server.stop());
  const redis = plainClient(server);
  closers.push(() => redis.disconnect());
  return { server, redis };
}
function nodeAt({ server }: Server, id = 'r1'): RedisNode {
  const node = openNode(server, id);
  closers.push(() => node.close());
  return node;
}
async function field(redis: Redis, name: string): Promise<string> {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(await redis.info('replication'))?.[1] ?? '';
}
async function follow(replica: Redis, { server }: Server): Promise<void> {
  await replica.replicaof('127.0.0.1', server.port);
  await expect.poll(() => field(replica, 'master_link_status'), { timeout: 60_000 }).toBe('up');
}
/** The replica has all that the master has said: it can be promoted, and the master goes on from it in part. */
async function caughtUp(replica: Redis, { redis }: Server): Promise<void> {
  await expect
    .poll(() => field(replica, 'slave_repl_offset'), { timeout: 60_000 })
    .toBe(await field(redis, 'master_repl_offset'));
}
async function view(node: RedisNode): Promise<NodeView> {
  return (await must(node, { script: 'inspect' })).value;
}
/** Polls as a sequencer does. The second answer makes the node watch. */
async function poll(node: RedisNode): Promise<NodeView> {
  await view(node);
  await view(node);
  await node.probe(LIMIT); // behind the WATCH, on the same connection
  return view(node);
}

const blocks = chain(6);

/** Puts the server under another one, and back. */
async function thereAndBack({ redis }: Server, other: Server): Promise<void> {
  await follow(redis, other);
  await redis.replicaof('NO', 'ONE');
}

/** A third block, as a leader writes it. */
async function appendByHand({ redis }: Server): Promise<void> {
  const { height, hash, parent, timestamp, data } = blocks[2]!;
  const entry = { height, data, epoch: 1, timestamp, parent, hash, owner: A };
  await redis.xadd(
    'seq:block:stream',
    '3-1',
    ...Object.entries(entry)
      .flat()
      .map((one) => one as string),
  );
  await redis.hset('seq:node:admission', 'head', height, 'head_hash', hash);
}

/** What is done to the server of the node while a sequencer is connected; `other` is another server, empty at first. */
const ACTS: [name: string, act: (one: Server, other: Server) => Promise<unknown>, says: string, args?: string[]][] = [
  ['a first replica is attached', async (one, other) => follow(other.redis, one), 'admitted'],
  [
    'a first replica is attached, and the last one has been gone for long',
    async (one, other) => {
      await follow(other.redis, one);
      const before = await field(one.redis, 'master_replid');
      await other.redis.replicaof('NO', 'ONE');
      await expect.poll(() => field(one.redis, 'master_replid'), { timeout: 60_000 }).not.toBe(before);
    },
    'admitted',
    ['--repl-backlog-ttl', '1'],
  ],
  ['DEBUG CHANGE-REPL-ID', ({ redis }) => redis.call('DEBUG', 'CHANGE-REPL-ID'), 'admitted'],
  [
    'a replica of nobody, and back',
    async ({ redis }) => {
      await redis.replicaof('127.0.0.1', 1);
      await redis.replicaof('NO', 'ONE');
    },
    'admitted',
  ],
  [
    'a replica of its replica, in part, and back',
    async (one, other) => {
      await follow(other.redis, one);
      await caughtUp(other.redis, one);
      await other.redis.replicaof('NO', 'ONE');
      await thereAndBack(one, other);
    },
    'admitted',
  ],
  [
    'a replica of a lagging replica, in full, and back',
    async (one, other) => {
      await follow(other.redis, one);
      await other.redis.replicaof('NO', 'ONE');
      await appendByHand(one);
      await thereAndBack(one, other);
      expect(await one.redis.xlen('seq:block:stream'), 'a block is forgotten').toBe(2);
    },
    'restarted',
  ],
  [
    'the same, and the copy is loaded beside the old data (swapdb)',
    async (one, other) => {
      await follow(other.redis, one);
      await other.redis.replicaof('NO', 'ONE');
      await appendByHand(one);
      await thereAndBack(one, other);
      expect(await one.redis.xlen('seq:block:stream'), 'a block is forgotten').toBe(2);
    },
    'restarted',
    ['--repl-diskless-load', 'swapdb'],
  ],
  [
    'the same, and the server forgets that it was a replica',
    async (one, other) => {
      await follow(other.redis, one);
      await other.redis.replicaof('NO', 'ONE');
      await appendByHand(one);
      await thereAndBack(one, other);
      await expect.poll(() => field(one.redis, 'master_replid2'), { timeout: 60_000 }).toMatch(/^0+$/);
    },
    'restarted',
    ['--repl-backlog-ttl', '1'],
  ],
];

describe.each(ACTS)('%s', (_name, act, says, args) => {
  test(`while a sequencer is connected → ${says}, for the writer as for the reader`, async () => {
    const [one, other] = [await open(args), await open()];
    const node = nodeAt(one);
    await lead(node, blocks.slice(0, 2));
    await poll(node);
    await act(one, other);
    expect((await view(node)).admission).toBe(says);
    await expectSame(node, says);
    // A second sequencer, and the same one a while later, say so too.
    expect((await poll(nodeAt(one))).admission).toBe(says);
    expect((await poll(node)).admission).toBe(says);
  }, 120_000);

  test('while nobody is connected → it does not count by itself; re-admission takes it', async () => {
    const [one, other] = [await open(args), await open()];
    const node = nodeAt(one);
    await lead(node, blocks.slice(0, 2));
    await node.close();
    await act(one, other);
    const later = nodeAt(one);
    const shown = await poll(later);
    expect(shown.admission).toBe('restarted');
    await expectSame(later, 'restarted');
    const begin: NodeCall = {
      script: 'begin_admission',
      owner: A,
      epoch: 2,
      nonce: 'again',
      floor: 2,
      floorHash: blocks[1]!.hash,
      keepMs: TTL,
    };
    await must(later, begin);
    const facts = { head: 2, headHash: blocks[1]!.hash };
    await must(later, { script: 'admit', owner: A, epoch: 2, nonce: 'again', ttlMs: TTL, ...facts });
    expect((await view(later)).admission).toBe('admitted');
  }, 120_000);
});

/** The verbs that count on a node agree with `inspect`. */
async function expectSame(node: RedisNode, says: string): Promise<void> {
  const { epoch, head } = await view(node);
  const accepted = says === 'admitted' ? 'accepted' : 'refused';
  const calls: NodeCall[] = [{ script: 'claim', owner: A, epoch }, write(blocks[head]!, { epoch })];
  for (const call of calls) {
    const reply = await node.call(call, LIMIT);
    expect(reply.outcome, `${call.script}: ${JSON.stringify(reply)}`).toBe(accepted);
    if (reply.outcome === 'refused') expect(reply).toMatchObject({ reason: 'NOT_ADMITTED', detail: { why: says } });
  }
  const read = await node.read({ from: 1, to: 9, limit: 9, data: false }, LIMIT);
  expect(read).toMatchObject({ outcome: 'accepted', incarnation: says === 'admitted' ? 'boot' : '' });
}

test('a replica is no node, for any verb, even where it may be written to', async () => {
  const [one, other] = [await open(), await open()];
  await lead(nodeAt(one), blocks.slice(0, 2));
  await follow(other.redis, one);
  for (const readOnly of ['yes', 'no']) {
    await other.redis.config('SET', 'replica-read-only', readOnly);
    const node = nodeAt(other);
    expect(await view(node)).toMatchObject({ admission: 'restarted', runId: '' });
    const facts = { floor: 2, floorHash: blocks[1]!.hash };
    const calls: NodeCall[] = [
      { script: 'promote_leader', owner: A, expectedEpoch: 1, ttlMs: TTL },
      { script: 'claim', owner: A, epoch: 1 },
      write(blocks[2]!),
      { script: 'raise_epoch', value: 5, highestSeen: 5, mayDepose: true },
      { script: 'bootstrap_prepare', nonce: 'x' },
      { script: 'bootstrap_commit', nonce: 'boot' },
      { script: 'begin_admission', owner: A, epoch: 9, nonce: 'x', keepMs: TTL, ...facts },
    ];
    for (const call of calls)
      expect((await node.call(call, LIMIT)).outcome, `${call.script}, read-only ${readOnly}`).toBe('refused');
    expect(await node.read({ from: 1, to: 9, limit: 9, data: false }, LIMIT)).toMatchObject({ incarnation: '' });
  }
}, 120_000);

test('a replica for a while under the eyes of a sequencer, nothing forgotten → admitted again', async () => {
  const [one, other] = [await open(), await open()];
  const node = nodeAt(one);
  await lead(node, blocks.slice(0, 2));
  await follow(other.redis, one);
  await poll(node);
  await caughtUp(other.redis, one);
  await other.redis.replicaof('NO', 'ONE');
  await follow(one.redis, other);
  for (let i = 0; i < 3; i++) expect((await view(node)).admission).toBe('restarted');
  expect((await node.call(write(blocks[2]!), LIMIT)).outcome).toBe('refused');
  await one.redis.replicaof('NO', 'ONE');
  expect((await view(node)).admission).toBe('admitted');
  await expectSame(node, 'admitted');
}, 120_000);

test('three nodes are given their first replica at once → none of them is lost for a moment of writing', async () => {
  const servers = [await open(), await open(), await open()];
  const replicas = [await open(), await open(), await open()];
  const nodes = servers.map((one, i) => nodeAt(one, `r${i + 1}`));
  for (const node of nodes) await lead(node, blocks.slice(0, 2));
  await Promise.all(replicas.map(({ redis }, i) => follow(redis, servers[i]!)));
  for (const block of blocks.slice(2, 4))
    for (const node of nodes) expect(await node.call(write(block), LIMIT)).toMatchObject({ outcome: 'accepted' });
  for (const node of nodes) expect((await view(node)).admission).toBe('admitted');
}, 120_000);

test('DEBUG RELOAD and a restored copy have no other name: seen by nobody (docs/PERSISTENCE.md)', async () => {
  const one = await open();
  const node = nodeAt(one);
  await lead(node, blocks.slice(0, 2));
  await one.redis.call('DEBUG', 'RELOAD');
  expect((await poll(node)).admission).toBe('admitted');
}, 60_000);

test('a change after DEBUG RELOAD is not vouched for: its data was replaced', async () => {
  const one = await open();
  const node = nodeAt(one);
  await lead(node, blocks.slice(0, 2));
  await node.probe(LIMIT);
  await one.redis.call('DEBUG', 'RELOAD');
  await one.redis.call('DEBUG', 'CHANGE-REPL-ID');
  expect((await view(node)).admission).toBe('restarted');
}, 60_000);

test('the witness never writes over another record, nor over an admission under way', async () => {
  const one = await open();
  const node = nodeAt(one);
  await lead(node, blocks.slice(0, 2));
  await poll(node);
  await one.redis.hset('seq:node:admission', 'incarnation', 'another');
  await one.redis.call('DEBUG', 'CHANGE-REPL-ID');
  expect((await view(node)).admission).toBe('restarted');
  const two = await open();
  const second = nodeAt(two);
  await bootstrap(second);
  await poll(second);
  await two.redis.hset('seq:node:admission', 'pending', 'n', 'pending_owner', A, 'pending_epoch', '1');
  await two.redis.call('DEBUG', 'CHANGE-REPL-ID');
  expect((await view(second)).admission).toBe('admitting');
  expect((await must(second, { script: 'inspect' })).value.admissionWhy).toBe('the server restarted since');
}, 60_000);

test('a user that may not use WATCH: a change of the name is a re-admission', async () => {
  const one = await open();
  await one.redis.call('ACL', 'SETUSER', 'plain', 'on', '>pw', '~*', '&*', '+@all', '-watch', '-multi', '-exec');
  await lead(nodeAt(one), blocks.slice(0, 2));
  const node = nodeAt({
    ...one,
    server: { ...one.server, url: one.server.url.replace('//', '//plain:pw@') } as RedisServer,
  });
  expect((await poll(node)).admission).toBe('admitted');
  await one.redis.call('DEBUG', 'CHANGE-REPL-ID');
  expect((await view(node)).admission).toBe('restarted');
  await expectSame(node, 'restarted');
}, 60_000);

describe('a record of version 0.1.0', () => {
  const runOf = async ({ redis }: Server): Promise<string> => /run_id:(\w+)/.exec(await redis.info('server'))![1]!;

  test('counts by its own rule until the next claim, and by this one from then on', async () => {
    const [one, other] = [await open(), await open()];
    const node = nodeAt(one);
    await lead(node, blocks.slice(0, 2));
    const run = await runOf(one);
    await one.redis.hset('seq:node:admission', 'run', run);
    expect(await view(node)).toMatchObject({ admission: 'admitted', runId: run, admittedRunId: run });
    expect(await node.read({ from: 1, to: 9, limit: 9, data: false }, LIMIT)).toMatchObject({ incarnation: 'boot' });
    await must(node, write(blocks[2]!));
    await must(node, { script: 'claim', owner: A, epoch: 1 });
    expect((await view(node)).admittedRunId).toBe(`${run}+${await field(one.redis, 'master_replid')}`);
    await must(node, write(blocks[3]!));
    await follow(other.redis, one);
    await other.redis.replicaof('NO', 'ONE');
    await must(node, write(blocks[4]!));
    await thereAndBack(one, other);
    expect((await view(node)).admission).toBe('restarted');
  }, 60_000);

  test('of a server that was a replica in between: restarted, as before', async () => {
    const [one, other] = [await open(), await open()];
    const node = nodeAt(one);
    await lead(node, blocks.slice(0, 2));
    await one.redis.hset('seq:node:admission', 'run', await runOf(one));
    await follow(other.redis, one);
    await other.redis.replicaof('NO', 'ONE');
    await thereAndBack(one, other);
    expect((await view(node)).admission).toBe('restarted');
  }, 60_000);
});
