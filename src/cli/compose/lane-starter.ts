// Starts the sequencer of one lane in a process that runs many: finds out to which cluster and generation the lane
// belongs, opens its part of the store, and joins both with the engine. Everything that is shared is given to it.
import { closesInTime } from './close-store.js';
import type { Timing } from '../../core/config.js';
import { EXIT, SeqError } from '../../core/errors.js';
import type { SeqEvent, StopCode } from '../../core/events.js';
import { probeLane, viewsOf, whatLaneShows, type LaneShows } from '../../core/fleet/lane-nodes.js';
import { MANY_LANES, type RunningLane } from '../../core/fleet/lane-set.js';
import { placementKey } from '../../core/fleet/placement.js';
import { Slots } from '../../core/fleet/slots.js';
import { familyOf, generationOf } from '../../core/generation.js';
import { systemClock, systemRandom } from '../../core/nodes/system-clock.js';
import type { ChainStore, NodePort, Producer, SequencerApi } from '../../core/ports.js';
import type { AgreedSettings } from '../../core/protocol/configuration.js';
import type { NodeView } from '../../core/protocol/types.js';
import { batchProducer, largestItem } from '../../core/produce/batch.js';
import { Sequencer } from '../../core/sequencer/sequencer.js';
import type { LaneStores } from '../../core/store/lane-stores.js';
import { clusterOf } from '../../core/view/membership.js';
import { agreedBy, firstSettings } from './agreed-settings.js';
import type { Cluster, LaneOpener } from './open-cluster.js';
import { makeInbox } from './run-sequencer.js';
import type { RunSettings } from './run-settings.js';

export interface FleetLane extends RunningLane {
  api: SequencerApi;
}

export interface LaneStarterOptions {
  settings: RunSettings;
  cluster: Cluster;
  lanes: LaneOpener;
  stores: LaneStores;
  /** For the presence records. */
  facts: Record<string, string>;
  emit(lane: string, event: SeqEvent): void;
}

/** Lanes that are promoted at once. */
const PROMOTIONS = 16;
/** Many lanes are started at once, over connections that are just being opened. */
const IDENTIFY_MS = 1000;
/** Polls of one process a second, over all its lanes and each node: the fallback must not be what the nodes do. */
const POLLS_A_SECOND = 200;

export class LaneStarter {
  /** The address of the process for others. '' while it has none. */
  url = '';
  private readonly instance = systemRandom.hex(8);
  private readonly promotions = new Slots(PROMOTIONS);
  private count = 0;

  constructor(private readonly options: LaneStarterOptions) {}

  /** How many lanes there are. Lanes that are started later poll accordingly. */
  expect(count: number): void {
    this.count = count;
  }

  async start(lane: string): Promise<FleetLane> {
    const { settings, lanes, stores, emit } = this.options;
    const { name, agreed } = await this.identify(lane);
    const limits = { ...settings.limits, maxBlockBytes: agreed.maxBlockBytes };
    const { dedupItems: keepItems, dedupMs: keepMs } = agreed;
    const generation = generationOf(name);
    const store = await stores.lane({ cluster: familyOf(name), lane, generation, keepItems, keepMs });
    const producer = batchProducer({ maxBlockBytes: limits.maxBlockBytes });
    const maxItemsBytes = largestItem(limits.maxBlockBytes);
    const identity = { cluster: name, lane };
    const nodes = lanes.open(lane, name);
    const timing = this.timing();
    // The default lane is held, not served: it takes nothing in. Whoever runs it for its own sake says its producer.
    const own = settings.agreed.producer.value;
    const served = lane !== '';
    const sequencer = new Sequencer({
      ...{ id: settings.id, nodes, identity, store, producer, timing, limits, maxItemsBytes },
      openNode: (member) => lanes.openMember(identity, member),
      adoptNodes: false,
      ...(served ? { agreedProducer: { own, adopts: settings.adoptProducer } } : {}),
      inbox: makeInbox({ ...settings, limits }, store, producer, maxItemsBytes),
      clock: systemClock,
      random: systemRandom,
      eager: settings.eager,
      rests: true,
      readmit: settings.readmit,
      seeksNodes: settings.seeksNodes,
      priority: settings.priority,
      turnKey: (id) => placementKey(lane, id),
      slot: (free) => this.promotions.take(free),
      version: settings.version,
      url: this.url === '' || !served ? '' : `${this.url}/lanes/${lane}`,
      pid: process.pid,
      instance: this.instance,
      extra: { ...this.options.facts, ...MANY_LANES, maxBlockBytes: String(limits.maxBlockBytes) },
      peers: served ? settings.peers.map((peer) => `${peer.replace(/\/+$/, '')}/lanes/${lane}`) : [],
      ...(settings.files.tokens === undefined ? {} : { peerToken: () => settings.files.tokens!.current()[0].token }),
      peerTls: () => settings.files.outgoing,
      emit: (event) => emit(lane, event),
    });
    sequencer.start();
    return {
      api: sequencer,
      failure: sequencer.failure,
      stop: (code, reason) => close({ sequencer, nodes, store, producer }, code, reason),
    };
  }

  /** A lane says itself to which generation of the cluster it belongs, and which settings its sequencers share. */
  private async identify(lane: string): Promise<{ name: string; agreed: AgreedSettings }> {
    const { cluster, lanes, settings } = this.options;
    const nodes = lanes.open(lane, '');
    const probe = await probeLane(nodes, Math.max(cluster.nodeTimeoutMs, IDENTIFY_MS), systemClock);
    await Promise.all(nodes.map((node) => node.close()));
    const shows = whatLaneShows(probe, cluster.identity.cluster);
    if (shows !== 'made') throw cannotStart(lane, shows, viewsOf(probe));
    const name = clusterOf(probe.replies.map((reply, i) => ({ id: nodes[i]!.id, reply })));
    return {
      name,
      agreed: agreedBy(settings.agreed, viewsOf(probe), settings.adoptProducer) ?? firstSettings(settings.agreed),
    };
  }

  /** Arriving blocks and leases say when to act. Polls are the fallback, and rarer the more lanes there are. */
  private timing(): Timing {
    const { timing } = this.options.settings;
    const pollMs = Math.max(timing.pollMs, timing.ttlMs / 2, (this.count / POLLS_A_SECOND) * 1000);
    return { ...timing, pollMs, pollJitterMs: pollMs / 2 };
  }
}

async function close(
  lane: { sequencer: Sequencer; nodes: NodePort[]; store: ChainStore; producer: Producer },
  code: StopCode,
  reason: string,
): Promise<void> {
  await lane.sequencer.stop(code, reason);
  await lane.producer.close();
  // A disk that hangs does not keep a process that ends. It is told once, when the environment of all lanes is closed.
  // A lane that is started again waits: its store is never open twice.
  await (/^SIG/.test(code) ? closesInTime(lane.store) : lane.store.close());
  await Promise.all(lane.nodes.map((node) => node.close()));
}

function cannotStart(lane: string, shows: Exclude<LaneShows, 'made'>, views: readonly NodeView[]): SeqError {
  const [code, message] = {
    nothing: ['NOT_INITIALISED', 'no node holds anything of it'] as const,
    begun: ['NOT_INITIALISED', 'fewer than a quorum of nodes remember it'] as const,
    removed: ['LANE_REMOVED', 'it was removed'] as const,
    'other-cluster': [
      'LANE_OTHER_CLUSTER',
      `it belongs to cluster ${[...new Set(views.map((view) => view.cluster))].join(', ')}`,
    ] as const,
    'too-few-answers': ['NO_QUORUM', 'fewer than a quorum of nodes answer'] as const,
  }[shows];
  return new SeqError({
    code,
    exit: EXIT.precondition,
    message: `${lane === '' ? 'the default lane' : `lane ${lane}`} cannot be started: ${message}`,
    why: 'a lane is run where a quorum of nodes holds it for this cluster',
    changed: 'nothing',
    next: [lane === '' ? 'seq status' : `seq status --lane ${lane}`],
  });
}
