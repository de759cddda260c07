// inspect, verify and diff on real servers whose streams really differ: partial writes, orphans, hand-edited, cut and
// wiped ones (cases 16, 20).
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();
let servers: RedisServer[] = [];
let nodes: RedisNode[] = [];
let writer: ChainWriter;

beforeEach(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  for (let i = 0; i < 5; i++) await writer.write([{ data: Buffer.from(`item ${i + 1}`) }]);
});
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(
    servers.map((server) => {
      server.unpause();
      return server.stop();
    }),
  );
});

const target = () => servers.flatMap((server, i) => ['--node', `r${i + 1}=${server.url}`]);
async function seq(...args: string[]) {
  const ran = await runSeq(home, [...args, ...target(), '--node-timeout', '1s', '-o', 'json']);
  const document = JSON.parse(ran.stdout) as { data: Record<string, never>; error: { code: string } | null };
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, ...document };
}
interface Row {
  height: string;
  class: string;
  cells: { mark: string }[];
}
/** `5 committed AAA`, newest first. */
async function picture(...args: string[]): Promise<string[]> {
  const { data } = await seq('stream', 'inspect', ...args);
  return (data['heights'] as unknown as Row[]).map(
    (row) => `${row.height} ${row.class} ${row.cells.map((cell) => cell.mark).join('')}`,
  );
}
async function raw<T>(at: number, run: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(servers[at]!.port, '127.0.0.1');
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}

describe('matrix', () => {
  test('inspect: equal, partial and trimmed → letters, classes, items; verify and diff agree', async () => {
    expect(await picture('--limit', '2')).toEqual(['5 committed AAA', '4 committed AAA']);
    const items = (await seq('stream', 'inspect', '--height', '3', '--data')).data['heights'] as unknown as {
      items: { data: string }[];
    }[];
    expect(items[0]!.items[0]!.data).toBe('item 3');
    expect(await seq('stream', 'verify', '--exit-code')).toMatchObject({
      code: 0,
      data: { verdict: 'OK', total: 0, range: { heightFrom: '1', heightTo: '5' } },
    });
    expect(await seq('stream', 'diff', '--on', 'r1,r3', '--exit-code')).toMatchObject({
      code: 0,
      data: { total: 0, compared: 5 },
    });

    const six = await writer.write([], [nodes[0]!]);
    expect((await picture('--limit', '2'))[0]).toBe('6 pending A..');
    await writer.put(six, [nodes[1]!]);
    await writer.write([], nodes.slice(0, 2), 2);
    expect(await picture('--from', '1')).toEqual([
      '7 committed AA.',
      '6 committed AA.',
      '5 committed AAA',
      '4 committed AAA',
      '3 committed AAA',
      '2 committed --A',
      '1 committed --A',
    ]);
    expect(await picture('--from', '1', '--differing')).toEqual(['7 committed AA.', '6 committed AA.']);
    const behind = await seq('stream', 'diff', '--on', 'r3', '--exit-code');
    expect([behind.code, behind.data]).toMatchObject([
      1,
      {
        total: 2,
        differences: [
          { height: '6', kind: 'lacks', node: 'r3' },
          { height: '7', kind: 'lacks' },
        ],
      },
    ]);
    expect((await seq('stream', 'verify')).data).toMatchObject({ verdict: 'OK', total: 0 });
    const codes = await Promise.all(
      ['table', 'plain', 'csv', 'ndjson'].map(
        async (format) =>
          (await runSeq(home, ['stream', 'inspect', ...target(), '--node-timeout', '1s', '-o', format])).code,
      ),
    );
    expect(codes).toEqual([0, 0, 0, 0]);
  });

  test(
    'inspect: an orphan of an earlier term beside a committed block → B, named; with one node ' +
      'hanging the rest is still told',
    async () => {
      await writer.write([{ data: Buffer.from('lost') }], [nodes[2]!]);
      expect((await picture('--limit', '1'))[0]).toBe('6 pending ..A');
      const next = new ChainWriter(nodes, CLUSTER, '', 'seq-b');
      Object.assign(next.chain, { height: 5, hash: writer.blocks[4]!.hash });
      next.epoch = 1;
      await Promise.all(nodes.map((node) => node.call({ script: 'release_lock', owner: writer.owner }, 1000)));
      await next.lead(nodes.slice(0, 2));
      await next.write([], nodes.slice(0, 2));
      expect(await picture('--limit', '2')).toEqual(['6 committed AAB', '5 committed AAA']);
      expect((await seq('stream', 'diff', '--on', 'r3')).data).toMatchObject({
        total: 1,
        differences: [{ height: '6', kind: 'other', node: 'r3', wanted: next.blocks[0]!.hash }],
      });
      servers[0]!.pause();
      const { code, data } = await seq('stream', 'inspect', '--limit', '2');
      expect([
        code,
        (data['heights'] as unknown as Row[]).map(
          (row) => `${row.class} ${row.cells.map((cell) => cell.mark).join('')}`,
        ),
      ]).toEqual([0, ['pending ?AB', 'committed ?AA']]);
      expect((data['heights'] as unknown as { note: string }[])[0]!.note).toContain('could make it committed');
      expect((await seq('stream', 'verify')).data).toMatchObject({
        verdict: 'OK',
        nodes: [{ id: 'r1', verified: false }, { verified: true }, { verified: true }],
      });
    },
  );

  test('entries written by hand outside the record → each named with node and writer by all four, which say no', async () => {
    const [auto, low] = await raw(2, async (redis) => {
      const entries = await redis.xrange('seq:block:stream', '-', '+');
      await redis.del('seq:block:stream');
      // An id that no height can have, and one that follows the head as if it were a later term's stamp.
      await redis.xadd('seq:block:stream', '0-7', 'a', 'b');
      for (const [id, fields] of entries) await redis.xadd('seq:block:stream', id, ...fields);
      await redis.xadd('seq:block:stream', '5-9', 'height', '1e3', 'owner', 'seq-z/0000000000000009');
      return [await redis.xadd('seq:block:stream', '*', 'a', 'b'), '0-7'];
    });
    const strays = [
      { node: 'r3', id: low, writer: '', why: expect.stringMatching(/^at or below the floor 0 of its record: /) },
      { node: 'r3', id: '5-9', writer: 'seq-z', why: expect.stringMatching(/^beside the head 5-1 of its record: /) },
      { node: 'r3', id: auto, writer: '', why: expect.stringMatching(/^above the head 5-1 of its record: /) },
    ];
    expect((await seq('stream', 'inspect')).data).toMatchObject({ verdict: 'WARN', reasonCode: 'STRAY', strays });
    const lines = await runSeq(home, ['stream', 'inspect', ...target(), '--node-timeout', '1s', '-o', 'ndjson']);
    expect(lines.stderr.replace(/\s+/g, ' ')).toContain(`r3: entry ${auto} stands above the head 5-1 of its record`);
    for (const on of ['r3', 'r1,r3']) {
      const diff = await seq('stream', 'diff', '--on', on, '--exit-code');
      expect([on, diff.code, diff.data]).toMatchObject([on, 1, { verdict: 'WARN', reasonCode: 'STRAY', strays }]);
    }
    expect(await seq('stream', 'diff', '--on', 'r1,r2', '--exit-code')).toMatchObject({
      code: 0,
      data: { strays: [] },
    });
    const verified = await seq('stream', 'verify');
    expect(verified.code).toBe(1);
    for (const { id } of strays)
      expect(verified.data['violations']).toContainEqual({
        node: 'r3',
        height: null,
        code: 'STRAY',
        witness: expect.stringMatching(new RegExp(`^entry ${id} `)),
      });
    expect(await seq('check', 'stream')).toMatchObject({
      code: 1,
      data: { verdict: 'WARN', reasonCode: 'STRAY', reason: expect.stringContaining('3 such entries') },
    });
  });

  test('verify: content changed by hand, an entry deleted → each with its witness, exit 1', async () => {
    await raw(1, async (redis) => {
      const entries = await redis.xrange('seq:block:stream', '-', '+');
      // Makes the stream again, because Redis 8 accepts no id that was deleted.
      await redis.del('seq:block:stream');
      for (const [id, fields] of entries)
        await redis.xadd(
          'seq:block:stream',
          id,
          ...fields.map((value, i) => (id === '3-1' && fields[i - 1] === 'data' ? 'forged' : value)),
        );
    });
    await raw(2, (redis) => redis.xdel('seq:block:stream', '2-1'));
    const { code, data } = await seq('stream', 'verify', '--exit-code');
    const found = (data['violations'] as unknown as { node: string; height: string | null; code: string }[]).map(
      (one) => `${one.node} ${one.height} ${one.code}`,
    );
    expect(code).toBe(1);
    expect(found).toEqual(expect.arrayContaining(['r2 3 DAMAGED', 'r3 2 HOLE', 'r3 null NOT_ADMITTED']));
    expect(found.filter((one) => one.startsWith('r1'))).toEqual([]);
    expect((await picture('--height', '3'))[0]).toBe('3 committed A!a');
    expect(await seq('stream', 'diff', '--on', 'r2', '--exit-code')).toMatchObject({
      code: 1,
      data: { differences: [{ height: '3', kind: 'damaged' }] },
    });
  });
});
