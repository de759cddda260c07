// Whose memory is it, and which numbers can a cluster have reached? (docs/PROTOCOL.md sections 4 and 8.) A server that
// forgets what it acknowledged never counts again by itself; a number that somebody wrote by hand stops nobody. On real
// servers and processes.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../src/lab/free-port.js';
import type { NodeView } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { chain, lead, LIMIT, openNode, plainClient, write } from '../lua/fixture.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const closers: (() => unknown)[] = [];
const running: Sequencer[] = [];
process.on('exit', () => running.forEach(({ child }) => child.kill('SIGKILL')));
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail')
    for (const { id, log } of running) process.stderr.write(`--- ${id}\n${log.slice(-25).join('\n')}\n`);
  for (const { child } of running.splice(0)) child.kill('SIGKILL');
  for (const close of closers.splice(0).reverse()) await close();
});

interface Sequencer {
  id: string;
  child: ChildProcess;
  log: string[];
  /** Its exit code, once it has ended. */
  ended(): number | null;
  get<T>(path: string): Promise<T | undefined>;
  leads(): Promise<true | undefined>;
  /** Where it stands, when it was taken. */
  submit(key: string): Promise<{ height: number } | undefined>;
}

/** By node id. */
type Nodes = Record<string, { url: string }>;
const flagsOf = (nodes: Nodes): string[] =>
  Object.entries(nodes).flatMap(([id, { url }]) => ['--node', `${id}=${url}`]);

async function start(id: string, nodes: Nodes, more: string[] = []): Promise<Sequencer> {
  const home = newHome();
  const port = await freePort();
  const timing = ['--ttl', '1200ms', '--block-time', '250ms', '--node-timeout', '300ms', '--eager'];
  const child = spawn(
    process.execPath,
    [bin, 'run', ...flagsOf(nodes), '--id', id, '--store', join(home, 'store'), '--http', `127.0.0.1:${port}`]
      .concat(timing)
      .concat(more),
    { env: environment(home), cwd: home, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => log.push(...text.trimEnd().split('\n')));
  const ask = async <T>(path: string, init: RequestInit = {}): Promise<T | undefined> => {
    try {
      const signal = AbortSignal.timeout(2000);
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal });
      return answer.ok ? ((await answer.json()) as T) : undefined;
    } catch {
      return undefined;
    }
  };
  const sequencer: Sequencer = {
    id,
    child,
    log,
    ended: () => child.exitCode,
    get: (path) => ask(path),
    leads: async () => ((await ask('/leader')) === undefined ? undefined : true),
    submit: (key) => ask('/v1/submit', { method: 'POST', body: key, headers: { 'idempotency-key': key } }),
  };
  running.push(sequencer);
  return sequencer;
}

/** undefined when it was not so within the limit. */
async function soon<T>(limitMs: number, find: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const end = Date.now() + limitMs; ;) {
    const found = await find();
    if (found !== undefined || Date.now() > end) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function until<T>(what: string, find: () => Promise<T | undefined>): Promise<T> {
  const found = await soon(60_000, find);
  if (found === undefined) throw new Error(`not within 60 s: ${what}`);
  return found;
}

async function redis(args: string[] = []): Promise<RedisServer> {
  const server = await startRedis({ args: ['--repl-diskless-sync-delay', '0', ...args] });
  closers.push(() => server.stop());
  return server;
}
function client(server: RedisServer): Redis {
  const open = plainClient(server);
  closers.push(() => open.disconnect());
  return open;
}

async function view({ url }: { url: string }): Promise<NodeView> {
  const node = new RedisNode({ id: 'any', guessed: true, url, identity: { cluster: '', lane: '' } });
  try {
    const reply = await node.call({ script: 'inspect' }, LIMIT);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    return reply.value;
  } finally {
    await node.close();
  }
}

async function initialise(nodes: Nodes): Promise<void> {
  const made = await runSeq(newHome(), ['cluster', 'init', ...flagsOf(nodes), '--node-timeout', '2s']);
  if (made.code !== 0) throw new Error(made.stderr);
}

async function field(of: Redis, name: string): Promise<string> {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(await of.info('replication'))?.[1] ?? '';
}
async function follow(replica: Redis, master: RedisServer): Promise<void> {
  await replica.replicaof('127.0.0.1', master.port);
  await until('the link to the master', async () =>
    (await field(replica, 'master_link_status')) === 'up' ? true : undefined,
  );
}

test('case 5: rolled back to an older copy, and the server has forgotten that it was → it never counts again by itself', async () => {
  const [first, second] = [await redis(['--repl-backlog-ttl', '1']), await redis()];
  const [one, two] = [client(first), client(second)];
  const blocks = chain(3);
  const node = openNode(first);
  closers.push(() => node.close());
  await lead(node, blocks.slice(0, 2));
  await follow(two, first);
  await two.replicaof('NO', 'ONE');
  expect(await node.call(write(blocks[2]!), LIMIT)).toMatchObject({ outcome: 'accepted' });
  await follow(one, second);
  await one.replicaof('NO', 'ONE');
  expect(await one.xlen('seq:block:stream'), 'an acknowledged block is forgotten').toBe(2);
  const shown = async () => (await openView(node)).admission;
  expect(await shown()).toBe('restarted');
  await until('the server to forget that it was a replica', async () =>
    /^0+$/.test(await field(one, 'master_replid2')) ? true : undefined,
  );
  expect(await shown(), 'the same memory, some time later').toBe('restarted');
}, 180_000);

test('case 7: made a replica and a master again between two writes → the writer and a reader say the same of it', async () => {
  const [first, second] = [await redis(), await redis()];
  const [one, two] = [client(first), client(second)];
  const blocks = chain(400);
  const node = openNode(first);
  closers.push(() => node.close());
  await lead(node, blocks.slice(0, 2));
  await follow(two, first);
  let written = 2;
  expect(await node.call(write(blocks[written++]!), LIMIT)).toMatchObject({ outcome: 'accepted' });
  await until('the replica to have it', async () =>
    (await two.xlen('seq:block:stream')) === written ? true : undefined,
  );
  await two.replicaof('NO', 'ONE');
  await follow(one, second);
  await one.replicaof('NO', 'ONE');

  // A leader writes on and on. Within a poll it knows whose memory it writes to.
  const agreed = await soon(3000, async () => {
    const reply = await node.call(write(blocks[written]!), LIMIT);
    if (reply.outcome === 'accepted') written += 1;
    const counts = (await openView(node)).admission === 'admitted';
    return counts === (reply.outcome === 'accepted') ? true : undefined;
  });
  expect(agreed, 'writes are accepted on a node that is not admitted').toBe(true);
}, 180_000);

async function openView(node: RedisNode): Promise<NodeView> {
  const reply = await node.call({ script: 'inspect' }, LIMIT);
  if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
  return reply.value;
}

test('all three nodes are given their first replica at once → the leader goes on, and no node is re-admitted', async () => {
  const servers = [await redis(), await redis(), await redis()];
  const [r1, r2, r3] = servers as [RedisServer, RedisServer, RedisServer];
  await initialise({ r1, r2, r3 });
  const a = await start('a', { r1, r2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  const before = await Promise.all(servers.map(view));
  const replicas = [await redis(), await redis(), await redis()];
  await Promise.all(replicas.map((replica, i) => follow(client(replica), servers[i]!)));
  for (const key of ['second', 'third']) await until(`${key} to be sequenced`, () => a.submit(key));
  // A reader that has just come cannot prove it; the leader notes the new name within a poll.
  const after = await until('each new name to be noted', async () => {
    const views = await Promise.all(servers.map(view));
    return views.every(({ admission }) => admission === 'admitted') ? views : undefined;
  });
  for (const [i, one] of after.entries()) {
    expect(one.incarnation, 'the same memory').toBe(before[i]!.incarnation);
    expect(one.runId, 'under another name').not.toBe(before[i]!.runId);
  }
}, 180_000);

/** A leader in peace, and an epoch that nobody can have reached, written by hand on r3. */
async function strayEpoch(epoch: string): Promise<{ a: Sequencer; servers: RedisServer[] }> {
  const [r1, r2, r3] = [await redis(), await redis(), await redis()];
  await initialise({ r1, r2, r3 });
  const a = await start('a', { r1, r2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  await client(r3).set('seq:epoch:token', epoch);
  return { a, servers: [r1, r2, r3] };
}

test('the epoch 2^53-1 by hand on one node → damage: it is re-admitted, and in step again', async () => {
  const { a, servers } = await strayEpoch('9007199254740991');
  const healed = await soon(60_000, async () => {
    const [one, , three] = await Promise.all(servers.map(view));
    return three!.admission === 'admitted' && three!.epoch === one!.epoch && (await a.leads()) ? true : undefined;
  });
  expect(healed, 'r3 takes part again').toBe(true);
}, 180_000);

test('the epoch 2^53-2 by hand on one node → the others do not take it over: somebody can always lead', async () => {
  const { servers } = await strayEpoch('9007199254740990');
  const [r1] = servers as [RedisServer];
  const lifted = await soon(20_000, async () => {
    const [one, , three] = await Promise.all(servers.map(view));
    return three!.epoch < 1e6 && three!.admission === 'admitted' ? false : one!.epoch > 1e6 ? true : undefined;
  });
  expect(lifted, `the epoch of r1 is ${(await view(r1)).epoch}`).toBe(false);
}, 180_000);

test('an epoch near the end of the numbers by hand → nobody follows it; status and doctor name the way out', async () => {
  const { a, servers } = await strayEpoch(String(2 ** 48 - 1));
  const [r1, r2, r3] = servers as [RedisServer, RedisServer, RedisServer];
  const nodes = { r1, r2, r3 };
  const way = `redis-cli -u redis://127.0.0.1:${r3.port} del seq:epoch:token`;
  const ask = async (...words: string[]): Promise<string> =>
    (await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s', '--json'])).stdout;
  await until('seq status to say so', async () =>
    (await ask('status')).includes('no term has reached its epoch') ? true : undefined,
  );
  for (const words of [['status'], ['epoch', 'show'], ['doctor']])
    expect(await ask(...words), words.join(' ')).toContain(way);
  const { height } = await until('a key to be sequenced all the same', () => a.submit('second'));
  expect(height).toBeGreaterThan(0);
  expect((await view(r1)).epoch).toBeLessThan(1e6);

  await client(r3).del('seq:epoch:token');
  await until('r3 to take part again', async () =>
    (await view(r3)).admission === 'admitted' && (await view(r3)).epoch === (await view(r1)).epoch ? true : undefined,
  );
}, 180_000);
