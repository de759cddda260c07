// The other dialect on real servers: hand-made streams for every class, read as an operator would, with a node
// hanging, keys of the wrong type, and the proof that nothing but reading commands ever reached a server
// (docs/FUEL.md).
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FuelNode } from '../../src/core/redis/fuel/fuel-node.js';
import { gather } from '../../src/core/dialect-fuel/gather.js';
import { probeAll } from '../../src/core/dialect-fuel/probe.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const K = 'poa:leader:lock';
const home = newHome();
let servers: RedisServer[] = [];
let redis: Redis[] = [];

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  redis = servers.map((server) => new Redis(server.port, '127.0.0.1'));
});
afterAll(async () => {
  for (const one of redis) one.disconnect();
  await Promise.all(
    servers.map((server) => {
      server.unpause();
      return server.stop();
    }),
  );
});
beforeEach(async () => {
  await Promise.all(
    redis.map(async (one) => {
      await one.flushall();
      await one.config('RESETSTAT');
    }),
  );
});

/** Writes as the script of fuel-core does: entry and index. */
async function put(at: number, height: number, data: string, epoch: number | null = 1, indexed = true): Promise<void> {
  await redis[at]!.xadd(
    `${K}:block:stream`,
    '*',
    'height',
    String(height),
    'data',
    Buffer.from(`\u0000${data}`),
    ...(epoch === null ? [] : ['epoch', String(epoch)]),
    'timestamp',
    '1790000000',
  );
  if (indexed) await redis[at]!.zadd(`${K}:heights:index`, height, String(height));
}
/**
 * `5: A1 A1 .`: height 5, block A at epoch 1 on r1 and r2. `A1~`: not indexed; `!`: only indexed; `A1B2`: two
 * entries.
 */
async function lay(...lines: string[]): Promise<void> {
  for (const line of lines) {
    const [height, words] = line.split(': ') as [string, string];
    for (const [at, word] of words.split(' ').entries()) {
      if (word === '!') await redis[at]!.zadd(`${K}:heights:index`, Number(height), height);
      for (const [, block, epoch] of word.matchAll(/([A-Z])(\d+)/g))
        await put(at, Number(height), `${block} ${height}`, Number(epoch), !word.endsWith('~'));
    }
  }
}
async function lead(epoch = 1, owner = 'f3b1c9de-0000-4000-8000-000000000001', nodes = [0, 1, 2]): Promise<void> {
  for (const at of nodes) {
    await redis[at]!.set(K, owner, 'PX', 60_000);
    await redis[at]!.set(`${K}:epoch:token`, String(epoch));
  }
}
const target = () => servers.flatMap((server) => ['--node', server.url]);
const dialect = ['--dialect', 'fuel', '--lease-key', K];
interface Cell {
  mark: string;
}
interface Row {
  height: string;
  class: string;
  also: string[];
  note: string;
  cells: Cell[];
}
interface Document {
  kind: string;
  data: Record<string, never> & {
    heights: Row[];
    reason: string;
    reasonCode: string;
    verdict: string;
    violations: { node: string; height: string | null; code: string }[];
  };
  error: { code: string; changed: string } | null;
}
async function seq(...args: string[]) {
  const ran = await runSeq(home, [...args, ...target(), '--node-timeout', '1s', '-o', 'json']);
  const document = JSON.parse(ran.stdout) as Document;
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, ...document };
}
async function picture(...args: string[]): Promise<string[]> {
  const { data } = await seq('stream', 'inspect', ...dialect, ...args);
  return data.heights.map(
    (row) => `${row.height} ${[row.class, ...row.also].join('+')} ${row.cells.map((cell) => cell.mark).join(' ')}`,
  );
}

describe('foreign streams', { timeout: 120_000 }, () => {
  test(
    'inspect, verify, check: one of every class, out of order → as they are; only reads were sent, ' + 'no key moved',
    async () => {
      await lead(9);
      await lay(
        '10: A1 A1 A1',
        '12: A1 A1 B1',
        '11: A1 A2 .',
        '14: A1A1 A1 A1',
        '13: A5 A5 B7',
        '15: A1~ A1 A1',
        '16: A1 A1 !',
        '17: A1 A1B1 A1',
        '20: A1 B2 .',
        '21: A1 B2 C3',
        '22: A9 . .',
      );
      const before = await Promise.all(
        redis.map((one) =>
          Promise.all([
            one.dump(K),
            one.dump(`${K}:block:stream`),
            one.dump(`${K}:heights:index`),
            one.dump(`${K}:epoch:token`),
          ]),
        ),
      );
      await Promise.all(redis.map((one) => one.config('RESETSTAT')));
      expect(await picture()).toEqual(
        [
          '22 repairable A . .',
          '21 unwinnable-conflict C B A',
          '20 winnable-conflict B A .',
          '17 duplicate A AB A',
          '16 index-mismatch A A .*',
          '15 index-mismatch A* A A',
          '14 duplicate AA A A',
          '13 shadowed A A B',
          '12 committed A A B',
          '11 committed A A .',
          '10 committed A A A',
        ].map((line) =>
          line.startsWith('21')
            ? (expect.stringMatching(/^21 unwinnable-conflict [ABC] [ABC] [ABC]$/) as unknown as string)
            : line,
        ),
      );
      expect((await seq('stream', 'inspect', ...dialect)).data).toMatchObject({
        verdict: 'CRIT',
        reasonCode: 'UNWINNABLE_CONFLICT',
        classes: { committed: 3, duplicate: 2, 'index-mismatch': 2 },
      });
      const verified = await seq('stream', 'verify', ...dialect, '--exit-code');
      expect([verified.code, verified.data]).toMatchObject([
        1,
        { normal: { duplicates: 1, unindexed: 1, orphans: 2, leftBehind: 0 } },
      ]);
      expect(verified.data.violations.map((one) => `${one.height} ${one.code} ${one.node}`)).toEqual([
        '22 REPAIRABLE ',
        '21 UNWINNABLE_CONFLICT ',
        '20 WINNABLE_CONFLICT ',
        '17 DUPLICATE n2',
        '16 INDEX_MISMATCH n3',
        '13 SHADOWED ',
      ]);
      expect(await seq('check', 'stream', ...dialect)).toMatchObject({
        code: 2,
        data: { reasonCode: 'UNWINNABLE_CONFLICT' },
      });
      expect(await seq('status', ...dialect)).toMatchObject({
        code: 0,
        kind: 'fuel.status',
        data: {
          verdict: 'CRIT',
          reasonCode: 'UNWINNABLE_CONFLICT',
          committed: { height: '17' },
          leader: { epoch: '9', nodes: ['n1', 'n2', 'n3'] },
        },
      });
      expect(await seq('stream', 'diff', ...dialect, '--on', 'n3', '--exit-code')).toMatchObject({
        code: 1,
        kind: 'fuel.diff',
        data: { total: 5 },
      });
      for (const said of [verified.stdout]) expect(said).not.toMatch(/fork/i);
      const after = await Promise.all(
        redis.map((one) =>
          Promise.all([
            one.dump(K),
            one.dump(`${K}:block:stream`),
            one.dump(`${K}:heights:index`),
            one.dump(`${K}:epoch:token`),
          ]),
        ),
      );
      expect(after).toEqual(before);
      for (const one of redis) {
        const ran = [...(await one.info('commandstats')).matchAll(/cmdstat_([a-z|]+):/g)].map((found) => found[1]);
        expect(
          ran.filter(
            (name) =>
              !/^(get|pttl|xlen|xinfo\|stream|xrange|xrevrange|zcard|zrangebyscore|zrevrange|info|ping|config\|resetstat|dump|auth|select|client\|\w+)$/.test(
                name!,
              ),
          ),
        ).toEqual([]);
      }
    },
  );

  test(
    'case 2 one block, three epochs: the same bytes under 3, 4 and 4 → committed; case 10: other ' +
      'bytes under a higher epoch → shadowed',
    async () => {
      await lead(7);
      await lay('1: A3 A4 A4', '2: X5 X5 Y7');
      expect(await picture()).toEqual(['2 shadowed A A B', '1 committed A A A']);
      const { data } = await seq('status', ...dialect);
      expect(data).toMatchObject({
        verdict: 'WARN',
        reasonCode: 'SHADOWED',
        committed: { height: '2', nodes: ['n1', 'n2'] },
      });
    },
  );

  test(
    'case 20 older than every stream: trimmed on two nodes, still on one → cannot be told any more, ' +
      'and never "lacks"',
    async () => {
      await lead(1);
      for (const height of [1, 2, 3, 4]) await lay(`${height}: A1 A1 A1`);
      for (const at of [0, 1]) await redis[at]!.xtrim(`${K}:block:stream`, 'MAXLEN', 2);
      expect(await picture()).toEqual(['4 committed A A A', '3 committed A A A', '2 trimmed - - A', '1 trimmed - - A']);
      expect(await seq('stream', 'diff', ...dialect, '--on', 'n1,n3', '--exit-code')).toMatchObject({
        code: 0,
        data: { compared: 2, total: 0 },
      });
      expect(await seq('stream', 'verify', ...dialect, '--exit-code')).toMatchObject({
        code: 0,
        data: { verdict: 'OK' },
      });
    },
  );

  test(
    'healthy: OK everywhere, every format, a missing epoch is 0, unreadable entries are skipped and ' + 'named',
    async () => {
      await lead(3);
      await lay('1: A1 A1 A1', '2: A3 A3 A3');
      expect(await seq('check', 'all', ...dialect)).toMatchObject({ code: 0, data: { verdict: 'OK', cluster: K } });
      const nagios = await runSeq(home, [
        'check',
        'all',
        ...dialect,
        ...target(),
        '--node-timeout',
        '1s',
        '-o',
        'nagios',
      ]);
      expect([nagios.code, nagios.stdout.split('\n')[0]]).toEqual([0, expect.stringMatching(/^SEQ ALL OK - .* \| /)]);
      for (const [verb, format] of [
        ['status', 'table'],
        ['stream inspect', 'wide'],
        ['stream inspect', 'ndjson'],
        ['stream verify', 'table'],
      ]) {
        expect(
          (await runSeq(home, [...verb!.split(' '), ...dialect, ...target(), '--node-timeout', '1s', '-o', format!]))
            .code,
          `${verb} ${format}`,
        ).toBe(0);
      }
      await put(0, 3, 'A 3', null);
      await redis[1]!.xadd(`${K}:block:stream`, '*', 'height', '3');
      await redis[1]!.xadd(`${K}:block:stream`, '*', 'height', '1e3', 'data', 'x');
      await redis[2]!.xadd(`${K}:block:stream`, '*', 'height', '4', 'data', 'x', 'epoch', '18446744073709551615');
      await redis[2]!.zadd(`${K}:heights:index`, 6, '5');
      const { data } = await seq('stream', 'verify', ...dialect);
      expect(data.violations.map((one) => `${one.node} ${one.height} ${one.code}`)).toEqual([
        ' 4 REPAIRABLE',
        ' 3 REPAIRABLE',
        'n2 null UNREADABLE_ENTRY',
        'n2 null UNREADABLE_ENTRY',
        'n3 null INDEX_MISMATCH',
        'n3 null EPOCH_ABOVE_COUNTER',
      ]);
    },
  );

  // Nine seconds of waiting for nodes that hang: with `npm run test:long`.
  test.runIf(process.env['SEQ_TEST_LONG'] === '1')(
    'nodes hanging, gone, of another type, empty, unknown key → rows and words, in time, never "no"',
    async () => {
      await lead(3);
      await lay('1: A1 A1 A1', '2: A3 . A3');
      await redis[2]!.set(`${K}:heights:index`, 'text');
      expect((await seq('status', ...dialect)).data).toMatchObject({
        nodes: [{ state: 'OK' }, expect.anything(), { state: 'WARN', noteCode: 'WRONG_KEY' }],
      });
      expect(await picture()).toEqual(['2 repairable A . ?', '1 committed A A ?']);
      await redis[2]!.del(`${K}:heights:index`);
      servers[1]!.pause();
      try {
        const { code, data } = await seq('status', ...dialect);
        expect([code, data]).toMatchObject([
          0,
          {
            verdict: 'WARN',
            reasonCode: 'NODE_DOWN',
            committed: { height: '2' },
            nodes: [{}, { state: 'DOWN', error: { code: 'NO_ANSWER' } }, {}],
          },
        ]);
        expect(await picture()).toEqual(['2 committed A ? A', '1 committed A ? A']);
        servers[0]!.pause();
        expect(await seq('status', ...dialect)).toMatchObject({
          code: 0,
          data: { verdict: 'CRIT', reasonCode: 'NO_QUORUM', leader: null, leaderKnown: false },
        });
        expect(await picture()).toEqual(['2 unknown ? ? A', '1 unknown ? ? A']);
        expect(await seq('stream', 'verify', ...dialect, '--exit-code')).toMatchObject({
          code: 69,
          data: { verdict: 'UNKNOWN' },
        });
        servers[2]!.pause();
        expect(await seq('stream', 'inspect', ...dialect)).toMatchObject({
          code: 69,
          error: { code: 'NO_ANSWER', changed: 'nothing' },
        });
      } finally {
        for (const server of servers) server.unpause();
      }
      expect(await seq('status', '--dialect', 'fuel', '--lease-key', 'poa:leder:lock')).toMatchObject({
        code: 0,
        data: { verdict: 'UNKNOWN', reasonCode: 'NO_SUCH_KEYS' },
      });
    },
  );

  test(
    'what writes is refused before anything is sent; what cannot read it says so; half given flags → ' + '64',
    async () => {
      for (const args of [
        ['stepdown', '--yes'],
        ['cluster', 'init'],
        ['node', 'admit'],
        ['run', '--id', 'a', '--store', home],
        ['submit'],
      ]) {
        expect(await seq(...args, ...dialect), args.join(' ')).toMatchObject({
          code: 81,
          error: { code: 'READ_ONLY_DIALECT', changed: 'nothing' },
        });
      }
      const byEnvironment = await runSeq(home, ['stepdown', '--yes', ...target(), '-o', 'json'], {
        env: { SEQ_DIALECT: 'fuel' },
      });
      expect([byEnvironment.code, (JSON.parse(byEnvironment.stdout) as Document).error?.code]).toEqual([
        81,
        'READ_ONLY_DIALECT',
      ]);
      expect(await seq('history', ...dialect)).toMatchObject({ code: 64, error: { code: 'DIALECT_NOT_READ' } });
      for (const args of [
        ['status', '--dialect', 'fuel'],
        ['status', '--lease-key', K],
        ['status', '--dialect', 'foul'],
        ['stream', 'inspect', ...dialect, '--data'],
        ['status', ...dialect, '--lane', 'x'],
        ['stream', 'inspect', ...dialect, '--from-bundle', 'x'],
      ]) {
        expect(
          (await runSeq(home, [...args, ...(args.includes('--from-bundle') ? [] : target()), '-o', 'json'])).code,
          args.join(' '),
        ).toBe(64);
      }
      expect((await seq('check', 'all', '--dialect', 'fuel')).code).toBe(3);
      const statistics = await Promise.all(redis.map((one) => one.info('commandstats')));
      expect(statistics.join('')).not.toMatch(/cmdstat_(eval|evalsha|xadd|set|del|zadd)\b/);
    },
  );

  test('long streams: many pieces, more than is held at once → the same rows as in one piece', async () => {
    const blocks = 1500;
    await Promise.all(
      redis.map(async (one, at) => {
        const pipe = one.pipeline();
        for (let i = 0; i < blocks; i += 1) {
          const height = i % 7 === 3 ? i + 5 : i % 7 === 1 ? i - 1 : i;
          if ((i + at) % 11 === 0) continue;
          pipe.xadd(
            `${K}:block:stream`,
            '*',
            'height',
            String(height),
            'data',
            i % 97 === 0 ? `${at}` : `block ${i}`,
            'epoch',
            '1',
          );
        }
        await pipe.exec();
      }),
    );
    const nodes = servers.map((server, at) => new FuelNode({ id: `n${at + 1}`, url: server.url, leaseKey: K }));
    const options = { nodes, limitMs: 5000, clock: systemClock, quorum: 2 };
    const probes = new Map((await probeAll(options)).map((one) => [one.id, one.reply]));
    const all = async (heldEntries: number, more = {}) => {
      const found: string[] = [];
      for await (const { verdict, cells } of (await gather({ ...options, probes, heldEntries, ...more })).pictures)
        found.push(
          `${verdict.height} ${verdict.class} ` +
            `${cells.map((cell) => cell.entries.map((entry) => entry.digest).join('+')).join(' ')}`,
        );
      return found;
    };
    const [whole, pieces, top] = [await all(1_000_000), await all(300), await all(300, { limit: 5 })];
    await Promise.all(nodes.map((node) => node.close()));
    expect(whole.length).toBeGreaterThan(1000);
    expect(whole.map((line) => Number(line.split(' ')[0]))).toEqual(
      whole.map((line) => Number(line.split(' ')[0])).sort((a, b) => b - a),
    );
    expect(pieces).toEqual(whole);
    expect(top).toEqual(whole.slice(0, 5));
  });
});

test.each([
  ['only 2/6 Redis nodes responded', 'FUEL_NOT_ENOUGH_NODES'],
  ['Backlog unresolved at height 71: no entries at next height', 'FUEL_NO_ENTRIES_AT_NEXT_HEIGHT'],
  ['Backlog unresolved at height 71: repair failed to reach quorum', 'FUEL_REPAIR_BELOW_QUORUM'],
  ['Backlog unresolved at height 71: repair error: x', 'FUEL_REPAIR_ERROR'],
  ['Backlog unresolved at height 71: no winning candidate', 'FUEL_NO_WINNING_CANDIDATE'],
  ['Failed to publish block to redis quorum with fencing checks', 'FUEL_PUBLISH_FAILED'],
  ['fencing token is not initialized', 'FUEL_TOKEN_MISSING'],
  ['Lost lock during repair', 'FUEL_LOCK_LOST'],
  ['Failed to release lease on quorum', 'FUEL_RELEASE_FAILED'],
  ['Timed out while connecting to redis leader-lock node', 'FUEL_CONNECT_TIMEOUT'],
])('explain: %s → %s', async (text, code) => {
  const { explain } = await import('../../src/cli/codes/codes.js');
  expect(explain(text).map((one) => one.code)).toEqual([code]);
});
