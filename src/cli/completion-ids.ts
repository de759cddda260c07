// The ids worth offering while somebody types: contexts and nodes from the configuration, sequencers from what the nodes show.
import { sequencerOf } from '../core/protocol/words.js';
import type { Cluster, Surroundings } from './context.js';

export async function idsFor(kind: 'contexts' | 'nodes' | 'sequencers', around: Surroundings, open: () => Promise<Cluster>): Promise<string[]> {
  if (kind === 'contexts') return Object.keys(around.sources.config?.contexts ?? {}).sort();
  if (kind === 'nodes') {
    const { nodes } = around.clusterSettings();
    return nodes.every((node) => node.id !== null) ? nodes.map((node) => node.id as string) : (await open()).nodes.map((node) => node.id);
  }
  const cluster = await open();
  const replies = await Promise.all(cluster.nodes.map((node) => node.call({ script: 'inspect' }, cluster.nodeTimeoutMs)));
  const ids = replies.flatMap((reply) => reply.outcome !== 'accepted' ? [] : [
    ...reply.value.sequencers.map((sequencer) => sequencer.id), ...(reply.value.lock ? [sequencerOf(reply.value.lock.owner)] : []),
  ]);
  return [...new Set(ids)].sort();
}
