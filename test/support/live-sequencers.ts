// Sequencers as processes on real servers, for tests of what they agree on. A test starts them, asks them over HTTP,
// and can cut one of them off from one server. All of them end after the test.
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach } from 'vitest';
import type { NodeView } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { freePort } from '../../src/lab/free-port.js';
import { LIMIT, plainClient } from '../lua/fixture.js';
import { startRedis, type RedisServer } from './redis-server.js';
import { bin, environment, newHome, runSeq } from './spawn-seq.js';

const closers: (() => unknown)[] = [];
const running: LiveSequencer[] = [];
process.on('exit', () => running.forEach(({ child }) => child.kill('SIGKILL')));

/** Called once at the top of a test file. If a test fails, it shows the last lines of each sequencer. */
export function endAllAfterEach(): void {
  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail')
      for (const { id, log } of running) process.stderr.write(`--- ${id}\n${log.slice(-25).join('\n')}\n`);
    for (const { child } of running.splice(0)) child.kill('SIGKILL');
    for (const close of closers.splice(0).reverse()) await close();
  });
}

/** Registers what must be closed after the test. What was opened last is closed first. */
export function afterTest(close: () => unknown): void {
  closers.push(close);
}

/** A connection of one process to one server through its own port. A test can cut it. */
export class Link {
  private readonly open = new Set<Socket>();
  private cutOff = false;
  private constructor(
    private readonly target: number,
    private readonly server: Server,
  ) {}

  static async to({ port }: RedisServer): Promise<Link> {
    const server = createServer({ noDelay: true });
    const link = new Link(port, server);
    server.on('connection', (client) => link.join(client));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    closers.push(() => {
      link.cut();
      server.close();
    });
    return link;
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }
  cut(): void {
    this.cutOff = true;
    for (const socket of this.open) socket.destroy();
  }
  heal(): void {
    this.cutOff = false;
  }

  private join(client: Socket): void {
    if (this.cutOff) return void client.resetAndDestroy();
    const server = connect({ port: this.target, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.open.add(one);
      one.on('error', () => one.destroy());
      one.on('close', () => {
        this.open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}

interface LiveBlock {
  height: number;
  hash: string;
  timestamp: number;
}
export interface LiveSequencer {
  id: string;
  url: string;
  child: ChildProcess;
  log: string[];
  /** The exit code, or null while the process runs. */
  ended(): number | null;
  get<T>(path: string): Promise<T | undefined>;
  leads(): Promise<true | undefined>;
  block(height: number): Promise<LiveBlock | undefined>;
  /** The position of the item in the chain. undefined: the item was not accepted. */
  submit(key: string): Promise<{ height: number; index: number; epoch: number } | undefined>;
}

/** By node id: a link, or the server itself. */
export type Nodes = Record<string, { url: string }>;
export const flagsOf = (nodes: Nodes): string[] =>
  Object.entries(nodes).flatMap(([id, { url }]) => ['--node', `${id}=${url}`]);

export async function start(id: string, nodes: Nodes, more: string[] = []): Promise<LiveSequencer> {
  const home = newHome();
  const port = await freePort();
  const timing = ['--ttl', '1200ms', '--block-time', '250ms', '--node-timeout', '300ms', '--eager'];
  // A link that is cut would be no fault if the sequencer went round it.
  if (Object.values(nodes).some((node) => node instanceof Link)) timing.push('--listed-addresses');
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
  const sequencer: LiveSequencer = {
    id,
    url: `http://127.0.0.1:${port}`,
    child,
    log,
    ended: () => child.exitCode,
    get: (path) => ask(path),
    leads: async () => ((await ask('/leader')) === undefined ? undefined : true),
    block: (height) => ask(`/v1/blocks/${height}`),
    submit: (key) => ask('/v1/submit', { method: 'POST', body: key, headers: { 'idempotency-key': key } }),
  };
  running.push(sequencer);
  return sequencer;
}

/** Asks until there is an answer. undefined: none within the limit. */
export async function soon<T>(limitMs: number, find: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const end = Date.now() + limitMs; ;) {
    const found = await find();
    if (found !== undefined || Date.now() > end) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Asks until there is an answer. The test fails if there is none within a minute. */
export async function until<T>(what: string, find: () => Promise<T | undefined>): Promise<T> {
  const found = await soon(60_000, find);
  if (found === undefined) throw new Error(`not within a minute: ${what}`);
  return found;
}

export async function redis(args: string[] = []): Promise<RedisServer> {
  const server = await startRedis({ args: ['--repl-diskless-sync-delay', '0', ...args] });
  closers.push(() => server.stop());
  return server;
}
export function client(server: RedisServer): Redis {
  const open = plainClient(server);
  closers.push(() => open.disconnect());
  return open;
}

/** What the server reports about itself, for any cluster. */
export async function view({ url }: { url: string }): Promise<NodeView> {
  const node = new RedisNode({ id: 'any', guessed: true, url, identity: { cluster: '', lane: '' } });
  try {
    const reply = await node.call({ script: 'inspect' }, LIMIT);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    return reply.value;
  } finally {
    await node.close();
  }
}

export async function initialise(nodes: Nodes, more: string[] = []): Promise<void> {
  const made = await runSeq(newHome(), ['cluster', 'init', ...flagsOf(nodes), '--node-timeout', '2s', ...more]);
  if (made.code !== 0) throw new Error(made.stderr);
}

export async function field(of: Redis, name: string): Promise<string> {
  return new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(await of.info('replication'))?.[1] ?? '';
}
/** Makes a replica of a server, and waits until it has the data. */
export async function follow(replica: Redis, master: RedisServer): Promise<void> {
  await replica.replicaof('127.0.0.1', master.port);
  await until('the link to the master', async () =>
    (await field(replica, 'master_link_status')) === 'up' ? true : undefined,
  );
}

/** The hashes of both blocks at this height if they differ, else []. */
export async function forkAt(height: number, one: LiveBlock, other: LiveSequencer): Promise<string[]> {
  const theirs = await other.block(height);
  return theirs === undefined || theirs.hash === one.hash ? [] : [one.hash, theirs.hash];
}
