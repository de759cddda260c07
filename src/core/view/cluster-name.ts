// Whose nodes are these? The cluster is the one that most answers name. When nobody named the cluster beforehand, this
// file also marks the answers of other clusters. Pure.
import { clusterNamed, familyOf, generationOf } from '../generation.js';
import type { NodeReply, NodeView } from '../protocol/types.js';
import type { NodeProbe } from './cluster-view.js';

/** The identity that most nodes show. Among one cluster's generations, the newest wins. '' when no node shows any. */
export function commonCluster(replies: NodeReply<Pick<NodeView, 'cluster'>>[]): string {
  const counts = new Map<string, number>();
  for (const reply of replies) {
    const named = reply.outcome === 'accepted' ? clusterNamed(reply.value.cluster) : '';
    if (named !== '') counts.set(named, (counts.get(named) ?? 0) + 1);
  }
  const [most] = [...counts].sort((a, b) => b[1] - a[1] || generationOf(b[0]) - generationOf(a[0]));
  if (!most) return '';
  const kin = [...counts.keys()].filter((cluster) => familyOf(cluster) === familyOf(most[0]));
  return kin.sort((a, b) => generationOf(b) - generationOf(a))[0] ?? '';
}

/**
 * For nodes that were asked without naming a cluster. It marks as foreign each answer of another cluster than the
 * expected one. When no cluster is expected, the one that most answers name counts as expected.
 */
export function markForeign(probes: NodeProbe[], expected: string | undefined): NodeProbe[] {
  const cluster = expected || commonCluster(probes.map((o) => o.reply));
  if (cluster === '') return probes;
  return probes.map((o): NodeProbe => {
    if (
      o.reply.outcome !== 'accepted' ||
      o.reply.value.cluster === '' ||
      o.reply.value.cluster === cluster ||
      o.reply.value.admission === 'foreign'
    )
      return o;
    const value: NodeView = {
      ...o.reply.value,
      admission: 'foreign',
      admissionWhy: `the record names cluster ${o.reply.value.cluster}`,
    };
    return { ...o, reply: { ...o.reply, value } };
  });
}
