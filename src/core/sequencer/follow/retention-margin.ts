// Is a follower still inside the range that the nodes retain (docs/PROTOCOL.md section 7)? Below that range only a peer
// has the blocks that it needs. The warning comes while there is still time, once an episode. It ends only with room to
// spare, so that a follower at the edge does not warn again and again.
import type { Height } from '../../protocol/types.js';

export type RetentionMargin = 'inside' | 'falling' | 'outside';

/** Every follower is sometimes this many blocks behind. */
const LEAST_LAG = 10;
const WARN_SHARE = 1 / 4;
const CALM_SHARE = 1 / 2;

/** `mine` is the store's head. `floor` and `head` are those of the nodes that hold more, 0 when no node does. */
export function retentionMargin(
  before: RetentionMargin,
  mine: Height,
  nodes: { floor: Height; head: Height },
): RetentionMargin {
  if (nodes.head <= mine) return 'inside';
  if (mine < nodes.floor) return 'outside';
  if (nodes.head - mine < LEAST_LAG) return 'inside';
  const share = (mine - nodes.floor) / (nodes.head - nodes.floor);
  // At floor 0 nothing was trimmed yet, so the range has not begun to move away.
  if (nodes.floor === 0) return 'inside';
  return share < WARN_SHARE || (before !== 'inside' && share < CALM_SHARE) ? 'falling' : 'inside';
}
