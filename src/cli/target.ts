// How a command names the cluster it was run against, so that every `next:` can be pasted as it is. Never a secret: urls are redacted.
import type { NodePort } from '../core/ports.js';
import { labDirectory, readState } from '../lab/state.js';
import { rowsOf, type ProcessRow } from '../lab/status.js';
import type { ClusterSettings } from './context.js';
import { nextForProcesses } from './present/lab.js';

export function targetFlags(settings: ClusterSettings, nodes: readonly Pick<NodePort, 'id' | 'url'>[]): string {
  const lane = settings.lane === '' ? [] : [`--lane ${settings.lane}`];
  if (settings.context !== null) return [`-c ${settings.context}`, ...lane].join(' ');
  if (settings.nodesFrom !== '--node') return lane.join(' ');
  return [...nodes.map((node) => `--node ${node.id}=${node.url}`), ...lane].join(' ');
}

/** In the lab we know how a node's server is made to answer again: started if it is dead, continued if it is paused. Neither: undefined. */
export function startCommandOf(settings: ClusterSettings): ((nodeId: string) => string | undefined) | undefined {
  return settings.context === 'lab' ? labCommand : undefined;
}

function labCommand(nodeId: string): string | undefined {
  const rows = (): ProcessRow[] => {
    try {
      return rowsOf(readState(labDirectory()) ?? { processes: [] });
    } catch {
      // A record that cannot be read says nothing about the node; `seq lab status` tells of it.
      return [];
    }
  };
  return nextForProcesses(rows().filter((row) => row.name === nodeId))[0];
}
