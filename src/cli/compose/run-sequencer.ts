// Puts together one running sequencer: nodes, store, producer, inbox, engine, HTTP, log. Decides the order of start and
// stop. No port is opened and nothing is promised before the cluster is known to be the right one (run-preflight.ts).
// At the end the lock is released first.
import { hostname } from 'node:os';
import { Inbox } from '../../core/sequencer/lead/inbox.js';
import { keepWarm } from '../../core/sequencer/warmup/warmup.js';
import { Sequencer, type SequencerOptions } from '../../core/sequencer/sequencer.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { familyOf, generationOf } from '../../core/generation.js';
import type { SeqEvent, StopCode } from '../../core/events.js';
import { openLog, type SeqLog } from '../../core/log/log.js';
import type { ChainStore, NodePort, Producer } from '../../core/ports.js';
import type { AgreedSettings } from '../../core/protocol/configuration.js';
import { batchProducer, largestItem } from '../../core/produce/batch.js';
import type { Listen } from '../../core/serve/listen.js';
import { DEFAULT_BOUNDS, startHttpServer, type HttpServer } from '../../core/serve/server.js';
import { networkDisk } from '../../core/store/disk-kind.js';
import { openStore } from '../../core/store/lmdb-store.js';
import { watchDisk } from '../support/disk-room.js';
import { Interrupted } from '../support/interrupt.js';
import { advertisedUrl } from './advertised-url.js';
import { closeStore } from './close-store.js';
import { clusterReader } from './cluster-reading.js';
import type { Cluster } from './open-cluster.js';
import { waitForCluster } from './run-preflight.js';
import { reload } from './reload.js';
import type { RunSettings } from './run-settings.js';
import type { ServiceManager } from './service-manager.js';
import type { Surroundings } from '../cluster/settings.js';
import { keepLanes, RegistryTurns } from './keep-lanes.js';

const MIB = 1024 * 1024;
/** While there is no leader, a request is kept as long as a dead leader's lease and a takeover last. */
const HOLD_BEYOND_LEASE_MS = 1000;
const HOLD_LIMIT_MS = 10_000;

export type Closers = (() => Promise<void> | void)[];

/**
 * Runs until the signal aborts (then it resolves) or it cannot continue (then it throws SeqError). Closes everything
 * that it opened.
 */
export async function runSequencer(
  around: Surroundings,
  given: RunSettings,
  log: SeqLog,
  signal: AbortSignal,
  onHangup: (listener: () => void) => void,
): Promise<void> {
  const closers: Closers = [];
  try {
    const found = await waitForCluster(around, given, log, signal);
    if (!found) return;
    // Before any child is started: no child must believe that the service manager asks it.
    const manager = await askedManager(log);
    closers.push(() => manager?.close());
    const { cluster, agreed } = found;
    const settings = { ...given, limits: { ...given.limits, maxBlockBytes: agreed.maxBlockBytes } };
    closers.push(() => cluster.close());
    const { store, dir } = await openOwnStore(settings, cluster, agreed, log);
    closers.push(() => closeStore(store, dir, log));
    const producer = await makeProducer(settings, store, log);
    closers.push(() => producer.close());

    let http: HttpServer | undefined;
    const turns = new RegistryTurns();
    const emit = (event: SeqEvent): void => {
      log.event(event);
      http?.observe(event);
      if (event.type === 'node') turns.soon();
    };
    const options = sequencerOptions(settings, cluster, { store, producer, emit });
    closers.push(await watchDisk(dir, options.extra));
    const sequencer = new Sequencer(options);
    const { listen } = settings;
    if (listen) {
      const readCluster = clusterReader(cluster, sequencer, options.extra);
      http = await serveHttp(settings, listen, { api: sequencer, readCluster });
      closers.push(() => http?.close());
      options.url = await advertise(settings.advertise, { listen, http, cluster }, log);
      log.line('info', `listening on ${http.url}`, { url: http.url });
      if (http.adminUrl !== '')
        log.line('info', `health and metrics alone on ${http.adminUrl}`, { admin: http.adminUrl });
    }
    onHangup(() => void reload({ files: settings.files, nodes: cluster.addresses, log, ...(http ? { http } : {}) }));
    sequencer.start();
    manager?.ready(() => isAlive(sequencer));
    if (cluster.identity.lane === '') {
      const keeping = new AbortController();
      const kept = keepLanes(cluster, () => sequencer.status().role === 'leader', turns, log, keeping.signal);
      closers.push(() => (keeping.abort(), kept));
    }
    // Do not warm up while nobody leads: a takeover may be about to start.
    const busy = (): boolean => {
      const { role, leader } = sequencer.status();
      return leader === null || !['follower', 'leader'].includes(role);
    };
    if (settings.warmUp) closers.push(...(await startWarmUp(settings, cluster.nodes, busy)));
    const failed = await Promise.race([aborted(signal).then(() => null), sequencer.failure, unexpected(closers)]);
    // The release of the lock is on its way before anybody is told.
    const stopped = sequencer.stop(failed?.code ?? stopCode(signal), failed?.message ?? `${stopCode(signal)} received`);
    manager?.stopping();
    await stopped;
    if (failed) throw failed;
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** Loaded only where a service manager asks. */
export async function askedManager(log: SeqLog): Promise<ServiceManager | null> {
  if (!process.env['NOTIFY_SOCKET']) return null;
  const { serviceManager } = await import('./service-manager.js');
  return serviceManager(process.env, log);
}

/** As /livez says it. One that stops turns no more, and must not be killed while it syncs its store. */
function isAlive(sequencer: Sequencer): boolean {
  const { role, loopAgeMs } = sequencer.status();
  return role === 'stopping' || loopAgeMs <= DEFAULT_BOUNDS.loopAgeLimitMs;
}

/** Opens the store of this sequencer, and warns about a disk that LMDB does not trust. */
async function openOwnStore(
  settings: RunSettings,
  { identity }: Cluster,
  { dedupItems, dedupMs }: Pick<AgreedSettings, 'dedupItems' | 'dedupMs'>,
  log: SeqLog,
): Promise<{ store: ChainStore; dir: string }> {
  const cluster = familyOf(identity.cluster);
  const { lane } = identity;
  const dir = settings.storeDir(cluster, lane);
  const generation = generationOf(identity.cluster);
  const store = await openStore({ dir, cluster, lane, generation, keepItems: dedupItems, keepMs: dedupMs });
  const shared = networkDisk(dir);
  if (shared !== null)
    log.line('warn', `the store lies on a network disk (${shared}): ${dir}; LMDB needs a disk of this machine`, {
      code: 'STORE_ON_NETWORK',
    });
  return { store, dir };
}

/** `url` is filled in when the HTTP server listens. */
function sequencerOptions(
  settings: RunSettings,
  cluster: Cluster,
  parts: Pick<SequencerOptions, 'store' | 'producer' | 'emit'>,
): SequencerOptions {
  const { limits, timing, files } = settings;
  const maxItemsBytes = largestItem(limits.maxBlockBytes);
  return {
    ...parts,
    id: settings.id,
    nodes: cluster.nodes,
    openNode: (member) => cluster.openMember(member),
    adoptNodes: settings.adoptNodes,
    agreedProducer: { own: settings.agreed.producer.value, adopts: settings.adoptProducer },
    identity: cluster.identity,
    inbox: makeInbox(settings, parts.store, parts.producer, maxItemsBytes),
    clock: systemClock,
    random: systemRandom,
    timing,
    limits,
    maxItemsBytes,
    eager: settings.eager,
    readmit: settings.readmit,
    seeksNodes: settings.seeksNodes,
    priority: settings.priority,
    version: settings.version,
    url: '',
    pid: process.pid,
    instance: systemRandom.hex(8),
    extra: {
      host: hostname(),
      ttlMs: String(timing.ttlMs),
      blockTimeMs: String(timing.blockTimeMs),
      nodeTimeoutMs: String(timing.nodeTimeoutMs),
      maxBlockBytes: String(limits.maxBlockBytes),
      retainBlocks: String(limits.retainBlocks),
      retainBytes: String(limits.retainBytes),
      producer: settings.agreed.producer.value,
    },
    peers: settings.peers,
    ...(files.tokens === undefined ? {} : { peerToken: () => files.tokens!.current()[0].token }),
    peerTls: () => files.outgoing,
  };
}

export function makeInbox(
  { limits, timing }: RunSettings,
  store: ChainStore,
  producer: Producer,
  maxItemBytes: number,
): Inbox {
  return new Inbox({
    store,
    clock: systemClock,
    maxItems: 200_000,
    maxBytes: Math.max(64 * MIB, 4 * limits.maxBlockBytes),
    maxItemBytes,
    ...(producer.refusal === undefined ? {} : { refusal: (item) => producer.refusal!(item) }),
    retryAfterMs: timing.blockTimeMs,
    unknownAfterMs: 4 * timing.ttlMs,
  });
}

function serveHttp(
  { limits, timing, files, admin, version }: RunSettings,
  listen: Listen,
  { api, readCluster }: { api: Sequencer; readCluster: ReturnType<typeof clusterReader> },
): Promise<HttpServer> {
  return startHttpServer({
    api,
    listen,
    maxBlockBytes: limits.maxBlockBytes,
    metrics: { version, readCluster },
    bounds: httpBounds(timing),
    ...(files.tokens === undefined ? {} : { tokens: () => files.tokens!.current() }),
    ...(files.certificate ? { tls: files.certificate } : {}),
    ...(admin ? { admin } : {}),
    outgoingTls: () => files.outgoing,
  });
}

export function httpBounds({ ttlMs }: RunSettings['timing']): { holdMs: number } {
  return { holdMs: Math.min(ttlMs + HOLD_BEYOND_LEASE_MS, HOLD_LIMIT_MS) };
}

/** The address that the other sequencers are told. `given`: the operator's word for it, '' without one. */
export async function advertise(
  given: string,
  { listen: at, http, cluster }: { listen: Listen; http: HttpServer; cluster: Cluster },
  log: SeqLog,
): Promise<string> {
  const nodes = cluster.addresses.map(({ url }) => url);
  const { url, warning } = await advertisedUrl(given, at, http.url, nodes);
  if (warning !== '') log.line('warn', warning, { url: http.url });
  else if (url !== http.url) log.line('info', `other sequencers reach it at ${url}`, { advertised: url });
  return url;
}

/**
 * Warms up the code of a takeover. The first line of a log costs several times as much as the next one. So the warm-up
 * writes log lines too, and discards them. Returns a function that ends the warm-up.
 */
export async function startWarmUp(
  settings: RunSettings,
  nodes: readonly NodePort[],
  busy: () => boolean,
): Promise<(() => Promise<void> | void)[]> {
  const mute = await openLog({
    id: settings.id,
    level: settings.logLevel,
    secrets: settings.secrets,
    destination: { write() {} },
  });
  return [
    async () => void (await mute.close({ code: 'STOPPED', reason: '' })),
    keepWarm({
      nodes: nodes.length,
      producer: () => batchProducer({ maxBlockBytes: settings.limits.maxBlockBytes }),
      clock: systemClock,
      random: systemRandom,
      tell: (event) => mute.event(event),
      real: nodes,
      busy,
    }),
  ];
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

/** Even after a bug anywhere the process ends in order: the lock is released, and the last log line says why. */
export function unexpected(closers: (() => void)[]): Promise<SeqError> {
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

export function stopCode(signal: AbortSignal): StopCode {
  return signal.reason instanceof Interrupted ? signal.reason.signal : 'STOPPED';
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
