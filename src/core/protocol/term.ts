// One term as a pure function: step(state, event) → effects. It covers promotion, claim, adoption, re-proposal, leading
// and ending (docs/PROTOCOL.md sections 5 and 6). Production, simulator and model run this same code. Nothing here
// waits, reads a clock or draws a random number. `step` changes the state that it is given, so the model copies the
// state before it steps.
import { callAnswered, cloneProgress, configurationNoted, serverReplaced, type NodeIndex } from './node-progress.js';
import { gateIsOver, markDamaged, onAdmitted, onBegun, onLearnt, openGate } from './admission.js';
import { adoptAfterClaims, onCandidateRead } from './adoption.js';
import {
  extend,
  fix,
  onBackfilled,
  onExtended,
  onInspected,
  onProven,
  onRebased,
  onRegained,
  onWritten,
  propose,
  pump,
} from './leading.js';
import { onClaimed, onPromoted, startPromotion, stragglersWaitedFor } from './promotion.js';
import { end, setStanding } from './ending.js';
import { adoptConfiguration, nextConfiguration, nodeOpened } from './members.js';
import { beginChange, endOnceNoted } from './reconfigure.js';
import type { StepdownCode } from './term-codes.js';
import type { Effect, LocalChain, StepContext, TermEvent, TermState } from './term-state.js';
import type { CallResult, NodeReply, NodeView, HeadFacts, LeaderRequest } from './types.js';

type Extended = CallResult['extend_lock'];

export function step(state: TermState, event: TermEvent, chain: LocalChain): Effect[] {
  const out: Effect[] = [];
  if (state.phase === 'ended') return out;
  const context: StepContext = { state, now: event.now, chain, out };
  if (event.type !== 'start' && event.now >= state.leaseDeadline) {
    // A commit whose last reply came too late is still a commit for everybody who reads it next. But this term may no
    // longer act on it.
    end(context, 'LEASE_EXPIRED', 'the lease deadline passed before a quorum accepted another write');
    return out;
  }
  switch (event.type) {
    case 'start':
      startPromotion(context, event.votes);
      break;
    case 'reply':
      onReply(context, event);
      break;
    case 'backfilled':
      if (state.nodes[event.node]!.busy?.kind === 'learn') onLearntReply(context, event);
      else onBackfilled(context, event);
      break;
    case 'read':
      onCandidateRead(context, event);
      break;
    case 'proposal':
      propose(context, event.block);
      break;
    case 'damaged':
      if (state.nodes[event.node]!.incarnation === event.incarnation)
        markDamaged(state, event.node, event.incarnation, event.why);
      break;
    case 'stepdown':
      stepdown(context, event.code, event.reason);
      break;
    case 'fix':
      fix(context, event.node);
      break;
    case 'replaced':
      replaceNode(context, event.node, event.url);
      break;
    case 'opened':
      nodeOpened(state, event.id);
      break;
    case 'change':
      beginChange(context, event.change, event.node);
      break;
    case 'extend':
      extend(context);
      break;
    case 'tick':
      break;
  }
  onTime(context);
  return out;
}

/**
 * When the next tick is due after one at `now` (same clock as the events); Infinity when only a reply can change
 * anything.
 */
export function nextWake(state: TermState, now: number): number {
  if (state.phase === 'ended') return Infinity;
  let at = Math.min(state.leaseDeadline, state.graceUntil);
  if (state.stopping) at = Math.min(at, state.stopping.by);
  if (state.change?.next) at = Math.min(at, state.change.by);
  if (state.gateUntil !== null && state.gateUntil > now) at = Math.min(at, state.gateUntil);
  if (state.phase === 'promoting' || state.phase === 'claiming') return at;
  for (const progress of state.nodes) {
    // The tick that just ran has done everything that was due by now.
    if (!progress.busy && (progress.standing !== 'quarantined' || progress.damage) && progress.retryAt > now)
      at = Math.min(at, progress.retryAt);
  }
  return at;
}

/**
 * A copy that shares only payloads and settings. The model makes millions of copies, so fields are copied one by one,
 * not spread.
 */
export function cloneTerm(s: TermState): TermState {
  const { inflight, extending, adopt, stopping, ended } = s;
  return {
    settings: s.settings,
    phase: s.phase,
    epoch: s.epoch,
    startedAt: s.startedAt,
    leaseDeadline: s.leaseDeadline,
    graceUntil: s.graceUntil,
    nodes: s.nodes.map(cloneProgress),
    committed: { height: s.committed.height, hash: s.committed.hash },
    inflight: inflight && {
      block: inflight.block,
      trim: inflight.trim,
      repair: inflight.repair,
      startedAt: inflight.startedAt,
      ackedAt: inflight.ackedAt.slice(),
    },
    extending: extending && { ackedAt: extending.ackedAt.slice() },
    uneven: s.uneven,
    adopt: adopt && {
      height: adopt.height,
      candidates: adopt.candidates.map((c) => ({ hash: c.hash, epoch: c.epoch, nodes: c.nodes.slice() })),
    },
    settleTo: s.settleTo,
    load: s.load,
    committedAt: s.committedAt,
    fresh: s.fresh,
    gateUntil: s.gateUntil,
    stopping: stopping && { code: stopping.code, reason: stopping.reason, by: stopping.by },
    configuration: s.configuration, // never changed in place, only replaced
    configurationFrom: s.configurationFrom,
    change: s.change, // never changed in place, only replaced
    nextTurn: s.nextTurn,
    nextId: s.nextId,
    ended: ended && { code: ended.code, reason: ended.reason },
  };
}

function onReply(context: StepContext, event: Extract<TermEvent, { type: 'reply' }>): void {
  const { state } = context;
  const progress = state.nodes[event.node]!;
  const busy = progress.busy;
  if (!busy || busy.id !== event.id) return; // the answer is to a call that was given up: it proves nothing about now
  callAnswered(progress);
  // An accepted claim has carried the configuration to the node.
  if (
    event.reply.outcome === 'accepted' &&
    busy.id >= state.configurationFrom &&
    (busy.kind === 'claim' || busy.kind === 'regain' || busy.kind === 'prove')
  )
    configurationNoted(progress);
  switch (busy.kind) {
    case 'promote':
      return onPromoted(context, event.node, event.reply as NodeReply<{ epoch: number }>);
    case 'claim':
      return onClaimed(context, event.node, event.reply as NodeReply<HeadFacts>);
    case 'regain':
      return onRegained(context, event.node, busy.id, event.reply as NodeReply<HeadFacts>);
    case 'inspect':
      return onInspected(context, event.node, event.reply as NodeReply<NodeView>);
    case 'extend':
      return onExtended(context, event.node, busy.startedAt, event.reply as NodeReply<Extended>);
    case 'prove':
      return onProven(context, event.node, busy.id, event.reply as NodeReply<HeadFacts>);
    case 'begin':
      return onBegun(context, event.node, event.reply as NodeReply<{ head: number }>);
    case 'admit':
      return onAdmitted(context, event.node, event.reply as NodeReply<HeadFacts>);
    case 'rebase':
      return onRebased(context, event.node, event.reply as NodeReply<HeadFacts>);
    case 'write':
      return onWritten(context, event.node, busy, event.reply as NodeReply<{ head: number; request?: LeaderRequest }>);
    case 'backfill':
    case 'learn':
    case 'read':
      return;
  }
}

function onLearntReply(context: StepContext, event: Extract<TermEvent, { type: 'backfilled' }>): void {
  const { state } = context;
  const progress = state.nodes[event.node]!;
  const { busy } = progress;
  if (busy?.id !== event.id || busy.kind !== 'learn') return;
  callAnswered(progress);
  onLearnt(context, event, busy);
}

/**
 * Treats the node as if it lost its memory at this moment. Its vote for the block in flight no longer counts. Its
 * successor is admitted like any empty node.
 */
function replaceNode(context: StepContext, node: NodeIndex, url: string): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  const other = state.nodes.some(({ admission }, at) => at !== node && admission?.begun === false);
  if (other || state.change?.next) return; // the caller asks again
  const configuration = state.configuration && nextConfiguration(state, node, '', url);
  if (configuration === null) return; // the caller asks again
  adoptConfiguration(state, configuration, node);
  serverReplaced(progress, now);
  if (state.inflight) state.inflight.ackedAt[node] = -1;
  setStanding(context, node, 'unclaimed', 'an operator put another server in its place');
  openGate(context);
}

function stepdown(context: StepContext, code: StepdownCode, reason: string): void {
  const { state, now } = context;
  // A block in flight gets two node timeouts to finish, so that its submitters get an answer instead of "unknown".
  const by = state.inflight ? now + 2 * state.settings.nodeTimeoutMs : now;
  state.stopping ??= { code, reason, by };
  if (!state.inflight) end(context, code, reason);
}

/** Does what is due by now: continue without stragglers, retry, regain, renew, stop. */
function onTime(context: StepContext): void {
  const { state, now } = context;
  if (state.phase === 'ended') return;
  if (state.stopping && (!state.inflight || now >= state.stopping.by))
    return end(context, state.stopping.code, state.stopping.reason);
  endOnceNoted(context);
  if (state.ended) return;
  if (state.phase === 'promoting' || state.phase === 'claiming') stragglersWaitedFor(context);
  if (state.phase === 'adopting') adoptAfterClaims(context);
  if (
    state.gateUntil !== null &&
    now >= state.gateUntil &&
    !state.nodes.some((progress) => progress.busy?.kind === 'admit')
  )
    gateIsOver(context);
  if (state.phase === 'settling' || state.phase === 'leading') {
    for (let node = 0; node < state.nodes.length; node++) pump(context, node);
  }
}
