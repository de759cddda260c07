// What do the nodes hold of one lane? The same servers hold many lanes; each lane has its own record there.
import { quorumOf } from '../config.js';
import { familyOf, isOfRemovedLane } from '../generation.js';
import { askAll } from '../nodes/ask-all.js';
import type { Clock, NodePort } from '../ports.js';
import type { NodeReply, NodeView } from '../protocol/types.js';

/** Opens a lane on the nodes of the cluster. All lanes share the connections; whoever opens them closes those. */
export type OpenLane = (lane: string) => NodePort[];

export interface LaneProbe {
  nodes: NodePort[];
  replies: NodeReply<NodeView>[];
}

/** `made`: q nodes are admitted. `begun`: there is something, but no q. */
export type LaneShows = 'nothing' | 'begun' | 'made' | 'removed' | 'other-cluster' | 'too-few-answers';

export async function probeLane(nodes: NodePort[], limitMs: number, clock: Clock): Promise<LaneProbe> {
  return {
    nodes,
    replies: await askAll(nodes, (node) => node.call({ script: 'inspect' }, limitMs), { limitMs, clock }),
  };
}

export function viewsOf({ replies }: LaneProbe): NodeView[] {
  return replies.flatMap((reply) => (reply.outcome === 'accepted' ? [reply.value] : []));
}

/** `cluster`: the one that the lane should belong to, in whatever generation. */
export function whatLaneShows(probe: LaneProbe, cluster: string): LaneShows {
  const views = viewsOf(probe);
  const quorum = quorumOf(probe.nodes.length);
  const removed = views.filter(isOfRemovedLane);
  const others = views.filter((view) => !removed.includes(view));
  const strange = others.some((view) => view.cluster !== '' && familyOf(view.cluster) !== familyOf(cluster));
  if (strange) return 'other-cluster';
  const remembered = others.filter((view) => view.cluster !== '' && view.pending === '');
  // One node's word removes no lane: a quorum remembers it.
  if (remembered.length >= quorum) return 'made';
  if (removed.length > 0) return 'removed';
  if (views.length < quorum) return 'too-few-answers';
  return views.every((view) => view.admission === 'pristine') ? 'nothing' : 'begun';
}

/** Runs `work` for each, `atOnce` at a time: a pipeline of a thousand scripts would be everybody's time. */
export async function inTurns<T, R>(all: readonly T[], atOnce: number, work: (one: T) => Promise<R>): Promise<R[]> {
  const results = new Array<R>(all.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < all.length) {
      const at = next++;
      results[at] = await work(all[at]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, worker));
  return results;
}
