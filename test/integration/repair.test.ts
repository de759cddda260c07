// seq repair on real servers whose streams really differ, while nobody leads: each divergence is seen, explained,
// repaired by a term of the command, and verified; then all nodes are identical (cases 10, 11, 20, 22, 38, 39).
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { makeBlock } from '../../src/core/chain/block.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { openStore } from '../../src/core/store/lmdb-store.js';
import type { CommittedBlock } from '../../src/core/ports.js';
import { freePort } from '../../src/lab/free-port.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq, type RunOptions } from '../support/spawn-seq.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();
let servers: RedisServer[] = [];
let nodes: RedisNode[] = [];
let writer: ChainWriter;

afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(
    servers.map((server) => {
      server.unpause();
      return server.stop();
    }),
  );
});

interface Step {
  node: string;
  kind: string;
  class: string;
  from: string;
  to: string;
  removes: string;
}
interface Plan {
  digest: string;
  by: string;
  steps: Step[];
  undecidable: {
    node: string;
    class: string;
    height: string | null;
    why: string;
    copies: { hash: string; nodes: string[] }[];
    next: string[];
  }[];
  goal: { height: string; hash: string };
  verdict: string;
}
interface Answer {
  code: number | null;
  data: Plan & { done: { blocks: number; ms: number; epoch: string } | null; result: string };
  error: { code: string; message: string; changed: string; next: string[] } | null;
  warnings: string[];
  stderr: string;
}

const target = () => servers.flatMap((server, i) => ['--node', `r${i + 1}=${server.url}`]);
async function seq(args: string[], options: RunOptions = {}): Promise<Answer> {
  const ran = await runSeq(home, [...args, ...target(), '--node-timeout', '1s', '-o', 'json'], {
    limitMs: 120_000,
    ...options,
  });
  const document = JSON.parse(ran.stdout) as Answer;
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { ...document, code: ran.code, stderr: ran.stderr };
}

/** Runs a command line as a message shows it. */
async function typed(line: string): Promise<Answer> {
  const ran = await runSeq(home, line.split(' ').slice(1), { limitMs: 120_000 });
  return { ...(JSON.parse(ran.stdout) as Answer), code: ran.code, stderr: ran.stderr };
}

async function cluster(n: number, blocks: number): Promise<void> {
  servers = await Promise.all(Array.from({ length: n }, () => startRedis()));
  nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  for (let i = 0; i < blocks; i++) await writer.write([{ data: Buffer.from(`item ${i + 1}`) }]);
}
const on = (...which: number[]): RedisNode[] => which.map((one) => nodes[one - 1]!);
/** The term ends on every node. The writer's next term is another one. */
async function release(): Promise<void> {
  await Promise.all(nodes.map((node) => node.call({ script: 'release_lock', owner: writer.owner }, 2000)));
  writer.owner = `seq-a/${String(Number(writer.owner.slice(-4)) + 1).padStart(16, '0')}`;
}
/** Another block at the height of `block`. */
function rival(block: CommittedBlock, content: string): CommittedBlock {
  const { height, parent, timestamp } = block;
  return { ...makeBlock({ height, parent, timestamp: timestamp + 1, data: Buffer.from(content) }), epoch: 0 };
}
async function raw<T>(at: number, run: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(servers[at - 1]!.port, '127.0.0.1');
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}
/** `height hash` of every entry, per node. */
async function streams(): Promise<string[][]> {
  return Promise.all(
    nodes.map(async (node) => {
      const read = await node.read({ from: 1, to: 1_000_000, limit: 100_000, data: true }, 5000);
      if (read.outcome !== 'accepted' || read.value.damaged.length > 0) throw new Error(JSON.stringify(read));
      return read.value.entries.map((entry) => `${entry.height} ${entry.hash.slice(0, 12)}`);
    }),
  );
}
async function identical(height: number, hash?: string): Promise<void> {
  const all = await streams();
  for (const stream of all) expect(stream).toEqual(all[0]);
  expect(all[0]!.at(-1)).toMatch(new RegExp(`^${height} ${hash === undefined ? '' : hash.slice(0, 12)}`));
}
const orphansOf = (at: number): Promise<string[]> =>
  raw(at, async (redis) =>
    (await redis.xrange('seq:block:orphans', '-', '+')).map(([, fields]) => fields[fields.indexOf('hash') + 1]!),
  );
/** Plan → apply with its digest → verify. Returns the plan. */
async function repaired(...args: string[]): Promise<Plan> {
  const plan = await seq(['repair', 'plan', ...args]);
  expect([plan.code, plan.error]).toEqual([0, null]);
  expect(await seq(['repair', 'verify'])).toMatchObject({ code: 1, data: { result: 'not-repaired' } });
  const applied = await seq([
    'repair',
    'apply',
    ...args,
    '--confirm',
    plan.data.digest.slice(0, 8),
    '--reason',
    'test',
  ]);
  expect([applied.code, applied.error, applied.warnings]).toEqual([0, null, []]);
  expect(await seq(['repair', 'verify'])).toMatchObject({
    code: 0,
    data: { result: 'repaired', violations: 0, steps: [], undecidable: [] },
  });
  return plan.data;
}
const short = (plan: Plan): string[] =>
  plan.steps.map((step) => `${step.node} ${step.kind} ${step.class} ${step.from}-${step.to}`);

describe('repair while nobody leads', () => {
  test(
    'repair: nothing to do, then a node 40 blocks behind → refused without its digest or with ' +
      'another one; carried out, proven, recorded',
    async () => {
      await cluster(3, 5);
      await release();
      expect(await seq(['repair', 'plan'])).toMatchObject({
        code: 0,
        data: { verdict: 'OK', steps: [], undecidable: [], by: 'own-term' },
      });
      expect(await seq(['repair'])).toMatchObject({ code: 0, data: { done: null } });
      await writer.lead();
      for (let i = 0; i < 40; i++) await writer.write([], on(1, 2));
      const held = await seq(['repair', 'plan']);
      expect(held.data).toMatchObject({ by: 'leader', verdict: 'WARN' });
      await release();

      const plan = await seq(['repair', 'plan']);
      expect(short(plan.data)).toEqual(['r3 backfill under-replicated 6-45']);
      expect(held.data.digest).not.toBe(plan.data.digest);
      for (const [args, code, error] of [
        [['repair'], 81, 'CONFIRMATION_NEEDED'],
        [['repair', 'apply', '--yes'], 81, 'CONFIRMATION_NEEDED'],
        [['repair', 'apply', '--confirm', held.data.digest], 76, 'PLAN_STALE'],
        [['repair', 'apply', '--expect-leader', 'seq-a', '--confirm', plan.data.digest], 76, 'EXPECTATION'],
        [['repair', 'apply', '--expect-epoch', '9', '--confirm', plan.data.digest], 76, 'EXPECTATION'],
      ] as const) {
        const refused = await seq([...args]);
        expect([refused.code, refused.error?.code, refused.error?.changed]).toEqual([code, error, 'nothing']);
      }
      expect(await seq(['repair', 'apply', '--dry-run'])).toMatchObject({
        code: 0,
        data: { digest: plan.data.digest, dryRun: true, done: null },
      });
      await repaired();
      await identical(45);
      expect(await raw(1, (redis) => redis.get('seq:leader:lock'))).toBeNull();
      const { data } = (await seq(['history'])) as unknown as {
        data: { changes: { what: string; reason: string; outcome: string; plan?: string }[] };
      };
      expect(data.changes[0]).toMatchObject({
        what: 'repair',
        reason: 'test',
        outcome: expect.stringMatching(/^repaired by repair\..+ under epoch 3$/) as string,
      });
    },
  );

  test('repair: one copy of a pending block → settled under a new epoch on every node', async () => {
    await cluster(3, 3);
    const four = await writer.write([], on(2));
    await release();
    const plan = await repaired();
    expect(short(plan).sort()).toEqual([
      'r1 backfill under-replicated 4-4',
      'r2 settle pending 4-4',
      'r3 backfill under-replicated 4-4',
    ]);
    await identical(4, four.hash);
  });

  test('repair: an orphan head under a lower epoch → gives way to the committed chain, and is kept', async () => {
    await cluster(3, 3);
    const orphan = rival(await writer.write([], []), 'orphan');
    await writer.put(orphan, on(3));
    await release();
    await writer.lead(on(1, 2));
    const four = writer.blocks.at(-1)!;
    await writer.put(four, on(1, 2));
    for (let i = 0; i < 3; i++) await writer.write([], on(1, 2));
    await release();
    expect(short(await repaired())).toEqual(['r3 supersede orphaned 4-7']);
    await identical(7);
    expect(await orphansOf(3)).toEqual([orphan.hash]);
  });

  test(
    'repair: case 11: six nodes, X on two, Y on three under a later epoch, one free → Y everywhere, ' +
      'X kept, nothing burnt',
    async () => {
      await cluster(6, 2);
      const x = await writer.write([], on(1, 2));
      await release();
      await writer.lead(on(3, 4, 5, 6));
      const y = rival(x, 'y');
      await writer.put(y, on(3, 4, 5));
      await release();
      const plan = await repaired();
      expect(short(plan).sort()).toEqual([
        'r1 supersede orphaned 3-3',
        'r2 supersede orphaned 3-3',
        'r3 settle pending 3-3',
        'r4 settle pending 3-3',
        'r5 settle pending 3-3',
        'r6 backfill under-replicated 3-3',
      ]);
      await identical(3, y.hash);
      expect(await orphansOf(1)).toEqual([x.hash]);
    },
  );

  test(
    'repair: two blocks of one epoch at the head → undecidable until one is chosen by name; the ' + 'other one is kept',
    async () => {
      await cluster(3, 3);
      const x = await writer.write([], on(1));
      const y = rival(x, 'y');
      await writer.put(y, on(2));
      await release();
      await writer.leave();
      const plan = await seq(['repair', 'plan']);
      expect(plan.data).toMatchObject({
        verdict: 'CRIT',
        steps: [],
        undecidable: [{ class: 'conflict', height: '4' }],
      });
      expect(plan.data.undecidable[0]!.copies.map((copy) => copy.nodes)).toEqual([['r1'], ['r2']]);
      const bare = await seq(['repair', 'apply', '--confirm', plan.data.digest]);
      expect([bare.code, bare.error?.code, bare.error?.changed]).toEqual([81, 'CHOICE_NEEDED', 'nothing']);
      expect(await seq(['repair', 'plan', '--choose-block', 'deadbeefdeadbeef'])).toMatchObject({
        code: 66,
        error: { code: 'CHOICE_NOT_FOUND' },
      });
      expect(await seq(['repair', 'apply', '--choose-block', y.hash, '--confirm', plan.data.digest])).toMatchObject({
        code: 76,
        error: { code: 'PLAN_STALE' },
      });
      await repaired('--choose-block', y.hash.slice(0, 12));
      await identical(4, y.hash);
      expect(await orphansOf(1)).toEqual([x.hash]);

      // The only node that keeps the other block hangs. That does not mean "nothing to undo".
      servers[0]!.pause();
      expect(await seq(['repair', 'undo', '--dry-run'])).toMatchObject({
        code: 81,
        error: { code: 'UNDO_REFUSED', changed: 'nothing', message: expect.stringContaining('r1') as string },
      });
      servers[0]!.unpause();
      // Undone while no block follows it: the other block is back, and the chosen one is among the orphans.
      const undo = await seq(['repair', 'undo', '--dry-run']);
      expect([undo.code, undo.data.result]).toEqual([0, 'planned']);
      expect(await seq(['repair', 'undo', '--confirm', undo.data.digest])).toMatchObject({
        code: 81,
        error: { code: 'CONFIRMATION_NEEDED', changed: 'nothing' },
      });
      expect(await seq(['repair', 'undo', '--replace-committed', '--confirm', undo.data.digest])).toMatchObject({
        code: 0,
        data: { result: 'undone' },
      });
      await identical(4, x.hash);
      expect((await orphansOf(3)).at(-1)).toBe(y.hash);
    },
  );

  test(
    'repair: a store holds one of two blocks of one epoch → the other cannot be chosen (81, named), ' +
      'nor what was settled taken back',
    async () => {
      await cluster(3, 3);
      const x = await writer.write([], on(1));
      const y = rival(x, 'y');
      await writer.put(y, on(2));
      await release();
      await writer.leave();
      const dir = mkdtempSync(join(tmpdir(), 'seq-store-'));
      const store = await openStore({ dir, cluster: CLUSTER.split('.')[0]!, lane: '' });
      for (const block of writer.blocks) await store.append(block);
      await store.close();
      try {
        // One copy each, so that nothing on the nodes decides; a store says which one was acknowledged.
        const asked = ['--store', dir];
        const chosen = await seq(['repair', 'plan', ...asked, '--choose-block', y.hash]);
        expect([chosen.code, chosen.error], JSON.stringify(chosen)).toMatchObject([
          81,
          {
            code: 'CHOICE_REFUSED',
            changed: 'nothing',
            message: expect.stringContaining(`${dir} holds ${x.hash.slice(0, 8)}`) as string,
            next: [expect.stringContaining(x.hash.slice(0, 16)) as string],
          },
        ]);
        const plan = await seq(['repair', 'plan', ...asked, '--choose-block', x.hash]);
        expect(
          await seq(['repair', 'apply', ...asked, '--choose-block', x.hash, '--confirm', plan.data.digest]),
        ).toMatchObject({ code: 0, error: null });
        await identical(4, x.hash);
        const undo = await seq(['repair', 'undo', ...asked, '--replace-committed', '--dry-run']);
        expect([undo.code, undo.error]).toMatchObject([
          81,
          { code: 'UNDO_REFUSED', changed: 'nothing', message: expect.stringContaining(dir) as string },
        ]);
        await identical(4, x.hash);
      } finally {
        rmSync(dir, { recursive: true, force: true });
      }
    },
  );

  test(
    'repair and its undo: a sequencer announces itself and does not answer → it is named (81), and nothing is decided ' +
      'against its store without --without-store',
    async () => {
      await cluster(3, 3);
      const x = await writer.write([], on(1));
      const y = rival(x, 'y');
      await writer.put(y, on(2));
      await release();
      await writer.leave();
      const behind = createServer((_, response) => {
        response.writeHead(404, { 'content-type': 'application/json' });
        const error = { code: 'NO_BLOCK', message: 'there is no block 4 here', why: '', head: 3, retryable: false };
        response.end(JSON.stringify({ error }));
      });
      await new Promise<void>((done) => behind.listen(0, '127.0.0.1', done));
      const answers = `http://127.0.0.1:${(behind.address() as AddressInfo).port}`;
      const silent = `http://127.0.0.1:${await freePort()}`;
      const urls = { 'seq-behind': answers, 'seq-hangs': silent, 'seq-nowhere': '' };
      for (const [id, url] of Object.entries(urls)) {
        const presence = {
          id,
          role: 'follower',
          height: 4,
          version: '0',
          url,
          pid: 1,
          configDigest: '',
          extra: {},
        } as const;
        await nodes[0]!.call({ script: 'announce', presence, ttlMs: 600_000 }, 2000);
      }
      try {
        const asked = ['repair', 'plan', '--choose-block', y.hash];
        const named = /seq-hangs at http.*seq-nowhere/;
        const refused = await seq(asked);
        expect([refused.code, refused.error]).toMatchObject([
          81,
          { code: 'STORE_SILENT', changed: 'nothing', message: expect.stringMatching(named) as string },
        ]);
        expect(refused.error!.message).not.toContain('seq-behind');
        const plan = await typed(refused.error!.next.at(-1)!);
        expect([plan.code, plan.error]).toEqual([0, null]);
        const flags = ['--without-store', 'seq-hangs', '--without-store', 'seq-nowhere'];
        const apply = ['repair', 'apply', '--choose-block', y.hash, '--confirm', plan.data.digest];
        expect(await seq(apply)).toMatchObject({ code: 81, error: { code: 'STORE_SILENT', changed: 'nothing' } });
        expect(await seq([...apply, ...flags])).toMatchObject({ code: 0, error: null });
        await identical(4, y.hash);

        const undo = await seq(['repair', 'undo', '--dry-run']);
        expect([undo.code, undo.error]).toMatchObject([
          81,
          { code: 'STORE_SILENT', changed: 'nothing', message: expect.stringMatching(named) as string },
        ]);
        const half = await seq(['repair', 'undo', '--dry-run', '--without-store', 'seq-hangs']);
        expect([half.code, half.error?.message]).toEqual([81, expect.not.stringContaining('seq-hangs')]);
        const planned = await typed(undo.error!.next.at(-1)!);
        expect([planned.code, planned.data.result]).toEqual([0, 'planned']);
        expect(planned.warnings.join()).toMatch(named);
        const done = ['repair', 'undo', '--replace-committed', '--confirm', planned.data.digest];
        expect(await seq(done)).toMatchObject({ code: 81, error: { code: 'STORE_SILENT', changed: 'nothing' } });
        expect(await seq([...done, ...flags])).toMatchObject({ code: 0, data: { result: 'undone' } });
        await identical(4, x.hash);
      } finally {
        behind.close();
      }
    },
  );

  test(
    'repair: a node wiped, one too far behind for the window → filled anew and admitted, rebased; a ' +
      'silent one is named and left',
    async () => {
      await cluster(5, 12);
      for (let i = 0; i < 8; i++) await writer.write([], on(1, 2, 3, 5), writer.chain.height - 6);
      await release();
      await servers[4]!.restart();
      servers[2]!.pause();
      const plan = await seq(['repair', 'plan']);
      // With r3 silent and r5 forgetful, two of five are left that are known to hold block 20: it is settled again.
      expect(short(plan.data)).toEqual([
        'r1 settle pending 20-20',
        'r2 settle pending 20-20',
        'r4 rebase under-replicated 14-20',
        'r5 readmit forgotten 14-20',
      ]);
      expect(plan.data.undecidable).toMatchObject([{ node: 'r3', class: 'silent' }]);
      const applied = await seq(['repair', 'apply', '--confirm', plan.data.digest]);
      expect([applied.code, applied.error]).toEqual([0, null]);
      servers[2]!.unpause();
      expect(await seq(['repair', 'verify'])).toMatchObject({ code: 0, data: { result: 'repaired', violations: 0 } });
      await identical(20);
    },
  );

  test.each([
    [
      'an entry whose bytes were changed',
      'divergent',
      async (redis: Redis) => {
        const [entry] = await redis.xrange('seq:block:stream', '8', '8');
        await edit(redis, entry!, (fields) => {
          fields[fields.indexOf('data') + 1] = 'other';
        });
      },
    ],
    [
      'a head that is not what the record names',
      'divergent',
      async (redis: Redis) => {
        const [entry] = await redis.xrevrange('seq:block:stream', '+', '-', 'COUNT', 1);
        const block = makeBlock({
          height: 12,
          parent: writer.blocks[10]!.hash,
          timestamp: 99_999,
          data: Buffer.from('forged'),
        });
        await edit(redis, entry!, (fields) => {
          fields[fields.indexOf('data') + 1] = 'forged';
          fields[fields.indexOf('hash') + 1] = block.hash;
          fields[fields.indexOf('timestamp') + 1] = '99999';
        });
      },
    ],
    [
      'a hole',
      'forgotten',
      async (redis: Redis) => {
        await redis.xdel('seq:block:stream', '5-1');
      },
    ],
  ] as const)(
    'repair: %s on one node → %s; its stream set aside, filled anew, admitted, identical',
    async (_, of, spoil) => {
      await cluster(3, 12);
      await release();
      await raw(2, spoil);
      const plan = await repaired();
      expect(plan.steps.map((step) => `${step.node} ${step.kind} ${step.class}`)).toEqual([
        `r2 ${of === 'forgotten' ? 'readmit' : 'replace'} ${of}`,
      ]);
      await identical(12);
      expect(await raw(2, (redis) => redis.keys('seq:block:orphans:*'))).toHaveLength(1);
    },
  );
});

/**
 * Rewrites one entry under its own id: everything above it has to go in again, as a hand at the server would have to
 * do it.
 */
async function edit(redis: Redis, [id]: [string, string[]], change: (fields: string[]) => void): Promise<void> {
  const all = await redis.xrange('seq:block:stream', '-', '+');
  await redis.del('seq:block:stream');
  for (const [each, fields] of all) {
    if (each === id) change(fields);
    await redis.xadd('seq:block:stream', each, ...fields);
  }
}
