// Whose nodes are these? The cluster is the one that most answers name. When nobody named the cluster beforehand, this
// file also marks the answers of other clusters. Pure.
import { quorumOf } from '../config.js';
import { clusterNamed, familyOf, generationOf } from '../generation.js';
import type { NodeReply, NodeView } from '../protocol/types.js';
import type { NodeProbe } from './cluster-view.js';

type Named = Pick<NodeView, 'cluster' | 'pending' | 'runId' | 'admittedRunId'>;

/** The identity that most nodes show, in the generation that counts. '' when no node shows any. */
export function commonCluster(replies: readonly NodeReply<Named>[]): string {
  const counts = new Map<string, number>();
  for (const reply of replies) {
    const named = reply.outcome === 'accepted' ? clusterNamed(reply.value.cluster) : '';
    if (named !== '') counts.set(named, (counts.get(named) ?? 0) + 1);
  }
  const [most] = [...counts].sort((a, b) => b[1] - a[1] || generationOf(b[0]) - generationOf(a[0]));
  return most === undefined ? '' : generationThatCounts(replies, familyOf(most[0]));
}

/**
 * Of the generations of one cluster: the one that a quorum of the nodes shows with an intact memory, else the newest. A
 * finished recovery stands on a quorum. A higher generation on fewer nodes was written by hand, or its recovery was
 * broken off.
 */
export function generationThatCounts(replies: readonly NodeReply<Named>[], family: string): string {
  const shown = new Map<string, number>();
  for (const reply of replies) {
    if (reply.outcome !== 'accepted') continue;
    const named = clusterNamed(reply.value.cluster);
    if (named === '' || familyOf(named) !== family) continue;
    const { cluster, pending, runId, admittedRunId } = reply.value;
    const intact = named === cluster && pending === '' && runId !== '' && runId === admittedRunId;
    shown.set(named, (shown.get(named) ?? 0) + (intact && generationOf(named) > 0 ? 1 : 0));
  }
  const onQuorum = [...shown].find(([, nodes]) => nodes >= quorumOf(replies.length));
  return onQuorum?.[0] ?? [...shown.keys()].sort((a, b) => generationOf(b) - generationOf(a))[0] ?? '';
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
