// Does a second holder lead nodes of this same cluster? Two operators may have said of two lists that each is complete
// (`seq run --adopt-nodes`), or somebody wrote a configuration by hand. Then a stranger of this cluster may count for
// another leader, by another configuration. Pure.
import { memberOf, parseConfiguration, quorumFor } from '../protocol/configuration.js';
import { sequencerOf, type NodeView } from '../protocol/types.js';
import type { NodeProbe } from './cluster-view.js';

export interface OtherLeader {
  id: string;
  /** The nodes that it holds. */
  nodes: string[];
  /** The members by whose configuration it holds a quorum. */
  members: string[];
}

/**
 * Another holder than `leader`, with a quorum of the configuration that a stranger of `cluster` knows. A server that
 * was removed keeps its last lock for a moment: a lock without a quorum says nothing.
 */
export function otherLeaderOf(
  { strangers, members }: { strangers: readonly NodeProbe[]; members: readonly NodeProbe[] },
  cluster: string,
  leader: string,
): OtherLeader | null {
  const held = [...strangers, ...members].flatMap(({ id, reply }) =>
    reply.outcome === 'accepted' && isHeld(reply.value, cluster) ? [{ id, view: reply.value }] : [],
  );
  for (const { id } of strangers) {
    const view = held.find((one) => one.id === id)?.view;
    const configuration = parseConfiguration(view?.config ?? '');
    const owner = view?.lock?.owner;
    if (configuration === null || owner === undefined || sequencerOf(owner) === leader) continue;
    const nodes = held.filter((one) => one.view.lock?.owner === owner && memberOf(configuration, one.id) !== undefined);
    if (nodes.length < quorumFor(configuration)) continue;
    return {
      id: sequencerOf(owner),
      nodes: nodes.map((one) => one.id).sort(),
      members: configuration.members.map((one) => one.id),
    };
  }
  return null;
}

function isHeld(view: NodeView, cluster: string): boolean {
  return view.cluster === cluster && view.admission === 'admitted' && view.lock?.owner === view.claimant;
}
