// Promotion and claim (docs/PROTOCOL.md section 5, steps 1–3). Keeps I1 (unique epochs) and I12 (a promotion is sent
// once per node). The claim makes epochs unique and the returned heads trustworthy. It goes only to the nodes that
// acknowledged their promotion before the first claim is sent. A wiped node that "joined late" would otherwise carry a
// promise that it never made.
import { nodeName } from './term-state.js';
import {
  callSent,
  clearFailures,
  countFailure,
  isNamed,
  markFenced,
  promotionAccepted,
  promotionSent,
  takeFacts,
  type NodeIndex,
} from './node-progress.js';
import { end, endIfStale, setStanding } from './ending.js';
import { anotherMemory, configurationOf, countingNodes, isMember } from './members.js';
import type { StepContext, TermState } from './term-state.js';
import type { Epoch, HeadFacts, NodeReply } from './types.js';
import { refusalText } from './refusals.js';

export function startPromotion(context: StepContext, votes: { node: NodeIndex; epoch: Epoch }[]): void {
  const { state, now, out } = context;
  const { owner, previousOwner, ttlMs, usableLeaseMs, quorum } = state.settings;
  state.startedAt = now;
  state.leaseDeadline = now + usableLeaseMs;
  const free = votes.filter(({ node }) => isMember(state, node));
  if (free.length < quorum)
    return end(context, 'PROMOTION_LOST', `only ${free.length} nodes are free, ${quorum} are needed`);
  for (const vote of free) {
    const progress = state.nodes[vote.node]!;
    promotionSent(progress, { id: state.nextId, kind: 'promote', startedAt: now });
    out.push({
      type: 'call',
      node: vote.node,
      id: state.nextId++,
      bytes: 0,
      call: {
        script: 'promote_leader',
        owner,
        expectedEpoch: vote.epoch,
        ttlMs,
        ...(previousOwner ? { previousOwner } : {}),
      },
    });
  }
}

export function onPromoted(context: StepContext, node: NodeIndex, reply: NodeReply<{ epoch: Epoch }>): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'accepted' && !isNamed(progress, reply.incarnation)) {
    anotherMemory(context, node);
  } else if (reply.outcome === 'accepted') {
    if (state.phase !== 'promoting') {
      // Too late for the claim. The node's lock is ours, but the node may only come back by regaining, as a follower of
      // the epoch.
      return setStanding(context, node, 'unclaimed', 'its promotion was acknowledged after the first claim');
    }
    promotionAccepted(progress, reply.value.epoch, reply.incarnation);
  } else {
    setStanding(
      context,
      node,
      'unclaimed',
      reply.outcome === 'refused' ? refusalText(reply) : `promotion unknown at ${reply.step}: ${reply.cause}`,
    );
  }
  if (state.phase !== 'promoting') return;
  const promoted = count(state, 'promoted');
  const waiting = count(state, 'promoting');
  if (promoted + waiting < state.settings.quorum) {
    return end(
      context,
      'PROMOTION_LOST',
      `${promoted} of the ${state.settings.quorum} promotions needed: ${reasons(state)}`,
    );
  }
  if (promoted >= state.settings.quorum) {
    if (waiting === 0) return startClaims(context);
    state.graceUntil = Math.min(state.graceUntil, now + state.settings.graceMs);
  }
}

function startClaims(context: StepContext): void {
  const { state } = context;
  state.phase = 'claiming';
  state.graceUntil = Infinity;
  for (const progress of state.nodes)
    if (progress.standing === 'promoted') state.epoch = Math.max(state.epoch, progress.promotedEpoch);
  state.nodes.forEach((progress, node) => {
    if (progress.standing === 'promoted') sendClaim(context, node);
  });
}

function sendClaim(context: StepContext, node: NodeIndex): void {
  const { state, now, out } = context;
  const progress = state.nodes[node]!;
  callSent(progress, { id: state.nextId, kind: 'claim', startedAt: now });
  out.push({
    type: 'call',
    node,
    id: state.nextId++,
    bytes: 0,
    call: { script: 'claim', owner: state.settings.owner, epoch: state.epoch, ...configurationOf(state) },
  });
}

export function onClaimed(context: StepContext, node: NodeIndex, reply: NodeReply<HeadFacts>): void {
  const { state, now } = context;
  const progress = state.nodes[node]!;
  if (reply.outcome === 'accepted' && reply.incarnation !== progress.incarnation) {
    // The node was re-admitted between promotion and claim: another memory made the promise (I11).
    setStanding(context, node, 'unclaimed', 'it was re-admitted while it was being claimed');
  } else if (reply.outcome === 'accepted') {
    takeFacts(progress, reply.value);
    setStanding(context, node, 'claimed', '');
  } else if (reply.outcome === 'unknown' && progress.failures < 2 && state.phase === 'claiming') {
    countFailure(progress); // a claim may be repeated: to make the same promise twice changes nothing
    return sendClaim(context, node);
  } else {
    if (reply.outcome === 'refused' && reply.reason === 'FENCING_ERROR') markFenced(progress);
    setStanding(
      context,
      node,
      'unclaimed',
      reply.outcome === 'refused' ? refusalText(reply) : `claim unknown at ${reply.step}: ${reply.cause}`,
    );
    if (reply.outcome === 'refused') endIfStale(context, node, reply);
  }
  if (state.phase !== 'claiming') return;
  const waiting = count(state, 'promoted');
  const claimed = countingNodes(state);
  if (claimed + waiting < state.settings.quorum) {
    return end(context, 'CLAIM_LOST', `${claimed} of the ${state.settings.quorum} claims needed: ${reasons(state)}`);
  }
  if (claimed >= state.settings.quorum) {
    if (waiting === 0) return startAdoption(state);
    state.graceUntil = Math.min(state.graceUntil, now + state.settings.graceMs);
  }
}

function startAdoption(state: TermState): void {
  state.phase = 'adopting';
  state.graceUntil = Infinity;
  for (const progress of state.nodes) clearFailures(progress);
}

/** Continues with a quorum when the time for stragglers is over. */
export function stragglersWaitedFor(context: StepContext): void {
  const { state, now } = context;
  if (now < state.graceUntil) return;
  if (state.phase === 'promoting') startClaims(context);
  else if (state.phase === 'claiming') startAdoption(state);
}

function count(state: TermState, standing: 'promoting' | 'promoted'): number {
  let found = 0;
  for (const progress of state.nodes) if (progress.standing === standing) found++;
  return found;
}

function reasons(state: TermState): string {
  return state.nodes
    .map((progress, node) =>
      progress.standing === 'unclaimed' || progress.standing === 'quarantined'
        ? `${nodeName(state.settings, node)}: ${progress.why}`
        : '',
    )
    .filter(Boolean)
    .join('; ');
}
