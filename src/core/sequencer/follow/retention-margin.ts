// Whether a follower keeps within what the nodes retain (docs/PROTOCOL.md section 7): behind their window only a peer
// can bring it back. Told while there is still time, once an episode, and taken back only with room to spare, so that
// a follower at the edge does not flicker.
import type { Height } from '../../protocol/types.js';

export type RetentionMargin = 'inside' | 'falling' | 'outside';

/** So many blocks behind is every follower now and then. */
const LEAST_LAG = 10;
const WARN_SHARE = 1 / 4;
const CALM_SHARE = 1 / 2;

/** `mine`: the store's head; `floor` and `head`: of the nodes that hold more (both 0 when none does). */
export function retentionMargin(
  before: RetentionMargin,
  mine: Height,
  nodes: { floor: Height; head: Height },
): RetentionMargin {
  if (nodes.head <= mine) return 'inside';
  if (mine < nodes.floor) return 'outside';
  if (nodes.head - mine < LEAST_LAG) return 'inside';
  const share = (mine - nodes.floor) / (nodes.head - nodes.floor);
  // At floor 0 nothing was trimmed yet: the window has not begun to move away.
  if (nodes.floor === 0) return 'inside';
  return share < WARN_SHARE || (before !== 'inside' && share < CALM_SHARE) ? 'falling' : 'inside';
}
