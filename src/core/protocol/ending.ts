// How a term ends: once, with a stable code and a sentence. Releasing the locks is the driver's job (it may have to
// outlive the state).
import { changeStanding, type NodeIndex, type Standing } from './node-progress.js';
import { knowsMore } from './node-addresses.js';
import type { Refused } from './types.js';
import type { StepContext, TermState } from './term-state.js';

export function end(context: StepContext, code: string, reason: string): void {
  const { state, out } = context;
  if (state.phase === 'ended') return;
  state.phase = 'ended';
  state.ended = { code, reason };
  out.push({ type: 'ended', end: state.ended });
}

/** What a claim says of replaced nodes. */
export function movesOf(state: TermState): { moves?: string } {
  return state.moves === '' ? {} : { moves: state.moves };
}

/**
 * Somebody has moved a node since this term began, or in a term that it knows nothing of: it counts servers that
 * may not be counted (I13).
 */
export function endIfMoved(context: StepContext, node: NodeIndex, reply: Refused): void {
  const { state } = context;
  if (reply.reason === 'NODE_MOVED' && knowsMore(reply.detail.actual ?? '', state.moves))
    end(context, 'MOVED', `node ${node + 1} knows of a replaced node at another address: ${reply.detail.actual}`);
}

/** Nodes that this term holds. */
export function claimedCount(state: TermState): number {
  let count = 0;
  for (const progress of state.nodes) if (progress.standing === 'claimed') count++;
  return count;
}

/** Changes where a node stands and says so once. */
export function setStanding(context: StepContext, node: NodeIndex, standing: Standing, why: string): void {
  const { out } = context;
  const progress = context.state.nodes[node]!;
  if (changeStanding(progress, standing, why)) out.push({ type: 'node', node, standing, why });
}
