// A real redis-server (or valkey-server) for one test: own process, own port on 127.0.0.1, own directory, gone afterwards.
// Nothing global is used or left behind; what a test leaves running dies with the test process.
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

export interface RedisOptions {
  /** none: memory only. everysec / always: append-only file in `dir`, kept across restart(). */
  persist?: 'none' | 'everysec' | 'always';
  /** Further command-line arguments, e.g. ['--maxmemory', '4mb']. */
  args?: string[];
  /** A directory to use and to leave in place; default: a new one, removed by stop(). */
  dir?: string;
  port?: number;
}

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  readonly dir: string;
  /** Ends the process (SIGKILL: nothing is saved) and removes its directory. */
  stop(): Promise<void>;
  /** Sends a signal; for a deadly one resolves when the process is gone. The directory stays, so restart() may follow. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Kills what still runs and starts again on the same port and directory. `wipe` removes the data first. */
  restart(options?: { args?: string[]; persist?: RedisOptions['persist']; wipe?: boolean; signal?: NodeJS.Signals }): Promise<void>;
  /** SIGSTOP / SIGCONT: connections stay open, nothing answers. */
  pause(): void;
  unpause(): void;
}

const READY_LIMIT_MS = 10_000;
const DEADLY = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGABRT']);
const running = new Set<ChildProcess>();
const directories = new Set<string>();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const dir of directories) rmSync(dir, { recursive: true, force: true });
});

/** The server program on PATH. */
export function redisServerPath(): string {
  for (const name of ['redis-server', 'valkey-server']) {
    for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
      const file = join(dir, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch { /* not here */ }
    }
  }
  throw new Error('neither redis-server nor valkey-server is on PATH: install the package redis-server');
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => (address !== null && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))));
    });
  });
}

/** True when something on the port answers an inline PING in Redis's way (also with NOAUTH or LOADING: it is up). */
async function answers(port: number, want: RegExp): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const done = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(500, () => done(false));
    socket.once('error', () => done(false));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (chunk) => done(want.test(chunk.toString('latin1'))));
  });
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once('exit', resolve));
}

async function launch(port: number, dir: string, persist: RedisOptions['persist'], args: string[]): Promise<ChildProcess> {
  const persistence = persist === undefined || persist === 'none'
    ? ['--appendonly', 'no']
    : ['--appendonly', 'yes', '--appendfsync', persist];
  const child = spawn(redisServerPath(), [
    '--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--daemonize', 'no', '--databases', '16',
    '--maxmemory-policy', 'noeviction', ...persistence, ...args,
  ], { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let log = '';
  const keep = (chunk: Buffer): void => { log = (log + chunk.toString()).slice(-4000); };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  child.once('exit', () => running.delete(child));
  child.once('error', (error) => { log += String(error); });
  const deadline = Date.now() + READY_LIMIT_MS;
  while (!(await answers(port, /^(\+PONG|-NOAUTH|-DENIED)/))) {
    if (child.exitCode !== null || child.signalCode !== null || Date.now() > deadline) {
      child.kill('SIGKILL');
      throw new Error(`redis-server on port ${port} did not come up:\n${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return child;
}

/** Starts one server and waits until it answers. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const own = options.dir === undefined;
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'seq-redis-'));
  if (own) directories.add(dir);
  let persist = options.persist;
  let args = options.args ?? [];
  let port = options.port ?? await freePort();
  let child: ChildProcess;
  try {
    child = await launch(port, dir, persist, args);
  } catch (error) {
    if (options.port !== undefined) throw error;
    // The free port was taken by somebody else in between: once more.
    port = await freePort();
    child = await launch(port, dir, persist, args);
  }

  async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    if (!DEADLY.has(signal)) return;
    // A stopped process takes only SIGKILL at once; anything else waits for SIGCONT.
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    await exited(child);
  }

  return {
    get port() { return port; },
    get url() { return `redis://127.0.0.1:${port}`; },
    get pid() { return child.pid ?? -1; },
    dir,
    kill,
    async stop() {
      await kill('SIGKILL');
      if (own) {
        rmSync(dir, { recursive: true, force: true });
        directories.delete(dir);
      }
    },
    async restart(next = {}) {
      await kill(next.signal ?? 'SIGKILL');
      if (next.wipe === true) {
        for (const entry of ['appendonlydir', 'appendonly.aof', 'dump.rdb']) rmSync(join(dir, entry), { recursive: true, force: true });
      }
      persist = next.persist ?? persist;
      args = next.args ?? args;
      child = await launch(port, dir, persist, args);
    },
    pause() { child.kill('SIGSTOP'); },
    unpause() { child.kill('SIGCONT'); },
  };
}
