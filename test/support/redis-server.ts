// A real redis-server (or valkey-server) for one test. It has its own process, its own port on 127.0.0.1 and its own
// directory, which is removed afterwards. It uses nothing global. A server that a test leaves running ends with the
// test process.
import { spawn, type ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from '../../src/lab/free-port.js';

export interface RedisOptions {
  /** none: memory only. everysec / always: append-only file in `dir`, kept across restart(). */
  persist?: 'none' | 'everysec' | 'always';
  /** Further command-line arguments, e.g. ['--maxmemory', '4mb']. */
  args?: string[];
  /** An existing directory that stop() must not remove. Default: a new one, removed by stop(). */
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
  /**
   * Sends a signal. For a deadly one, resolves when the process is gone. The directory stays, so restart() may follow.
   */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Kills a running process and starts again on the same port and directory. `wipe` removes the data first. */
  restart(options?: {
    args?: string[];
    persist?: RedisOptions['persist'];
    wipe?: boolean;
    signal?: NodeJS.Signals;
  }): Promise<void>;
  /** SIGSTOP / SIGCONT: connections stay open, nothing answers. */
  pause(): void;
  unpause(): void;
}

const READY_LIMIT_MS = 120_000;
const DEADLY = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGABRT']);
const running = new Set<ChildProcess>();
const directories = new Set<string>();

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  for (const dir of directories) rmSync(dir, { recursive: true, force: true });
});

/** The path of the server program. */
function redisServerPath(): string {
  for (const name of ['redis-server', 'valkey-server']) {
    for (const dir of (process.env['PATH'] ?? '').split(delimiter)) {
      const file = join(dir, name);
      try {
        accessSync(file, constants.X_OK);
        return file;
      } catch {
        /* not here */
      }
    }
  }
  throw new Error('neither redis-server nor valkey-server is on PATH: install the package redis-server');
}

/**
 * Calls `use` with a port that was free a moment ago. If another process took it first (`address already in use`),
 * tries another port.
 */
export async function onFreePort<T>(use: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await use(await freePort());
    } catch (error) {
      if (attempt === 3 || !isPortTaken(error)) throw error;
    }
  }
}

const isPortTaken = (error: unknown): boolean => /in use|EADDRINUSE/i.test(String(error));

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await new Promise((resolve) => child.once('exit', resolve));
}

/**
 * Starts the program and waits until its own output says that it is ready. A test connection would not do: another
 * process may answer on its port.
 */
export async function launchServer(args: string[], ready: RegExp): Promise<ChildProcess> {
  const child = spawn(redisServerPath(), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  let log = '';
  await new Promise<void>((resolve, reject) => {
    const failed = (): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(`redis-server ${args.slice(0, 2).join(' ')} did not come up:\n${log}`));
    };
    const timer = setTimeout(failed, READY_LIMIT_MS);
    const keep = (chunk: Buffer): void => {
      log = (log + chunk.toString()).slice(-4000);
      if (!ready.test(log)) return;
      clearTimeout(timer);
      resolve();
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    child.once('error', (error) => {
      log += String(error);
      failed();
    });
    child.once('close', () => {
      running.delete(child);
      failed();
    });
  });
  return child;
}

function launch(port: number, dir: string, persist: RedisOptions['persist'], args: string[]): Promise<ChildProcess> {
  const persistence =
    persist === undefined || persist === 'none'
      ? ['--appendonly', 'no']
      : ['--appendonly', 'yes', '--appendfsync', persist];
  return launchServer(
    [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--dir',
      dir,
      '--save',
      '',
      '--daemonize',
      'no',
      '--databases',
      '16',
      '--maxmemory-policy',
      'noeviction',
      ...persistence,
      ...args,
    ],
    /ready to accept connections/i,
  );
}

/** Starts one server and waits until it answers. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const own = options.dir === undefined;
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'seq-redis-'));
  if (own) directories.add(dir);
  let persist = options.persist;
  let args = options.args ?? [];
  const started = (on: number) => launch(on, dir, persist, args).then((child) => ({ child, port: on }));
  const first = options.port === undefined ? await onFreePort(started) : await started(options.port);
  const { port } = first;
  let { child } = first;

  async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    if (!DEADLY.has(signal)) return;
    // A stopped process handles only SIGKILL at once. Every other signal waits for SIGCONT.
    if (signal !== 'SIGKILL') child.kill('SIGCONT');
    await exited(child);
  }

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child.pid ?? -1;
    },
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
        for (const entry of ['appendonlydir', 'appendonly.aof', 'dump.rdb'])
          rmSync(join(dir, entry), { recursive: true, force: true });
      }
      persist = next.persist ?? persist;
      args = next.args ?? args;
      // A process that searches for a free port holds each port for a moment.
      for (const end = Date.now() + READY_LIMIT_MS; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
        try {
          child = await launch(port, dir, persist, args);
          return;
        } catch (error) {
          if (!isPortTaken(error) || Date.now() > end) throw error;
        }
      }
    },
    pause() {
      child.kill('SIGSTOP');
    },
    unpause() {
      child.kill('SIGCONT');
    },
  };
}
