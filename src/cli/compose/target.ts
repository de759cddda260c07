// How a command names the cluster that it was run against, so that every `next:` line can be pasted unchanged. Never a
// secret: urls are redacted.
import type { SummarizeOptions } from '../../core/view/cluster-view.js';
import type { NodePort } from '../../core/ports.js';
import { labDirectory, readState } from '../../lab/state.js';
import { rowsOf, type ProcessRow } from '../../lab/status.js';
import { completeRedisCli } from '../support/redis-cli.js';
import { nextForProcesses } from '../present/lab.js';
import type { ClusterSettings } from '../cluster/settings.js';
import type { Cluster } from './open-cluster.js';

export function targetFlags(settings: ClusterSettings, nodes: readonly Pick<NodePort, 'id' | 'url'>[]): string {
  const lane = settings.lane === '' ? [] : [`--lane ${settings.lane}`];
  if (settings.context !== null) return [`-c ${settings.context}`, ...lane].join(' ');
  if (settings.nodesFrom !== '--node') return lane.join(' ');
  return [...nodes.map((node) => `--node ${node.id}=${node.url}`), ...lane].join(' ');
}

/**
 * In the lab the command that brings a process back is known: start it if it is dead, unpause it if it is paused.
 * Otherwise there is none. Commands of `redis-cli` get what they need to reach the node.
 */
export function startCommands(
  settings: ClusterSettings,
): Pick<SummarizeOptions, 'startCommand' | 'startSequencers' | 'complete'> {
  const complete = (line: string): string => completeRedisCli(line, settings.nodes, settings.unlisted);
  if (settings.context !== 'lab') return { complete };
  return {
    complete,
    startCommand: (nodeId) => nextForProcesses(labRows().filter((row) => row.name === nodeId))[0],
    startSequencers: (id) =>
      nextForProcesses(labRows().filter((row) => row.kind === 'sequencer' && (id === undefined || row.name === id))),
  };
}

/**
 * What every command needs that asks the members and judges their answers. All of them name the same command for the
 * same trouble.
 */
export function askOptions({ nodes, nodeTimeoutMs, clock, identity, settings }: Cluster) {
  return {
    nodes,
    limitMs: nodeTimeoutMs,
    clock,
    target: targetFlags(settings, nodes),
    expectedCluster: identity.cluster,
    ...startCommands(settings),
  };
}

/** A recovery ends the sequencers of the old generation. The lab knows how to start them. */
export function startAgain({ context }: ClusterSettings): string {
  return context === 'lab' ? 'seq lab up' : 'start the sequencers again (seq run …)';
}

/** [] where there is no lab. */
export function labRows(): ProcessRow[] {
  try {
    return rowsOf(readState(labDirectory()) ?? { processes: [] });
  } catch {
    // A record that cannot be read says nothing about the process. `seq lab status` reports the error.
    return [];
  }
}

/** For whoever judges the cluster: its members, and the listed nodes that are none. */
export function everyNamed({ nodes, strangers }: Pick<Cluster, 'nodes' | 'strangers'>): NodePort[] {
  return [...nodes, ...strangers.map(({ port }) => port)];
}
