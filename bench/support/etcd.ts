// etcd, for comparison only. It uses the program on PATH, or else unpacks the system's package (nothing is installed,
// no service is started). It runs three members on this machine.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { freePorts } from '../../src/lab/free-port.js';
import type { Client } from './load.js';

const CACHE = resolve('node_modules/.cache/seq-bench/etcd');
/**
 * Limit for fetching and unpacking together. A machine without network access gets a message, and the benches still end
 * within their limits.
 */
const FETCH_LIMIT_MS = 40_000;

export function etcdProgram(): { path: string; why: '' } | { path: null; why: string } {
  const places = [...(process.env['PATH'] ?? '').split(delimiter), join(CACHE, 'usr/bin')];
  const path = places.map((place) => join(place, 'etcd')).find((file) => existsSync(file));
  return path === undefined
    ? { path: null, why: 'no etcd on PATH, and `apt-get download etcd-server` has not been tried or gave none' }
    : { path, why: '' };
}

/** Unpacks Debian's package beside the build when there is no etcd. */
export function findEtcd(): ReturnType<typeof etcdProgram> {
  const found = etcdProgram();
  if (found.path !== null) return found;
  mkdirSync(CACHE, { recursive: true });
  const deadline = performance.now() + FETCH_LIMIT_MS;
  const run = (program: string, ...args: string[]): string | null => {
    const { status, stderr, error } = spawnSync(program, args, {
      cwd: CACHE,
      encoding: 'utf8',
      timeout: Math.max(1, Math.round(deadline - performance.now())),
    });
    return status === 0 ? null : (error?.message ?? stderr.trim().split('\n').at(-1) ?? 'it failed');
  };
  let failed = run('apt-get', 'download', 'etcd-server');
  if (failed !== null) failed = run('apt-get', 'update') ?? run('apt-get', 'download', 'etcd-server');
  if (failed !== null) return { path: null, why: `no etcd on PATH, and apt-get download etcd-server: ${failed}` };
  const file = readdirSync(CACHE).find((name) => name.endsWith('.deb'));
  const unpacked = file === undefined ? 'no package came' : run('dpkg', '-x', file, '.');
  return unpacked === null ? etcdProgram() : { path: null, why: `etcd-server could not be unpacked: ${unpacked}` };
}

export interface EtcdCluster {
  /** Client addresses, host:port. */
  hosts: string[];
  stop(): Promise<void>;
}

const ATTEMPTS = 3;

/**
 * Three members on loopback. Their data is on the disk of the temporary directory. Every write is synced (etcd has no
 * other way).
 */
export async function startEtcd(program: string): Promise<EtcdCluster> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnce(program);
    } catch (error) {
      // Another program took a port that was free a moment ago.
      if (attempt === ATTEMPTS || !/in use/i.test(String(error))) throw error;
    }
  }
}

async function startOnce(program: string): Promise<EtcdCluster> {
  const directory = mkdtempSync(join(tmpdir(), 'seq-bench-etcd-'));
  const ports = await freePorts(6);
  const members = [0, 1, 2].map((at) => ({
    name: `e${at + 1}`,
    client: `http://127.0.0.1:${ports[at * 2]}`,
    peer: `http://127.0.0.1:${ports[at * 2 + 1]}`,
  }));
  const children: ChildProcess[] = members.map(({ name, client, peer }) =>
    spawn(
      program,
      [
        '--name',
        name,
        '--data-dir',
        join(directory, name),
        '--listen-client-urls',
        client,
        '--advertise-client-urls',
        client,
        '--listen-peer-urls',
        peer,
        '--initial-advertise-peer-urls',
        peer,
        '--initial-cluster-state',
        'new',
        '--initial-cluster',
        members.map((one) => `${one.name}=${one.peer}`).join(','),
        '--logger',
        'zap',
        '--log-level',
        'error',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    ),
  );
  let log = '';
  for (const child of children)
    child.stderr?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-2000);
    });
  const end = (): void => {
    for (const child of children) child.kill('SIGKILL');
    // A process that is being killed may still write.
    rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 10 });
  };
  process.once('exit', end);
  const stop = async (): Promise<void> => {
    process.off('exit', end);
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(
      children.map((child) =>
        child.exitCode !== null || child.signalCode !== null ? null : new Promise((done) => child.once('exit', done)),
      ),
    );
    rmSync(directory, { recursive: true, force: true });
  };
  const deadline = Date.now() + 20_000;
  for (;;) {
    const healthy = await Promise.all(
      members.map(({ client }) =>
        fetch(`${client}/health`, { signal: AbortSignal.timeout(1000) }).then(
          (answer) => answer.text(),
          () => '',
        ),
      ),
    );
    if (healthy.every((text) => text.includes('true'))) break;
    if (Date.now() > deadline || children.some((child) => child.exitCode !== null)) {
      await stop();
      throw new Error(
        `etcd did not come up: ${
          log
            .trim()
            .split('\n')
            .find((line) => /in use/i.test(line)) ??
          log.trim().split('\n').at(-1) ??
          ''
        }`,
      );
    }
    await new Promise((done) => setTimeout(done, 100));
  }
  return { hosts: members.map(({ client }) => client), stop };
}

/** One gRPC channel carries several clients at once. */
const CHANNELS = 8;

/**
 * Clients that put `bytes` under keys of their own. `guarded`: only if the key does not exist yet (compare and put in
 * one transaction).
 */
export async function etcdClients(
  cluster: EtcdCluster,
  count: number,
  bytes: number,
  guarded: boolean,
): Promise<Client[]> {
  const { Etcd3 } = await import('etcd3');
  const channels = Array.from({ length: Math.min(count, CHANNELS) }, () => new Etcd3({ hosts: cluster.hosts }));
  const value = Buffer.alloc(bytes, 7);
  let next = 0;
  const run = `${process.pid}.${Date.now()}`;
  return Array.from({ length: count }, (_, at) => {
    const client = channels[at % channels.length]!;
    return {
      send: async () => {
        next += 1;
        const key = `bench/${run}/${next}`;
        if (!guarded) await client.put(key).value(value);
        else if (!(await client.if(key, 'Create', '==', 0).then(client.put(key).value(value)).commit()).succeeded)
          throw new Error(`etcd: ${key} is there already`);
        return 1;
      },
      close: () => {
        if (at < channels.length) client.close();
      },
    };
  });
}
