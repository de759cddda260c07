// Why is nothing committed, and why does that not end by itself? Every verb that judges says it, whatever its own
// question is: a stream, an epoch or a plan that is in order is no good news while nobody can lead. Pure.
import type { ClusterView, Finding, ReasonCode, Verdict } from './cluster-view.js';

/** Of two verdicts the higher one is said. */
export const VERDICT_RANK: Record<Verdict, number> = { OK: 0, WARN: 1, UNKNOWN: 2, CRIT: 3 };

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

/** The chain itself is not one, or was cut: no answer about a part of it is good news. */
const BROKEN: readonly ReasonCode[] = ['TWO_LEADERS', 'NODES_SET_BACK'];

/** What every verb that judges says, whatever its own question is. */
export function saidByAll(view: ClusterView): Finding | null {
  return standstill(view) ?? view.findings.find(({ code }) => BROKEN.includes(code)) ?? null;
}

/** A verdict on something else, followed by what all say. */
export function andYet(what: string, { code, reason }: Finding): string {
  return `${what}, and ${BROKEN.includes(code) ? 'yet' : 'nothing can be committed'}: ${reason}`;
}

function somebodyMayLead({ hold, leader, sequencers }: ClusterView): boolean {
  return (
    hold === null &&
    sequencers.some((one) => one.id !== leader?.id && one.alive && one.ready && one.role !== 'stopping')
  );
}
