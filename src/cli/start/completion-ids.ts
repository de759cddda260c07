// The ids to offer while somebody types. Contexts and nodes come from the configuration, sequencers from the nodes, a
// lab's processes from its record, codes from the catalogue of `explain`.
import { sequencerOf } from '../../core/protocol/types.js';
import type { Cluster } from '../compose/open-cluster.js';
import { labRows } from '../compose/target.js';
import type { Surroundings } from '../cluster/settings.js';

export const ID_KINDS = ['contexts', 'nodes', 'sequencers', 'processes', 'codes'] as const;

export async function idsFor(
  kind: (typeof ID_KINDS)[number],
  around: Surroundings,
  open: () => Promise<Cluster>,
): Promise<string[]> {
  if (kind === 'codes') return [...(await import('../codes/codes.js')).allCodes().keys()].sort();
  if (kind === 'processes') return ['leader', ...labRows().map((row) => row.name)];
  if (kind === 'contexts') return Object.keys(around.sources.config?.contexts ?? {}).sort();
  if (kind === 'nodes') {
    const { nodes } = around.clusterSettings();
    return nodes.every((node) => node.id !== null)
      ? nodes.map((node) => node.id as string)
      : (await open()).nodes.map((node) => node.id);
  }
  const cluster = await open();
  const replies = await Promise.all(
    cluster.nodes.map((node) => node.call({ script: 'inspect' }, cluster.nodeTimeoutMs)),
  );
  const ids = replies.flatMap((reply) =>
    reply.outcome !== 'accepted'
      ? []
      : [
          ...reply.value.sequencers.map((sequencer) => sequencer.id),
          ...(reply.value.lock ? [sequencerOf(reply.value.lock.owner)] : []),
        ],
  );
  return [...new Set(ids)].sort();
}
