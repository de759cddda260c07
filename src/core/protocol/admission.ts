// Re-admission of a node that may have forgotten something, by the leader (docs/PROTOCOL.md section 8): begin,
// backfill, prove that this term still leads on q *other* nodes, admit between blocks. Keeps I7 (an empty memory
// takes part in nothing) and I11 (quiet admission). The proof is what makes it safe: a leader that has been succeeded
// would otherwise vouch for a promise that nobody on the node remembers.
import {
  admissionAccepted,
  admissionBegun,
  admissionGivenUp,
  admissionSent,
  backOff,
  callSent,
  counts,
  damageFound,
  filledUpTo,
  holdsCommitted,
  markWantsRenewal,
  provenBy,
  retryAt,
  willBeSetAside,
  type AdmissionBegun,
  type NodeIndex,
} from './node-progress.js';
import { configurationText } from './configuration.js';
import { setStanding } from './ending.js';
import { adoptConfiguration, isChanging, isMember, nextConfiguration } from './members.js';
import { abreast, gateMissed, newPace, pauseAfter, weightOf } from './fill-pace.js';
import { bitsOf } from './quorum.js';
import { refusalText } from './refusals.js';
import type { LocalChain, StepContext, TermEvent, TermState } from './term-state.js';
import type { AdmissionState, HeadFacts, NodeReply, NodeView } from './types.js';

/** Below this share of the time with a block in flight, filling disturbs nobody. */
const CALM = 0.1;
/** The load is measured over this time, ms. */
export const LOAD_OVER_MS = 250;

/**
 * States that a leader may repair by itself. It never touches a node of another cluster. Where a leader exists, a
 * bootstrap mark comes from a bootstrap that was interrupted.
 */
const REPAIRABLE: readonly AdmissionState[] = ['pristine', 'bootstrap', 'wiped', 'restarted', 'damaged', 'admitting'];

/**
 * Only while q other nodes count and have noted the configuration as it is. A leader that cannot prove itself (after a
 * power cut) could not give back what is set aside. And configurations are changed one after another.
 */
export function mayReadmit(state: TermState, admission: AdmissionState): boolean {
  const others = state.nodes.filter((progress) => counts(progress) && !progress.unnoted).length;
  return (
    others >= state.settings.quorum &&
    !isChanging(state) &&
    state.settings.readmit &&
    state.phase === 'leading' &&
    REPAIRABLE.includes(admission)
  );
}

/**
 * Step 1: the stream is set aside, run id and a nonce never used before are noted. `replaces`: the memory of a node
 * that thinks itself intact.
 */
export function beginAdmission(context: StepContext, node: NodeIndex, view?: NodeView, replaces?: string): void {
  const { state, now, chain, out } = context;
  const { owner } = state.settings;
  if (!isMember(state, node)) return;
  const progress = state.nodes[node]!;
  const window = chain.retainedFloor();
  // A node without memory to spare starts over, without what was set aside there before: the committed blocks are on
  // the others.
  const short = view !== undefined && view.admission === 'admitting' && shortOfMemory(view);
  const resume = view && !short && resumable(view, window, chain);
  const id = state.nextId++;
  // The token is this term's alone and the id grows with every call: no nonce is ever used twice.
  const nonce = `${owner.slice(owner.lastIndexOf('/') + 1)}-${id}`;
  const configuration = state.configuration === null ? null : nextConfiguration(state, node, nonce);
  if (state.configuration !== null && configuration === null) {
    // A term of a higher epoch made what this one counts by: only a later one may change it.
    markWantsRenewal(progress);
    return;
  }
  const admission = { nonce, configuration, floor: window.height, pace: newPace(now, state.fresh) };
  admissionSent(progress, admission, { id, kind: 'begin', startedAt: now });
  out.push({
    type: 'call',
    node,
    id,
    bytes: 0,
    call: {
      script: 'begin_admission',
      owner,
      epoch: state.epoch,
      nonce,
      floor: window.height,
      floorHash: window.hash,
      keepMs: short ? 1 : 86_400_000,
      ...(replaces === undefined ? {} : { replaces }),
      ...(resume ? { resume } : {}),
      ...(configuration === null ? {} : { config: configurationText(configuration) }),
    },
  });
}

/**
 * What an earlier term filled in is committed: it is gone on from, if it ends on our chain and still reaches into
 * the window.
 */
function resumable(
  view: NodeView,
  window: { height: number },
  chain: LocalChain,
): { head: number; hash: string } | undefined {
  const same =
    view.admission === 'admitting' && view.admittedRunId === view.runId && view.length === view.head - view.floor;
  const useful =
    view.head >= window.height &&
    view.floor <= window.height &&
    view.length > 0 &&
    chain.hashAt(view.head) === view.headHash;
  return same && useful ? { head: view.head, hash: view.headHash } : undefined;
}

function shortOfMemory({ info }: NodeView): boolean {
  const most = Number(info['maxmemory'] ?? 0);
  return most > 0 && Number(info['used_memory'] ?? 0) > 0.9 * most;
}

/**
 * A node is reported as damaged, or was found to be. It keeps its part until q others are known to do without it
 * (section 8).
 */
export function markDamaged(state: TermState, node: NodeIndex, incarnation: string, why: string): void {
  damageFound(state.nodes[node]!, incarnation, why, state.nextId);
}

/**
 * Whether a damaged node may be set aside now: everything committed is on q other nodes of ours, and they have
 * accepted something of this
 * term that was sent since the damage was found. What it has accepted of the block in flight counts no more from
 * here on.
 */
export function replaceable(state: TermState, node: NodeIndex): boolean {
  const { quorum, readmit } = state.settings;
  const { damage } = state.nodes[node]!;
  if (!damage || !readmit || state.phase !== 'leading' || state.stopping || isChanging(state)) return false;
  let others = 0;
  state.nodes.forEach((progress, i) => {
    if (
      i !== node &&
      counts(progress) &&
      !progress.unnoted &&
      holdsCommitted(progress, state.committed) &&
      (damage.proof >> i) & 1
    )
      others++;
  });
  return others >= quorum;
}

/** Sets a damaged node aside that thinks itself intact, and that bears our lock and epoch. */
export function setAside(context: StepContext, node: NodeIndex): void {
  const { state } = context;
  const progress = state.nodes[node]!;
  setStanding(context, node, 'unclaimed', `damaged: ${progress.damage!.why}`);
  willBeSetAside(progress);
  if (state.inflight) state.inflight.ackedAt[node] = -1;
  beginAdmission(context, node, undefined, progress.damage!.incarnation);
}

export function onBegun(context: StepContext, node: NodeIndex, reply: NodeReply<{ head: number }>): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'accepted' && progress.admission) {
    const { configuration } = progress.admission;
    admissionBegun(progress, reply.value.head, state.nextId);
    if (configuration !== null) {
      // What counted here before counts no more, neither for the block in flight.
      if (state.inflight) state.inflight.ackedAt[node] = -1;
      adoptConfiguration(state, configuration, node);
    }
    retryAt(progress, now);
    return setStanding(context, node, 'unclaimed', `re-admission ${progress.admission.nonce} begun`);
  }
  if (reply.outcome === 'refused' && reply.reason === 'FENCING_ERROR' && reply.detail.check === 'epoch') {
    markWantsRenewal(progress); // what it remembers of its old life is above this term
  }
  giveUp(context, node, reply);
}

/** Steps 2 and 4, whichever is due. Called when the node has nothing under way. */
export function continueAdmission(context: StepContext, node: NodeIndex): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  const { admission } = progress;
  if (!admission?.begun) return;
  if (admission.head < state.committed.height) {
    callSent(progress, { id: state.nextId, kind: 'learn', height: state.committed.height, startedAt: now });
    // Committed blocks only: the block in flight would make the node a voter before it is one.
    out.push({
      type: 'backfill',
      node,
      id: state.nextId++,
      from: admission.head + 1,
      to: state.committed.height,
      stampOwnEpoch: false,
      nonce: admission.nonce,
    });
    return;
  }
  // Between blocks, and the next one waits for us (I11); a repair's term has none.
  const quiet = (state.gateUntil !== null || state.settings.quiet === true) && !state.inflight;
  const alone = !state.nodes.some((other) => other.busy?.kind === 'admit');
  if (!quiet || !alone || !proven(state, admission)) return;
  callSent(progress, { id: state.nextId, kind: 'admit', startedAt: now });
  out.push({
    type: 'call',
    node,
    id: state.nextId++,
    bytes: 0,
    call: {
      script: 'admit',
      owner: state.settings.owner,
      epoch: state.epoch,
      nonce: admission.nonce,
      ttlMs: state.settings.ttlMs,
      head: state.committed.height,
      headHash: state.committed.hash,
    },
  });
}

export function onLearnt(
  context: StepContext,
  event: Extract<TermEvent, { type: 'backfilled' }>,
  sent: { height: number; startedAt: number },
): void {
  const { state, chain } = context;
  const progress = state.nodes[event.node]!;
  for (const reply of event.replies) {
    if (reply.outcome === 'unknown') {
      // It resumes from the blocks known to be there. The same block again is accepted.
      backOff(progress, state.settings, event.now);
      return openGate(context);
    }
    if (reply.outcome === 'refused') return giveUp(context, event.node, reply);
    filledUpTo(progress, reply.value.head);
  }
  if (event.replies.length === 0) backOff(progress, state.settings, event.now);
  else if (progress.admission?.begun) {
    const { admission } = progress;
    const { height: floor } = chain.retainedFloor();
    const slid = (floor - admission.floor) / Math.max(1, state.committed.height - floor);
    const batch = {
      weight: weightOf(event.replies.length, event.bytes),
      tookMs: event.now - sent.startedAt,
      all: admission.head >= sent.height,
    };
    const pauseMs = pauseAfter(admission.pace, batch, state.fresh, slid, event.now);
    // The last block is not kept waiting: the gate may be closed for it.
    if (state.committed.height - admission.head > 1 && !calm(state, event.now)) retryAt(progress, event.now + pauseMs);
  }
}

/** Whether filling may take all it can get, in batches as large as it likes. */
export function calm(state: Pick<TermState, 'load' | 'committedAt' | 'inflight'>, now: number): boolean {
  const quietMs = state.inflight === null ? Math.max(0, now - state.committedAt) : 0;
  return state.load * Math.exp(-quietMs / LOAD_OVER_MS) <= CALM;
}

export function onAdmitted(context: StepContext, node: NodeIndex, reply: NodeReply<HeadFacts>): void {
  const { state } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome !== 'accepted') {
    // Unknown: it may have run. The nonce is given up; the next look shows whether the node is admitted by it, and a
    // new begin_admission makes a stray copy stale (I11: no earlier admit stays unanswered).
    giveUp(context, node, reply);
    return;
  }
  admissionAccepted(progress, reply.value, reply.incarnation);
  setStanding(context, node, 'claimed', '');
  openGate(context);
}

/**
 * An accepted call shows that this term still leads at `node`, for all that was begun or found before that call was
 * sent. A claim also shows that the node has noted the configuration.
 */
export function proves(state: TermState, node: NodeIndex, id: number, call: 'claim' | 'write'): void {
  for (const progress of state.nodes) provenBy(progress, node, id, call);
}

/** Whether a call accepted by `node` now would prove something that is still open. */
export function wantsProof(state: TermState, node: NodeIndex): boolean {
  return state.nodes.some((progress, i) => {
    const { admission, damage } = progress;
    if (admission) return admission.begun && !proven(state, admission) && ((admission.proof >> node) & 1) === 0;
    return damage !== null && i !== node && ((damage.proof >> node) & 1) === 0;
  });
}

/**
 * After a commit: holds the next block back for a moment when a node needs no more than the newest block and the
 * admission itself, or what was
 * committed while its last batch was under way, and would never need less.
 */
export function closeGate(state: TermState, now: number, bytes: number): boolean {
  let most = 0;
  for (const { admission, retryAt } of state.nodes) {
    if (!admission?.begun || now < retryAt || !proven(state, admission)) continue;
    const gap = Math.max(1, state.committed.height - admission.head);
    if (gap === 1 || abreast(admission.pace, now)) most = Math.max(most, gap);
  }
  if (most === 0) return false;
  state.gateUntil = now + 2 * state.settings.nodeTimeoutMs + (most * bytes) / 25_000;
  return true;
}

/** The gate's time is over, and nothing is under way that it would be kept closed for. */
export function gateIsOver(context: StepContext): void {
  const { state } = context;
  for (const { admission } of state.nodes) if (admission?.begun) gateMissed(admission.pace);
  openGate(context);
}

/** Lets the next block come. */
export function openGate(context: StepContext): void {
  const { state, out } = context;
  if (state.gateUntil === null) return;
  state.gateUntil = null;
  if (state.phase === 'leading' && !state.stopping)
    out.push({ type: 'ready', height: state.committed.height + 1, parent: state.committed.hash });
}

function proven(state: TermState, admission: Pick<AdmissionBegun, 'proof'>): boolean {
  return bitsOf(admission.proof) >= state.settings.quorum;
}

function giveUp(context: StepContext, node: NodeIndex, reply: NodeReply<unknown>): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  admissionGivenUp(progress);
  const why =
    reply.outcome === 'refused'
      ? refusalText(reply)
      : reply.outcome === 'unknown'
        ? `no answer at ${reply.step}: ${reply.cause}`
        : '';
  setStanding(context, node, 'unclaimed', `re-admission not finished: ${why}`);
  // Nothing ran there, and whoever keeps the window must know (section 6.6).
  if (reply.outcome === 'refused' && reply.reason === 'OOM')
    out.push({ type: 'alarm', code: 'OOM', node, reason: why });
  backOff(progress, state.settings, now);
  // A node that answers but will not be admitted is asked at the pace of any node that is not ours, not as fast as it
  // answers.
  retryAt(progress, Math.max(progress.retryAt, now + state.settings.regainMs));
  openGate(context);
}
