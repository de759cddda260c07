// Who the nodes are is agreed, not configured: one server a node, one N, one memory, one clock. Each test takes the
// way on which sequencers with settings of their own once forked, lied or stood still, on real servers and processes.
// Every process has links of its own to the servers, so that each can be cut off, or led elsewhere, by itself.
import { spawn, type ChildProcess } from 'node:child_process';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../src/lab/free-port.js';
import type { NodeView } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { LIMIT, plainClient } from '../lua/fixture.js';
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

/** One process's way to one server. */
class Link {
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

interface Block {
  height: number;
  hash: string;
  timestamp: number;
}
interface Sequencer {
  id: string;
  child: ChildProcess;
  log: string[];
  /** Its exit code, once it has ended. */
  ended(): number | null;
  get<T>(path: string): Promise<T | undefined>;
  leads(): Promise<true | undefined>;
  block(height: number): Promise<Block | undefined>;
  /** Where it stands, when it was taken. */
  submit(key: string): Promise<{ height: number } | undefined>;
}

/** By node id: a link, or the server itself. */
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
    block: (height) => ask(`/v1/blocks/${height}`),
    submit: (key) => ask('/v1/submit', { method: 'POST', body: key, headers: { 'idempotency-key': key } }),
  };
  running.push(sequencer);
  return sequencer;
}

/** undefined when it was not so within the limit. */
async function soon<T>(limitMs: number, look: () => Promise<T | undefined>): Promise<T | undefined> {
  for (const end = Date.now() + limitMs; ;) {
    const found = await look();
    if (found !== undefined || Date.now() > end) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const found = await soon(15_000, look);
  if (found === undefined) throw new Error(`not within 15 s: ${what}`);
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

/** What both hold at this height, when they do not hold the same. */
async function forkAt(height: number, one: Block, other: Sequencer): Promise<string[]> {
  const theirs = await other.block(height);
  return theirs === undefined || theirs.hash === one.hash ? [] : [one.hash, theirs.hash];
}

/** a is connected to r3's old server and stays so; b, started later, meets another server as r3. Then they part. */
async function twoServersForOneNode(other: RedisServer, becomes: (old: RedisServer) => Promise<void>): Promise<void> {
  const [r1, r2, old] = [await redis(), await redis(), await redis()];
  const [a1, a2, b1, b2] = [await Link.to(r1), await Link.to(r2), await Link.to(r1), await Link.to(r2)];
  const named = await Link.to(old);
  await initialise({ r1, r2, r3: named });
  const a = await start('a', { r1: a1, r2: a2, r3: old });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  await becomes(old);
  named.cut(); // at the address under which it was made a node, nobody reaches the old server any more
  const b = await start('b', { r1: b1, r2: b2, r3: other });
  await until('b to follow', async () => ((await b.get<{ height: number }>('/v1/status'))?.height ? true : undefined));
  for (const link of [a1, a2]) link.cut();
  await until('b to lead', b.leads);
  for (const link of [a1, a2]) link.heal();
  const before = await view(old);
  const admitted = await soon(8000, async () => {
    const { admission, incarnation } = await view(other);
    return admission === 'admitted' && incarnation !== before.incarnation ? true : undefined;
  });
  if (!admitted) return; // one server is r3, as ever
  await until('a to follow b', async () =>
    (await a.get<{ leader: { id: string } | null }>('/v1/status'))?.leader?.id === 'b' ? true : undefined,
  );

  // From here on a sees {r2, the old server}, b {r1, the other one}: no quorum of one has a server in common with b's.
  a1.cut();
  b2.cut();
  const receipt = await until('b to acknowledge the item', () => b.submit('paid once'));
  const block = await until('its block', () => b.block(receipt.height));
  b.child.kill('SIGKILL');
  const again = await soon(5000, () => a.submit('paid once'));
  expect(await forkAt(block.height, block, a), `two blocks at height ${block.height}`).toEqual([]);
  expect(again?.height ?? receipt.height, 'the item is sequenced once').toBe(receipt.height);
}

test('case 1: a promoted replica answers for a node, some stay connected to the old master → no fork', async () => {
  const replica = await redis();
  await twoServersForOneNode(replica, async (old) => {
    await follow(client(replica), old);
    await client(replica).replicaof('NO', 'ONE');
  });
}, 60_000);

test('case 2: the settings of one sequencer name another server for a node → no fork', async () => {
  await twoServersForOneNode(await redis(), async () => undefined);
}, 60_000);
