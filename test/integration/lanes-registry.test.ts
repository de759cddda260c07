// The lane registry on real servers that lose their memory, are replaced, and are written on by hand: no entry that
// counted is lost, no name is used twice, and what is not known is not taken for empty (docs/PROTOCOL.md section 2).
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { startSequencer, type SequencerProcess } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const TIMING = ['--ttl', '2s', '--block-time', '300ms', '--eager'];
let lab: PrivateCluster;
let clients: Map<string, Redis>;
const running: SequencerProcess[] = [];
const spares: RedisServer[] = [];
let stores = 0;

interface Document {
  data: { lanes: { name: string; state: string }[]; digest: string } | null;
  error: { code: string; changed: string } | null;
}

/** The servers that are named, where they are not those of the beginning. */
let named: string[] | null = null;
const nodeFlags = () => (named ?? lab.nodeFlags).flatMap((flag) => ['--node', flag]);
async function seq(...args: string[]) {
  const ran = await runSeq(home, [...args, ...nodeFlags(), '--node-timeout', '1s', '-o', 'json']);
  const document = JSON.parse(ran.stdout) as Document;
  expect(schemaProblems(document)).toEqual([]);
  return { code: ran.code, ...document, error: document.error?.code ?? '', changed: document.error?.changed };
}
const states = async () =>
  Object.fromEntries((await seq('lane', 'ls')).data!.lanes.map(({ name, state }) => [name, state]));
async function remove(...names: string[]): Promise<void> {
  const { data } = await seq('lane', 'rm', ...names, '--dry-run');
  const done = await seq('lane', 'rm', ...names, '--confirm', data!.digest, '--timeout', '60s');
  expect([done.code, done.error]).toEqual([0, '']);
}
async function until<T>(what: () => Promise<T>): Promise<T> {
  return vi.waitFor(what, { timeout: STANDSTILL_MS, interval: 50 });
}
const mark = (client: Redis) => client.hget('seq:lanes', '+memory');
const incarnation = (client: Redis) => client.hget('seq:node:admission', 'incarnation');
/**
 * The server is empty and is filled again; it remembers the list, and counts for these lanes, before the next one may
 * lose its memory.
 */
async function losesMemory(node: string, lanes: readonly string[] = []): Promise<void> {
  const client = clients.get(node)!;
  const before = await incarnation(client);
  await lab.kill(node);
  await lab.startProcess(node);
  await until(async () => {
    const now = await incarnation(client);
    expect(now).toMatch(/./);
    expect([now === before, await mark(client)]).toEqual([false, now]);
    for (const lane of lanes) {
      const record = await client.hmget(`seq:${lane}:node:admission`, 'incarnation', 'pending');
      expect([lane, ...record]).toEqual([lane, expect.stringMatching(/./), null]);
    }
  });
}
function start(...args: string[]): SequencerProcess {
  const store = `${lab.directory}/store-${stores++}`;
  const one = startSequencer(home, ['--store', store, '--http', '127.0.0.1:0', ...TIMING, ...args, ...nodeFlags()]);
  running.push(one);
  return one;
}
async function stopAll(): Promise<void> {
  await Promise.all(running.splice(0).map((one) => one.stop()));
}

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 2000, blockTimeMs: 300 });
  await lab.waitForLeader();
  clients = new Map(lab.nodes.map(({ name, port }) => [name, new Redis({ port, retryStrategy: () => 100 })]));
  for (const client of clients.values()) client.on('error', () => undefined);
  expect((await seq('lane', 'add', 'kept', 'gone', 'shut')).code).toBe(0);
  await remove('gone');
}, 300_000);
afterEach(stopAll);
afterAll(async () => {
  for (const client of clients?.values() ?? []) client.disconnect();
  await lab?.close();
  for (const spare of spares) await spare.stop();
});

describe('memory', () => {
  test('registry: every node loses its memory in turn, and only the default lane runs → nothing is lost, no name is used twice', async () => {
    for (const node of ['r1', 'r2', 'r3', 'r1']) await losesMemory(node);
    expect(await states()).toEqual({ kept: 'open', shut: 'open' });
    const again = await seq('lane', 'add', 'gone');
    expect([again.error, again.changed]).toEqual(['LANE_REMOVED', 'nothing']);
  });

  test('registry: two nodes have forgotten it → no change and no short list, until an operator says so', async () => {
    const [r1, r2] = [clients.get('r1')!, clients.get('r2')!];
    for (const node of ['r1', 'r2']) await losesMemory(node);
    // Nobody gives it back: whoever leads the default lane is stopped.
    await lab.pause('seq-a');
    try {
      for (const client of [r1, r2]) await client.del('seq:lanes');
      for (const args of [
        ['lane', 'ls'],
        ['lane', 'add', 'gone'],
        ['lane', 'add', 'new'],
        ['lane', 'rm', 'kept', '--dry-run'],
      ]) {
        const refused = await seq(...args);
        expect([args, refused.code, refused.error, refused.changed, refused.data]).toEqual([
          args,
          76,
          'LANES_FORGOTTEN',
          'nothing',
          null,
        ]);
      }
      expect((await seq('lane', 'add', 'new', '--list-was-lost')).code).toBe(0);
      expect(await states()).toEqual({ kept: 'open', new: 'open', shut: 'open' });
      expect((await seq('lane', 'add', 'gone')).error).toBe('LANE_REMOVED');
      for (const client of clients.values()) expect(await mark(client)).toBe(await incarnation(client));
    } finally {
      lab.unpause('seq-a');
    }
    await lab.waitForLeader();
  });

  test('registry: what somebody deletes by hand → a process that knew it writes it again, and its lanes go on', async () => {
    expect((await seq('lane', 'add', 'led-1', 'led-2')).code).toBe(0);
    const fleet = start('--id', 'seq-f', '--lanes', 'led-*');
    const shown = async () =>
      ((await (await fetch(`${await fleet.url()}/v1/lanes`)).json()) as { lanes: { lane: string; role: string }[] })
        .lanes;
    const led = () =>
      until(async () =>
        expect((await shown()).map(({ lane, role }) => [lane, role])).toEqual([
          ['led-1', 'leader'],
          ['led-2', 'leader'],
        ]),
      );
    await led();
    for (const client of clients.values()) await client.hdel('seq:lanes', 'led-1', 'gone');
    await until(async () => expect(await states()).toMatchObject({ 'led-1': 'open', 'led-2': 'open' }));
    await until(async () => {
      for (const client of clients.values()) expect(await client.hget('seq:lanes', 'gone')).toMatch(/ removed /);
    });
    await led();
  });
});

describe('by hand', () => {
  test('registry: whatever one node says of a lane → it is open, is added as listed, and can be removed', async () => {
    const said: [name: string, text: string][] = [
      ['closed', '9 closed ff at=1 by=x'],
      ['removed-at-the-end', '281474976710656 removed ff at=1 by=x'],
      ['above-the-end', '281474976710657 closed ff at=1 by=x'],
      ['fifteen-digits', '999999999999999 closed ff at=1 by=x'],
      ['no-such-state', '9 gone ff at=1 by=x'],
      ['no-entry', 'x'],
      ['of-a-later-version', '9 closed ff at=1 by=x pin=seq-a'],
    ];
    const names = said.map(([name]) => name);
    const listed = async () => Object.entries(await states()).filter(([name]) => names.includes(name));
    expect((await seq('lane', 'add', ...names)).code).toBe(0);
    await clients.get('r2')!.hset('seq:lanes', ...said.flat(), 'UPPER:case', said[0]![1]);
    expect(await listed()).toEqual(names.toSorted().map((name) => [name, 'open']));
    expect((await seq('lane', 'add', ...names)).data!.lanes).toEqual(names.map((name) => ({ name, how: 'listed' })));
    await remove(...names);
    expect(await listed()).toEqual([]);
    for (const name of names) expect([name, (await seq('lane', 'add', name)).error]).toEqual([name, 'LANE_REMOVED']);
  });

  test('registry: one node knows a configuration that no term made → it counts for nothing, and the others do', async () => {
    const r2 = clients.get('r2')!;
    const config = (await r2.hget('seq:node:admission', 'config'))!;
    await lab.pause('seq-a');
    try {
      await r2.hset('seq:node:admission', 'config', config.replace(/^\d+\.\d+/, '999999.0'));
      expect(await states()).toMatchObject({ kept: 'open' });
    } finally {
      await r2.hset('seq:node:admission', 'config', config);
      lab.unpause('seq-a');
    }
    await lab.waitForLeader();
  });
});

describe('the default lane', () => {
  const leaderOf = async (lane: string) => (await clients.get('r1')!.get(`seq:${lane}leader:lock`))?.split('/')[0];

  test('run --lanes: nobody else runs the default lane → it is held, and its nodes may lose their memory in turn; whoever runs it gets it', async () => {
    expect((await seq('lane', 'add', 'led-1', 'led-2')).code).toBe(0);
    const fleet = start('--id', 'seq-f', '--lanes', 'led-*');
    for (const lane of ['led-1:', 'led-2:']) await until(async () => expect(await leaderOf(lane)).toBe('seq-f'));
    await lab.kill('seq-a');
    await until(async () => expect(await leaderOf('')).toBe('seq-f'));
    for (const node of ['r1', 'r2', 'r3']) await losesMemory(node, ['led-1', 'led-2']);
    expect(await states()).toMatchObject({ 'led-1': 'open', 'led-2': 'open' });
    expect((await seq('lane', 'add', 'gone')).error).toBe('LANE_REMOVED');
    // It says nothing about the producer, and nothing can be submitted to it.
    expect(await clients.get('r1')!.hget('seq:node:admission', 'config')).not.toContain('exec');
    expect((await fetch(`${await fleet.url()}/v1/status`)).status).toBe(404);
    await lab.startProcess('seq-a');
    await until(async () => expect(await leaderOf('')).toBe('seq-a'));
    for (const lane of ['led-1:', 'led-2:']) await until(async () => expect(await leaderOf(lane)).toBe('seq-f'));
  });

  test('run --lanes: a process for one lane has the same id → that lane alone is left to it, and comes back', async () => {
    expect((await seq('lane', 'add', 'twin-1', 'twin-2')).code).toBe(0);
    const stray = start('--id', 'seq-f', '--lane', 'twin-1');
    await until(async () => expect(await leaderOf('twin-1:')).toBe('seq-f'));
    const fleet = start('--id', 'seq-f', '--lanes', 'twin-*');
    expect(await fleet.line(/is tried again.*DUPLICATE_ID/)).toMatchObject({ lane: 'twin-1' });
    await until(async () => expect(await leaderOf('twin-2:')).toBe('seq-f'));
    expect(await stray.stop()).toBe(0);
    await until(async () => {
      const { lanes } = (await (await fetch(`${await fleet.url()}/v1/lanes`)).json()) as {
        lanes: { lane: string; role: string }[];
      };
      expect(lanes.map(({ lane, role }) => [lane, role])).toEqual([
        ['twin-1', 'leader'],
        ['twin-2', 'leader'],
      ]);
    });
  });
});

describe('members', () => {
  test('registry: a node is replaced, and two are added → each has the list, and a quorum is that of the members', async () => {
    const spare = async (): Promise<RedisServer> => {
      const one = await startRedis();
      spares.push(one);
      return one;
    };
    const fleet = start('--id', 'seq-f', '--lanes', 'kept');
    await fleet.line(/listening/);
    const [r3, r4, r5] = [await spare(), await spare(), await spare()];
    const plan = await seq('node', 'replace', '--on', 'r3', '--to', r3.url, '--dry-run');
    expect((await seq('node', 'replace', '--on', 'r3', '--to', r3.url, '--confirm', plan.data!.digest)).error).toBe('');
    for (const [id, { url }] of [
      ['r4', r4],
      ['r5', r5],
    ] as const)
      expect((await seq('cluster', 'resize', '--add', `${id}=${url}`, '--yes')).error).toBe('');
    for (const server of [r3, r4, r5]) {
      const client = new Redis(server.url);
      expect([await mark(client), await client.hget('seq:lanes', 'gone')]).toEqual([
        await incarnation(client),
        expect.stringMatching(/ removed /),
      ]);
      client.disconnect();
    }
    // Three of five are a quorum.
    named = [`r3=${r3.url}`, `r4=${r4.url}`, `r5=${r5.url}`];
    for (const node of ['r1', 'r2']) await lab.pause(node);
    try {
      expect(await states()).toMatchObject({ kept: 'open' });
      expect((await seq('lane', 'add', 'gone')).error).toBe('LANE_REMOVED');
    } finally {
      named = null;
      for (const node of ['r1', 'r2']) lab.unpause(node);
    }
    expect((await seq('lane', 'add', 'after')).code).toBe(0);
    const client = new Redis(r5.url);
    expect(await client.hget('seq:lanes', 'after')).toMatch(/ open /);
    client.disconnect();
  });
});
