// Why is nothing committed, and why does that not end by itself? Every verb that judges says it, whatever its own
// question is: a stream, an epoch or a plan that is in order is no good news while nobody can lead. Pure.
import type { ClusterView, Finding, ReasonCode } from './cluster-view.js';

const LASTING: readonly ReasonCode[] = [
  'WRONG_CLUSTER',
  'LANE_REMOVED',
  'CLUSTER_MIXED',
  'NOT_INITIALISED',
  'NO_QUORUM',
  'NODE_DENIED',
  'LOCK_STUCK',
  'LEADER_STALLED',
];

/** Null while somebody commits, and while a living sequencer may take over at any moment. */
export function standstill(view: ClusterView): Finding | null {
  return (
    view.findings.find(
      ({ code, verdict }) =>
        verdict !== 'WARN' &&
        (LASTING.includes(code) || ((code === 'NO_LEADER' || code === 'LEADER_SILENT') && !somebodyMayLead(view))),
    ) ?? null
  );
}

function somebodyMayLead({ hold, leader, sequencers }: ClusterView): boolean {
  return (
    hold === null &&
    sequencers.some((one) => one.id !== leader?.id && one.alive && one.ready && one.role !== 'stopping')
  );
}
