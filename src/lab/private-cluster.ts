// A cluster of real processes that lives as long as its creator: for tests and for `seq chaos`. It has the same
// processes as the lab, in a directory of its own. On request there is a TCP proxy between every sequencer and every
// node. Invariant: no process is left when the cluster is closed, or when this process ends in any way but SIGKILL.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isPortTaken, START_LIMIT_MS, waitUntilAnswering } from './answering.js';
import { freePorts } from './free-port.js';
import { httpGet } from './http-get.js';
import {
  checkSettings,
  DEFAULT_SETTINGS,
  nodeNames,
  pathsOf,
  redisSpec,
  sequencerNames,
  sequencerSpec,
  urlOf,
  type LabSettings,
  type Place,
  type ProcessKind,
} from './plan.js';
import { lastLines, logEnd, spawnDetached, waitForLog, waitUntil, waitUntilDead } from './processes.js';
import { signalIfOurs, stateOf, type ProcessIdentity, type ProcessState } from './process-identity.js';
import { findRedisServer, redisConfig } from './redis-server.js';
import { askSelf } from './self.js';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.js';

export interface PrivateClusterOptions extends Partial<LabSettings> {
  /** A given directory is kept at the end. Default: a temporary one. */
  directory?: string;
  /** A proxy per (sequencer, node), and one per node at the address that the configuration has. */
  proxies?: boolean;
  /** Further arguments of every `seq run`. */
  runArgs?: string[];
  /** Further lines of every redis.conf. */
  redisLines?: string[];
  /** false: nodes stay pristine and no sequencer is started. */
  bootstrap?: boolean;
}

export interface HttpAnswer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** What somebody changed in the settings of one sequencer. It holds from its next start on. */
export interface EditedStart {
  /** Per node: another address, or '' for a node that is left out. */
  nodes?: Readonly<Record<string, string>>;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
}

/**
 * Whose proxies stand in the configuration. A sequencer whose own proxy is cut goes there when it starts: a fault of a
 * link strikes these, too.
 */
const AGREED = 'agreed';
const PORT_LIMIT_MS = 5000;
const PORT_ATTEMPTS = 3;
const open = new Set<PrivateCluster>();
let watching = false;

export class PrivateCluster {
  readonly settings: LabSettings;
  readonly directory: string;
  readonly places: Place[] = [];
  private readonly identities = new Map<string, ProcessIdentity>();
  private readonly proxies = new Map<string, TcpProxy>();
  /** Servers beside the cluster's own. */
  private readonly spares: Place[] = [];
  private readonly edited = new Map<string, EditedStart>();
  private readonly keepDirectory: boolean;

  private constructor(private readonly options: PrivateClusterOptions) {
    const { nodes, sequencers, persist, ttlMs, blockTimeMs, eager } = { ...DEFAULT_SETTINGS, ...options };
    this.settings = { nodes, sequencers, persist, ttlMs, blockTimeMs, eager };
    checkSettings(this.settings);
    this.keepDirectory = options.directory !== undefined;
    this.directory = options.directory ?? mkdtempSync(join(tmpdir(), 'seq-cluster-'));
    mkdirSync(this.directory, { recursive: true, mode: 0o700 });
  }

  /**
   * Starts nodes and bootstraps them, then starts sequencers until they answer. There may be no commit yet. After a
   * failure nothing is left.
   */
  static async start(options: PrivateClusterOptions = {}): Promise<PrivateCluster> {
    const cluster = new PrivateCluster(options);
    cluster.guard();
    try {
      await cluster.begin();
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  get nodes(): Place[] {
    return this.places.filter((place) => place.kind === 'redis');
  }

  get sequencers(): Place[] {
    return this.places.filter((place) => place.kind === 'sequencer');
  }

  /** `r1=redis://…` per node, as values of `--node`: direct addresses, without proxies. */
  get nodeFlags(): string[] {
    return this.nodes.map((node) => `${node.name}=${urlOf(node)}`);
  }

  url(name: string): string {
    return urlOf(this.place(name));
  }

  port(name: string): number {
    return this.place(name).port;
  }

  pid(name: string): number {
    return this.identity(name).pid;
  }

  state(name: string): ProcessState {
    const identity = this.identities.get(name);
    return identity === undefined ? 'dead' : stateOf(identity);
  }

  logFile(name: string): string {
    return pathsOf(this.directory, name).log;
  }

  dataDirectory(name: string): string {
    return pathsOf(this.directory, name).data;
  }

  log(name: string, lines = 50): string[] {
    return lastLines(this.logFile(name), lines);
  }

  /** Offset for `waitForLog`, to read only later lines. */
  logEnd(name: string): number {
    return logEnd(this.logFile(name));
  }

  waitForLog(name: string, pattern: RegExp, options: { timeoutMs: number; from?: number }): Promise<string> {
    return waitForLog(this.logFile(name), pattern, options);
  }

  /** Polls until the probe returns something other than undefined. Throws at the bound and says what it waited for. */
  waitFor<T>(
    what: string,
    timeoutMs: number,
    probe: () => Promise<T | undefined> | T | undefined,
    everyMs = 10,
  ): Promise<T> {
    return waitUntil({ what, timeoutMs, everyMs }, probe);
  }

  /** SIGKILL and SIGTERM resolve when the process has ended. False when it was dead already. */
  async kill(name: string, signal: NodeJS.Signals = 'SIGKILL', limitMs = 10_000): Promise<boolean> {
    const identity = this.identity(name);
    if (!signalIfOurs(identity, signal)) return false;
    if (['SIGKILL', 'SIGTERM', 'SIGINT'].includes(signal) && !(await waitUntilDead(identity, limitMs))) {
      throw new Error(`${name} (pid ${identity.pid}) is still there ${limitMs} ms after ${signal}`);
    }
    return true;
  }

  /** Resolves when the process has really stopped. */
  async pause(name: string): Promise<void> {
    signalIfOurs(this.identity(name), 'SIGSTOP');
    await this.waitFor(`${name} to be paused`, 2000, () => (this.state(name) === 'paused' ? true : undefined), 1);
  }

  unpause(name: string): void {
    signalIfOurs(this.identity(name), 'SIGCONT');
  }

  /**
   * Starts it under its name, port and data; resolves when it answers. Tries a port that is taken again for `portMs`.
   */
  async startProcess(name: string, options: { wait?: boolean; portMs?: number } = {}): Promise<void> {
    const place = this.place(name);
    if (this.state(name) !== 'dead') throw new Error(`${name} is ${this.state(name)}`);
    const paths = pathsOf(this.directory, name);
    mkdirSync(paths.data, { recursive: true, mode: 0o700 });
    if (place.kind === 'redis') {
      const text = redisConfig({ port: place.port, dataDirectory: paths.data, persist: this.settings.persist });
      writeFileSync(paths.config, `${text}${(this.options.redisLines ?? []).map((line) => `${line}\n`).join('')}`);
    }
    const spec =
      place.kind === 'redis'
        ? redisSpec(this.directory, place, findRedisServer())
        : sequencerSpec({
            directory: this.directory,
            place,
            places: this.places,
            settings: this.settings,
            extraArgs: [...(this.options.runArgs ?? []), ...(this.edited.get(name)?.args ?? [])],
            nodeUrl: (sequencer, node) =>
              this.edited.get(sequencer)?.nodes?.[node.name] ??
              this.proxies.get(`${sequencer}/${node.name}`)?.url ??
              urlOf(node),
            env: this.edited.get(name)?.env ?? {},
          });
    for (const startedAt = performance.now(); ; await delay(50)) {
      const identity = await spawnDetached(spec);
      this.identities.set(name, identity);
      if (options.wait === false) return;
      try {
        await waitUntilAnswering(this.directory, place, identity);
        return;
      } catch (error) {
        // Another program that tries ports takes each for a moment only. A port that this lab has used before is not
        // given up for that.
        if (!isPortTaken(error) || performance.now() - startedAt > (options.portMs ?? PORT_LIMIT_MS)) throw error;
      }
    }
  }

  async restart(name: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.kill(name, signal);
    await this.startProcess(name);
  }

  /** Kills it, removes its data, and starts it empty. */
  async wipe(name: string): Promise<void> {
    await this.kill(name);
    this.removeData(name);
    await this.startProcess(name);
  }

  /** Removes the data of a dead process. */
  removeData(name: string): void {
    if (this.state(name) !== 'dead') throw new Error(`${name} is ${this.state(name)}: its data is in use`);
    rmSync(this.dataDirectory(name), { recursive: true, force: true });
  }

  /** Settings of this sequencer that somebody changed; null: as all others have them. */
  edit(sequencer: string, edited: EditedStart | null): void {
    if (edited === null) this.edited.delete(sequencer);
    else this.edited.set(sequencer, edited);
  }

  /** Starts an empty server beside the cluster, and returns its port. It keeps its name and port for the next time. */
  async startSpare(name: string): Promise<number> {
    let place = this.spares.find((spare) => spare.name === name);
    if (place === undefined) {
      const [port] = await freePorts(1);
      place = { name, kind: 'redis', port: port! };
      this.spares.push(place);
    }
    if (this.state(name) !== 'dead') await this.kill(name);
    this.removeData(name);
    await this.startProcess(name);
    return place.port;
  }

  /** The proxy between the two. The cluster must have been started with `proxies`. */
  proxy(sequencer: string, node: string): TcpProxy {
    const proxy = this.proxies.get(`${sequencer}/${node}`);
    if (proxy === undefined)
      throw new Error(`no proxy between ${sequencer} and ${node}: start the cluster with { proxies: true }`);
    return proxy;
  }

  /** The proxy at the address that the cluster's configuration has for the node. */
  agreedProxy(node: string): TcpProxy {
    return this.proxy(AGREED, node);
  }

  /** Every proxy of this sequencer, or of all sequencers. */
  proxiesOf(sequencer?: string): TcpProxy[] {
    return [...this.proxies]
      .filter(([name]) => sequencer === undefined || name.startsWith(`${sequencer}/`))
      .map(([, proxy]) => proxy);
  }

  /** `/v1/status` of a sequencer; null while it does not answer. */
  async status(name: string, limitMs = 1000): Promise<Record<string, unknown> | null> {
    const answer = await httpGet(this.port(name), '/v1/status', limitMs);
    if (answer === null || answer.status !== 200) return null;
    const body = JSON.parse(answer.body) as Record<string, unknown>;
    return (body['data'] ?? body) as Record<string, unknown>;
  }

  /** The sequencer that says that it leads. Null when none does. */
  async leader(): Promise<string | null> {
    for (const { name } of this.sequencers) {
      if (this.state(name) === 'running' && (await this.status(name))?.['role'] === 'leader') return name;
    }
    return null;
  }

  /** Waits until a sequencer (any but `except`) says that it leads. */
  waitForLeader(timeoutMs = START_LIMIT_MS, except: readonly string[] = []): Promise<string> {
    return this.waitFor('a leader', timeoutMs, async () => {
      const leader = await this.leader();
      return leader === null || except.includes(leader) ? undefined : leader;
    });
  }

  /** Waits until this sequencer's store has reached the height. */
  waitForHeight(name: string, height: number, timeoutMs = START_LIMIT_MS): Promise<number> {
    return this.waitFor(`${name} at height ${height}`, timeoutMs, async () => {
      const now = Number((await this.status(name))?.['height']);
      return now >= height ? now : undefined;
    });
  }

  /** POST /v1/submit, NDJSON. Returns the raw answer. */
  submit(
    name: string,
    items: readonly { key?: string; data: string | Uint8Array }[],
    limitMs = 10_000,
  ): Promise<HttpAnswer> {
    const body = items
      .map(({ key, data }) =>
        JSON.stringify({
          ...(key === undefined ? {} : { key }),
          ...(typeof data === 'string' ? { data } : { base64: Buffer.from(data).toString('base64') }),
        }),
      )
      .join('\n');
    return this.http(name, 'POST', '/v1/submit', {
      body,
      headers: { 'content-type': 'application/x-ndjson' },
      limitMs,
    });
  }

  /** One request. Rejects when there is no answer within the limit. */
  http(
    name: string,
    method: string,
    path: string,
    options: { body?: string | Uint8Array; headers?: Record<string, string>; limitMs?: number } = {},
  ): Promise<HttpAnswer> {
    const limitMs = options.limitMs ?? 5000;
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: '127.0.0.1', port: this.port(name), method, path, headers: options.headers ?? {}, agent: false },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', fail);
          response.on('end', () => {
            clearTimeout(timer);
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks).toString('utf8'),
            });
          });
        },
      );
      const fail = (error: Error): void => {
        clearTimeout(timer);
        reject(error);
      };
      const timer = setTimeout(
        () => sent.destroy(new Error(`${method} ${path} at ${name}: no answer within ${limitMs} ms`)),
        limitMs,
      );
      sent.on('error', fail);
      sent.end(options.body);
    });
  }

  /** Runs a command of this program against these nodes. Returns the `data` of its envelope. */
  ask(args: readonly string[], limitMs = 20_000): Promise<unknown> {
    return askSelf([...args, ...this.nodeFlags.flatMap((node) => ['--node', node])], {
      env: this.environment(),
      limitMs,
    });
  }

  /** For commands that run beside the cluster: without any configuration of the user. */
  environment(): NodeJS.ProcessEnv {
    const kept = Object.entries(process.env).filter(([name]) => !/^(SEQ_|VITEST|NODE_OPTIONS$)/.test(name));
    return {
      ...Object.fromEntries(kept),
      NODE_ENV: 'production',
      XDG_CONFIG_HOME: join(this.directory, 'no-config'),
      XDG_STATE_HOME: join(this.directory, 'no-state'),
    };
  }

  /** Ends every process with SIGKILL, closes the proxies, and removes the directory unless it was given. */
  async close(): Promise<void> {
    open.delete(this);
    await this.endAll();
    if (!this.keepDirectory) rmSync(this.directory, { recursive: true, force: true });
  }

  /**
   * A free port may be taken a moment later. When one is lost to another program, everything starts over with other
   * ports.
   */
  private async begin(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.beginOnce();
        return;
      } catch (error) {
        if (attempt === PORT_ATTEMPTS || !isPortTaken(error)) throw error;
        await this.endAll();
        for (const { name } of this.places)
          rmSync(pathsOf(this.directory, name).home, { recursive: true, force: true });
        this.places.length = 0;
        this.identities.clear();
        this.proxies.clear();
      }
    }
  }

  private async beginOnce(): Promise<void> {
    const names: [string, ProcessKind][] = [
      ...nodeNames(this.settings.nodes).map((name): [string, ProcessKind] => [name, 'redis']),
      ...sequencerNames(this.settings.sequencers).map((name): [string, ProcessKind] => [name, 'sequencer']),
    ];
    const ports = await freePorts(names.length);
    this.places.push(...names.map(([name, kind], at) => ({ name, kind, port: ports[at]! })));
    await this.startAll(this.nodes);
    if (this.options.proxies === true) {
      for (const sequencer of this.sequencers) {
        for (const node of this.nodes)
          this.proxies.set(`${sequencer.name}/${node.name}`, await startTcpProxy(node.port));
      }
      for (const node of this.nodes) this.proxies.set(`${AGREED}/${node.name}`, await startTcpProxy(node.port));
    }
    if (this.options.bootstrap === false) return;
    const agreed = this.nodes.map(
      (node) => `${node.name}=${this.proxies.get(`${AGREED}/${node.name}`)?.url ?? urlOf(node)}`,
    );
    await askSelf(
      [
        ...['cluster', 'init', '--node-timeout', '2s', ...agreedArgs(this.options.runArgs ?? [])],
        ...agreed.flatMap((node) => ['--node', node]),
      ],
      { env: this.environment(), limitMs: 20_000 },
    );
    await this.startAll(this.sequencers);
  }

  /** Returns or throws only when none of them is starting any more. */
  private async startAll(places: readonly Place[]): Promise<void> {
    const ended = await Promise.allSettled(places.map(({ name }) => this.startProcess(name, { portMs: 0 })));
    const failures = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    if (failures.length > 0) throw failures.find(isPortTaken) ?? failures[0];
  }

  private async endAll(): Promise<void> {
    this.killAll();
    await Promise.all([...this.identities.values()].map((identity) => waitUntilDead(identity, 5000)));
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.close()));
  }

  private killAll(): void {
    for (const identity of this.identities.values()) signalIfOurs(identity, 'SIGKILL');
  }

  /**
   * Runs at the very end of this process. Nothing can be awaited, and a process that is being killed may still write.
   */
  private endAtOnce(): void {
    this.killAll();
    if (!this.keepDirectory) rmSync(this.directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 10 });
  }

  private guard(): void {
    open.add(this);
    if (watching) return;
    watching = true;
    process.on('exit', () => {
      for (const cluster of open) cluster.endAtOnce();
    });
  }

  private place(name: string): Place {
    const place = [...this.places, ...this.spares].find((other) => other.name === name);
    if (place === undefined)
      throw new Error(`there is no ${name}; there are ${this.places.map((other) => other.name).join(', ')}`);
    return place;
  }

  private identity(name: string): ProcessIdentity {
    const identity = this.identities.get(this.place(name).name);
    if (identity === undefined) throw new Error(`${name} was never started`);
    return identity;
  }
}

/** The arguments of `seq run` that the cluster fixes when it is made. */
function agreedArgs(runArgs: readonly string[]): string[] {
  const given = ['--max-block-bytes', '--dedup-window', '--dedup-items', '--producer'].flatMap((flag) => {
    const at = runArgs.indexOf(flag);
    return at < 0 ? [] : runArgs.slice(at, at + 2);
  });
  return given.includes('--producer') ? given : [...given, '--producer', runArgs.includes('--') ? 'exec' : 'batch'];
}
