// May a node be restarted now, in a rolling restart (docs/PERSISTENCE.md)? A restarted node counts only after the
// leader has admitted it again. So there must be a leader and a margin, and no other node may still be on its way back.
// Pure. An unknown state means no.
import type { ClusterView } from './cluster-view.js';

export interface RestartSafety {
  safe: boolean;
  why: string;
}

/** With one of these, the leader that a restarted node needs may be gone in a moment. */
const RISKS: ReadonlySet<string> = new Set([
  'LEASE_CLOSING',
  'LEADER_SILENT',
  'LEADER_STALLED',
  'LOCK_STUCK',
  'CONFLICT',
  'NODES_SET_BACK',
]);

export function restartSafety(view: ClusterView): RestartSafety {
  if (view.leader === null)
    return { safe: false, why: `not now: ${view.leaderKnown ? 'nobody leads' : 'who leads is not known'}` };
  const lease = view.findings.find((finding) => RISKS.has(finding.code));
  if (lease !== undefined) return { safe: false, why: `not now: ${lease.reason}` };
  const members = view.nodes.filter((node) => node.state !== 'STRANGER');
  const coming = members.filter((node) => !node.admitted && node.state !== 'DOWN' && node.state !== 'REFUSED');
  if (coming.length > 0)
    return { safe: false, why: `not now: ${coming.map((node) => `${node.id} does not count yet`).join(', ')}` };
  if (view.margin < 1) {
    const lacking = members
      .filter((node) => !node.admitted || (node.lag ?? 0) > 1 || node.state !== 'OK')
      .map((node) => node.id);
    return { safe: false, why: `not now: no node may be lost${lacking.length > 0 ? ` (${lacking.join(', ')})` : ''}` };
  }
  const behind = members.filter((node) => node.admitted && (node.lag ?? 0) > 1);
  if (behind.length > 0)
    return {
      safe: false,
      why: `not now: ${behind.map((node) => `${node.id} is ${node.lag} blocks behind`).join(', ')}`,
    };
  return { safe: true, why: 'the next node may be restarted' };
}
