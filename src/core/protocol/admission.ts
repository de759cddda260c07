// The leader re-admits a node that may have forgotten something (docs/PROTOCOL.md section 8). The steps are: begin,
// backfill, prove that this term still leads on q *other* nodes, admit between blocks. Keeps I7 (an empty memory takes
// part in nothing) and I11 (quiet admission). The proof makes this safe. Without it, a leader that already has a
// successor could vouch for a promise that the node no longer remembers.
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
  isNamed,
  markWantsRenewal,
  provenBy,
  retryAt,
  willBeSetAside,
  type AdmissionBegun,
  type NodeIndex,
} from './node-progress.js';
import { configurationText, type Configuration } from './configuration.js';
import { endIfStale, setStanding } from './ending.js';
import { adoptConfiguration, isCandidate, isChanging, isMember, nextConfiguration } from './members.js';
import { abreast, gateMissed, newPace, pauseAfter, weightOf } from './fill-pace.js';
import { bitsOf } from './quorum.js';
import { noteChange } from './reconfigure.js';
import { refusalText } from './refusals.js';
import type { LocalChain, StepContext, TermEvent, TermState } from './term-state.js';
import type { AdmissionState, HeadFacts, NodeReply, NodeView } from './types.js';

/** If a block is in flight for less than this share of the time, filling disturbs nobody. */
const CALM = 0.1;
/** The load is measured over this time, ms. */
export const LOAD_OVER_MS = 250;

/**
 * States that a leader may repair by itself. It never touches a node of another cluster. Where a leader exists, a
 * bootstrap mark is left from an interrupted bootstrap.
 */
const REPAIRABLE: readonly AdmissionState[] = ['pristine', 'bootstrap', 'wiped', 'restarted', 'damaged', 'admitting'];

/**
 * Whether a node may be re-admitted now. q other nodes must count and must have noted the present configuration. A
 * leader that cannot prove itself (after a power cut) could not give back what is set aside. And configurations change
 * one after another.
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
 * Step 1: the node sets its stream aside, and notes its run id and a nonce that was never used before. `replaces`: the
 * memory of a node that considers itself intact.
 */
export function beginAdmission(context: StepContext, node: NodeIndex, view?: NodeView, replaces?: string): void {
  const { state, now, chain, out } = context;
  const { owner } = state.settings;
  const joins = isCandidate(state, node);
  if (!joins && !isMember(state, node)) return;
  const progress = state.nodes[node]!;
  const window = chain.retainedFloor();
  // A node that is short of memory starts over. What it set aside earlier is dropped: the other nodes have the
  // committed blocks.
  const short = view !== undefined && view.admission === 'admitting' && shortOfMemory(view);
  const resume = view && !short && resumable(view, window, chain);
  const id = state.nextId++;
  // The token belongs to this term only, and the id grows with every call. So no nonce is ever used twice.
  const nonce = `${owner.slice(owner.lastIndexOf('/') + 1)}-${id}`;
  // A server that is to become a member counts for nothing yet, so its memory is not named. Its node notes the present
  // configuration.
  const configuration = state.configuration === null || joins ? null : nextConfiguration(state, node, nonce);
  if (state.configuration !== null && configuration === null && !joins) {
    // A term of a higher epoch made the present configuration, or this term has used up its turns. Only a term with a
    // higher epoch may change the configuration.
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
      ...configOf(configuration ?? state.configuration),
    },
  });
}

function configOf(configuration: Configuration | null): { config?: string } {
  return configuration === null ? {} : { config: configurationText(configuration) };
}

/**
 * An earlier term filled in committed blocks only. Resume that backfill if its head is on our chain and inside the
 * retained range.
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
 * A node is reported as damaged, or was found to be. It keeps its role until q other nodes are known to do without it
 * (section 8).
 */
export function markDamaged(state: TermState, node: NodeIndex, incarnation: string, why: string): void {
  damageFound(state.nodes[node]!, incarnation, why, state.nextId);
}

/**
 * Whether a damaged node may be set aside now. q other nodes of ours must hold everything committed. Each of them must
 * have accepted a call of this term that was sent after the damage was found. Once the node is set aside, its vote for
 * the block in flight no longer counts.
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

/** Sets a damaged node aside. The node considers itself intact, and bears our lock and epoch. */
export function setAside(context: StepContext, node: NodeIndex): void {
  const { state } = context;
  const progress = state.nodes[node]!;
  setStanding(context, node, 'unclaimed', `damaged: ${progress.damage!.why}`);
  willBeSetAside(progress);
  if (state.inflight) state.inflight.ackedAt[node] = -1;
  beginAdmission(context, node, undefined, progress.damage!.incarnation);
}

export function onBegun(
  context: StepContext,
  node: NodeIndex,
  reply: NodeReply<{ head: number; challenge?: string }>,
): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'accepted' && progress.admission) {
    const { configuration } = progress.admission;
    admissionBegun(progress, reply.value, state.nextId);
    if (configuration !== null) {
      // The node's earlier votes no longer count, including its vote for the block in flight.
      if (state.inflight) state.inflight.ackedAt[node] = -1;
      adoptConfiguration(state, configuration, node);
    }
    retryAt(progress, now);
    return setStanding(context, node, 'unclaimed', `re-admission ${progress.admission.nonce} begun`);
  }
  if (reply.outcome === 'refused' && reply.reason === 'FENCING_ERROR' && reply.detail.check === 'epoch') {
    markWantsRenewal(progress); // the node remembers an epoch above this term's
  }
  giveUp(context, node, reply);
  // A server that is no member is asked by nobody else: what it knows is learnt here, or it could never be added.
  if (reply.outcome === 'refused') endIfStale(context, node, reply, true);
}

function answered({ challenge }: { challenge: string }): { challenge?: string } {
  return challenge === '' ? {} : { challenge };
}

/** Does step 2 or step 4, whichever is due. Called when the node has no call under way. */
export function continueAdmission(context: StepContext, node: NodeIndex): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  const { admission } = progress;
  if (!admission?.begun) return;
  if (admission.head < state.committed.height) {
    callSent(progress, { id: state.nextId, kind: 'learn', height: state.committed.height, startedAt: now });
    // Only committed blocks are sent: with the block in flight the node would vote before it is a voter.
    out.push({
      type: 'backfill',
      node,
      id: state.nextId++,
      from: admission.head + 1,
      to: state.committed.height,
      stampOwnEpoch: false,
      nonce: admission.nonce,
      ...answered(admission),
    });
    return;
  }
  // Admit only between blocks, while the next block waits for the admission (I11). A repair's term has no next block.
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
      ...answered(admission),
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
      // Filling resumes after the blocks that are known to be on the node. The node accepts the same block again.
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
    // No pause before the last block: the gate may be closed for it.
    if (state.committed.height - admission.head > 1 && !calm(state, event.now)) retryAt(progress, event.now + pauseMs);
  }
}

/** Whether filling may go at full speed, with the largest batches. */
export function calm(state: Pick<TermState, 'load' | 'committedAt' | 'inflight'>, now: number): boolean {
  const quietMs = state.inflight === null ? Math.max(0, now - state.committedAt) : 0;
  return state.load * Math.exp(-quietMs / LOAD_OVER_MS) <= CALM;
}

export function onAdmitted(context: StepContext, node: NodeIndex, reply: NodeReply<HeadFacts>): void {
  const { state } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome !== 'accepted') {
    // Unknown: the admit may have run, so the nonce is given up. The next probe shows whether the node was admitted by
    // it. A new begin_admission makes a late copy of this admit stale (I11: no earlier admit stays unanswered).
    giveUp(context, node, reply);
    return;
  }
  admissionAccepted(progress, reply.value, reply.incarnation);
  state.uneven = true;
  setStanding(context, node, 'claimed', '');
  if (!isCandidate(state, node) || !noteChange(context)) openGate(context);
}

/**
 * An accepted call shows that this term still leads at `node`. That proves every admission and damage that was recorded
 * before the call was sent. A claim also shows that the node has noted the configuration.
 */
export function proves(state: TermState, node: NodeIndex, id: number, call: 'claim' | 'write'): void {
  if (!isNamed(state.nodes[node]!, state.nodes[node]!.incarnation)) return; // it counts for nothing
  for (const progress of state.nodes) provenBy(progress, node, id, call);
}

/** Whether a call that `node` accepts now would prove something that is not proven yet. */
export function wantsProof(state: TermState, node: NodeIndex): boolean {
  return state.nodes.some((progress, i) => {
    const { admission, damage } = progress;
    if (admission) return admission.begun && !proven(state, admission) && ((admission.proof >> node) & 1) === 0;
    return damage !== null && i !== node && ((damage.proof >> node) & 1) === 0;
  });
}

/**
 * After a commit: delays the next block for a moment if that lets a node be admitted. One case is a node that needs
 * only the newest block and the admission. The other is a node that will never be nearer, and needs only what was
 * committed during its last batch.
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

/** The gate's time is over, and no admit is under way that would keep it closed. */
export function gateIsOver(context: StepContext): void {
  const { state } = context;
  for (const { admission } of state.nodes) if (admission?.begun) gateMissed(admission.pace);
  openGate(context);
}

/** Opens the gate: the next block may come. */
export function openGate(context: StepContext): void {
  const { state, out } = context;
  if (state.gateUntil === null || state.change?.next) return; // or the term makes no block any more
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
  // Nothing ran on the node. The alarm tells the part that computes the retained range (section 6.6).
  if (reply.outcome === 'refused' && reply.reason === 'OOM')
    out.push({ type: 'alarm', code: 'OOM', node, reason: why });
  backOff(progress, state.settings, now);
  // A node that answers but refuses admission is asked at the pace of any unclaimed node, not as fast as it answers.
  retryAt(progress, Math.max(progress.retryAt, now + state.settings.regainMs));
  openGate(context);
}
