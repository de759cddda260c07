// Which lanes are there for a process that runs many? Reads the registry until it is told to stop, and keeps it in the
// memory of the nodes. Its home is the default lane: who the nodes are, and whose memory counts, is agreed there, and
// only a leader of that lane brings a node back. So the process holds the default lane where nobody else runs it.
import { mergeLanes, type Lanes } from '../../core/fleet/entries.js';
import { keepRegistry, remembersWhole } from '../../core/fleet/keep-registry.js';
import { probeLane, viewsOf } from '../../core/fleet/lane-nodes.js';
import { MANY_LANES, type LaneSet } from '../../core/fleet/lane-set.js';
import type { SeqError } from '../../core/errors.js';
import type { SeqLog } from '../../core/log/log.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import type { NodePort } from '../../core/ports.js';
import { newest } from '../../core/protocol/configuration.js';
import { AGREED_PRODUCERS } from '../../core/protocol/producers.js';
import type { NodeView } from '../../core/protocol/types.js';
import type { FleetLane, LaneStarter } from './lane-starter.js';
import { registryNodes, tellWritten, type RegistryTurns } from './keep-lanes.js';
import type { Cluster, LaneOpener } from './open-cluster.js';

/** How often the registry is read. A large one less often: it is read from every node. */
const REGISTRY_MS = 2000;
const REGISTRY_MS_A_LANE = 2;
/** The default lane is held when so many readings in a row have shown nobody who runs it. */
const UNATTENDED_READINGS = 3;

export interface WatchLanesOptions {
  cluster: Cluster;
  lanes: LaneOpener;
  set: LaneSet<FleetLane>;
  starter: LaneStarter;
  turns: RegistryTurns;
  log: SeqLog;
  signal: AbortSignal;
}

/** What cannot be read now is read later: the lanes that run go on. */
export async function watchLanes(options: WatchLanesOptions): Promise<void> {
  const { cluster, lanes, set, starter, turns, log, signal } = options;
  const identity = { ...cluster.identity, lane: '' };
  const at = registryNodes(cluster, (member) => lanes.openMember(identity, member));
  const home = new DefaultLane(cluster.nodes, cluster.nodeTimeoutMs);
  let known: Lanes = new Map();
  let told = false;
  while (!signal.aborted) {
    let read = false;
    let whole = false;
    try {
      const { registry, written } = await keepRegistry(at, known);
      read = true;
      whole = remembersWhole(registry);
      // An entry is never taken back. What is missing was deleted by hand, and is written again.
      known = mergeLanes([known, registry.lanes]);
      tellWritten(log, written);
    } catch (error) {
      const { message, code } = error as SeqError;
      log.line('warn', `the lanes cannot be read: ${message}`, { code }, `lanes ${code}`);
    }
    starter.expect(known.size);
    set.update(known, await home.isToBeHeld());
    if (read && set.size === 0 && !told)
      log.line('warn', 'no open lane fits the pattern yet: it waits', { event: 'lanes' });
    if (read) told = set.size === 0;
    await turns.next(Math.max(REGISTRY_MS, set.size * REGISTRY_MS_A_LANE), whole, signal);
  }
}

/** Whether this process holds the default lane: nobody runs it, and its blocks are not made by a child. */
class DefaultLane {
  private unattended = 0;
  private held = false;

  constructor(
    private readonly nodes: NodePort[],
    private readonly limitMs: number,
  ) {}

  async isToBeHeld(): Promise<boolean> {
    const views = viewsOf(await probeLane(this.nodes, this.limitMs, systemClock));
    const others = views.flatMap(({ sequencers }) =>
      sequencers.filter(({ role, extra }) => role !== 'stopping' && extra['lanes'] !== MANY_LANES.lanes),
    );
    this.unattended = others.length > 0 ? 0 : views.length > 0 ? this.unattended + 1 : this.unattended;
    if (this.unattended >= UNATTENDED_READINGS) this.held = hasNoOtherProducer(views);
    // Who could not lead yet does not get it.
    if (others.some(({ role, extra }) => role === 'leader' || extra['ready'] === 'yes')) this.held = false;
    return this.held;
  }
}

function hasNoOtherProducer(views: readonly NodeView[]): boolean {
  const { producer = '' } = newest(...views.map(({ config }) => config))?.settings ?? {};
  return producer === '' || producer === AGREED_PRODUCERS.batch;
}
