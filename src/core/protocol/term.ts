// One term as a pure function: step(state, event) → effects. Promotion, claim, adoption, re-proposal, leading,
// ending (docs/PROTOCOL.md sections 5 and 6). Production, simulator and model run this very code; nothing here waits,
// reads a clock or draws a number. `step` changes the state it is given (the model copies before it steps).
import { callAnswered, cloneProgress, configurationNoted, serverReplaced, type NodeIndex } from './node-progress.js';
import { gateIsOver, markDamaged, onAdmitted, onBegun, onLearnt, openGate } from './admission.js';
import { adoptAfterClaims, onCandidateRead } from './adoption.js';
import {
  fix,
  onBackfilled,
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
import { adoptConfiguration, nextConfiguration } from './members.js';
import type { Effect, LocalChain, StepContext, TermEvent, TermState } from './term-state.js';
import type { NodeReply, NodeView, HeadFacts, LeaderRequest } from './types.js';

export function step(state: TermState, event: TermEvent, chain: LocalChain): Effect[] {
  const out: Effect[] = [];
  if (state.phase === 'ended') return out;
  const context: StepContext = { state, now: event.now, chain, out };
  if (event.type !== 'start' && event.now >= state.leaseDeadline) {
    // A commit whose last reply came too late is still a commit for whoever reads it next; this term may not act on
    // it any more.
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
    case 'tick':
      break;
  }
  onTime(context);
  return out;
}

/**
 * When the next tick is due after one at `now` (same clock as the events); Infinity when only replies can change
 * anything.
 */
export function nextWake(state: TermState, now: number): number {
  if (state.phase === 'ended') return Infinity;
  let at = Math.min(state.leaseDeadline, state.graceUntil);
  if (state.stopping) at = Math.min(at, state.stopping.by);
  if (state.gateUntil !== null && state.gateUntil > now) at = Math.min(at, state.gateUntil);
  if (state.phase === 'promoting' || state.phase === 'claiming') return at;
  for (const progress of state.nodes) {
    // What was due by now has been done by the tick that just ran.
    if (!progress.busy && (progress.standing !== 'quarantined' || progress.damage) && progress.retryAt > now)
      at = Math.min(at, progress.retryAt);
  }
  return at;
}

/**
 * A copy that shares payloads and settings only; for the model, which makes millions of them (hence field by field,
 * not spread).
 */
export function cloneTerm(s: TermState): TermState {
  const { inflight, adopt, stopping, ended } = s;
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
    nextTurn: s.nextTurn,
    nextId: s.nextId,
    ended: ended && { code: ended.code, reason: ended.reason },
  };
}

function onReply(context: StepContext, event: Extract<TermEvent, { type: 'reply' }>): void {
  const { state } = context;
  const progress = state.nodes[event.node]!;
  const busy = progress.busy;
  if (!busy || busy.id !== event.id) return; // an answer to something given up on: it proves nothing about now
  callAnswered(progress);
  // A claim that was accepted has carried the configuration.
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
 * As if it had lost its memory this moment: what it accepted of the block in flight counts no more, and its successor
 * is admitted like any empty node.
 */
function replaceNode(context: StepContext, node: NodeIndex, url: string): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  const other = state.nodes.some(({ admission }, at) => at !== node && admission?.begun === false);
  const configuration = other ? null : state.configuration && nextConfiguration(state, node, '', url);
  if (configuration === null) return; // whoever asked asks again
  adoptConfiguration(state, configuration, node);
  serverReplaced(progress, now);
  if (state.inflight) state.inflight.ackedAt[node] = -1;
  setStanding(context, node, 'unclaimed', 'it is at another address now');
  openGate(context);
}

function stepdown(context: StepContext, code: string, reason: string): void {
  const { state, now } = context;
  // A block in flight is given one node timeout (and its size's time) to finish: its submitters get an answer instead
  // of "unknown".
  const by = state.inflight ? now + 2 * state.settings.nodeTimeoutMs : now;
  state.stopping ??= { code, reason, by };
  if (!state.inflight) end(context, code, reason);
}

/** What the passing of time allows: go on without stragglers, retry, regain, renew, stop. */
function onTime(context: StepContext): void {
  const { state, now } = context;
  if (state.phase === 'ended') return;
  if (state.stopping && (!state.inflight || now >= state.stopping.by))
    return end(context, state.stopping.code, state.stopping.reason);
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
