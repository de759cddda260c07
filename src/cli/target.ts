// How a command names the cluster it was run against, so that every `next:` can be pasted as it is. Never a secret: urls are redacted.
import type { NodePort } from '../core/ports.js';
import type { ClusterSettings } from './context.js';

export function targetFlags(settings: ClusterSettings, nodes: readonly Pick<NodePort, 'id' | 'url'>[]): string {
  const lane = settings.lane === '' ? [] : [`--lane ${settings.lane}`];
  if (settings.context !== null) return [`-c ${settings.context}`, ...lane].join(' ');
  if (settings.nodesFrom !== '--node') return lane.join(' ');
  return [...nodes.map((node) => `--node ${node.id}=${node.url}`), ...lane].join(' ');
}

/** In the lab we know how a node's server is started again. */
export function startCommandOf(settings: ClusterSettings): ((nodeId: string) => string) | undefined {
  return settings.context === 'lab' ? (nodeId) => `seq lab start ${nodeId}` : undefined;
}
