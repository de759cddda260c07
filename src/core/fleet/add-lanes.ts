// Adds lanes to a cluster (`seq lane add`): makes each one on all nodes, then lists them in the registry
// (docs/decisions/0015). So an open entry names a lane that exists. Many lanes go in pieces. After a break the same
// command goes on: what is made is found, what is listed is left as it is.
import { EXIT, SeqError } from '../errors.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { bootstrap } from '../operate/bootstrap.js';
import type { Random } from '../ports.js';
import type { AgreedSettings } from '../protocol/configuration.js';
import { nextVersion, type LaneEntry } from './entries.js';
import { adoptRegistry, keepRegistry } from './keep-registry.js';
import { inTurns, probeLane, viewsOf, whatLaneShows, type OpenLane } from './lane-nodes.js';
import { changeLanes, readRegistry, type Registry, type RegistryNodes } from './registry.js';

export interface AddLanesOptions extends RegistryNodes {
  /** The cluster to which the lanes belong, with its generation. */
  cluster: string;
  openLane: OpenLane;
  names: readonly string[];
  random: Random;
  /** The cluster's agreed settings: every lane begins with them. */
  settings: AgreedSettings;
  operator: Operator;
  reason: string;
  dryRun: boolean;
  /** The operator says that the list was lost: what the nodes hold of it together counts from now on. */
  listWasLost: boolean;
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  step: (doing: string) => void;
  /** The command, to be repeated after a break. */
  command: string;
}

/** `listed`: it was there. `found`: it was made before, and is listed now. `made`: both were done now. */
export type Added = 'listed' | 'found' | 'made';

interface AddedLane {
  name: string;
  how: Added;
}

export interface AddLanesDone {
  lanes: AddedLane[];
  warnings: string[];
}

const AT_ONCE = 16;
/** Lanes that are made before they are listed. */
const PIECE = 128;

export async function addLanes(options: AddLanesOptions): Promise<AddLanesDone> {
  const { names, random, operator, clock, command } = options;
  options.step('reading the lanes of the cluster');
  const registry = await registryFor(options);
  const { lanes: known, possible } = registry;
  const removed = names.filter(
    (name) => known.get(name)?.state === 'removed' || possible.get(name)?.state === 'removed',
  );
  if (removed.length > 0) throw laneRemoved(removed);
  const done = new Map<string, Added>();
  for (const name of names) if (known.get(name)?.state === 'open') done.set(name, 'listed');
  const rest = names.filter((name) => !done.has(name));
  const warnings: string[] = [];
  for (let at = 0; at < rest.length; at += PIECE) {
    const piece = rest.slice(at, at + PIECE);
    options.step(`making lanes ${at + 1} to ${at + piece.length} of ${rest.length}`);
    const made = await inTurns(piece, AT_ONCE, async (name) => [name, await makeLane(name, options)] as const);
    for (const [name, how] of made) done.set(name, how);
    if (options.dryRun) continue;
    const writer = random.hex(8);
    const entries = piece.map((name): LaneEntry => {
      const version = nextVersion(registry, name);
      return { name, version, state: 'open', writer, by: operator.by, atMs: Math.floor(clock.wall()) };
    });
    options.step('listing them on the nodes');
    options.changing('unknown', []);
    const { stored, failed } = await changeLanes(options, registry, entries, [command]);
    options.changing('some', stored);
    for (const { node, why } of failed) if (at === 0) warnings.push(`${node} does not list them yet: ${why}`);
  }
  const lanes = names.map((name) => ({ name, how: done.get(name)! }));
  const changed = lanes.filter(({ how }) => how !== 'listed');
  if (!options.dryRun && changed.length > 0) {
    const record = await recordAdded(changed, options);
    if (record !== '') warnings.push(record);
  }
  return { lanes, warnings };
}

/** The registry as it is read, or as an operator says that it goes on. */
async function registryFor(options: AddLanesOptions): Promise<Registry> {
  if (options.dryRun) return readRegistry(options);
  if (!options.listWasLost) return (await keepRegistry(options)).registry;
  options.changing('unknown', []);
  return adoptRegistry(options);
}

/** One record for all of them: its text has the first names and their number. */
function recordAdded(lanes: readonly AddedLane[], { nodes, operator, clock, limitMs, reason }: AddLanesOptions) {
  return recordChange(
    nodes,
    {
      what: 'lane add',
      reason,
      before: 'not listed',
      after: namesText(lanes.map(({ name }) => name)),
      outcome: 'open',
    },
    operator,
    clock,
    limitMs,
  );
}

/** The first few names, and how many there are. */
export function namesText(names: readonly string[]): string {
  const shown = names.slice(0, 5).join(', ');
  return names.length <= 5 ? shown : `${shown} and ${names.length - 5} more`;
}

async function makeLane(name: string, options: AddLanesOptions): Promise<Added> {
  const { openLane, limitMs, clock, random, cluster, settings, dryRun } = options;
  const nodes = openLane(name);
  try {
    const probe = await probeLane(nodes, limitMs, clock);
    const shows = whatLaneShows(probe, cluster);
    if (shows === 'made') return 'found';
    if (shows === 'removed') throw laneRemoved([name]);
    if (shows === 'other-cluster')
      throw otherCluster(
        name,
        viewsOf(probe).map((view) => view.cluster),
        cluster,
      );
    const changing = (): void => options.changing('unknown', []);
    await bootstrap({ nodes, cluster, limitMs, clock, random, settings, dryRun, changing });
    return 'made';
  } catch (error) {
    throw aboutLane(name, error, options.command);
  } finally {
    await Promise.all(nodes.map((node) => node.close()));
  }
}

/** A bootstrap speaks of a cluster that is made. Here it is a lane, and the same command goes on. */
function aboutLane(name: string, error: unknown, command: string): unknown {
  if (!(error instanceof SeqError) || error.code.startsWith('LANE_')) return error;
  const { code, exit, message, why, changed, changedNodes, retryable } = error;
  const again = code === 'BOOTSTRAP_BROKEN_OFF' || code === 'NODE_UNREACHABLE';
  const next = again ? [command] : [`seq status --lane ${name}`];
  return new SeqError({
    ...{ code, exit, why, changed, changedNodes, retryable, next, cause: error },
    message: `lane ${name}: ${message}`,
  });
}

function laneRemoved(names: readonly string[]): SeqError {
  return new SeqError({
    code: 'LANE_REMOVED',
    exit: EXIT.precondition,
    message: `${namesText(names)}: there was a lane of this name, and it was removed`,
    why: 'stores of sequencers may hold its chain, and would put those blocks into a new lane of the same name',
    changed: 'nothing',
    next: ['choose another name'],
  });
}

function otherCluster(name: string, clusters: string[], own: string): SeqError {
  const others = [...new Set(clusters.filter((cluster) => cluster !== ''))];
  return new SeqError({
    code: 'LANE_OTHER_CLUSTER',
    exit: EXIT.precondition,
    message: `lane ${name} of these nodes belongs to cluster ${others.join(', ')}, not to ${own}`,
    why: 'seq cluster init --lane made it a cluster of its own; listed lanes share the cluster of the default lane',
    changed: 'nothing',
    next: [`seq status --lane ${name}`, 'run it as a lane of its own, with seq run --lane, or choose another name'],
  });
}
