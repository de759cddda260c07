// What have the sequencers announced? Each tells every node. So a record counts when q nodes show one that reaches the
// height, and when it expires as records do. One node's record alone, or one that never expires because it was written
// by hand, must not keep everybody from leading.
import type { Height, NodeView, Presence } from '../protocol/types.js';

export interface Announced {
  id: string;
  /** 0: nothing is announced. */
  height: Height;
}

/** A record is renewed every poll and lives for four polls, and at least this long. */
export const RECORD_TTL_MS = 3000;
const COUNTDOWN_SLACK_MS = 100;

/** The most that a record of this sequencer has to live, by its own word. null: it does not say. */
export function recordTtl({ extra }: Pick<Presence, 'extra'>): number | null {
  const told = Number(extra['recordTtlMs']);
  return Number.isSafeInteger(told) && told > 0 ? told : null;
}

/** False for one that expires later than any record can: a server's clock has stepped, or somebody wrote it by hand. */
export function expiresAsRecordsDo(presence: Pick<Presence, 'pttlMs' | 'extra'>): boolean {
  const told = recordTtl(presence);
  return presence.pttlMs >= 0 && (told === null || presence.pttlMs <= told + COUNTDOWN_SLACK_MS);
}

/** The highest block that a sequencer other than `except` has announced to q nodes. `views`: admitted nodes. */
export function highestAnnounced(
  views: readonly Pick<NodeView, 'sequencers'>[],
  quorum: number,
  except?: string,
): Announced {
  const told = new Map<string, Height[]>();
  for (const { sequencers } of views)
    for (const presence of sequencers)
      if (presence.id !== except && expiresAsRecordsDo(presence))
        told.set(presence.id, [...(told.get(presence.id) ?? []), presence.height]);
  let most: Announced = { id: '', height: 0 };
  for (const [id, heights] of told) {
    const height = heights.sort((a, b) => b - a)[quorum - 1] ?? 0;
    if (height > most.height) most = { id, height };
  }
  return most;
}
