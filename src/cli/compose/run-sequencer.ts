// Composition of one running sequencer: nodes, store, producer, inbox, engine, HTTP, log. Decides the order of
// starting and stopping: nothing is listened on or promised before the cluster is known to be the right one; on the
// way out the lock is released first.
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { quorumOf, type Limits, type Timing } from '../../core/config.js';
import { bootstrap, refuseUnfit } from '../../core/operate/bootstrap.js';
import { Inbox } from '../../core/sequencer/lead/inbox.js';
import { keepRehearsed } from '../../core/sequencer/warmup/warmup.js';
import { Sequencer, type SequencerOptions } from '../../core/sequencer/sequencer.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import { EXIT, SeqError } from '../../core/errors.js';
import type { SeqEvent } from '../../core/events.js';
import { openLog, type LogLevel, type SeqLog } from '../../core/log/log.js';
import type { ChainStore, Producer } from '../../core/ports.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import { refusalText } from '../../core/protocol/refusals.js';
import { batchProducer, largestItem } from '../../core/produce/batch.js';
import { startHttpServer, type HttpServer } from '../../core/serve/server.js';
import type { Listen } from '../../core/serve/listen.js';
import { openStore } from '../../core/store/lmdb-store.js';
import { watchDisk } from '../support/disk-room.js';
import { checkNode, openCluster, type Cluster, type Surroundings } from './open-cluster.js';

const MIB = 1024 * 1024;
const RETRY_MS = 1000;
const RIGHTS_LIMIT_MS = 2000;
/** What nobody takes in is kept for as long as a dead leader's lease and a takeover last. */
const HOLD_BEYOND_LEASE_MS = 1000;
const HOLD_LIMIT_MS = 10_000;
const BOOTSTRAP_AGAIN = ['BOOTSTRAP_BROKEN_OFF', 'ALREADY_INITIALISED', 'WRONG_CLUSTER', 'NODE_UNREACHABLE'];
/**
 * Errors that only a server in cluster mode answers with. It would refuse our scripts for ever: waiting for it is in
 * vain.
 */
const CLUSTER_MODE = /^(CROSSSLOT|CLUSTERDOWN|MOVED|ASK|TRYAGAIN)\b/;

export interface RunSettings {
  id: string;
  storeDir(cluster: string, lane: string): string;
  timing: Timing;
  limits: Limits;
  eager: boolean;
  priority: number;
  listen: Listen | null;
  token?: string;
  /** What the other sequencers' certificates are signed by. */
  ca?: string;
  tls?: { cert: Buffer; key: Buffer };
  peers: string[];
  exec: { command: string; args: string[] } | null;
  bootstrap: boolean;
  readmit: boolean;
  /** false: switched off by SEQ_DISABLE. */
  warmUp: boolean;
  keepItems: number;
  keepMs: number;
  version: string;
  logLevel: LogLevel;
  /** Values that no line may show. */
  secrets: string[];
}

/**
 * Runs until the signal aborts (resolves) or it cannot go on (throws SeqError). Everything opened here is closed
 * here.
 */
export async function runSequencer(
  around: Surroundings,
  settings: RunSettings,
  log: SeqLog,
  signal: AbortSignal,
): Promise<void> {
  const closers: (() => Promise<void> | void)[] = [];
  try {
    const cluster = await waitForCluster(around, settings, log, signal);
    if (!cluster) return;
    closers.push(() => cluster.close());
    const { cluster: name, lane } = cluster.identity;
    const clusterId = name.slice(0, name.lastIndexOf('.'));
    const storeDir = settings.storeDir(clusterId, lane);
    const generation = Number(name.slice(clusterId.length + 1)) || 0;
    const store = await openStore({
      dir: storeDir,
      cluster: clusterId,
      lane,
      generation,
      keepItems: settings.keepItems,
      keepMs: settings.keepMs,
    });
    closers.push(() => store.close());
    const producer = await makeProducer(settings, store, log);
    closers.push(() => producer.close());

    const { limits, timing } = settings;
    const maxItemsBytes = largestItem(limits.maxBlockBytes);
    const inbox = new Inbox({
      store,
      clock: systemClock,
      maxItems: 200_000,
      maxBytes: Math.max(64 * MIB, 4 * limits.maxBlockBytes),
      maxItemBytes: maxItemsBytes,
      retryAfterMs: timing.blockTimeMs,
      unknownAfterMs: 4 * timing.ttlMs,
    });
    let http: HttpServer | undefined;
    const options: SequencerOptions = {
      id: settings.id,
      nodes: cluster.nodes,
      identity: cluster.identity,
      store,
      inbox,
      producer,
      clock: systemClock,
      random: systemRandom,
      timing,
      limits,
      maxItemsBytes,
      eager: settings.eager,
      readmit: settings.readmit,
      priority: settings.priority,
      version: settings.version,
      url: '',
      pid: process.pid,
      configDigest: nodeListDigest(cluster),
      extra: {
        host: hostname(),
        ttlMs: String(timing.ttlMs),
        blockTimeMs: String(timing.blockTimeMs),
        nodeTimeoutMs: String(timing.nodeTimeoutMs),
        maxBlockBytes: String(limits.maxBlockBytes),
        retainBlocks: String(limits.retainBlocks),
        retainBytes: String(limits.retainBytes),
      },
      peers: settings.peers,
      ...(settings.token === undefined ? {} : { peerToken: settings.token }),
      ...(settings.ca === undefined ? {} : { peerCa: settings.ca }),
      emit: (event: SeqEvent) => {
        log.event(event);
        http?.observe(event);
      },
    };
    closers.push(await watchDisk(storeDir, options.extra));
    const sequencer = new Sequencer(options);
    if (settings.listen) {
      http = await startHttpServer({
        api: sequencer,
        listen: settings.listen,
        maxBlockBytes: limits.maxBlockBytes,
        bounds: { holdMs: Math.min(timing.ttlMs + HOLD_BEYOND_LEASE_MS, HOLD_LIMIT_MS) },
        ...(settings.token === undefined ? {} : { token: settings.token }),
        ...(settings.tls ? { tls: settings.tls } : {}),
        ...(settings.ca === undefined ? {} : { ca: settings.ca }),
      });
      options.url = http.url;
      closers.push(() => http?.close());
      log.line('info', `listening on ${http.url}`, { url: http.url });
    }
    sequencer.start();
    if (settings.warmUp) closers.push(...(await startWarmUp(settings, cluster, sequencer)));
    const failed = await Promise.race([aborted(signal).then(() => null), sequencer.failure, unexpected(closers)]);
    await sequencer.stop(failed?.code ?? stopCode(signal), failed?.message ?? `${stopCode(signal)} received`);
    if (failed) throw failed;
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/**
 * Warms up the code of a takeover. The first line of a log costs several times what the next one costs: the warm-up
 * writes log lines, too, to nowhere. Returns how to end it.
 */
async function startWarmUp(
  settings: RunSettings,
  cluster: Cluster,
  sequencer: Sequencer,
): Promise<(() => Promise<void> | void)[]> {
  const mute = await openLog({
    id: settings.id,
    level: settings.logLevel,
    secrets: settings.secrets,
    destination: { write() {} },
  });
  return [
    () => mute.close({ code: 'STOPPED', reason: '' }),
    keepRehearsed({
      nodes: cluster.nodes.length,
      producer: () => batchProducer({ maxBlockBytes: settings.limits.maxBlockBytes }),
      clock: systemClock,
      random: systemRandom,
      tell: (event) => mute.event(event),
      real: cluster.nodes,
      // Not while nobody leads either: a takeover may be a moment away.
      busy: () => {
        const { role, leader } = sequencer.status();
        return leader === null || !['follower', 'leader'].includes(role);
      },
    }),
  ];
}

/**
 * Opens the nodes and learns which cluster they are; waits as long as fewer than a quorum answer. Null: told to stop
 * meanwhile.
 */
async function waitForCluster(
  around: Surroundings,
  settings: RunSettings,
  log: SeqLog,
  signal: AbortSignal,
): Promise<Cluster | null> {
  for (;;) {
    if (signal.aborted) return null;
    const cluster = await openCluster(around, { signal });
    const replies = await Promise.all(
      cluster.nodes.map(async (node) => ({
        node,
        reply: await node.call({ script: 'inspect' }, cluster.nodeTimeoutMs),
      })),
    );
    try {
      if (await usable(cluster, replies, settings, log)) return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
    await cluster.close();
    await pause(RETRY_MS, signal);
  }
}

async function usable(
  cluster: Cluster,
  replies: { node: Cluster['nodes'][number]; reply: NodeReply<NodeView> }[],
  settings: RunSettings,
  log: SeqLog,
): Promise<boolean> {
  const seen = replies.flatMap(({ node, reply }) =>
    reply.outcome === 'accepted' ? [{ port: node, view: reply.value }] : [],
  );
  const denied = replies.find(
    ({ reply }) => reply.outcome === 'refused' && (reply.reason === 'NOAUTH' || reply.reason === 'NOPERM'),
  );
  if (denied && denied.reply.outcome === 'refused') {
    // Inside a script the server does not say which command it was; tried one by one, it does.
    if (denied.reply.reason === 'NOPERM') await refuseMissingRights(cluster);
    throw new SeqError({
      code: 'NODE_DENIED',
      exit: EXIT.denied,
      message: `${denied.node.id} (${denied.node.url}) refused: ${refusalText(denied.reply)}`,
      why: 'the server wants a user, a password or more rights than this one has',
      changed: 'nothing',
      next: [
        'give them by SEQ_USERNAME and SEQ_PASSWORD_FILE, or in the context (passwordFile, ' +
          'passwordCommand, passwordEnv)',
        'seq doctor --acl',
      ],
    });
  }
  const clustered = replies.find(
    ({ reply }) => reply.outcome === 'unknown' && reply.step === 'reply' && CLUSTER_MODE.test(reply.cause),
  );
  if (clustered) {
    throw new SeqError({
      code: 'REDIS_CLUSTER',
      exit: EXIT.config,
      message: `${clustered.node.id} (${clustered.node.url}) is part of a Redis Cluster`,
      why: 'it spreads keys over servers and fails over on its own; the nodes of seq are plain servers',
      changed: 'nothing',
      next: ['name independent redis-server processes, without cluster-enabled'],
    });
  }
  refuseUnfit(seen);
  // An identity found by a round that few nodes answered is no ground to refuse anybody: asked again.
  if (cluster.identity.cluster === '' && seen.some(({ view }) => view.cluster !== '')) return false;
  for (const { port, view } of seen) {
    if (view.cluster === '') continue;
    if (family(view.cluster) !== family(cluster.identity.cluster)) {
      throw notThisNode(
        `${port.id} (${port.url}) belongs to cluster ${view.cluster}, the others to ${cluster.identity.cluster}`,
        port.url,
        'a node of another cluster has promised nothing to this one',
      );
    }
    if (view.node === port.id || view.node === '') continue;
    if (cluster.settings.nodes[cluster.nodes.indexOf(port)]?.id === null) {
      // named by a guess while it was silent, unless another shows the same record
      log.line(
        'warn',
        `asking again: ${port.url} is called ${port.id} here, and its record says ${view.node}`,
        {},
        port.url,
      );
      return false;
    }
    throw notThisNode(
      `${port.url} is called ${port.id} here, but its own record says ${view.node}`,
      port.url,
      'an id stands for one memory: under another name its promises would count for another node',
    );
  }
  const silent = replies
    .filter(({ reply }) => reply.outcome !== 'accepted')
    .map(
      ({ node, reply }) =>
        `${node.id}: ` +
        `${reply.outcome === 'unknown' ? `no answer at ${reply.step} (${reply.cause})` : reply.outcome === 'refused' ? reply.reason : ''}`,
    );
  if (seen.length < quorumOf(cluster.nodes.length)) {
    log.line(
      'warn',
      `waiting for a quorum of nodes: ${silent.join('; ')}`,
      { answered: seen.length, quorum: cluster.quorum },
      silent.join(),
    );
    return false;
  }
  if (!seen.some(({ view }) => view.cluster !== '' && view.admission !== 'bootstrap')) {
    if (!settings.bootstrap) {
      throw new SeqError({
        code: 'NOT_INITIALISED',
        exit: EXIT.precondition,
        message: 'the nodes are empty: no cluster has been made of them yet',
        why: 'a sequencer never admits nodes by itself: an empty node may be one that lost its memory',
        changed: 'nothing',
        next: [
          'seq cluster init',
          'or seq run --bootstrap, when all of this is new',
          "or, when the nodes lost what sequencers' stores still hold: seq cluster recover --store DIR --dry-run",
        ],
      });
    }
    await firstBootstrap(cluster, settings, log);
    return false; // opened again, under the identity it now has
  }
  await refuseMissingRights(cluster);
  const digest = nodeListDigest(cluster);
  for (const { port, view } of seen) {
    const other = view.sequencers.find(
      (one) => one.id !== settings.id && one.configDigest !== '' && one.configDigest !== digest,
    );
    if (other) {
      throw new SeqError({
        code: 'CONFIG_DRIFT',
        exit: EXIT.config,
        message: `sequencer ${other.id} runs with another list of nodes than this one (seen on ${port.id})`,
        why: 'two sequencers that count different nodes can both reach a quorum',
        changed: 'nothing',
        next: [
          'give every sequencer the same nodes',
          'a record of a stopped sequencer is gone after some seconds: try again',
        ],
        retryable: true,
      });
    }
  }
  return true;
}

function notThisNode(message: string, url: string, why: string): SeqError {
  return new SeqError({
    code: 'WRONG_CLUSTER',
    exit: EXIT.precondition,
    message,
    why,
    changed: 'nothing',
    next: ['name the right nodes', `seq status --node ${url}`],
  });
}

/**
 * Only when all of it is new (docs/PROTOCOL.md section 8): nodes that are empty beside a chain that is not have lost
 * it.
 */
/**
 * A right that is missing in the middle of a script would leave a node half-changed: every one is tried beforehand,
 * where the server can tell.
 */
async function refuseMissingRights(cluster: Cluster): Promise<void> {
  const checked = await Promise.all(
    cluster.nodes.map(async (node) => ({ node, reply: await checkNode(node, RIGHTS_LIMIT_MS) })),
  );
  for (const { node, reply } of checked) {
    if (reply.outcome !== 'accepted' || reply.value.denied === null || reply.value.denied.length === 0) continue;
    throw new SeqError({
      code: 'NODE_DENIED',
      exit: EXIT.denied,
      message: `${node.id} (${node.url}): user ${reply.value.user} may not run ${reply.value.denied.join('; ')}`,
      why: 'a script that is denied a command in its middle would leave the node half-changed',
      changed: 'nothing',
      next: ['seq doctor --acl'],
    });
  }
}

async function firstBootstrap(cluster: Cluster, settings: RunSettings, log: SeqLog): Promise<void> {
  const name = cluster.identity.cluster || `${systemRandom.hex(8)}.1`;
  await cluster.close();
  await refuseOldChain(settings, name.slice(0, name.lastIndexOf('.')), cluster.identity.lane);
  const { openNode } = await import('./open-cluster.js');
  const nodes = await Promise.all(
    cluster.addresses.map((address) => openNode(address, { cluster: name, lane: cluster.identity.lane })),
  );
  try {
    const result = await bootstrap({
      nodes,
      cluster: name,
      limitMs: settings.timing.nodeTimeoutMs,
      clock: systemClock,
      random: systemRandom,
      settings: {
        dedupMs: settings.keepMs,
        dedupItems: settings.keepItems,
        maxBlockBytes: settings.limits.maxBlockBytes,
        other: {},
      },
    });
    log.line('info', `made cluster ${result.cluster} of ${result.nodes.length} empty nodes`, {
      cluster: result.cluster,
    });
  } catch (error) {
    // Another sequencer does the same, or a node is not there yet: looked at again, and judged by what is there then.
    if (!(error instanceof SeqError && BOOTSTRAP_AGAIN.includes(error.code))) throw error;
    log.line('warn', `bootstrap: ${error.message}; looking again`, { code: error.code }, error.code);
  } finally {
    await Promise.allSettled(nodes.map((node) => node.close()));
  }
}

async function refuseOldChain(settings: RunSettings, clusterId: string, lane: string): Promise<void> {
  const refuse = (where: string) =>
    new SeqError({
      code: 'ALREADY_INITIALISED',
      exit: EXIT.precondition,
      message: `the nodes are empty, but ${where}`,
      why:
        'the nodes of a cluster that has a chain have lost their memory: a new cluster on them would be ' +
        'another chain',
      changed: 'nothing',
      next: [
        'seq cluster recover --dry-run',
        'or start with an empty store, without that peer, when the old chain is not wanted any more',
      ],
    });
  const dir = settings.storeDir(clusterId, lane);
  const [{ openStoreReader }, { askStatus }] = await Promise.all([
    import('../../core/store/lmdb-reader.js'),
    import('../../core/nodes/sequencer-client.js'),
  ]);
  let reader: ReturnType<typeof openStoreReader> | undefined;
  try {
    reader = openStoreReader(dir);
    const { height } = reader.head();
    if (height > 0) throw refuse(`the store ${dir} holds ${height} blocks of cluster ${reader.cluster}`);
  } catch (error) {
    if (!(error instanceof SeqError && error.code === 'STORE_NOT_FOUND')) throw error;
  } finally {
    await reader?.close();
  }
  const access = {
    ...(settings.token === undefined ? {} : { token: settings.token }),
    ...(settings.ca === undefined ? {} : { ca: settings.ca }),
  };
  for (const answer of await Promise.all(settings.peers.map((url) => askStatus(url, access, RETRY_MS)))) {
    if (answer.answered && answer.status.height > 0)
      throw refuse(`the peer ${answer.url} holds ${answer.status.height} blocks of cluster ${answer.status.cluster}`);
  }
}

async function makeProducer(settings: RunSettings, store: ChainStore, log: SeqLog): Promise<Producer> {
  const { maxBlockBytes } = settings.limits;
  if (!settings.exec) return batchProducer({ maxBlockBytes });
  const { execProducer } = await import('../../core/produce/exec.js');
  return execProducer({
    ...settings.exec,
    clock: systemClock,
    chain: store,
    maxBlockBytes,
    log: (line) => log.line('info', line, { from: 'producer' }),
    onRestarted: () => log.event({ type: 'producer', state: 'restarted', why: 'its child was started again' }),
  });
}

/**
 * Two sequencers must count the same nodes: the digest of their ids, whatever order or host names they are given by.
 */
export function nodeListDigest(cluster: Pick<Cluster, 'nodes'>): string {
  return createHash('sha256')
    .update(
      cluster.nodes
        .map((node) => node.id)
        .sort()
        .join('\n'),
    )
    .digest('hex')
    .slice(0, 12);
}

function family(cluster: string): string {
  return cluster.slice(0, cluster.lastIndexOf('.'));
}

/** A bug anywhere still ends in order: the lock is released, the last log line says why. */
function unexpected(closers: (() => void)[]): Promise<SeqError> {
  return new Promise((resolve) => {
    const listener = (cause: unknown): void =>
      resolve(
        new SeqError({
          code: 'BUG',
          exit: EXIT.bug,
          message: cause instanceof Error ? cause.message : String(cause),
          why: 'something happened that the program rules out',
          changed: 'unknown',
          next: ['start it again: the store and the cluster are as they were', 'report it with the log'],
          cause,
        }),
      );
    for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
      process.on(event, listener);
      closers.push(() => void process.off(event, listener));
    }
  });
}

function stopCode(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  return reason && typeof reason === 'object' && 'signal' in reason ? String(reason.signal) : 'STOPPED';
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Leaves no listener behind: the wait for a quorum may go on for days. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const cancel = systemClock.after(ms, done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
}
