// Leading (docs/PROTOCOL.md section 6). One block is in flight: the same block until q nodes accepted it under this
// epoch. A worker per node (pump) brings that node up from its own head, so that no node ever waits for another. Keeps
// I2 (one proposal per epoch and height), I5 (H+1 only after H), I6 (contiguity) and I8 (only an accepted write renews
// the lease of a term that has work).
import { nodeName } from './term-state.js';
import {
  backOff,
  callAnswered,
  callSent,
  clearFailures,
  countFailure,
  damageGone,
  headCorrected,
  headMoved,
  holdsBlock,
  isNamed,
  markFenced,
  markWantsRenewal,
  regained,
  retryAt,
  retryAtOnce,
  stampOwnEpoch,
  takeFacts,
  type NodeIndex,
  type NodeProgress,
} from './node-progress.js';
import {
  beginAdmission,
  closeGate,
  continueAdmission,
  LOAD_OVER_MS,
  mayReadmit,
  proves,
  replaceable,
  setAside,
  wantsProof,
} from './admission.js';
import { end, endIfStale, setStanding } from './ending.js';
import { anotherMemory, configurationOf, isCandidate, isMember, membersOf } from './members.js';
import { nextToSettle, startBlock } from './adoption.js';
import { weightOf } from './fill-pace.js';
import { noteChange } from './reconfigure.js';
import { fencedOut } from './quorum.js';
import { refusalText } from './refusals.js';
import type { TermAlarmCode } from './term-codes.js';
import type { Inflight, LocalChain, StepContext, TermEvent, TermState } from './term-state.js';
import {
  MAX_EPOCH_LEAP,
  type Block,
  type CallResult,
  type HeadFacts,
  type Header,
  type LeaderRequest,
  type NodeReply,
  type NodeView,
  type Refused,
} from './types.js';

/**
 * Takes the next block (committed+1) and starts writing it. The block comes from the producer or, while settling, from
 * the store.
 */
export function propose(context: StepContext, block: Block): void {
  const { state, now, chain } = context;
  if (state.inflight || (state.phase !== 'leading' && state.phase !== 'settling') || state.stopping) return;
  if (state.change?.next) return; // the term proposes nothing any more
  if (block.height !== state.committed.height + 1) return; // void: another block was committed since it was asked for
  if (block.parent !== state.committed.hash) {
    return end(
      context,
      'BAD_PROPOSAL',
      `block ${block.height} names parent ${block.parent.slice(0, 8)}, the committed head is ` +
        `${state.committed.hash.slice(0, 8)}`,
    );
  }
  state.uneven = false;
  state.extending = null; // there is work now: the block renews the lease, or nothing does (I8)
  const settling = state.phase === 'settling';
  startBlock(
    state,
    block,
    settling,
    now,
    settling ? undefined : chain.trimFor({ ...block, size: block.data.byteLength }),
  );
}

/**
 * Gives an idle node its next piece of work: the block in flight, committed blocks that it lacks, or a probe that shows
 * whether it can be regained.
 */
export function pump(context: StepContext, node: NodeIndex): void {
  const { state, now, chain } = context;
  if (state.phase !== 'settling' && state.phase !== 'leading') return;
  const progress = state.nodes[node]!;
  if (progress.busy || (progress.standing === 'quarantined' && !progress.damage)) return;
  if (now < progress.retryAt) return;
  if (progress.damage && replaceable(state, node)) {
    // The node's lock must be ours when the node is set aside. Where the lock may have expired, the term takes it
    // first.
    return progress.standing === 'claimed' ? setAside(context, node) : probeAgain(context, node);
  }
  if (progress.standing === 'quarantined') return;
  if (progress.standing !== 'claimed')
    return progress.admission ? continueAdmission(context, node) : probeAgain(context, node);

  if (progress.unnoted) return claimAgain(context, node);
  const { inflight, committed } = state;
  // A block that is being settled may be committed already. Then one more height may be pending on a node outside the
  // claimed quorum.
  const highest = Math.max(committed.height, state.settleTo) + 1;
  if (progress.head > highest) {
    // An entry two heights above would prove a block that this term's claim did not see (I4, I5).
    return quarantine(
      context,
      node,
      'AHEAD_OF_LEADER',
      `it holds height ${progress.head}, this term's claim allows for ${highest} at most`,
    );
  }
  const next = nextFor(state, node, chain);
  if (next <= committed.height) return catchUp(context, node, next);
  if (inflight && next === inflight.block.height) return write(context, node, inflight);
  if (state.extending && state.extending.ackedAt[node]! < 0) return extendOn(context, node);
  if (state.settings.quiet && wantsProof(state, node)) claimAgain(context, node);
}

function claimAgain(context: StepContext, node: NodeIndex): void {
  const { state, now, out } = context;
  callSent(state.nodes[node]!, { id: state.nextId, kind: 'prove', startedAt: now });
  out.push({
    type: 'call',
    node,
    id: state.nextId++,
    bytes: 0,
    call: { script: 'claim', owner: state.settings.owner, epoch: state.epoch, ...configurationOf(state) },
  });
}

/**
 * Whether a term without work may extend its lease without a block: nothing waits for a block, or for the moment
 * between two blocks.
 */
export function mayExtend(state: TermState): boolean {
  const { phase, inflight, stopping, gateUntil, change, uneven, nodes } = state;
  if (phase !== 'leading' || inflight || stopping || gateUntil !== null || change || uneven) return false;
  return nodes.every((one) => !one.admission && !one.damage && !one.wantsRenewal && !one.unnoted);
}

/** Asks every claimed node to let the lock last for another lease. It is fenced like a write, and writes nothing. */
export function extend(context: StepContext): void {
  const { state } = context;
  if (mayExtend(state)) state.extending = { ackedAt: state.nodes.map(() => -1) };
}

function extendOn(context: StepContext, node: NodeIndex): void {
  const { state, now, out } = context;
  const { owner, ttlMs } = state.settings;
  callSent(state.nodes[node]!, { id: state.nextId, kind: 'extend', startedAt: now });
  const call = { script: 'extend_lock', owner, epoch: state.epoch, ttlMs } as const;
  out.push({ type: 'call', node, id: state.nextId++, bytes: 0, call });
}

export function onExtended(
  context: StepContext,
  node: NodeIndex,
  sentAt: number,
  reply: NodeReply<CallResult['extend_lock']>,
): void {
  const { state, out } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
  if (reply.outcome === 'refused') return refused(context, node, reply, progress.head);
  if (reply.incarnation !== progress.incarnation) return lost(context, node, 'it was re-admitted since it was claimed');
  clearFailures(progress);
  if (reply.value.request) out.push({ type: 'request', request: reply.value.request });
  const { extending } = state;
  if (!extending) return; // work came meanwhile
  extending.ackedAt[node] = sentAt;
  const until = leaseFrom(state, extending.ackedAt);
  if (until === null) return;
  state.leaseDeadline = Math.max(state.leaseDeadline, until);
  state.extending = null;
  afterBlock(context, 0);
}

/** When the lease ends that these accepted calls give. Null: fewer than q nodes have accepted. */
function leaseFrom(state: TermState, ackedAt: readonly number[]): number | null {
  const acks = ackedAt.filter((at, i) => at >= 0 && isNamed(state.nodes[i]!, state.nodes[i]!.incarnation));
  if (acks.length < state.settings.quorum) return null;
  // The lease lasts from the q-th latest send time: q nodes extended it no earlier than that.
  acks.sort((a, b) => b - a);
  return acks[state.settings.quorum - 1]! + state.settings.usableLeaseMs;
}

/** The moment between two blocks: what waits for it is done, or the next block is asked for. */
function afterBlock(context: StepContext, bytes: number): void {
  const { state, now, out } = context;
  const { height, hash } = state.committed;
  if (!noteChange(context) && !renewIfWanted(context) && !closeGate(state, now, bytes))
    out.push({ type: 'ready', height: height + 1, parent: hash });
}

/**
 * A term that proposes nothing proves that it still leads by repeating its claim. The claim is fenced like a write, and
 * it renews nothing (I8).
 */
export function onProven(context: StepContext, node: NodeIndex, id: number, reply: NodeReply<HeadFacts>): void {
  const { state } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
  if (reply.outcome === 'refused') return refused(context, node, reply, progress.head);
  if (reply.incarnation !== progress.incarnation) return lost(context, node, 'it was re-admitted since it was claimed');
  clearFailures(progress);
  proves(state, node, id, 'claim');
}

/**
 * An operator asked for a repair: the node is probed now, even if this term gave it up or the node waits for its turn.
 */
export function fix(context: StepContext, node: NodeIndex): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  if (!isMember(state, node) && !isCandidate(state, node)) return;
  if (progress.standing === 'quarantined') setStanding(context, node, 'unclaimed', 'a repair was asked for');
  clearFailures(progress);
  retryAt(progress, Math.min(progress.retryAt, now));
}

/** The height to send: the first one at which the node's chain is not known to match ours. */
function nextFor(state: TermState, node: NodeIndex, chain: LocalChain): number {
  const progress = state.nodes[node]!;
  const { inflight, committed } = state;
  // A head above the committed one is one of three things. It may be an orphan that the block in flight will replace.
  // It may be our own write, already accepted. Or it is the pending block of the next height: that block proves the
  // block in flight below it, so the node accepts the block in flight as it is.
  if (progress.head > committed.height)
    return inflight && inflight.ackedAt[node]! < 0 ? inflight.block.height : progress.head + 1;
  if (progress.head === 0) return 1;
  // The block at the node's head is not known. The next block will tell or, when there is none to send, the committed
  // head itself.
  if (progress.headHash === '') return progress.head < committed.height ? progress.head + 1 : progress.head;
  const claimed = progress.head === committed.height ? committed.hash : chain.hashAt(progress.head);
  return progress.headHash === claimed ? progress.head + 1 : progress.head;
}

function write(context: StepContext, node: NodeIndex, inflight: Inflight): void {
  const { state, now, out } = context;
  const { owner, ttlMs } = state.settings;
  const { block, repair, trim } = inflight;
  const progress = state.nodes[node]!;
  callSent(progress, { id: state.nextId, kind: 'write', height: block.height, hash: block.hash, startedAt: now });
  out.push({
    type: 'call',
    node,
    id: state.nextId++,
    bytes: block.data.byteLength,
    call: {
      script: 'write_block',
      owner,
      epoch: state.epoch,
      ttlMs,
      block,
      entryEpoch: state.epoch,
      // A different block of a lower epoch at this height is provably uncommitted: the claim would have seen it
      // (section 6.3).
      mode: repair || progress.head >= block.height ? 'repair' : 'append',
      ...(trim ? { trim } : {}),
    },
  });
}

function catchUp(context: StepContext, node: NodeIndex, from: number): void {
  const { state, now, chain, out } = context;
  const progress = state.nodes[node]!;
  const window = chain.retainedFloor();
  if (progress.head < window.height && window.height <= state.committed.height) {
    callSent(progress, { id: state.nextId, kind: 'rebase', height: window.height, startedAt: now });
    out.push({
      type: 'call',
      node,
      id: state.nextId++,
      bytes: 0,
      call: {
        script: 'rebase',
        owner: state.settings.owner,
        epoch: state.epoch,
        floor: window.height,
        floorHash: window.hash,
        nonce: `${state.settings.owner.slice(state.settings.owner.lastIndexOf('/') + 1)}-${state.nextId}`,
        keepMs: 86_400_000,
      },
    });
    return;
  }
  if (from <= progress.floor) {
    return quarantine(
      context,
      node,
      'FLOOR_MISMATCH',
      `its floor ${progress.floor} (${progress.floorHash.slice(0, 8)}) is not on this chain`,
    );
  }
  callSent(progress, { id: state.nextId, kind: 'backfill', height: from, startedAt: now });
  out.push({
    type: 'backfill',
    node,
    id: state.nextId++,
    from,
    to: state.committed.height,
    stampOwnEpoch: progress.stampOwnEpoch,
  });
}

export function onWritten(
  context: StepContext,
  node: NodeIndex,
  sent: { id: number; height: number; hash: string; startedAt: number },
  reply: NodeReply<{ head: number; request?: LeaderRequest }>,
): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
  if (reply.outcome === 'refused') return refused(context, node, reply, sent.height);
  if (reply.incarnation !== progress.incarnation) {
    return lost(context, node, 'it was re-admitted since it was claimed'); // another memory's vote (I11)
  }
  holdsBlock(progress, { height: sent.height, hash: sent.hash, epoch: state.epoch }, reply.value.head);
  proves(state, node, sent.id, 'write');
  if (reply.value.request) out.push({ type: 'request', request: reply.value.request });
  const { inflight } = state;
  if (!inflight || inflight.block.hash !== sent.hash) return;
  inflight.ackedAt[node] = sent.startedAt;
  const acks = inflight.ackedAt.filter((at, i) => at >= 0 && isNamed(state.nodes[i]!, state.nodes[i]!.incarnation));
  if (acks.length < state.settings.quorum) return;

  // The lease lasts from the q-th latest send time: q nodes extended it no earlier than that.
  acks.sort((a, b) => b - a);
  state.leaseDeadline = acks[state.settings.quorum - 1]! + state.settings.usableLeaseMs;
  const { block } = inflight;
  noteLoad(state, now - inflight.startedAt, now);
  state.fresh += weightOf(1, block.data.byteLength);
  state.inflight = null;
  state.committed = { height: block.height, hash: block.hash };
  out.push({ type: 'committed', block, epoch: state.epoch, startedAt: inflight.startedAt, copies: acks.length });
  if (state.stopping) return end(context, state.stopping.code, state.stopping.reason);
  if (state.phase === 'settling') nextToSettle(context);
  else afterBlock(context, block.data.byteLength);
}

/**
 * The share of time that was spent with a block in flight. It is weighted by time, not by blocks, so that one quiet
 * second after a busy moment is enough.
 */
function noteLoad(state: TermState, tookMs: number, now: number): void {
  const cycle = now - state.committedAt;
  if (state.committedAt > 0 && cycle > 0)
    state.load += (1 - Math.exp(-cycle / LOAD_OVER_MS)) * (Math.min(1, tookMs / cycle) - state.load);
  state.committedAt = now;
}

export function onBackfilled(context: StepContext, event: Extract<TermEvent, { type: 'backfilled' }>): void {
  const { state, out } = context;
  const progress = state.nodes[event.node]!;
  if (progress.busy?.id !== event.id) return;
  callAnswered(progress);
  const { node, now } = event;
  for (const [i, reply] of event.replies.entries()) {
    const sent: Header | undefined = event.from[i];
    if (!sent) break;
    if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
    if (reply.outcome === 'refused') return refused(context, node, reply, sent.height);
    if (reply.incarnation !== progress.incarnation)
      return lost(context, node, 'it was re-admitted since it was claimed');
    holdsBlock(progress, { height: sent.height, hash: sent.hash, epoch: 0 }, reply.value.head);
    state.uneven = true;
    proves(state, node, event.id, 'write');
    if (reply.value.request) out.push({ type: 'request', request: reply.value.request });
  }
  // nothing could be sent (the block is not in the store): pause, so that the loop never spins
  if (event.replies.length === 0) backOff(progress, state.settings, now);
}

export function onRebased(context: StepContext, node: NodeIndex, reply: NodeReply<HeadFacts>): void {
  const { state } = context;
  if (reply.outcome === 'accepted') {
    state.uneven = true;
    return takeFacts(state.nodes[node]!, reply.value);
  }
  if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
  if (reply.reason === 'NOT_BEHIND') return lost(context, node, 'it moved while it was to be rebased');
  refused(context, node, reply, 0);
}

function refused(context: StepContext, node: NodeIndex, reply: Refused, height: number): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  const d = reply.detail;
  switch (reply.reason) {
    case 'FENCING_ERROR': // the node keeps I3: our epoch is too old there, or our lock is gone
      markFenced(progress);
      lost(context, node, refusalText(reply));
      endIfFenced(context, refusalText(reply));
      return;
    case 'HEIGHT_EXISTS':
      // This refusal is never a vote: it says which block is there. If that block's epoch is higher than the sent
      // one's, stamp our own epoch. If it is already our epoch or above, that is a contradiction.
      if ((d.epoch ?? 0) >= state.epoch) return quarantine(context, node, 'EPOCH_ABOVE_FENCE', refusalText(reply));
      stampOwnEpoch(progress);
      headCorrected(progress, height, d);
      return repeated(state, progress, now);
    case 'GAP':
      headMoved(progress, d.head ?? 0);
      return repeated(state, progress, now);
    case 'PARENT_MISMATCH':
      headCorrected(progress, height - 1, d);
      return repeated(state, progress, now);
    case 'CONFLICT':
    case 'TRIMMED':
    case 'BAD_ARGUMENT':
      return quarantine(context, node, reply.reason, `height ${height}: ${refusalText(reply)}`);
    case 'WRONG_CLUSTER':
      // Another server answers at this address now. It is probed from time to time, but never changed: the right server
      // or an empty one may come back.
      out.push({ type: 'alarm', code: reply.reason, node, reason: refusalText(reply) });
      return lost(context, node, refusalText(reply));
    case 'CONFIG_STALE':
      lost(context, node, refusalText(reply));
      return endIfStale(context, node, reply);
    // WRONG_TYPE: somebody changed the node's keys. The next probe shows whether the node is damaged (then it is
    // repaired) or sound again.
    case 'WRONG_TYPE':
    case 'NOT_ADMITTED':
    case 'NOT_MEMBER':
      return lost(context, node, refusalText(reply));
    default: // LOADING, BUSY, OOM, MISCONF, …: nothing ran; ask again later
      if (progress.failures === 0) out.push({ type: 'alarm', code: reply.reason, node, reason: refusalText(reply) });
      return backOff(progress, state.settings, now);
  }
}

function endIfFenced(context: StepContext, why: string): void {
  const { state } = context;
  const fenced = state.nodes.filter((progress, node) => progress.fenced && isMember(state, node)).length;
  if (fencedOut(fenced, membersOf(state))) end(context, 'FENCED', `fenced by more nodes than may be missing: ${why}`);
}

/** A refusal that only corrects our view of the node is followed up at once, unless it keeps coming. */
function repeated(state: TermState, progress: NodeProgress, now: number): void {
  if (progress.failures < 4) countFailure(progress);
  else backOff(progress, state.settings, now);
}

function notAnswered(context: StepContext, node: NodeIndex, step: string, cause: string): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  backOff(progress, state.settings, now);
  setStanding(context, node, progress.standing, `no answer at ${step}: ${cause}`);
}

function lost(context: StepContext, node: NodeIndex, why: string): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  setStanding(context, node, 'unclaimed', why);
  retryAtOnce(progress, now); // probed at once, then every regainMs
}

function quarantine(context: StepContext, node: NodeIndex, code: TermAlarmCode, why: string): void {
  const { out } = context;
  out.push({ type: 'alarm', code, node, reason: why });
  setStanding(context, node, 'quarantined', `${code}: ${why}`);
}

function probeAgain(context: StepContext, node: NodeIndex): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  callSent(progress, { id: state.nextId, kind: 'inspect', startedAt: now });
  out.push({ type: 'call', node, id: state.nextId++, bytes: 0, call: { script: 'inspect' } });
}

/**
 * The probe of an unclaimed node was answered. The term regains the node when its lock is free (or ours) and its epoch
 * admits this term. Otherwise a renewal may be needed (section 6.7).
 */
export function onInspected(context: StepContext, node: NodeIndex, reply: NodeReply<NodeView>): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  retryAt(progress, now + state.settings.regainMs);
  if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
  if (reply.outcome === 'refused') return setStanding(context, node, 'unclaimed', refusalText(reply));
  clearFailures(progress);
  const view = reply.value;
  const { owner, previousOwner, ttlMs } = state.settings;
  if (view.admission !== 'admitted') {
    setStanding(
      context,
      node,
      'unclaimed',
      `NOT_ADMITTED: ${view.admission}${view.admissionWhy ? ` (${view.admissionWhy})` : ''}`,
    );
    damageGone(progress); // the server itself now sees that its memory does not count
    // The server would refuse the call: it takes the stray configuration for a later one.
    if (view.strayConfig === undefined && mayReadmit(state, view.admission)) beginAdmission(context, node, view);
    return;
  }
  if (progress.damage && progress.damage.incarnation !== view.incarnation) damageGone(progress);
  if (!isNamed(progress, view.incarnation)) {
    // The node is intact, but the configuration names another memory. The node is filled and admitted as if it had
    // none.
    anotherMemory(context, node);
    if (mayReadmit(state, 'damaged')) beginAdmission(context, node, view, view.incarnation);
    return;
  }
  const holder = view.lock?.owner;
  if (holder !== undefined && holder !== owner) {
    return setStanding(
      context,
      node,
      'unclaimed',
      holder === previousOwner ? 'its lock still bears our last term' : `its lock is held by ${holder}`,
    );
  }
  if (view.epoch < state.epoch || (view.epoch === state.epoch && view.claimant === owner)) {
    callSent(progress, { id: state.nextId, kind: 'regain', startedAt: now });
    out.push({
      type: 'call',
      node,
      id: state.nextId++,
      bytes: 0,
      call: { script: 'claim', owner, epoch: state.epoch, acquireTtlMs: ttlMs, ...configurationOf(state) },
    });
    return;
  }
  const stray = view.epoch > state.epoch + MAX_EPOCH_LEAP;
  if (!stray) markWantsRenewal(progress);
  markFenced(progress); // it admits nothing of this epoch, as if it had refused a write
  setStanding(
    context,
    node,
    'unclaimed',
    stray
      ? `its epoch ${view.epoch} was not reached by any term (ours is ${state.epoch}): its epoch key must be deleted`
      : `its epoch is ${view.epoch}, ours is ${state.epoch}: the term must be renewed to take it back`,
  );
  if (!renewIfWanted(context)) endIfFenced(context, progress.why);
}

export function onRegained(context: StepContext, node: NodeIndex, id: number, reply: NodeReply<HeadFacts>): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  retryAt(progress, now + state.settings.regainMs);
  if (reply.outcome === 'unknown') return notAnswered(context, node, reply.step, reply.cause);
  if (reply.outcome === 'refused') {
    setStanding(context, node, 'unclaimed', refusalText(reply));
    return endIfStale(context, node, reply);
  }
  if (!isNamed(progress, reply.incarnation)) return anotherMemory(context, node);
  regained(progress, reply.value, reply.incarnation);
  state.uneven = true;
  proves(state, node, id, 'claim');
  if (!progress.damage || progress.damage.counts) return setStanding(context, node, 'claimed', '');
  // The node was regained only to be set aside. It must not count again: a begin_admission without an answer may still
  // be on its way.
  retryAt(progress, now + state.settings.regainMs);
  if (replaceable(state, node)) return setAside(context, node);
  setStanding(context, node, 'quarantined', `damaged: ${progress.damage.why}`);
  // for this term the node is as useless as one that refused: with too many of these, the next term gets further
  markFenced(progress);
  endIfFenced(context, progress.why);
}

/**
 * Between two blocks, ends this term so that a new one starts with a higher epoch, for a node that answered since. The
 * driver starts the new term with this token as previousOwner.
 */
function renewIfWanted(context: StepContext): boolean {
  const { state, now } = context;
  if (state.phase !== 'leading' || state.inflight || state.stopping) return false;
  const node = state.nodes.findIndex(
    (progress, i) => progress.wantsRenewal && now >= (state.settings.renewNotBefore[i] ?? 0),
  );
  if (node < 0) return false;
  end(context, 'RENEW', `${nodeName(state.settings, node)}: ${state.nodes[node]!.why}`);
  return true;
}
