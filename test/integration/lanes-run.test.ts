// `seq run --lanes`: one process for many lanes, on real servers. Each lane keeps its chain, its leader and its promises
// through what happens to processes, to nodes, and to other lanes.
import { writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startSequencer, type SequencerProcess } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const TIMING = ['--ttl', '2s', '--block-time', '300ms', '--eager'];
const TILES = Array.from({ length: 12 }, (_, i) => `tile-${i}`);
let lab: PrivateCluster;
let clients: Redis[];
const running: SequencerProcess[] = [];
let stores = 0;

interface Shown {
  wanted: number;
  lanes: { lane: string; role: string; epoch: number; height: number; leader: string | null }[];
}
interface Receipt {
  height: number;
  index: number;
  epoch: number;
}

const nodeFlags = () => lab.nodeFlags.flatMap((flag) => ['--node', flag]);
const seq = (...args: string[]) => runSeq(home, [...args, ...nodeFlags(), '--node-timeout', '1s']);

function start(id: string, ...more: string[]): SequencerProcess {
  const store = `${lab.directory}/lanes-${id}-${stores++}`;
  const one = startSequencer(home, [
    '--id',
    id,
    '--store',
    store,
    '--http',
    '127.0.0.1:0',
    ...TIMING,
    ...more,
    ...nodeFlags(),
  ]);
  running.push(one);
  return one;
}
async function get<T>(url: string): Promise<{ status: number; body: T }> {
  const answer = await fetch(url);
  return { status: answer.status, body: (await answer.json()) as T };
}
async function until<T>(what: () => Promise<T>): Promise<T> {
  return vi.waitFor(what, { timeout: STANDSTILL_MS, interval: 50 });
}
const shown = async (one: SequencerProcess) => (await get<Shown>(`${await one.url()}/v1/lanes`)).body;
/** Waits until every lane is led by one of these. Who leads it, by lane. */
const led = (by: SequencerProcess[], lanes: readonly string[] = TILES): Promise<Map<string, SequencerProcess>> =>
  until(async () => {
    const leaders = new Map<string, SequencerProcess>();
    for (const one of by)
      for (const { lane, role } of (await shown(one)).lanes) if (role === 'leader') leaders.set(lane, one);
    expect([...leaders.keys()].filter((lane) => lanes.includes(lane)).sort()).toEqual([...lanes].sort());
    return leaders;
  });
async function submit(one: SequencerProcess, lane: string, key: string): Promise<Receipt> {
  return until(async () => {
    const answer = await fetch(`${await one.url()}/v1/lanes/${lane}/submit`, {
      method: 'POST',
      headers: { 'idempotency-key': key, 'content-type': 'application/octet-stream' },
      body: `${lane} ${key}`,
    });
    expect(answer.status).toBe(200);
    return (await answer.json()) as Receipt;
  });
}

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 2000, blockTimeMs: 300 });
  await lab.waitForLeader();
  clients = lab.nodes.map(({ port }) => new Redis({ port, retryStrategy: () => 100 }));
  for (const client of clients) client.on('error', () => undefined);
  expect((await seq('lane', 'add', ...TILES, 'other')).code).toBe(0);
}, 300_000);
afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.stop()));
});
afterAll(async () => {
  for (const client of clients ?? []) client.disconnect();
  await lab?.close();
});

test('run --lanes: a process leads every lane that fits, also one that is added later, over at most 12 sockets a node', async () => {
  const before = String(await clients[0]!.client('LIST')).split('\n').length;
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  expect((await shown(a)).wanted).toBe(TILES.length);
  expect((await seq('lane', 'add', 'tile-late')).code).toBe(0);
  await led([a], [...TILES, 'tile-late']);
  expect((await shown(a)).lanes.map(({ lane }) => lane)).not.toContain('other');
  const after = String(await clients[0]!.client('LIST')).split('\n').length;
  expect(after - before).toBeLessThanOrEqual(12);
  expect(await get(`${await a.url()}/readyz`)).toMatchObject({ status: 200, body: { ready: true } });
  // Closed and removed while it runs: the process leaves the lane by itself.
  const { stdout } = await seq('lane', 'rm', 'tile-late', '--dry-run', '-o', 'json');
  const { digest } = (JSON.parse(stdout) as { data: { digest: string } }).data;
  expect((await seq('lane', 'rm', 'tile-late', '--confirm', digest, '--timeout', '60s')).code).toBe(0);
  await until(async () => expect((await shown(a)).lanes.map(({ lane }) => lane)).not.toContain('tile-late'));
  expect(await led([a])).toBeDefined();
});

test('run --lanes: an item comes by any process and any way, and is in its lane once', async () => {
  const [a, b] = [start('seq-a', '--lanes', 'tile-*'), start('seq-b', '--lanes', 'tile-*')];
  const leader = (await led([a, b])).get('tile-3')!;
  const other = leader === a ? b : a;
  const first = await submit(leader, 'tile-3', 'k1');
  expect(await submit(other, 'tile-3', 'k1')).toEqual(first);
  const second = await submit(other, 'tile-3', 'k2');
  expect(second.height).toBeGreaterThan(first.height);
  const file = `${lab.directory}/items`;
  writeFileSync(file, 'x\ny\n');
  const sent = await seq('submit', '--lane', 'tile-3', file, '-o', 'json');
  expect([sent.code, (JSON.parse(sent.stdout) as { data: { items: string } }).data]).toMatchObject([
    0,
    { sequenced: 2 },
  ]);
  for (const one of [a, b])
    await until(async () => {
      const { status, body } = await get<{ hash: string }>(`${await one.url()}/lanes/tile-3/v1/blocks/${first.height}`);
      expect(status).toBe(200);
      expect(body).toEqual((await get(`${await leader.url()}/v1/lanes/tile-3/blocks/${first.height}`)).body);
    });
  // The other lane has nothing of it.
  const { stdout } = await seq(
    'stream',
    'tail',
    '--lane',
    'tile-4',
    '--items',
    '--limit',
    '1',
    '--from',
    '1',
    '--timeout',
    '2s',
  );
  expect(stdout).not.toContain('tile-3');
});

test.each([
  ['a lane that is not there', '/v1/lanes/nowhere/status', 404, 'LANE_NOT_FOUND'],
  ['no lane at all', '/v1/status', 404, 'LANE_NOT_FOUND'],
  ['a path that is none', '/v1/lanes/tile-1/nothing', 404, 'NO_ROUTE'],
])('run --lanes: %s → %s, %s', async (_, path, status, code) => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  expect(await get(`${await a.url()}${path}`)).toMatchObject({ status, body: { error: { code } } });
});

test('run --lanes: kill -9 of the leader of all → the others share its lanes, and no acknowledged item is lost', async () => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  const others = [start('seq-b', '--lanes', 'tile-*'), start('seq-c', '--lanes', 'tile-*')];
  for (const one of others) await until(async () => expect((await get(`${await one.url()}/readyz`)).status).toBe(200));
  const receipts = await Promise.all(TILES.map((lane) => submit(a, lane, 'before')));
  a.child.kill('SIGKILL');
  await a.ended;
  const leaders = await led(others);
  expect(new Set(leaders.values()).size).toBe(2);
  for (const [i, lane] of TILES.entries()) {
    const again = await submit(leaders.get(lane)!, lane, 'before');
    expect({ lane, ...again }).toMatchObject({ lane, height: receipts[i]!.height, index: receipts[i]!.index });
    await submit(leaders.get(lane)!, lane, 'after');
  }
});

test('run --lanes: lanes without work rest → no block for several leases, one leader; an item is committed at once', async () => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  await Promise.all(TILES.map((lane) => submit(a, lane, 'work')));
  const before = await shown(a);
  const claimants = await Promise.all(TILES.map((lane) => clients[0]!.get(`seq:${lane}:leader:lock`)));
  // A lock of 2 s that was extended ten times, 300 ms apart, would have ended long ago.
  let extended = 0;
  let last = 0;
  await until(async () => {
    const left = await clients[0]!.pttl('seq:tile-0:leader:lock');
    if (left > last) extended += 1;
    last = left;
    expect(extended).toBeGreaterThan(10);
  });
  expect(await Promise.all(TILES.map((lane) => clients[0]!.get(`seq:${lane}:leader:lock`)))).toEqual(claimants);
  expect((await shown(a)).lanes.map(({ lane, height }) => [lane, height])).toEqual(
    before.lanes.map(({ lane, height }) => [lane, height]),
  );
  const { height } = before.lanes.find(({ lane }) => lane === 'tile-2')!;
  expect((await submit(a, 'tile-2', 'more work')).height).toBe(height + 1);
});

test('run --lanes: SIGTERM → the locks are released, another process leads every lane, exit 0', async () => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  const b = start('seq-b', '--lanes', 'tile-*');
  await until(async () => expect((await get(`${await b.url()}/readyz`)).status).toBe(200));
  expect(await a.stop()).toBe(0);
  expect(a.lines().at(-1)).toMatchObject({ event: 'stopped' });
  await led([b]);
});

test('run --lanes: what one lane cannot go on with ends that lane alone, and it comes back', async () => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  const own = (await clients[0]!.hget('seq:tile-5:node:admission', 'cluster'))!;
  // As a recovery of this lane does it: the next generation.
  const next = own.replace(/\d+$/, (generation) => String(Number(generation) + 1));
  for (const client of clients) await client.hset('seq:tile-5:node:admission', 'cluster', next);
  expect(await a.line(/CLUSTER_RECOVERED/)).toMatchObject({ lane: 'tile-5' });
  await Promise.all(TILES.map((lane) => submit(a, lane, 'after the recovery')));
  await led([a]);
  const ended = a.lines().filter(({ code }) => code === 'CLUSTER_RECOVERED');
  expect(new Set(ended.map(({ lane }) => lane))).toEqual(new Set(['tile-5']));
});

test('run --lanes: a node that lost everything → the list of lanes is back there, and every lane is filled and counts', async () => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  const entries = async () => {
    const { '+memory': mark, ...rest } = await clients[2]!.hgetall('seq:lanes');
    return { mark, rest };
  };
  const lanes = await entries();
  await lab.kill('r3');
  await lab.startProcess('r3');
  await until(async () => {
    const incarnation = await clients[2]!.hget('seq:node:admission', 'incarnation');
    expect(await entries()).toEqual({ mark: incarnation, rest: lanes.rest });
  });
  await until(async () => {
    for (const lane of TILES) {
      const [incarnation, pending] = await clients[2]!.hmget(`seq:${lane}:node:admission`, 'incarnation', 'pending');
      expect([lane, incarnation === null || incarnation === '', pending]).toEqual([lane, false, null]);
    }
  });
});

test('run --lanes: two processes with one id → the later one ends, and says why', async () => {
  const a = start('seq-a', '--lanes', 'tile-*');
  await led([a]);
  const twin = start('seq-a', '--lanes', 'tile-*');
  expect(await twin.ended).toBe(78);
  expect(twin.lines().at(-1)).toMatchObject({ code: 'DUPLICATE_ID' });
  await led([a]);
});

test.each([
  ['one lane besides', ['--lanes', 'tile-*', '--lane', 'tile-1'], 64, 'USAGE'],
  ['a child', ['--lanes', 'tile-*', '--producer', 'exec', '--', 'cat'], 64, 'USAGE'],
  ['a bootstrap', ['--lanes', 'tile-*', '--bootstrap'], 64, 'USAGE'],
  ['no pattern', ['--lanes', 'tile[1]'], 78, 'BAD_LANE'],
])('run --lanes: %s → refused before anything is opened', async (_, args, code, error) => {
  const ran = await runSeq(home, ['run', '--id', 'x', ...nodeFlags(), ...args]);
  expect([ran.code, ran.stderr]).toEqual([code, expect.stringContaining(error)]);
});
