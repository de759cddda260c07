// A bundle answers as the nodes did: every look verb live and then, with the servers gone, from the file; orphans
// listed; --on narrows. The streams differ on purpose: a lagging head, a superseded block, an entry changed by hand.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const SECRET = 'hunter2secret';
const home = newHome();
let servers: RedisServer[] = [];
let nodes: RedisNode[] = [];

interface Document {
  data: Record<string, unknown>;
  error: { code: string } | null;
  warnings: string[];
  ok: boolean;
}
const target = () => servers.flatMap((server, i) => ['--node', `r${i + 1}=${server.url}`]);
const bundle = join(home, 'all.bundle');

async function seq(args: string[], env: Record<string, string> = {}) {
  const ran = await runSeq(home, [...args, '-o', 'json'], { env, limitMs: 120_000 });
  const document = JSON.parse(ran.stdout) as Document;
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, ...document };
}
const live = (...args: string[]) => seq([...args, ...target(), '--node-timeout', '2s'], { SEQ_PASSWORD: SECRET });

/** Fields that change with time alone, and findings of `doctor` that depend on the clock. */
function timeless(value: unknown): unknown {
  if (Array.isArray(value))
    return value
      .filter((one) => !['uptime', 'latency', 'clock'].includes(String((one as { check?: string } | null)?.check)))
      .map(timeless);
  // A bundle has no password: its commands ask for none.
  if (typeof value === 'string') return value.replace('REDISCLI_AUTH="$SEQ_PASSWORD" ', '');
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(
        ([name]) =>
          !/^(ttlMs|renewedMs|rttMs|ageMs|pttlMs|seenMs|leaseMs|expiresMs|uptimeSeconds|metrics|roundTripMs|clockMs|usedBytes)$/.test(
            name,
          ) && !(name === 'verdict' && 'nodesExamined' in value),
      )
      .map(([name, each]) => [name, timeless(each)]),
  );
}

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => startRedis({ args: ['--requirepass', SECRET] })));
  nodes = servers.map(
    (server, i) =>
      new RedisNode({ id: `r${i + 1}`, url: server.url, password: SECRET, identity: { cluster: CLUSTER, lane: '' } }),
  );
  const writer = new ChainWriter(nodes, CLUSTER, '', 'seq-a', 3_600_000);
  await writer.bootstrap();
  await writer.lead();
  for (let i = 0; i < 40; i++) await writer.write([{ data: Buffer.from(`item ${i + 1}`) }]);
  await writer.write([{ data: Buffer.from('lost') }], [nodes[2]!]);
  await Promise.all(nodes.map((node) => node.call({ script: 'release_lock', owner: writer.owner }, 2000)));
  const next = new ChainWriter(nodes, CLUSTER, '', 'seq-b', 3_600_000);
  Object.assign(next.chain, { height: 40, hash: writer.blocks[39]!.hash });
  next.epoch = 1;
  await next.lead();
  const block = await next.write([], nodes.slice(0, 2));
  const { owner, epoch, ttlMs } = next;
  const superseded = await nodes[2]!.call(
    { script: 'write_block', owner, epoch, ttlMs, mode: 'repair', block, entryEpoch: epoch },
    2000,
  );
  expect(superseded.outcome).toBe('accepted');
  await next.write([], nodes.slice(0, 2));
  for (const node of nodes)
    await node.call(
      {
        script: 'audit',
        record: { at: '1700000000000', by: 'ada', command: `hold --password=${SECRET}`, outcome: 'accepted' },
        maxRecords: 100,
      },
      2000,
    );
  const redis = new Redis({ port: servers[1]!.port, password: SECRET });
  const whole = new Redis({ port: servers[0]!.port, password: SECRET });
  await redis.del('seq:block:stream');
  for (const [id, fields] of await whole.xrange('seq:block:stream', '-', '+')) {
    const at = fields.indexOf('data') + 1;
    await redis.xadd(
      'seq:block:stream',
      id,
      ...fields.map((field, i) => (i === at && id === '20-1' ? 'forged' : field)),
    );
  }
  whole.disconnect();
  redis.disconnect();
}, 300_000);
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

async function inPairs<T>(all: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < all.length; at += 2) await Promise.all(all.slice(at, at + 2).map(run));
}

const VERBS: string[][] = [
  ['status'],
  ['status', '--on', 'r2'],
  ['node', 'list'],
  ['stream', 'inspect', '--from', '1', '--data'],
  ['stream', 'inspect', '--differing', '--on', 'r3', '--limit', '30'],
  ['stream', 'verify'],
  ['stream', 'verify', '--on', 'r1'],
  ['stream', 'diff', '--on', 'r3'],
  ['stream', 'diff', '--on', 'r1,r2'],
  ['stream', 'tail', '--items', '--from', '1'],
  ['stream', 'orphans'],
  ['history'],
  ['epoch', 'show'],
  ['check', 'all'],
  ['check', 'stream', '--depth', '30'],
  ['doctor'],
];

describe('bundle', () => {
  test('export, then every look verb live and from the file with the servers gone → the same answers', async () => {
    const made = await live('stream', 'export', '--file', bundle);
    expect([made.code, made.data]).toMatchObject([
      0,
      {
        payloads: true,
        range: { heightFrom: '1', heightTo: '42' },
        nodes: [{ id: 'r1', copies: 42, damaged: 0 }, { copies: 41, damaged: 1 }, { copies: 41 }],
      },
    ]);
    const bare = join(home, 'bare.bundle');
    const window = join(home, 'window.bundle');
    expect((await live('stream', 'export', '--file', bare, '--no-payloads')).code).toBe(0);
    expect((await live('stream', 'export', '--file', window, '--from', '2', '--to', '3')).code).toBe(0);
    const before = new Map<string, Awaited<ReturnType<typeof live>>>();
    await inPairs(VERBS, async (verb) => {
      before.set(verb.join(' '), await live(...verb));
    });
    await Promise.all(servers.map((server) => server.kill('SIGKILL')));

    await inPairs(VERBS, async (verb) => {
      const was = before.get(verb.join(' '))!;
      const now = await seq([...verb, '--from-bundle', bundle]);
      expect([verb, now.code, timeless(now.data)]).toEqual([
        verb,
        was.code,
        JSON.parse(JSON.stringify(timeless(was.data)).replaceAll(SECRET, '***')),
      ]);
      expect(now.warnings.some((one) => one.includes('this is how it was at'))).toBe(true);
    });
    // A bundle without payloads still proves the hashes.
    const proven = await seq(['stream', 'verify', '--from-bundle', bare]);
    expect(timeless(proven.data)).toEqual(timeless(before.get('stream verify')!.data));
    for (const file of [bundle, bare, window]) expect(readFileSync(file, 'utf8')).not.toContain(SECRET);

    const text = await runSeq(home, ['status', '--from-bundle', bundle]);
    expect([text.code, text.stderr]).toEqual([0, expect.stringContaining('this is how it was at')]);
    const watched = await runSeq(home, ['watch', '--once', '--from-bundle', bundle]);
    expect([watched.code, watched.stdout]).toEqual([0, expect.stringContaining('r3')]);
    const again = await runSeq(home, ['stream', 'export', '--file', bundle, ...target(), '--node-timeout', '100ms'], {
      env: { SEQ_PASSWORD: SECRET },
    });
    expect([again.code, again.stderr]).toEqual([74, expect.stringContaining('FILE_EXISTS')]);
    const silent = await runSeq(home, ['stream', 'export', '--file', join(home, 'none.bundle'), ...target()], {
      env: { SEQ_PASSWORD: SECRET },
    });
    expect([silent.code, silent.stderr]).toEqual([69, expect.stringContaining('NO_ANSWER')]);
  }, 300_000);

  test(
    'orphans and --on: what was superseded is listed with what stands there instead; columns and ' +
      'rows narrow, verdicts do not',
    async () => {
      const { data } = await seq(['stream', 'orphans', '--from-bundle', bundle]);
      expect(data).toMatchObject({
        nodes: [{ id: 'r1', superseded: 0 }, { id: 'r2' }, { id: 'r3', superseded: 1, setAside: null }],
        orphans: [{ node: 'r3', height: '41', epoch: '1', writer: 'seq-a', damage: '' }],
      });
      const status = await seq(['status', '--on', 'r3', '--from-bundle', bundle]);
      expect(status.data).toMatchObject({ nodes: [{ id: 'r3' }], quorum: 2, leader: { id: 'seq-b' } });
      const inspected = await seq(['stream', 'inspect', '--on', 'r1', '--height', '20', '--from-bundle', bundle]);
      expect(inspected.data).toMatchObject({
        heights: [{ height: '20', class: 'committed', copies: 2, n: 3, cells: [{ node: 'r1', mark: 'A' }] }],
      });
      const sound = await seq(['stream', 'verify', '--on', 'r1', '--exit-code', '--from-bundle', bundle]);
      expect([sound.code, sound.data]).toMatchObject([0, { verdict: 'OK', nodes: [{ id: 'r1' }] }]);
      const found = await seq(['stream', 'verify', '--on', 'r2', '--from-bundle', bundle]);
      expect([found.code, found.data]).toMatchObject([
        1,
        { total: 1, violations: [{ node: 'r2', height: '20', code: 'DAMAGED' }] },
      ]);
    },
    300_000,
  );

  test.each([
    ['cut in the middle', (text: string) => text.slice(0, text.length / 2), 65, 'BUNDLE_DAMAGED'],
    ['another version', (text: string) => text.replace('"version":1', '"version":2'), 65, 'BUNDLE_VERSION'],
    ['no bundle', () => 'hello\n', 65, 'NOT_A_BUNDLE'],
    ['one digit changed', (text: string) => text.replace('"height":7,', '"height":8,'), 65, 'BUNDLE_DAMAGED'],
  ])('a file that is %s → refused, five parts, for a check too', async (_, change, code, word) => {
    const path = join(home, `${word}-${code}.bundle`);
    writeFileSync(path, change(readFileSync(bundle, 'utf8')));
    const [status, check] = await Promise.all([
      seq(['status', '--from-bundle', path]),
      seq(['check', 'leader', '--from-bundle', path]),
    ]);
    expect([status.code, status.error]).toMatchObject([
      code,
      { code: word, changed: 'nothing', next: [expect.any(String)] },
    ]);
    expect([check.code, check.error]).toMatchObject([3, { code: word }]);
  });

  test('paths: missing → 66; a directory, a device → 65; with --node, --follow or --watch → 64', async () => {
    const ran = await Promise.all(
      [['/nonexistent/x'], [home], ['/dev/zero'], [bundle, '--node', 'redis://127.0.0.1:1'], [bundle, '--watch']].map(
        (rest) => runSeq(home, ['status', '--from-bundle', ...rest]),
      ),
    );
    expect(ran.map(({ code, stderr }) => `${code} ${stderr.split(':')[0]}`)).toEqual([
      '66 FILE_NOT_FOUND',
      '65 NOT_A_BUNDLE',
      '65 NOT_A_BUNDLE',
      '64 USAGE',
      '64 USAGE',
    ]);
  });
});
