// Composition root: flags, SEQ_*, context and config file → the cluster, and the cluster → open nodes. The only place
// that joins engine and redis. Ids and cluster identity that nobody configured are read from the nodes' admission
// records (docs/PROTOCOL.md section 2).
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { DEFAULT_TIMING, quorumOf } from '../../core/config.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { disabledShortcuts } from '../../core/shortcuts.js';
import { commonCluster } from '../../core/view/cluster-name.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import type { BenchServer, Clock, ClusterIdentity, NodeCheckup, NodePort } from '../../core/ports.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import { configPath, readConfig } from '../config/file.js';
import type { ConfigFile, ContextEntry, SecretRefs, TlsEntry } from '../config/config-types.js';
import { contextNotFound } from '../config/config-errors.js';
import { checkUrl, parseNodeFlag, withoutSecrets } from '../support/node-url.js';
import type { FuelPort } from '../../core/dialect-fuel/types.js';
import { asDialect, asDuration, asLane, asList, setting, type Sources } from '../config/settings.js';

/** One node as configured; secrets are still references. */
export interface NodeSettings extends SecretRefs {
  /** null: to be discovered. */
  id: string | null;
  /** Normalised, without secrets. */
  url: string;
  username?: string;
  tls?: TlsEntry;
  sentinel?: SecretRefs & { name: string; nodes: string[]; username?: string };
}

export interface ClusterSettings {
  context: string | null;
  nodes: NodeSettings[];
  nodesFrom: string;
  on: string[] | null;
  lane: string;
  /** '' when it is to be discovered. */
  cluster: string;
  nodeTimeoutMs: number;
  sequencers: string[];
}

/** Everything around a command before anything is opened. */
export interface Surroundings {
  sources: Sources;
  /** Throws 78 when no cluster is named, and whatever is wrong with how it is. */
  clusterSettings(): ClusterSettings;
}

/** What a connection needs; secrets and certificates are read. Never printed. */
export interface NodeAddress {
  id: string;
  url: string;
  username?: string;
  password?: string;
  tls?: { ca?: string; cert?: string; key?: string; serverName?: string; verify?: boolean };
  sentinel?: { name: string; nodes: string[]; username?: string; password?: string };
  /** false: switched off by SEQ_DISABLE. */
  ownResp?: boolean;
  fastAppend?: boolean;
}

export interface Cluster {
  settings: ClusterSettings;
  identity: ClusterIdentity;
  /** Every configured node, in order. Counts are over these. */
  nodes: NodePort[];
  /** Those of --on, else all. */
  asked: NodePort[];
  /** How many of those have given any answer so far. */
  answers(): number;
  quorum: number;
  nodeTimeoutMs: number;
  /** What discovery saw, by node id; empty when nothing had to be discovered. */
  views: Map<string, NodeReply<NodeView>>;
  /** How to reach each node, secrets included: for opening more connections. */
  addresses: NodeAddress[];
  /** The time that answers are given for: now, or when a bundle was made. */
  clock: Clock;
  /** Opens every node once more, as one of that cluster (`<id>.<generation>`). The caller closes them. */
  reopen(cluster: string): Promise<NodePort[]>;
  close(): Promise<void>;
}

/**
 * Reads the config file and picks the context. `tolerant`: a broken file counts as none (for commands that mend it).
 */
export async function surroundings(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv,
  tolerant = false,
): Promise<Surroundings> {
  const path = configPath(env);
  let config: ConfigFile | null = null;
  try {
    config = await readConfig(path, Boolean(env['SEQ_CONFIG']));
  } catch (error) {
    if (!tolerant) throw error;
  }
  const sources: Sources = {
    flags,
    env,
    config,
    configPath: path,
    context: pickContext(flags, env, config, path, tolerant),
  };
  return { sources, clusterSettings: () => clusterSettings(sources) };
}

function pickContext(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv,
  config: ConfigFile | null,
  path: string,
  tolerant: boolean,
): Sources['context'] {
  const byFlag = flags['context'] as string | undefined;
  // Nodes named by hand are another cluster than the current context's: its secrets and lane must not leak into them.
  if (byFlag === undefined && (Array.isArray(flags['node']) || (env['SEQ_NODE'] ?? '') !== '')) return null;
  const name = byFlag ?? (env['SEQ_CONTEXT'] || config?.current);
  if (name === undefined) return null;
  const entry = config?.contexts[name];
  if (entry) return { name, entry };
  if (tolerant) return null;
  throw contextNotFound(name, config, path);
}

function secretsOf(from: SecretRefs): SecretRefs {
  const { passwordFile, passwordCommand, passwordEnv } = from;
  return passwordFile !== undefined
    ? { passwordFile }
    : passwordCommand !== undefined
      ? { passwordCommand }
      : passwordEnv !== undefined
        ? { passwordEnv }
        : {};
}

/** SEQ_PASSWORD_FILE, SEQ_PASSWORD_COMMAND, SEQ_PASSWORD: the password of every node that has none of its own. */
function secretsOfEnv(env: NodeJS.ProcessEnv): SecretRefs {
  if (env['SEQ_PASSWORD_FILE']) return { passwordFile: env['SEQ_PASSWORD_FILE'] };
  if (env['SEQ_PASSWORD_COMMAND']) return { passwordCommand: env['SEQ_PASSWORD_COMMAND'] };
  return env['SEQ_PASSWORD'] ? { passwordEnv: 'SEQ_PASSWORD' } : {};
}

function tlsOfEnv(env: NodeJS.ProcessEnv): TlsEntry | undefined {
  const tls: TlsEntry = {};
  if (env['SEQ_TLS_CA']) tls.ca = env['SEQ_TLS_CA'];
  if (env['SEQ_TLS_CERT']) tls.cert = env['SEQ_TLS_CERT'];
  if (env['SEQ_TLS_KEY']) tls.key = env['SEQ_TLS_KEY'];
  if (env['SEQ_TLS_SERVER_NAME']) tls.serverName = env['SEQ_TLS_SERVER_NAME'];
  return Object.keys(tls).length > 0 ? tls : undefined;
}

function nodesByHand(texts: string[], sources: Sources): NodeSettings[] {
  const entry = sources.context?.entry;
  const username = sources.env['SEQ_USERNAME'] || entry?.username;
  const tls = tlsOfEnv(sources.env) ?? entry?.tls;
  const secret = { ...secretsOf(entry ?? {}), ...secretsOfEnv(sources.env) };
  return texts.map((text) => {
    const parsed = parseNodeFlag(text);
    const node: NodeSettings = { id: parsed.id ?? null, url: parsed.url, ...secretsOf(secret) };
    const user = parsed.username ?? username;
    if (user) node.username = user;
    if (tls) node.tls = tls;
    return node;
  });
}

function nodesOfContext(entry: ContextEntry, env: NodeJS.ProcessEnv): NodeSettings[] {
  return entry.nodes.map((each) => {
    const parsed = checkUrl(each.url);
    const own = secretsOf(each);
    const fromEnv = secretsOfEnv(env);
    const node: NodeSettings = {
      id: each.id ?? null,
      url: parsed.url,
      ...(Object.keys(own).length > 0 ? own : Object.keys(fromEnv).length > 0 ? fromEnv : secretsOf(entry)),
    };
    const user = each.username ?? parsed.username ?? (env['SEQ_USERNAME'] || entry.username);
    const tls = each.tls ?? tlsOfEnv(env) ?? entry.tls;
    if (user) node.username = user;
    if (tls) node.tls = tls;
    if (each.sentinel) node.sentinel = each.sentinel;
    return node;
  });
}

function clusterSettings(sources: Sources): ClusterSettings {
  const byFlag = sources.flags['node'] as string[] | undefined;
  const byEnv = (sources.env['SEQ_NODE'] ?? '').split(/[\s,]+(?=[^\s,]*:\/\/|\S+=)|\s+/).filter(Boolean);
  const entry = sources.context?.entry;
  const [nodes, nodesFrom] =
    byFlag && byFlag.length > 0
      ? [nodesByHand(byFlag, sources), '--node']
      : sources.flags['context'] === undefined && byEnv.length > 0
        ? [nodesByHand(byEnv, sources), 'SEQ_NODE']
        : entry
          ? [nodesOfContext(entry, sources.env), `context ${sources.context?.name}`]
          : [[], ''];
  if (nodes.length === 0) {
    const known = Object.keys(sources.config?.contexts ?? {}).slice(0, 3);
    throw new SeqError({
      code: 'NO_CLUSTER',
      exit: EXIT.config,
      message: 'no cluster is named',
      why: 'there is neither --node, nor SEQ_NODE, nor a context in use',
      changed: 'nothing',
      next: [
        ...(known.length > 0 ? known.map((name) => `seq context use ${name}`) : ['seq lab up']),
        'seq context ls',
        'add --node redis://HOST:PORT for each node, or -c CONTEXT',
      ],
    });
  }
  refuseDuplicates(nodes);
  return {
    context: sources.context?.name ?? null,
    nodes,
    nodesFrom,
    on: setting<string[] | null>(sources, 'on', asList, null).value,
    lane: asLane(setting(sources, 'lane', asLane, entry?.lane ?? '').value, '--lane'),
    cluster: entry?.cluster ?? '',
    nodeTimeoutMs: nodeTimeout(sources),
    sequencers: entry?.sequencers ?? [],
  };
}

function nodeTimeout(sources: Sources): number {
  const { value, from } = setting(sources, 'node-timeout', asDuration, DEFAULT_TIMING.nodeTimeoutMs);
  if (value >= 1) return value;
  throw new SeqError({
    code: 'BAD_CONFIG',
    exit: EXIT.config,
    message: `${from}: a node timeout of 0 leaves no time to answer`,
    why: 'every call would be unknown',
    changed: 'nothing',
    next: ['give it at least 1ms (100ms is the default)'],
  });
}

function refuseDuplicates(nodes: NodeSettings[]): void {
  const seen = new Map<string, number>();
  nodes.forEach((node, at) => {
    for (const key of node.id === null ? [node.url] : [node.url, `id ${node.id}`]) {
      const first = seen.get(key);
      if (first !== undefined) {
        throw new SeqError({
          code: 'DUPLICATE_NODE',
          exit: EXIT.config,
          message: `nodes ${first + 1} and ${at + 1} are both ${withoutSecrets(key)}`,
          why: 'one server counted twice would make a quorum out of a minority',
          changed: 'nothing',
          next: ['name every node once, each with its own address and id'],
        });
      }
      seen.set(key, at);
    }
  });
}

/** Two addresses of one server (same run id) would vote twice: 78. Call it wherever views of all nodes are at hand. */
export function refuseSameServer(views: Iterable<{ url: string; runId: string }>): void {
  const seen = new Map<string, string>();
  for (const { url, runId } of views) {
    if (runId === '') continue;
    const first = seen.get(runId);
    if (first !== undefined) {
      throw new SeqError({
        code: 'SAME_SERVER',
        exit: EXIT.config,
        message: `${first} and ${url} are the same server (run id ${runId.slice(0, 8)}…)`,
        why: 'one server counted twice would make a quorum out of a minority',
        changed: 'nothing',
        next: ['name every server once'],
      });
    }
    seen.set(runId, url);
  }
}

/** The password a reference stands for. Trailing line end removed. */
export async function readSecret(refs: SecretRefs, env: NodeJS.ProcessEnv, what: string): Promise<string | undefined> {
  const failed = (how: string, why: string): SeqError =>
    new SeqError({
      code: 'SECRET_UNREADABLE',
      exit: EXIT.config,
      message: `${what}: the password could not be read ${how}`,
      why,
      changed: 'nothing',
      next: ['check that the file, command or variable gives the password'],
    });
  if (refs.passwordFile !== undefined) {
    const text = await readFile(refs.passwordFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw failed(`from ${refs.passwordFile}`, error.code ?? 'unreadable');
    });
    return text.replace(/\r?\n$/, '');
  }
  if (refs.passwordCommand !== undefined) {
    return new Promise((resolve, reject) => {
      execFile(
        '/bin/sh',
        ['-c', refs.passwordCommand as string],
        { timeout: 5000, maxBuffer: 64 * 1024 },
        (error, stdout) => {
          if (error) reject(failed('from its command', `it ended with ${error.code ?? error.signal ?? 'an error'}`));
          else resolve(stdout.split(/\r?\n/)[0] ?? '');
        },
      );
    });
  }
  if (refs.passwordEnv !== undefined) {
    const value = env[refs.passwordEnv];
    if (value === undefined || value === '') throw failed(`from ${refs.passwordEnv}`, 'the variable is not set');
    return value;
  }
  return undefined;
}

async function addressOf(node: NodeSettings, id: string, env: NodeJS.ProcessEnv): Promise<NodeAddress> {
  const address: NodeAddress = { id, url: node.url };
  if (node.username) address.username = node.username;
  const password = await readSecret(node, env, `node ${id}`);
  if (password !== undefined) address.password = password;
  const disabled = disabledShortcuts(env['SEQ_DISABLE']);
  if (disabled.has('own-resp')) address.ownResp = false;
  if (disabled.has('fast-append')) address.fastAppend = false;
  if (node.tls) {
    const pem = async (path: string | undefined) =>
      path === undefined
        ? undefined
        : readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
            throw new SeqError({
              code: 'CERTIFICATE_UNREADABLE',
              exit: EXIT.config,
              message: `node ${id}: ${path} could not be read`,
              why: error.code ?? 'unreadable',
              changed: 'nothing',
              next: [`check that ${path} exists and may be read`],
            });
          });
    const [ca, cert, key] = await Promise.all([pem(node.tls.ca), pem(node.tls.cert), pem(node.tls.key)]);
    address.tls = {
      ...(ca && { ca }),
      ...(cert && { cert }),
      ...(key && { key }),
      ...(node.tls.serverName && { serverName: node.tls.serverName }),
      ...(node.tls.verify !== undefined && { verify: node.tls.verify }),
    };
  }
  const watched = /^sentinel:\/\/([^/]+)\/([^/]+)(\/\d+)?$/.exec(node.url);
  if (watched) {
    const nodes = (watched[1] as string).split(',');
    address.url = `redis://${nodes[0]}${watched[3] ?? ''}`;
    address.sentinel = { name: watched[2] as string, nodes };
  }
  if (node.sentinel) {
    const { name, nodes, username } = node.sentinel;
    const secret = await readSecret(node.sentinel, env, `sentinels of node ${id}`);
    address.sentinel = {
      name,
      nodes,
      ...(username && { username }),
      ...(secret !== undefined && { password: secret }),
    };
  }
  return address;
}

/** Opens one node; connects lazily. */
export async function openNode(address: NodeAddress, identity: ClusterIdentity, guessed = false): Promise<NodePort> {
  const { RedisNode } = await import('../../core/redis/node.js');
  return new RedisNode({ ...address, identity, guessed });
}

export interface OpenOptions {
  identity?: 'discover' | 'as-configured';
  signal?: AbortSignal;
  /**
   * look: where too few answered to say which cluster this is, that is left open, and judged by the looks that
   * follow; act: it must be known.
   * Absent (a sequencer, the lab): whatever one round finds.
   */
  purpose?: 'look' | 'act';
}

/**
 * Rounds of asking whose nodes these are, while fewer than a quorum answer: one lost answer must not make strangers
 * of our own nodes.
 */
const ROUNDS = { look: 2, act: 3 };

/**
 * Opens every configured node. Discovers ids and the cluster's identity by one `inspect` round unless all of it is
 * configured
 * (`identity: 'as-configured'` never asks: for `cluster init`, where there is nothing to find).
 */
export async function openCluster(around: Surroundings, options: OpenOptions = {}): Promise<Cluster> {
  if (setting(around.sources, 'dialect', asDialect, 'seq').value !== 'seq') throw readOnlyDialect('this command');
  const settings = around.clusterSettings();
  const { env } = around.sources;
  const { purpose } = options;
  const addresses = await Promise.all(settings.nodes.map((node, at) => addressOf(node, node.id ?? `n${at + 1}`, env)));
  const complete = settings.cluster !== '' && settings.nodes.every((node) => node.id !== null);
  let identity: ClusterIdentity = { cluster: settings.cluster, lane: settings.lane };
  const heard = new Set<number>();
  const open = (as: ClusterIdentity, guessed: readonly boolean[] = []) =>
    Promise.all(
      addresses.map(async (address, at) => noteAnswers(await openNode(address, as, guessed[at]), () => heard.add(at))),
    );
  let nodes = await open(
    identity,
    settings.nodes.map((node) => node.id === null && options.identity !== 'as-configured'),
  );
  const views = new Map<string, NodeReply<NodeView>>();
  if (!complete && options.identity !== 'as-configured') {
    try {
      const replies = await askWhose(nodes, settings.nodeTimeoutMs, purpose === undefined ? 1 : ROUNDS[purpose]);
      refuseSameServer(
        replies.flatMap((reply, at) =>
          reply.outcome === 'accepted' ? [{ url: addresses[at]?.url ?? '', runId: reply.value.runId }] : [],
        ),
      );
      if (purpose === 'act') refuseUnnamed(settings, replies, addresses);
      const ids = nameNodes(settings.nodes, replies);
      const answered = replies.filter((reply) => reply.outcome === 'accepted').length;
      const unsettled = purpose === 'look' && answered < quorumOf(nodes.length);
      identity = { cluster: settings.cluster || (unsettled ? '' : commonCluster(replies)), lane: settings.lane };
      const guessed = ids.map(
        (_, at) => purpose === 'look' && settings.nodes[at]?.id === null && replies[at]?.outcome !== 'accepted',
      );
      await closeAll(nodes);
      addresses.forEach((address, at) => {
        address.id = ids[at] as string;
      });
      nodes = await open(identity, guessed);
      ids.forEach((id, at) => views.set(id, replies[at] as NodeReply<NodeView>));
    } catch (error) {
      await closeAll(nodes);
      throw error;
    }
  }
  let asked: NodePort[];
  try {
    asked = chosen(nodes, settings.on);
  } catch (error) {
    await closeAll(nodes);
    throw error;
  }
  const answers = (): number => nodes.filter((node, at) => heard.has(at) && asked.includes(node)).length;
  return {
    settings,
    identity,
    nodes,
    asked,
    answers,
    quorum: quorumOf(nodes.length),
    nodeTimeoutMs: settings.nodeTimeoutMs,
    views,
    addresses,
    clock: systemClock,
    reopen: (cluster) => open({ ...identity, cluster }),
    close: () => closeAll(nodes),
  };
}

/**
 * Calls back whenever the node answered at all, be it with a refusal: `meta.nodesAnswered` is counted, never assumed.
 */
export function noteAnswers<N extends NodePort>(node: N, answered: () => void): N {
  const [call, read] = [node.call.bind(node), node.read.bind(node)];
  const noted = <R extends { outcome: string }>(reply: R): R => {
    if (reply.outcome !== 'unknown') answered();
    return reply;
  };
  return Object.assign(node, {
    call: async (...args: Parameters<NodePort['call']>) => noted(await call(...args)),
    read: async (...args: Parameters<NodePort['read']>) => noted(await read(...args)),
  });
}

/** What each node says of itself; who stayed silent is asked again while fewer than a quorum have answered. */
async function askWhose(nodes: readonly NodePort[], limitMs: number, rounds: number): Promise<NodeReply<NodeView>[]> {
  const replies: NodeReply<NodeView>[] = await Promise.all(
    nodes.map((node) => node.call({ script: 'inspect' }, limitMs)),
  );
  for (
    let round = 1;
    round < rounds && replies.filter((reply) => reply.outcome !== 'unknown').length < quorumOf(nodes.length);
    round += 1
  ) {
    await Promise.all(
      nodes.map(async (node, at) => {
        if (replies[at]?.outcome === 'unknown') replies[at] = await node.call({ script: 'inspect' }, limitMs);
      }),
    );
  }
  return replies;
}

/** Nothing is changed on nodes of which not one has said whose they are. */
function refuseUnnamed(
  settings: ClusterSettings,
  replies: readonly NodeReply<NodeView>[],
  addresses: readonly NodeAddress[],
): void {
  if (settings.cluster !== '' || replies.some((reply) => reply.outcome !== 'unknown')) return;
  throw new SeqError({
    code: 'NO_ANSWER',
    exit: EXIT.noQuorum,
    message:
      `none of ${replies.length} nodes answered: ` +
      `${replies.map((reply, at) => `${addresses[at]?.id} (${addresses[at]?.url}): ` + `${reply.outcome === 'unknown' ? `no answer at ${reply.step}${reply.limitMs === undefined ? '' : ` within ${reply.limitMs} ms`}: ${reply.cause}` : ''}`).join('; ')}`,
    why: 'without an answer it is not known which cluster this is',
    changed: 'nothing',
    next: ['seq status', 'a longer --node-timeout'],
    retryable: true,
  });
}

/** What never happens: that `seq` writes where another program's keys are. */
export function readOnlyDialect(command: string): SeqError {
  return new SeqError({
    code: 'READ_ONLY_DIALECT',
    exit: EXIT.safety,
    message: `${command} does not run against the streams of another program`,
    why:
      'with --dialect fuel nothing is ever written: those keys belong to another program, which has ' +
      'its own rules and its own tools',
    changed: 'nothing',
    next: [
      'look with seq status, seq stream inspect, verify or diff, and seq check',
      'leave --dialect (SEQ_DIALECT, the setting in the context) out to act on a cluster of seq',
    ],
  });
}

/** Opens every configured node for reading the other dialect's keys; connects lazily, discovers nothing. */
export async function openFuelNodes(
  around: Surroundings,
  leaseKey: string,
): Promise<{ settings: ClusterSettings; nodes: FuelPort[] }> {
  const settings = around.clusterSettings();
  const { FuelNode } = await import('../../core/redis/fuel/fuel-node.js');
  const addresses = await Promise.all(
    settings.nodes.map((node, at) => addressOf(node, nameNodes(settings.nodes, [])[at] as string, around.sources.env)),
  );
  const nodes = addresses.map((address) => new FuelNode({ ...address, leaseKey }));
  chosen(nodes, settings.on);
  return { settings, nodes };
}

async function closeAll(nodes: NodePort[]): Promise<void> {
  await Promise.allSettled(nodes.map((node) => node.close()));
}

/**
 * Configured id, else the id in the admission record, else the first free of n1…nN from its own place on; never the
 * same one twice.
 */
export function nameNodes(nodes: Pick<NodeSettings, 'id'>[], replies: NodeReply<Pick<NodeView, 'node'>>[]): string[] {
  const names: (string | null)[] = nodes.map(({ id }) => id);
  const take = (at: number, id: string): void => {
    if (names[at] === null && id !== '' && !names.includes(id)) names[at] = id;
  };
  // What the records say first: a silent node must not be given the name of one that answers.
  replies.forEach((reply, at) => take(at, reply.outcome === 'accepted' ? reply.value.node : ''));
  nodes.forEach((_, at) => {
    for (let step = 0; names[at] === null; step += 1)
      take(at, `n${step < nodes.length ? ((at + step) % nodes.length) + 1 : step + 1}`);
  });
  return names as string[];
}

export function chosen<Node extends { id: string }>(nodes: Node[], on: string[] | null): Node[] {
  if (on === null) return nodes;
  const unknown = on.filter((id) => !nodes.some((node) => node.id === id));
  if (unknown.length === 0) return nodes.filter((node) => on.includes(node.id));
  throw new SeqError({
    code: 'NODE_NOT_FOUND',
    exit: EXIT.notFound,
    message: `--on: there is no node ${unknown.join(', ')}`,
    why: `the cluster's nodes are ${nodes.map((node) => node.id).join(', ')}`,
    changed: 'nothing',
    next: ['seq node list', `choose from ${nodes.map((node) => node.id).join(', ')}`],
  });
}

/** What `seq doctor` reads of a node. */
export async function checkNode(node: NodePort, limitMs: number): Promise<NodeReply<NodeCheckup>> {
  return node.checkup?.(limitMs) ?? { outcome: 'unknown', step: 'call', cause: 'it is no Redis server' };
}

/**
 * The cluster's servers as `seq bench` uses them: a lane of its own on each, and what it needs besides. Closed by the
 * caller.
 */
export async function openBenchLane(
  cluster: Cluster,
  lane: string,
): Promise<{ node: NodePort; server: BenchServer }[]> {
  const { BenchLane } = await import('../../core/redis/bench-lane.js');
  return Promise.all(
    cluster.addresses.map(async ({ id, ...address }) => ({
      node: await openNode({ id, ...address }, { cluster: cluster.identity.cluster, lane }),
      server: new BenchLane(address, lane),
    })),
  );
}
