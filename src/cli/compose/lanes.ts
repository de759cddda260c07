// The lanes of a cluster as the commands need them: their names, and their nodes over shared connections.
import { readFileSync } from 'node:fs';
import { quorumOf } from '../../core/config.js';
import { EXIT, SeqError } from '../../core/errors.js';
import type { OpenLane } from '../../core/fleet/lane-nodes.js';
import { keepRegistry } from '../../core/fleet/keep-registry.js';
import { listLanes, type LanesListed } from '../../core/fleet/list-lanes.js';
import { lanePattern } from '../../core/fleet/pattern.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import { asLane } from '../config/settings.js';
import { usageError } from '../support/failure.js';
import { targetFlags } from './target.js';
import type { Cluster } from './open-cluster.js';

/** A call of many lanes at once waits for the others. */
const LANE_LIMIT_MS = 1000;

export interface FleetOf {
  nodes: Cluster['nodes'];
  limitMs: number;
  clock: typeof systemClock;
  cluster: string;
  /** Under the cluster that a lane's own records name. */
  openLane: (lane: string, cluster?: string) => ReturnType<OpenLane>;
  target: string;
}

/** Throws NO_ANSWER or NOT_INITIALISED: lanes belong to a cluster, and its default lane says which. */
export async function fleetOf(cluster: Cluster): Promise<FleetOf> {
  const target = targetFlags(cluster.settings, cluster.nodes);
  const answered = [...cluster.views.values()].filter(({ outcome }) => outcome === 'accepted').length;
  const needed = quorumOf(cluster.nodes.length);
  if (cluster.identity.cluster === '' && answered < needed)
    throw new SeqError({
      code: 'NO_ANSWER',
      exit: EXIT.noQuorum,
      message: `${answered} of ${cluster.nodes.length} nodes answered, and ${needed} are needed`,
      why: 'it is not known which cluster this is',
      changed: 'nothing',
      next: [`seq status ${target}`.trim()],
      retryable: true,
    });
  if (cluster.identity.cluster === '')
    throw new SeqError({
      code: 'NOT_INITIALISED',
      exit: EXIT.precondition,
      message: 'no node knows which cluster this is: the default lane has no record on them',
      why: 'no cluster has been made of them yet, or all of them have lost the memory of the default lane',
      changed: 'nothing',
      next: [
        `seq status ${target}`.trim(),
        'if there were lanes: no new cluster (docs/OPERATING.md, many lanes in one process)',
      ],
    });
  const lanes = await cluster.lanes();
  return {
    nodes: cluster.nodes,
    limitMs: Math.max(cluster.nodeTimeoutMs, LANE_LIMIT_MS),
    clock: systemClock,
    cluster: cluster.identity.cluster,
    openLane: (lane, named) => lanes.open(lane, named),
    target,
  };
}

/** The lanes that fit, each judged. Throws LANE_NOT_FOUND when there are lanes and none fits. */
export async function listedLanes(
  { openLane, ...fleet }: Omit<FleetOf, 'target'>,
  pattern: string | undefined,
): Promise<LanesListed> {
  const wanted = pattern === undefined ? () => true : lanePattern(pattern);
  // A lane says itself to which generation of the cluster it belongs.
  const listed = await listLanes({ ...fleet, openLane: (lane) => openLane(lane, ''), wanted });
  if (pattern === undefined || listed.lanes.length > 0) return listed;
  throw new SeqError({
    code: 'LANE_NOT_FOUND',
    exit: EXIT.notFound,
    message: `no lane of the cluster fits ${pattern}`,
    why: 'lanes are those that seq lane add has listed',
    changed: 'nothing',
    next: ['seq lane ls'],
  });
}

/**
 * A node of the default lane was replaced or added: it is given the list of lanes at once. The leader does so as well,
 * and goes on where this command cannot.
 */
export async function giveLanes(nodes: Cluster['nodes'], { identity, nodeTimeoutMs }: Cluster): Promise<void> {
  if (identity.lane !== '') return;
  await keepRegistry({ nodes, limitMs: nodeTimeoutMs, clock: systemClock }).catch(() => undefined);
}

/** The names of the command line and of a file, each once. Throws for a name that no lane can have. */
export function laneNames(given: readonly string[], file: string | undefined): string[] {
  const names = [...given, ...(file === undefined ? [] : namesIn(file))];
  if (names.length === 0) throw usageError('no lane is named', ['seq lane add tile-1 tile-2', '--from-file FILE']);
  for (const name of names) if (asLane(name, 'LANE') === '') throw usageError('a lane has a name', ['seq lane ls']);
  return [...new Set(names)];
}

/** One name a line. Empty lines and lines that begin with # are left out. */
function namesIn(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw usageError(`--from-file: ${path} cannot be read: ${(error as Error).message}`, ['--from-file lanes.txt']);
  }
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/** The lane commands are about all lanes: one lane of the flags means nothing to them. */
export function refuseLaneFlag(flags: { lane?: string | undefined }): void {
  if (flags.lane !== undefined)
    throw usageError('--lane names one lane of other commands; here lanes are arguments', ['seq lane ls']);
}
