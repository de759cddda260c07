// What a claimed quorum holds, and what the term adopts from it (docs/PROTOCOL.md section 5, steps 4–6). Keeps I4: only
// the block with the highest epoch at the greatest claimed head can have been committed there. That block proves
// everything below it (I5).
import { nodeName } from './term-state.js';
import { backOff, callAnswered, callSent, counts } from './node-progress.js';
import { markDamaged } from './admission.js';
import { end, setStanding } from './ending.js';
import { countingNodes } from './members.js';
import type { Candidate, LocalChain, StepContext, TermEvent, TermState } from './term-state.js';
import type { Block, EntriesRead, NodeReply } from './types.js';

/**
 * Decides as soon as the facts allow it. Until then it asks one node for the candidate's blocks. It is called again
 * after every read and tick.
 */
export function adoptAfterClaims(context: StepContext): void {
  const { state, now, chain, out } = context;
  if (countingNodes(state) < state.settings.quorum) {
    const damaged = state.nodes.flatMap((progress, node) =>
      progress.standing === 'quarantined' && progress.damage
        ? [`${nodeName(state.settings, node)}: ${progress.damage.why}`]
        : [],
    );
    return damaged.length > 0
      ? end(context, 'DAMAGED_HEADS', `too few of the claimed nodes hold an undamaged head (${damaged.join('; ')})`)
      : end(context, 'CLAIM_LOST', 'too few of the claimed nodes still hold what they showed');
  }
  if (state.nodes.some((progress) => progress.busy?.kind === 'read')) return;
  const local = chain.head();
  const { height, candidates } = (state.adopt ??= candidatesOf(state));
  const best = candidates[0]!;
  const { chosen } = state.settings;
  if (
    chosen &&
    height === chosen.block.height &&
    chosen.block.parent === local.hash &&
    best.hash !== chosen.block.hash
  ) {
    if (best.epoch > chosen.over)
      return end(
        context,
        'CHOICE_OVERTAKEN',
        `at height ${height} ${best.hash.slice(0, 8)} was proposed under epoch ${best.epoch} since the ` +
          'choice was made, and may be committed',
      );
    // Two blocks of one epoch break I2. No rule of the protocol says which one was acknowledged, so a person decided.
    state.committed = { height: local.height, hash: local.hash };
    state.phase = 'settling';
    state.settleTo = height;
    state.adopt = null;
    return startBlock(state, chosen.block, true, now, undefined);
  }

  if (height < local.height) {
    // This store is ahead of the nodes. If they only lost data, the store's blocks are proposed again. If their chain
    // differs, this term never writes over it.
    const mine = chain.hashAt(height) ?? '';
    if (mine !== best.hash) return end(context, 'CHAIN_MISMATCH', mismatch(height, mine, best.hash));
    out.push({
      type: 'alarm',
      code: 'STORE_AHEAD',
      height: local.height,
      reason:
        `this store holds committed block ${local.height}, the claimed quorum ends at ${height}: nodes ` +
        'lost data they had acknowledged; it is proposed again from the store',
    });
    state.committed = { height, hash: mine };
    return settle(context, local.height);
  }
  if (height === local.height && best.hash === local.hash) return settle(context, height);
  if (best.epoch === Infinity) {
    // An empty stream's floor is committed, and no node has its data: a peer must have it.
    return height === local.height
      ? end(context, 'CHAIN_MISMATCH', mismatch(height, local.hash, best.hash))
      : end(
          context,
          'BEHIND',
          `the nodes' floor is ${height}, this store ends at ${local.height}: blocks between must come ` +
            'from a peer first',
        );
  }
  if (height - local.height > state.settings.maxAdopt) {
    return end(
      context,
      'BEHIND',
      `this store ends at ${local.height}, the nodes' head is ${height}: it must catch up before it can lead`,
    );
  }
  const from = Math.min(local.height + 1, height);
  const known = seenBefore(chain, from, height, best.hash);
  if (known) return takeOver(context, known, local);
  if (best.nodes.every((node) => state.nodes[node]!.floor >= from)) {
    return end(
      context,
      'BEHIND',
      `this store ends at ${local.height}, below the retained range of every node that holds the head (floor ` +
        `${Math.min(...best.nodes.map((node) => state.nodes[node]!.floor))}): it must catch up before it ` +
        'can lead',
    );
  }
  askForCandidate(context, best, from, height);
}

function candidatesOf(state: TermState): { height: number; candidates: Candidate[] } {
  const claimed = state.nodes.map((progress, node) => ({ progress, node })).filter(({ progress }) => counts(progress));
  const height = Math.max(...claimed.map(({ progress }) => progress.head));
  const byHash = new Map<string, Candidate>();
  for (const { progress, node } of claimed) {
    if (progress.head !== height) continue;
    const epoch = progress.head === progress.floor ? Infinity : progress.headEpoch;
    const known = byHash.get(progress.headHash);
    if (!known) byHash.set(progress.headHash, { hash: progress.headHash, epoch, nodes: [node] });
    else {
      known.epoch = Math.max(known.epoch, epoch);
      known.nodes.push(node);
    }
  }
  return { height, candidates: [...byHash.values()].sort((a, b) => b.epoch - a.epoch) };
}

function askForCandidate(context: StepContext, candidate: Candidate, from: number, to: number): void {
  const { state, now, out } = context;
  // Nodes with fewer failures come first, so that an unanswered read goes to another holder.
  const node = [...candidate.nodes]
    .filter((n) => state.nodes[n]!.floor < from && now >= state.nodes[n]!.retryAt && !state.nodes[n]!.busy)
    .sort((a, b) => state.nodes[a]!.failures - state.nodes[b]!.failures)[0];
  // all holders are in a pause: nextWake brings us here again, and the lease deadline bounds the wait
  if (node === undefined) return;
  callSent(state.nodes[node]!, { id: state.nextId, kind: 'read', startedAt: now });
  out.push({ type: 'read', node, id: state.nextId++, from, to });
}

export function onCandidateRead(context: StepContext, event: Extract<TermEvent, { type: 'read' }>): void {
  const { state, chain, out } = context;
  const progress = state.nodes[event.node]!;
  if (progress.busy?.id !== event.id) return;
  callAnswered(progress);
  if (state.phase !== 'adopting' || !state.adopt) return;
  if (event.reply.outcome !== 'accepted') return backOff(progress, state.settings, event.now);

  const { height } = state.adopt;
  const best = state.adopt.candidates[0]!;
  const local = chain.head();
  const first = Math.min(local.height + 1, height);
  const read =
    event.reply.incarnation === progress.incarnation
      ? checkRead(event.reply, first, height, best.hash)
      : { verdict: 'gone' as const, why: 'it lost its memory since it was claimed' };
  if (read.verdict === 'damaged') {
    out.push({ type: 'alarm', code: 'DAMAGED_ENTRY', node: event.node, height, reason: read.why });
    setStanding(context, event.node, 'quarantined', `its candidate at height ${height} is damaged: ${read.why}`);
    markDamaged(state, event.node, progress.incarnation, read.why);
    state.adopt = null;
    return;
  }
  if (read.verdict === 'gone') {
    // The node was wiped, or a later term trimmed or rebased it. What it showed no longer counts, and nothing is
    // damaged.
    setStanding(context, event.node, 'unclaimed', read.why);
    state.adopt = null;
    return;
  }
  if (read.verdict === 'moved')
    return end(
      context,
      'FENCED',
      `${nodeName(state.settings, event.node)} holds another block at height ${height} than it showed when claimed`,
    );
  takeOver(context, read.blocks, local);
}

/**
 * The candidate and the blocks that the store lacks below it, if this process has read them all before. The hash that
 * the claim returned identifies them.
 */
function seenBefore(chain: LocalChain, from: number, to: number, hash: string): Block[] | undefined {
  const blocks: Block[] = [];
  for (let height = to, name = hash; height >= from; height--) {
    const block = chain.seen?.(height, name);
    if (!block) return undefined;
    blocks.unshift(block);
    name = block.parent;
  }
  return blocks;
}

/** Everything below the candidate is committed (I5). The candidate itself is proposed again. */
function takeOver(context: StepContext, blocks: Block[], local: { height: number; hash: string }): void {
  const { state, now, out } = context;
  const below = blocks.slice(0, -1);
  const top = blocks.at(-1)!;
  const { height } = top;
  if (height === local.height) return end(context, 'CHAIN_MISMATCH', mismatch(height, local.hash, top.hash));
  if (blocks[0]!.parent !== local.hash)
    return end(context, 'CHAIN_MISMATCH', mismatch(local.height, local.hash, blocks[0]!.parent));
  if (below.length > 0) out.push({ type: 'adopted', blocks: below });
  const last = below.at(-1) ?? local;
  state.committed = { height: last.height, hash: last.hash };
  state.phase = 'settling';
  state.settleTo = height;
  state.adopt = null;
  startBlock(state, top, true, now, undefined);
}

function checkRead(
  reply: Extract<NodeReply<EntriesRead>, { outcome: 'accepted' }>,
  from: number,
  to: number,
  hash: string,
):
  | { verdict: 'good'; blocks: Block[] }
  | { verdict: 'damaged'; why: string }
  | { verdict: 'gone'; why: string }
  | { verdict: 'moved' } {
  const { entries, damaged } = reply.value;
  if (damaged.length > 0) return { verdict: 'damaged', why: `${damaged[0]!.id}: ${damaged[0]!.why}` };
  const blocks: Block[] = [];
  for (let height = from; height <= to; height++) {
    const entry = entries[height - from];
    if (!entry || (height === from && entry.height > from))
      return { verdict: 'gone', why: `it no longer holds the entry at height ${height} that it showed when claimed` };
    if (entry.height !== height || !entry.data) return { verdict: 'damaged', why: `no entry at height ${height}` };
    if (height > from && entry.parent !== blocks.at(-1)!.hash)
      return { verdict: 'damaged', why: `the entry at height ${height} does not link to the one below it` };
    blocks.push({ height, hash: entry.hash, parent: entry.parent, timestamp: entry.timestamp, data: entry.data });
  }
  return blocks.at(-1)!.hash === hash ? { verdict: 'good', blocks } : { verdict: 'moved' };
}

/**
 * Everything up to `to` is committed in the store. The term proposes again what the nodes lack of it, then it leads.
 */
function settle(context: StepContext, to: number): void {
  const { state } = context;
  state.phase = 'settling';
  state.settleTo = to;
  state.adopt = null;
  nextToSettle(context);
}

/** Asks for the next block to re-propose, or starts leading. */
export function nextToSettle(context: StepContext): void {
  const { state, out } = context;
  if (state.committed.height < state.settleTo) {
    out.push({ type: 'load', height: state.committed.height + 1 });
    return;
  }
  state.phase = 'leading';
  state.settings.damaged?.forEach((known, node) => {
    if (known && known.incarnation === state.nodes[node]!.incarnation)
      markDamaged(state, node, known.incarnation, known.why);
  });
  out.push({ type: 'leading', epoch: state.epoch });
  out.push({ type: 'ready', height: state.committed.height + 1, parent: state.committed.hash });
}

export function startBlock(
  state: TermState,
  block: Block,
  repair: boolean,
  now: number,
  trim: { to: number; hash: string } | undefined,
): void {
  state.inflight = { block, repair, trim, startedAt: now, ackedAt: new Array<number>(state.nodes.length).fill(-1) };
}

function mismatch(height: number, mine: string, theirs: string): string {
  return (
    `at height ${height} this store holds ${mine.slice(0, 8)}, the nodes prove ` +
    `${theirs.slice(0, 8)}: the two chains differ, nothing is proposed from it`
  );
}
