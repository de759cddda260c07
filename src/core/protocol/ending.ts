// How a term ends: once, with a stable code and a sentence. Releasing the locks is the driver's job (it may have to
// outlive the state).
import { knowsMore } from './node-addresses.js';
import type { Refused } from './types.js';
import type { NodeIndex, NodeTrack, Standing, StepContext, TermState } from './term-state.js';

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
  for (const track of state.nodes) if (track.standing === 'claimed') count++;
  return count;
}

/** Changes where a node stands and says so once. */
export function setStanding(context: StepContext, node: NodeIndex, standing: Standing, why: string): void {
  const { out } = context;
  const track = context.state.nodes[node]!;
  if (track.standing === standing && track.why === why) return;
  track.standing = standing;
  track.why = why;
  out.push({ type: 'node', node, standing, why });
}

/**
 * A pause that doubles with every failure in a row, up to ten node timeouts: a dead node costs little, a live one is
 * back soon.
 */
export function backOff(state: TermState, track: NodeTrack, now: number): void {
  const { retryMs, nodeTimeoutMs } = state.settings;
  track.failures++;
  track.retryAt = now + Math.min(retryMs * 2 ** Math.min(track.failures - 1, 10), nodeTimeoutMs * 10);
}
