// Who led under which epoch? A copy that a later leader filled in bears the original epoch and the copier's owner. So
// an owner token alone proves nothing. One token is one term, and a term has one epoch: the highest that the token ever
// appears with, on an entry or as a node's claimant. Only what a token wrote under that epoch is its own. Pure.
import { quorumOf } from '../protocol/quorum.js';
import { sequencerOf, type Entry, type Epoch, type Owner } from '../protocol/types.js';
import type { NodeProbe } from '../view/cluster-view.js';

/** More than one sequencer may have led under this epoch, or nobody who did has left anything. */
export const UNKNOWN_LEADER = '?';

interface Seen {
  epoch: Epoch;
  /** It wrote a block under its own epoch. */
  wrote: boolean;
  /** One of these blocks stands on a quorum with this token. */
  onQuorum: boolean;
}

export class TermOwners {
  private readonly tokens = new Map<Owner, Seen>();

  constructor(
    probes: readonly NodeProbe[],
    private readonly configured: number,
  ) {
    for (const { reply } of probes)
      if (reply.outcome === 'accepted' && reply.value.admission !== 'foreign' && reply.value.claimant !== '')
        this.token(reply.value.claimant, reply.value.epoch);
  }

  /** Takes what the nodes hold at some heights: each node's entries, of all nodes at once. */
  take(entries: ReadonlyMap<string, readonly Entry[]>): void {
    const copies = new Map<string, number>();
    for (const of of entries.values())
      for (const { owner, epoch, height, hash } of of) {
        if (epoch === 0 || this.token(owner, epoch).epoch !== epoch) continue;
        const block = `${owner} ${epoch} ${height} ${hash}`;
        copies.set(block, (copies.get(block) ?? 0) + 1);
      }
    for (const [block, count] of copies) {
      const [owner = '', epoch] = block.split(' ');
      const seen = this.token(owner, Number(epoch));
      if (seen.epoch !== Number(epoch)) continue;
      seen.wrote = true;
      seen.onQuorum ||= count >= quorumOf(this.configured);
    }
  }

  /** The sequencer that led under this epoch, or `?`. */
  leader(epoch: Epoch): string {
    const own = [...this.tokens].filter(([, seen]) => seen.epoch === epoch && seen.wrote);
    // A leader writes each of its blocks to a quorum. A copier fills the nodes that lack it.
    return onlyOne(own) ?? onlyOne(own.filter(([, seen]) => seen.onQuorum)) ?? UNKNOWN_LEADER;
  }

  private token(owner: Owner, epoch: Epoch): Seen {
    const known = this.tokens.get(owner);
    if (known !== undefined && known.epoch >= epoch) return known;
    // What this token wrote under a lower epoch was a copy.
    const seen = { epoch, wrote: false, onQuorum: false };
    this.tokens.set(owner, seen);
    return seen;
  }
}

function onlyOne(tokens: readonly (readonly [Owner, Seen])[]): string | null {
  const ids = new Set(tokens.map(([owner]) => sequencerOf(owner)));
  return ids.size === 1 ? ([...ids][0] as string) : null;
}
