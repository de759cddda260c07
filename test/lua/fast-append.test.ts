// The leader's next block without a script (src/core/redis/fast-append/): whatever happens to the node between two
// blocks, the transaction under WATCH must leave the same answer and the same data as write_block would. Every row is
// run three times: once by a user who may not use transactions, once with what befalls while the node is watched, and
// once with it in the moment before: after the last block, before WATCH.
import { connect, createServer, type AddressInfo } from 'node:net';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import type { Block, NodeCall, NodeReply } from '../../src/core/protocol/types.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { A, B, chain, IDENTITY, lead, LIMIT, must, openNode, picture, plainClient, TTL, write } from './fixture.js';

const LOCK = 'seq:leader:lock';
const EPOCH = 'seq:epoch:token';
const RECORD = 'seq:node:admission';
const STREAM = 'seq:block:stream';
const RIGHTS = ['reset', 'on', '>pw', '~*', '&*', '+@all'];
const FIRST = 3;

let server: RedisServer;
let redis: Redis;
let other: RedisNode;
beforeAll(async () => {
  server = await startRedis();
  redis = plainClient(server);
  other = openNode(server);
});
afterAll(async () => {
  await other.close();
  redis.disconnect();
  await server.stop();
});

const blocks = chain(8);
const at = (height: number): Block => blocks[height - 1] as Block;

async function stats(): Promise<{ scripts: number; transactions: number }> {
  const text = await redis.info('commandstats');
  const calls = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(text)?.[1] ?? 0);
  return { scripts: calls('evalsha'), transactions: calls('exec') };
}

interface Row {
  what: string;
  /** Between block 3 and the call. */
  interference?: (user: string) => Promise<unknown>;
  call?: NodeCall;
  /** What both ways must answer. */
  answer: Record<string, unknown>;
  /** How the call went, where it may use transactions: without a script at all, or by the script after all. */
  by: 'transaction' | 'script';
}

const rivalLeads = async (): Promise<void> => {
  await redis.del(LOCK);
  await must(other, { script: 'promote_leader', owner: B, expectedEpoch: 1, ttlMs: TTL });
  await must(other, { script: 'claim', owner: B, epoch: 2 });
};
const ACCEPTED = { outcome: 'accepted', incarnation: 'boot', value: { head: FIRST + 1 } };
const refused = (reason: string, detail: Record<string, unknown> = {}): Record<string, unknown> => ({
  outcome: 'refused',
  reason,
  detail,
});
const NEXT = write(at(FIRST + 1));
const REQUEST = { id: 'q1', kind: 'stepdown', to: 'seq-b', plan: '', by: 'me', reason: 'test', epoch: 1 } as const;

const ROWS: Row[] = [
  { what: 'nothing', answer: ACCEPTED, by: 'transaction' },
  {
    what: 'nothing, and the block trims',
    call: { ...NEXT, trim: { to: 2, hash: at(2).hash } },
    answer: ACCEPTED,
    by: 'transaction',
  },
  {
    what: "nothing, and the block names a floor below the node's",
    call: { ...NEXT, trim: { to: 0, hash: at(1).hash } },
    answer: ACCEPTED,
    by: 'transaction',
  },
  {
    what: 'nothing, and the block is written in mode repair',
    call: { ...NEXT, mode: 'repair' },
    answer: ACCEPTED,
    by: 'script',
  },
  {
    what: 'nothing, and the same block comes again',
    call: write(at(FIRST)),
    answer: { ...ACCEPTED, value: { head: FIRST } },
    by: 'script',
  },
  {
    what: 'nothing, and a height is left out',
    call: write(at(FIRST + 2)),
    answer: refused('GAP', { head: FIRST }),
    by: 'script',
  },
  {
    what: 'nothing, and the ttl is none',
    call: { ...NEXT, ttlMs: 0 },
    answer: refused('BAD_ARGUMENT', { why: 'ttl_ms' }),
    by: 'script',
  },
  {
    what: 'nothing, and the trim leaves nothing',
    call: { ...NEXT, trim: { to: 4, hash: at(4).hash } },
    answer: refused('BAD_ARGUMENT', { why: 'trim' }),
    by: 'script',
  },
  {
    what: 'nothing, and a trim that would move nothing names no hash',
    call: { ...NEXT, trim: { to: 0, hash: 'none' } },
    answer: refused('BAD_ARGUMENT', { why: 'trim' }),
    by: 'script',
  },
  {
    what: 'nothing, and the hash is none',
    call: { ...NEXT, block: { ...at(4), hash: 'AB'.repeat(32) } },
    answer: refused('BAD_ARGUMENT', { why: 'hash' }),
    by: 'script',
  },
  {
    what: 'nothing, and another term writes',
    call: { ...NEXT, owner: B },
    answer: refused('FENCING_ERROR', { check: 'lock', holder: A }),
    by: 'script',
  },
  {
    what: 'a hold is set (which stops promotions only)',
    interference: () => must(other, { script: 'set_hold', by: 'me', reason: 'x', ttlMs: TTL }),
    answer: ACCEPTED,
    by: 'transaction',
  },
  { what: 'the scripts are flushed', interference: () => redis.script('FLUSH'), answer: ACCEPTED, by: 'transaction' },
  {
    what: 'another promotes and claims',
    interference: rivalLeads,
    answer: refused('FENCING_ERROR', { check: 'lock', holder: B }),
    by: 'script',
  },
  {
    what: 'another promotes, and its lock is gone again',
    interference: async () => {
      await rivalLeads();
      await redis.set(LOCK, A, 'PX', TTL);
    },
    answer: refused('FENCING_ERROR', { check: 'epoch', epoch: 2 }),
    by: 'script',
  },
  {
    what: 'the lock is released',
    interference: () => must(other, { script: 'release_lock', owner: A }),
    answer: refused('FENCING_ERROR', { check: 'lock' }),
    by: 'script',
  },
  {
    what: 'the lock expires and nobody looks',
    by: 'script',
    answer: refused('FENCING_ERROR', { check: 'lock' }),
    interference: async () => {
      await redis.pexpire(LOCK, 1);
      const now = async (): Promise<number> => (await redis.time()).reduce((s, us) => Number(s) * 1e6 + Number(us), 0);
      const from = await now();
      await expect.poll(now, { interval: 1 }).toBeGreaterThan(from + 3000);
    },
  },
  {
    what: 'the epoch is raised',
    interference: () => must(other, { script: 'raise_epoch', value: 9, highestSeen: 1, mayDepose: true }),
    answer: refused('FENCING_ERROR', { check: 'epoch', epoch: 9 }),
    by: 'script',
  },
  {
    what: 'the epoch is gone',
    interference: () => redis.del(EPOCH),
    answer: refused('NOT_ADMITTED', { why: 'damaged' }),
    by: 'script',
  },
  {
    what: 'everything is gone',
    interference: () => redis.flushall(),
    answer: refused('NOT_ADMITTED', { why: 'wiped' }),
    by: 'script',
  },
  {
    what: 'the newest entry is gone',
    interference: () => redis.xdel(STREAM, `${FIRST}-1`),
    answer: refused('NOT_ADMITTED', { why: 'damaged' }),
    by: 'script',
  },
  {
    what: 'an entry in between is gone',
    interference: () => redis.xdel(STREAM, '2-1'),
    answer: refused('NOT_ADMITTED', { why: 'damaged' }),
    by: 'script',
  },
  {
    what: 'a stray entry is above',
    interference: () => redis.xadd(STREAM, '9-1', 'a', 'b'),
    answer: refused('NOT_ADMITTED', { why: 'damaged' }),
    by: 'script',
  },
  {
    what: 'the record names another process',
    interference: () => redis.hset(RECORD, 'run', 'x'.repeat(40)),
    answer: refused('NOT_ADMITTED', { why: 'restarted' }),
    by: 'script',
  },
  {
    what: 'the record names another cluster',
    interference: () => redis.hset(RECORD, 'cluster', 'test.2'),
    answer: refused('WRONG_CLUSTER', { why: 'cluster', actual: 'test.2' }),
    by: 'script',
  },
  {
    what: 'the record names another node',
    interference: () => redis.hset(RECORD, 'node', 'r2'),
    answer: refused('WRONG_CLUSTER', { why: 'node', actual: 'r2' }),
    by: 'script',
  },
  {
    what: 'another term has the same epoch',
    interference: () => redis.hset(RECORD, 'claimant', B),
    answer: refused('FENCING_ERROR', { check: 'epoch', epoch: 1 }),
    by: 'script',
  },
  {
    what: 'the head is another block',
    interference: () => redis.hset(RECORD, 'head_hash', 'ab'.repeat(32)),
    answer: refused('PARENT_MISMATCH', { hash: 'ab'.repeat(32) }),
    by: 'script',
  },
  {
    what: 'an admission has begun',
    interference: () => redis.hset(RECORD, 'pending', 'n1'),
    answer: refused('NOT_ADMITTED', { why: 'admitting' }),
    by: 'script',
  },
  {
    what: 'the lock is of another type',
    interference: async () => {
      await redis.del(LOCK);
      await redis.rpush(LOCK, 'x');
    },
    answer: refused('WRONG_TYPE', { why: LOCK }),
    by: 'script',
  },
  {
    what: 'a request waits',
    interference: () => must(other, { script: 'request_leader', request: REQUEST, ttlMs: TTL }),
    answer: { ...ACCEPTED, value: { head: FIRST + 1, request: REQUEST } },
    by: 'script',
  },
  {
    what: 'the block came already, in bulk',
    interference: () =>
      other.backfill(
        { owner: A, epoch: 1, ttlMs: TTL, mode: 'repair', blocks: [{ block: at(FIRST + 1), entryEpoch: 1 }] },
        LIMIT,
      ),
    answer: ACCEPTED,
    by: 'script',
  },
  {
    what: 'the server is out of memory',
    interference: () => redis.config('SET', 'maxmemory', '1'),
    answer: ACCEPTED,
    by: 'script',
  },
  {
    what: 'too few replicas',
    interference: () => redis.config('SET', 'min-replicas-to-write', '1'),
    answer: refused('NOREPLICAS'),
    by: 'script',
  },
  {
    what: 'its user loses PEXPIRE',
    interference: (user) => redis.call('ACL', 'SETUSER', user, '-pexpire'),
    answer: refused('NOPERM'),
    by: 'script',
  },
  {
    what: 'its user loses EXEC',
    interference: (user) => redis.call('ACL', 'SETUSER', user, '-exec'),
    answer: ACCEPTED,
    by: 'script',
  },
  {
    what: 'its user loses EXEC, MULTI and WATCH, and another leads',
    by: 'script',
    answer: refused('FENCING_ERROR', { check: 'lock', holder: B }),
    interference: async (user) => {
      await redis.call('ACL', 'SETUSER', user, '-exec', '-multi', '-watch');
      await rivalLeads();
    },
  },
];

const WATCH = '$5\r\nwatch\r\n';

/** A proxy before the server. Once `moment` is set, a WATCH and everything after it wait for it. */
async function gateway(): Promise<{
  url: string;
  before: (moment: () => Promise<unknown>) => void;
  close: () => void;
}> {
  let moment: (() => Promise<unknown>) | null = null;
  const proxy = createServer((client) => {
    const upstream = connect(server.port, '127.0.0.1');
    let order = Promise.resolve();
    client.on('data', (chunk: Buffer) => {
      order = order.then(async () => {
        const named = moment === null ? -1 : chunk.indexOf(WATCH);
        if (named < 0) return void upstream.write(chunk);
        const at = chunk.lastIndexOf('*', named);
        const [run, answered] = [
          moment!,
          new Promise((resolve) => {
            upstream.once('data', resolve);
          }),
        ];
        moment = null;
        upstream.write(chunk.subarray(0, at));
        await answered;
        await run();
        upstream.write(chunk.subarray(at));
      });
    });
    upstream.on('data', (chunk) => client.write(chunk));
    for (const [one, another] of [
      [client, upstream],
      [upstream, client],
    ] as const)
      one.on('error', () => undefined).on('close', () => another.destroy());
  });
  await new Promise<void>((resolve) => {
    proxy.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    before: (run) => {
      moment = run;
    },
    close: () => proxy.close(),
  };
}

type When = 'by script' | 'watched' | 'before WATCH';

/** Blocks 1 … 3 written by that user, what befalls, the call; everything there is afterwards. */
async function play(
  row: Row,
  when: When,
): Promise<{
  reply: NodeReply<unknown>;
  data: Record<string, string>;
  used: { scripts: number; transactions: number };
}> {
  await redis.config('SET', 'maxmemory', '0');
  await redis.config('SET', 'min-replicas-to-write', '0');
  await redis.flushall();
  await redis.call('ACL', 'SETUSER', 'op', ...RIGHTS, ...(when === 'by script' ? ['-multi'] : []));
  const front = await gateway();
  const node = new RedisNode({ id: 'r1', url: front.url, identity: IDENTITY, username: 'op', password: 'pw' });
  const interference = async (): Promise<unknown> => row.interference?.('op');
  try {
    await lead(node, blocks.slice(0, FIRST - 1));
    if (when === 'before WATCH') front.before(interference);
    await must(node, write(at(FIRST)));
    if (when !== 'before WATCH') await interference();
    const before = await stats();
    const reply = await node.call(row.call ?? NEXT, LIMIT);
    const after = await stats();
    const data = await picture(redis);
    for (const key of Object.keys(data)) data[key] = data[key]!.replace(/ \d+$/, ' expires');
    return {
      reply,
      data,
      used: { scripts: after.scripts - before.scripts, transactions: after.transactions - before.transactions },
    };
  } finally {
    await node.close();
    front.close();
  }
}

describe('the next block', () => {
  test.each(ROWS)('after a block, $what → as the script ($by)', async (row) => {
    const scripted = await play(row, 'by script');
    expect(scripted.reply).toMatchObject(row.answer);
    expect(scripted.used.transactions).toBe(0);
    for (const when of ['watched', 'before WATCH'] as const) {
      const { reply, data, used } = await play(row, when);
      expect(reply, when).toMatchObject(row.answer);
      expect(data, `${when}: not a byte may tell them apart`).toEqual(scripted.data);
      if (row.by === 'transaction') expect(used, when).toEqual({ scripts: 0, transactions: 1 });
      else expect(used.scripts, when).toBeGreaterThan(0);
    }
  });

  test('a server that comes to refuse MULTI, then another leads → nothing runs unwatched', async () => {
    await redis.flushall();
    await redis.call('ACL', 'SETUSER', 'op', ...RIGHTS);
    const front = await gateway();
    const node = new RedisNode({ id: 'r1', url: front.url, identity: IDENTITY, username: 'op', password: 'pw' });
    try {
      await lead(node, blocks.slice(0, FIRST - 1));
      front.before(() => redis.call('ACL', 'SETUSER', 'op', '-multi'));
      await must(node, write(at(FIRST)));
      await rivalLeads();
      await redis.pexpire(LOCK, TTL / 2);
      expect(await node.call(NEXT, LIMIT)).toMatchObject({ outcome: 'refused', reason: 'FENCING_ERROR' });
      expect(await redis.xlen(STREAM)).toBe(FIRST);
      expect(await redis.pttl(LOCK)).toBeLessThanOrEqual(TTL / 2);
    } finally {
      await node.close();
      front.close();
    }
  });

  test.each([0, 1, 16_383, 16_384, 1_500_000])('%d bytes → read back as they were', async (size) => {
    await redis.flushall();
    const node = openNode(server);
    try {
      const [first, second, third] = [at(1), ...chain(2, at(1), Buffer.alloc(size, 'é').toString('latin1'))] as [
        Block,
        Block,
        Block,
      ];
      await lead(node, [first]);
      await redis.config('RESETSTAT');
      await must(node, write(second));
      await must(node, write(third));
      expect((await stats()).scripts).toBe(0);
      const read = await node.read({ from: 1, to: 3, limit: 3, data: true }, LIMIT);
      expect(read).toMatchObject({ outcome: 'accepted', value: { damaged: [] } });
      expect(read.outcome === 'accepted' && read.value.entries.map((one) => [one.height, one.hash, one.owner])).toEqual(
        [first, second, third].map(({ height, hash }) => [height, hash, A]),
      );
    } finally {
      await node.close();
    }
  });

  test('three blocks at once, the first unanswered when the others are sent → all in order, each once', async () => {
    await redis.flushall();
    const node = openNode(server);
    try {
      await lead(node, blocks.slice(0, FIRST));
      const replies = await Promise.all([4, 5, 6].map((height) => node.call(write(at(height)), LIMIT)));
      expect(replies.map((reply) => (reply.outcome === 'accepted' ? reply.value : reply))).toEqual([
        { head: 4 },
        { head: 5 },
        { head: 6 },
      ]);
      await must(node, write(at(7)));
      expect(await redis.xlen(STREAM)).toBe(7);
    } finally {
      await node.close();
    }
  });

  test(
    'a server that stops, loses its lease to another and goes on → what waited in its socket is ' + 'refused',
    async () => {
      await redis.flushall();
      const node = openNode(server);
      try {
        await lead(node, blocks.slice(0, FIRST));
        await redis.pexpire(LOCK, 150);
        server.pause();
        const late = await node.call(NEXT, 100);
        expect(late).toMatchObject({ outcome: 'unknown', step: 'call' });
        const takes = must(other, { script: 'promote_leader', owner: B, expectedEpoch: 1, ttlMs: TTL });
        await expect.poll(() => performance.now(), { interval: 20 }).toBeGreaterThan(performance.now() + 200);
        server.unpause();
        await takes;
        expect(await redis.xlen(STREAM)).toBe(FIRST);
        expect(await node.call(NEXT, LIMIT)).toMatchObject({ outcome: 'refused', reason: 'FENCING_ERROR' });
      } finally {
        await node.close();
      }
    },
  );
});
