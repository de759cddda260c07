// What every sequencer of a cluster does alike is decided when the cluster is made: the de-duplication window, the
// number of remembered keys, the largest block. On real servers and processes.
import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../src/lab/free-port.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const running: Sequencer[] = [];
const servers: RedisServer[] = [];
process.on('exit', () => running.forEach(({ child }) => child.kill('SIGKILL')));
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail')
    for (const { id, log } of running) process.stderr.write(`--- ${id}\n${log.slice(-25).join('\n')}\n`);
  for (const { child } of running.splice(0)) child.kill('SIGKILL');
  for (const server of servers.splice(0)) await server.stop();
});

interface Block {
  height: number;
  timestamp: number;
}
interface Sequencer {
  id: string;
  child: ChildProcess;
  log: string[];
  get<T>(path: string): Promise<T | undefined>;
  leads(): Promise<true | undefined>;
  block(height: number): Promise<Block | undefined>;
  /** Where it stands, when it was taken. */
  submit(key: string): Promise<{ height: number } | undefined>;
}

/** Three servers, each with an id, as flags. */
async function nodeFlags(): Promise<string[]> {
  const started = await Promise.all(['r1', 'r2', 'r3'].map(async (id) => ({ id, server: await startRedis() })));
  servers.push(...started.map(({ server }) => server));
  return started.flatMap(({ id, server }) => ['--node', `${id}=${server.url}`]);
}

async function initialise(nodes: string[], more: string[]): Promise<void> {
  const made = await runSeq(newHome(), ['cluster', 'init', ...nodes, '--node-timeout', '2s', ...more]);
  if (made.code !== 0) throw new Error(made.stderr);
}

async function start(id: string, nodes: string[], more: string[] = []): Promise<Sequencer> {
  const home = newHome();
  const port = await freePort();
  const args = [bin, 'run', ...nodes, '--id', id, '--store', join(home, 'store'), '--http', `127.0.0.1:${port}`];
  const timing = ['--ttl', '1200ms', '--block-time', '250ms', '--node-timeout', '300ms', '--eager'];
  const child = spawn(process.execPath, [...args, ...timing, ...more], {
    env: environment(home),
    cwd: home,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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
    get: (path) => ask(path),
    leads: async () => ((await ask('/leader')) === undefined ? undefined : true),
    block: (height) => ask(`/v1/blocks/${height}`),
    submit: (key) => ask('/v1/submit', { method: 'POST', body: key, headers: { 'idempotency-key': key } }),
  };
  running.push(sequencer);
  return sequencer;
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + 60_000; ;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`not within a minute: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

test('two sequencers, and a window of another length → refused by name', async () => {
  const nodes = await nodeFlags();
  await initialise(nodes, ['--dedup-window', '24h', '--max-block-bytes', '2MiB']);
  const run = (more: string[], env: NodeJS.ProcessEnv = {}) =>
    runSeq(newHome(), ['run', ...nodes, '--id', 'b', '--node-timeout', '2s', '--ttl', '6s', ...more], { env });
  const [flag, variable] = await Promise.all([
    run(['--dedup-window', '1s']),
    run(['--dedup-window', '24h'], { SEQ_MAX_BLOCK_BYTES: '1MiB' }),
  ]);
  expect(flag.code, flag.stderr).toBe(78);
  expect(flag.stderr).toMatch(/SETTINGS_DIFFER/);
  expect(flag.stderr.replace(/\s+/g, ' ')).toContain(
    'the de-duplication window is 1d in this cluster, and 1s by --dedup-window',
  );
  expect(variable.code, variable.stderr).toBe(78);
  expect(variable.stderr.replace(/\s+/g, ' ')).toContain('and 1MiB by SEQ_MAX_BLOCK_BYTES');
}, 180_000);

test("two sequencers that are told nothing → the cluster's window, whoever leads", async () => {
  const nodes = await nodeFlags();
  await initialise(nodes, ['--dedup-window', '1s']);
  const a = await start('a', nodes);
  const receipt = await until('the item to be sequenced', () => a.submit('paid once'));
  const b = await start('b', nodes, ['--dedup-window', '1s']);
  await until('b to be ready', async () => ((await b.get('/readyz')) === undefined ? undefined : true));
  a.child.kill('SIGKILL');
  await until('b to lead', b.leads);
  const first = await until('the first block', () => b.block(receipt.height));
  await until('a second and a half of blocks', async () => {
    const head = await b.get<{ height: number }>('/v1/head');
    const newest = head && (await b.block(head.height));
    return newest && newest.timestamp > first.timestamp + 1500 ? true : undefined;
  });
  const again = await until('an answer', () => b.submit('paid once'));
  expect(again.height, 'the window of 1 s is over').toBeGreaterThan(receipt.height);
}, 240_000);

test('a window of 24 h, and a hand-over after more than a second → an item is sequenced once', async () => {
  const nodes = await nodeFlags();
  const a = await start('a', nodes, ['--bootstrap', '--dedup-window', '24h']);
  const receipt = await until('the item to be sequenced', () => a.submit('paid once'));
  const b = await start('b', nodes);
  await until('b to be ready', async () => ((await b.get('/readyz')) === undefined ? undefined : true));
  a.child.kill('SIGKILL');
  await until('b to lead', b.leads);
  const first = await until('the first block', () => b.block(receipt.height));
  await until('a second and a half of blocks', async () => {
    const head = await b.get<{ height: number }>('/v1/head');
    const newest = head && (await b.block(head.height));
    return newest && newest.timestamp > first.timestamp + 1500 ? true : undefined;
  });
  const again = await until('an answer', () => b.submit('paid once'));
  expect(again.height, 'the item is sequenced once').toBe(receipt.height);
}, 240_000);
