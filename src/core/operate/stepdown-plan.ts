// May leadership be moved, from whom, and who could take it? This is decided before anything is sent (docs/PROTOCOL.md
// sections 5 and 6). Pure. A target that is unknown or not ready is refused by name: nothing is released before another
// sequencer can take over.
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError } from '../errors.js';
import type { Epoch, Height } from '../protocol/types.js';
import type { ClusterView, LeaderRow, NodeProbe } from '../view/cluster-view.js';

/**
 * A presence record is renewed every poll (500 ms at most) and lives for 3 s. With less than this left, several
 * renewals are missing.
 */
const SILENT_BELOW_MS = 1500;

interface Candidate {
  id: string;
  role: string;
  ready: boolean;
  /** Why it is not ready, '' otherwise. */
  why: string;
  height: Height;
  lag: number | null;
  /** Its node list is another than the leader's. */
  configDrift: boolean;
  host: string;
}

export interface StepdownPlan {
  leader: LeaderRow;
  /**
   * The sequencer that will take over: the named one, otherwise the best candidate. Without a name the old leader would
   * compete with its successors.
   */
  to: string;
  named: boolean;
  candidates: Candidate[];
  /** Committed height that the plan was made at. */
  height: Height;
  /** Of the leader, from its own record. Null when the record lacks it. */
  blockTimeMs: number | null;
  margin: number;
}

export interface StepdownWish {
  to?: string;
  expectLeader?: string;
  expectEpoch?: Epoch;
  /** Flags that name this cluster in a command. */
  target?: string;
  /** The commands that start sequencers again, when they are known. */
  startSequencers?: () => string[];
}

export function planStepdown(view: ClusterView, probes: readonly NodeProbe[], wish: StepdownWish): StepdownPlan {
  const leader = leaderOf(view, wish);
  refuseHeld(view, wish);
  const candidates = candidatesOf(view, probes, leader);
  const to = wish.to ?? '';
  if (to === '') requireSuccessor(candidates, leader, wish);
  else requireCandidate(to, candidates, leader, wish);
  const readiest = candidates
    .filter((one) => one.ready)
    .sort((a, b) => b.height - a.height || (a.id < b.id ? -1 : 1))[0];
  return {
    leader,
    to: to === '' ? (readiest?.id ?? '') : to,
    named: to !== '',
    candidates,
    height: view.committed?.height ?? 0,
    blockTimeMs: blockTimeOf(probes, leader.id),
    margin: view.margin,
  };
}

function refused(code: ErrorCode, message: string, why: string, next: string[]): SeqError {
  return new SeqError({ code, exit: EXIT.precondition, message, why, changed: 'nothing', next });
}

function command(name: string, { target }: StepdownWish): string {
  return target ? `${name} ${target}` : name;
}

/** The leader that the operator means. */
function leaderOf(view: ClusterView, wish: StepdownWish): LeaderRow {
  const { leader } = view;
  const status = [command('seq status', wish)];
  if (leader === null) throw nobodyLeads(view, status);
  if (wish.expectLeader !== undefined && wish.expectLeader !== leader.id)
    throw refused(
      'EXPECTATION',
      `${leader.id} leads, not ${wish.expectLeader}`,
      '--expect-leader does not fit',
      status,
    );
  if (wish.expectEpoch !== undefined && wish.expectEpoch !== leader.epoch)
    throw refused(
      'EXPECTATION',
      `the epoch is ${leader.epoch}, not ${wish.expectEpoch}`,
      '--expect-epoch does not fit',
      status,
    );
  return leader;
}

function nobodyLeads(view: ClusterView, status: string[]): SeqError {
  const admitted = view.nodes.filter((n) => n.admitted).length;
  if (!view.leaderKnown || view.verdict === 'UNKNOWN' || admitted < view.quorum)
    return new SeqError({
      code: view.leaderKnown ? 'NO_QUORUM' : 'LEADER_UNKNOWN',
      exit: EXIT.noQuorum,
      message: `who leads cannot be told: ${view.reason}`,
      why: `${view.answered} of ${view.configured} nodes answered, ${view.quorum} are needed`,
      changed: 'nothing',
      next: view.next,
      retryable: true,
    });
  return refused(
    'NO_LEADER',
    `there is no leader to step down: ${view.reason}`,
    'leadership is free, or moving right now',
    view.next.length > 0 ? view.next : status,
  );
}

function refuseHeld({ hold }: ClusterView, wish: StepdownWish): void {
  if (hold === null) return;
  throw refused(
    'HELD',
    `promotion is on hold by ${hold.by} (${hold.reason}): nobody could take over`,
    'a hold keeps every sequencer from promoting',
    [command('seq resume', wish)],
  );
}

/** The named one must be there and ready. */
function requireCandidate(to: string, candidates: readonly Candidate[], leader: LeaderRow, wish: StepdownWish): void {
  if (to === leader.id)
    throw refused(
      'CANDIDATE_NOT_READY',
      `${to} cannot take over: it leads already`,
      'a hand-over needs another sequencer',
      [command('seq status', wish)],
    );
  const chosen = candidates.find((one) => one.id === to);
  if (chosen === undefined) {
    const known = candidates.map((one) => one.id).join(', ');
    throw new SeqError({
      code: 'CANDIDATE_NOT_FOUND',
      exit: EXIT.notFound,
      message:
        `there is no sequencer ${to}: ` + (known === '' ? 'no other one shows itself' : `${known} could be named`),
      why: 'no node has a presence record of it',
      changed: 'nothing',
      next: [command('seq status', wish)],
    });
  }
  if (chosen.ready) return;
  throw refused(
    'CANDIDATE_NOT_READY',
    `${to} cannot take over: ${chosen.why}`,
    'a target must be ready before anything is released',
    [command('seq status -o wide', wish)],
  );
}

/** Without a name, anybody that is ready will do. */
function requireSuccessor(candidates: readonly Candidate[], leader: LeaderRow, wish: StepdownWish): void {
  if (candidates.some((one) => one.ready)) return;
  const reasons = candidates.map((one) => `${one.id}: ${one.why}`).join('; ');
  const starts = wish.startSequencers?.() ?? [];
  throw refused(
    'NO_SUCCESSOR',
    `nobody could take over from ${leader.id}` +
      (reasons === '' ? ': no other sequencer shows itself' : ` (${reasons})`),
    'stepping down now would only stop the chain',
    [
      command('seq status -o wide', wish),
      ...(starts.length === 0 ? [command('seq run --id ID --store DIR', wish)] : starts),
    ],
  );
}

function candidatesOf(view: ClusterView, probes: readonly NodeProbe[], leader: LeaderRow): Candidate[] {
  const leaderDigest = view.sequencers.find((s) => s.id === leader.id)?.configDigest ?? '';
  return view.sequencers
    .filter((s) => s.id !== leader.id)
    .map((s) => {
      const leftMs = Math.max(0, ...presencesOf(probes, s.id).map((presence) => presence.pttlMs));
      const configDrift = leaderDigest !== '' && s.configDigest !== '' && s.configDigest !== leaderDigest;
      const why =
        s.role === 'stopping'
          ? 'it is stopping'
          : leftMs < SILENT_BELOW_MS
            ? 'it has not shown itself lately'
            : configDrift
              ? 'it runs with another list of nodes than the leader'
              : s.ready
                ? ''
                : s.why || 'it says that it is not ready';
      return {
        id: s.id,
        role: s.role,
        ready: why === '',
        why,
        height: s.height,
        lag: s.lag,
        configDrift,
        host: s.host,
      };
    });
}

function presencesOf(probes: readonly NodeProbe[], id: string) {
  return probes.flatMap((o) =>
    o.reply.outcome === 'accepted' ? o.reply.value.sequencers.filter((p) => p.id === id) : [],
  );
}

/** As the sequencer announces it. */
function blockTimeOf(probes: readonly NodeProbe[], id: string): number | null {
  for (const { extra } of presencesOf(probes, id)) {
    const ms = Number(extra['blockTimeMs']);
    if (Number.isSafeInteger(ms) && ms > 0) return ms;
  }
  return null;
}
