// Does a server hold a copy of another node? Somebody made it a replica of that node's server, or copied its files. It
// names the other node then, and nobody counts it. It has nothing of its own that could be lost. Pure.
import { serverOf } from '../protocol/types.js';
import type { NodeProbe } from './cluster-view.js';

export interface CopiedNode {
  id: string;
  /** The node whose data it holds. That node answers, and counts, on another server. */
  of: string;
  isReplica: boolean;
}

export function copiedNodes(members: readonly NodeProbe[], cluster: string): CopiedNode[] {
  const answers = members.flatMap(({ id, reply }) => (reply.outcome === 'accepted' ? [{ id, view: reply.value }] : []));
  return answers.flatMap(({ id, view }) => {
    if (view.node === '' || view.node === id || view.cluster !== cluster) return [];
    const other = answers.find((one) => one.id === view.node && one.view.admission === 'admitted');
    if (other === undefined || serverOf(other.view.runId) === serverOf(view.runId)) return [];
    return [{ id, of: other.id, isReplica: view.info['role'] === 'slave' }];
  });
}
