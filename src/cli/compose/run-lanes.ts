// `seq run --lanes PATTERN`: one process, a sequencer for each open lane that fits (docs/decisions/0015). They share
// the connections to each server, the store environment and its syncs, and the HTTP server. Which lanes there are is
// read from the registry (watch-lanes.ts). What fails in one lane ends that lane, and it is tried again.
import { hostname } from 'node:os';
import type { SeqError } from '../../core/errors.js';
import { LaneSet } from '../../core/fleet/lane-set.js';
import { lanePattern } from '../../core/fleet/pattern.js';
import type { SeqEvent } from '../../core/events.js';
import { familyOf } from '../../core/generation.js';
import type { SeqLog } from '../../core/log/log.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import { FleetMetrics } from '../../core/serve/fleet-metrics.js';
import type { LaneDirectory } from '../../core/serve/lanes.js';
import { startHttpServer, type HttpServer } from '../../core/serve/server.js';
import { closeStore } from './close-store.js';
import { LaneStores } from '../../core/store/lane-stores.js';
import type { SequencerApi, SequencerStatus } from '../../core/ports.js';
import type { Surroundings } from '../cluster/settings.js';
import { watchDisk } from '../support/disk-room.js';
import { LaneStarter, type FleetLane } from './lane-starter.js';
import type { Cluster } from './open-cluster.js';
import { RegistryTurns } from './keep-lanes.js';
import { watchLanes } from './watch-lanes.js';
import { reload } from './reload.js';
import { waitForCluster } from './run-preflight.js';
import {
  aborted,
  advertise,
  askedManager,
  httpBounds,
  startWarmUp,
  stopCode,
  unexpected,
  type Closers,
} from './run-sequencer.js';
import type { RunSettings } from './run-settings.js';

const LOOP_MS = 500;

export async function runLanes(
  around: Surroundings,
  given: RunSettings,
  log: SeqLog,
  signal: AbortSignal,
  onHangup: (listener: () => void) => void,
): Promise<void> {
  const closers: Closers = [];
  try {
    // What the default lane's blocks are made by is no matter here: each lane is asked.
    const found = await waitForCluster(around, { ...given, adoptProducer: true }, log, signal);
    if (!found) return;
    const manager = await askedManager(log);
    closers.push(() => manager?.close());
    const { cluster, agreed } = found;
    const settings = { ...given, limits: { ...given.limits, maxBlockBytes: agreed.maxBlockBytes } };
    closers.push(() => cluster.close());
    const dir = settings.storeDir(familyOf(cluster.identity.cluster), '+lanes');
    const stores = await LaneStores.open(dir);
    closers.push(() => closeStore(stores, dir, log));

    let metrics: FleetMetrics | undefined;
    const turns = new RegistryTurns();
    const emit = (lane: string, event: SeqEvent): void => {
      log.laneEvent(lane, event);
      metrics?.observe(event);
      if (lane === '' && event.type === 'node') turns.soon();
    };
    const facts = factsOf(settings);
    closers.push(await watchDisk(dir, facts));
    const lanes = await cluster.lanes();
    const starter = new LaneStarter({ settings, cluster, lanes, stores, facts, emit });
    const set = laneSet(settings, starter, log);
    const loop = new LoopClock();
    closers.push(() => loop.stop());
    const { listen } = settings;
    if (listen) {
      const directory = directoryOf(set);
      const { id, version } = settings;
      metrics = new FleetMetrics({ id, version, cluster: cluster.identity.cluster, directory });
      const http = await serveLanes(settings, { directory, metrics, api: processApi(id, cluster, loop) });
      closers.push(() => http.close());
      starter.url = await advertise(settings.advertise, { listen, http, cluster }, log);
      log.line('info', `listening on ${http.url}`, { url: http.url });
      onHangup(() => void reload({ files: settings.files, nodes: cluster.addresses, log, http }));
    } else onHangup(() => void reload({ files: settings.files, nodes: cluster.addresses, log }));
    const watching = new AbortController();
    const watched = watchLanes({ cluster, lanes, set, starter, turns, log, signal: watching.signal });
    manager?.ready(() => loop.ageMs() < 10_000);
    // The connections that the lanes share, opened by a lane that nobody leads here: it changes nothing there.
    if (settings.warmUp) closers.push(...(await startWarmUp(settings, lanes.open(''), () => isBusy(set))));
    const failed = await Promise.race([aborted(signal).then(() => null), set.failure, unexpected(closers)]);
    watching.abort();
    const stopped = set.stop(failed?.code ?? stopCode(signal), failed?.message ?? `${stopCode(signal)} received`);
    manager?.stopping();
    await Promise.all([stopped, watched]);
    if (failed) throw failed;
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

function laneSet(settings: RunSettings, starter: LaneStarter, log: SeqLog): LaneSet<FleetLane> {
  return new LaneSet<FleetLane>({
    clock: systemClock,
    wanted: lanePattern(settings.lanes),
    start: (lane) => starter.start(lane),
    failed: (lane, error, retryMs) => {
      const code = (error as Partial<SeqError>).code ?? 'BUG';
      const again = `it is tried again in ${Math.round(retryMs / 1000)} s; the other lanes go on`;
      const name = lane || 'the default lane';
      log.line('error', `${name}: ${error.message}; ${again}`, { lane, code }, `${lane} ${code}`);
    },
    changed: () => undefined,
  });
}

function directoryOf(set: LaneSet<FleetLane>): LaneDirectory {
  return {
    get: (lane) => (lane === '' ? undefined : set.get(lane)?.api),
    list: () => set.running().flatMap(({ name, lane }) => (name === '' ? [] : [{ name, api: lane.api }])),
    wanted: () => set.size,
  };
}

/** A takeover is under way or may be about to start, in any lane. */
function isBusy(set: LaneSet<FleetLane>): boolean {
  return set.running().some(({ lane }) => {
    const { role, leader } = lane.api.status();
    return leader === null || (role !== 'follower' && role !== 'leader');
  });
}

/** Notices when the main loop stands still: that concerns every lane. */
class LoopClock {
  private turnedAt = performance.now();
  private readonly timer = setInterval(() => (this.turnedAt = performance.now()), LOOP_MS);

  ageMs(): number {
    return performance.now() - this.turnedAt;
  }

  stop(): void {
    clearInterval(this.timer);
  }
}

/** What is asked of the process itself: who it is, and whether its loop turns. */
function processApi(id: string, cluster: Cluster, loop: LoopClock): SequencerApi {
  const startedAtMs = Date.now();
  const none = (): never => {
    throw new Error('a process of many lanes answers for its lanes alone');
  };
  return {
    status: (): SequencerStatus => ({
      ...{ id, role: 'follower', cluster: cluster.identity.cluster, lane: '', height: 0, hash: '', epoch: 0 },
      ...{ leaseMs: 0, leader: null, seenHeight: 0, ready: false, why: 'it runs many lanes', blocked: '', nodes: [] },
      inbox: { items: 0, bytes: 0, limitBytes: 0 },
      startedAtMs,
      loopAgeMs: loop.ageMs(),
    }),
    submit: none,
    onLeadership: () => () => undefined,
    confirmHead: none,
    block: none,
    follow: none,
    receipt: none,
    blockTimes: none,
  };
}

function serveLanes(
  { limits, timing, files, admin, listen }: RunSettings,
  { directory, metrics, api }: { directory: LaneDirectory; metrics: FleetMetrics; api: SequencerApi },
): Promise<HttpServer> {
  return startHttpServer({
    api,
    lanes: directory,
    listen: listen!,
    maxBlockBytes: limits.maxBlockBytes,
    serverMetrics: metrics,
    bounds: httpBounds(timing),
    ...(files.tokens === undefined ? {} : { tokens: () => files.tokens!.current() }),
    ...(files.certificate ? { tls: files.certificate } : {}),
    ...(admin ? { admin } : {}),
    outgoingTls: () => files.outgoing,
  });
}

/** What the presence records of all lanes say alike. */
function factsOf({ timing, limits, agreed }: RunSettings): Record<string, string> {
  return {
    host: hostname(),
    ttlMs: String(timing.ttlMs),
    blockTimeMs: String(timing.blockTimeMs),
    nodeTimeoutMs: String(timing.nodeTimeoutMs),
    retainBlocks: String(limits.retainBlocks),
    retainBytes: String(limits.retainBytes),
    producer: agreed.producer.value,
  };
}
