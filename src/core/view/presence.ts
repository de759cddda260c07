// What the sequencers say about themselves, merged over all nodes. Of each sequencer, the newest record wins. The
// records say nothing about leadership. Pure.
import { expiresAsRecordsDo, RECORD_TTL_MS, recordTtl } from '../nodes/announced.js';
import type { Height, NodeView, Presence } from '../protocol/types.js';

export interface SequencerRow {
  id: string;
  role: Presence['role'];
  height: Height;
  /** Committed blocks that its store lacks. null when the committed head is unknown. */
  lag: number | null;
  /** Age of its newest record, ms, by the node's clock. null when the record does not say. */
  seenMs: number | null;
  url: string;
  version: string;
  pid: number;
  configDigest: string;
  /** False when the sequencer says that it could not lead. `why` is its reason. */
  ready: boolean;
  why: string;
  host: string;
  /** The reason of a leader that keeps fewer blocks on the nodes than its configuration says. '' otherwise. */
  retentionWhy: string;
  /** The heights at which its own store is damaged and not repaired yet. '' when there are none. */
  storeDamaged: string;
  /** The producer of its blocks, as lanes agree on it. '' when it does not say. */
  producer: string;
  /** Whether its store is inside the nodes' retained range, by its own statement. */
  margin: 'inside' | 'falling' | 'outside';
  /**
   * False when it has missed several announcements. Decided by the time that its records have left, so no two clocks
   * are compared. A record that expires later than any record can was not renewed since that server's clock stepped.
   */
  alive: boolean;
  /** The ttl of its lease and its block time, as it announces them. null when it does not say. */
  ttlMs: number | null;
  blockTimeMs: number | null;
}

/** A sequencer of the last day that announces itself no more. */
export interface AbsentSequencer {
  id: string;
  /** How long ago it was last seen, by the nodes' clocks. */
  seenMs: number;
}

export function mergePresence(views: readonly NodeView[], committed: Height | null): SequencerRow[] {
  const newest = new Map<string, { presence: Presence; timeMs: number }>();
  const alive = new Set<string>();
  for (const view of views) {
    for (const presence of view.sequencers) {
      if (isFresh(presence)) alive.add(presence.id);
      const known = newest.get(presence.id);
      if (known === undefined || isNewer(presence, known.presence))
        newest.set(presence.id, { presence, timeMs: view.timeMs });
    }
  }
  return [...newest.values()]
    .map(({ presence, timeMs }): SequencerRow => {
      const saidAt = Number(presence.extra['seenAtMs']);
      // It has measured how far its own clock is off: its time is put right by that.
      const clockOffMs = Number(presence.extra['clockOffMs']) || 0;
      return {
        id: presence.id,
        role: presence.role,
        height: presence.height,
        lag: committed === null ? null : Math.max(0, committed - presence.height),
        seenMs: Number.isSafeInteger(saidAt) && saidAt > 0 ? Math.max(0, timeMs - saidAt + clockOffMs) : null,
        url: presence.url,
        version: presence.version,
        pid: presence.pid,
        configDigest: presence.configDigest,
        ready: !['false', '0', 'no'].includes(presence.extra['ready'] ?? ''),
        why: presence.extra['why'] ?? '',
        host: presence.extra['host'] ?? '',
        retentionWhy: presence.extra['retentionWhy'] ?? '',
        storeDamaged: presence.extra['storeDamaged'] ?? '',
        producer: presence.extra['producer'] ?? '',
        margin:
          presence.extra['margin'] === 'falling' || presence.extra['margin'] === 'outside'
            ? presence.extra['margin']
            : 'inside',
        alive: alive.has(presence.id),
        ttlMs: positive(presence.extra['ttlMs']),
        blockTimeMs: positive(presence.extra['blockTimeMs']),
      };
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * Compares by the sequencer's own clock when both records state a time. Otherwise it compares the time left, which is
 * longest on the node that got the record last.
 */
function isNewer(a: Presence, b: Presence): boolean {
  const [atA, atB] = [Number(a.extra['seenAtMs']), Number(b.extra['seenAtMs'])];
  if (atA > 0 && atB > 0 && atA !== atB) return atA > atB;
  return a.pttlMs > b.pttlMs;
}

/** Its record on this node was renewed lately: at least half of the record's time is left, and no more than all. */
function isFresh(presence: Presence): boolean {
  return presence.pttlMs >= (recordTtl(presence) ?? RECORD_TTL_MS) / 2 && expiresAsRecordsDo(presence);
}

/** The sequencers that no node shows any more, the last seen first. */
export function absentSequencers(views: readonly NodeView[]): AbsentSequencer[] {
  const present = new Set(views.flatMap((view) => view.sequencers.map(({ id }) => id)));
  const seen = new Map<string, number>();
  for (const view of views)
    for (const { id, seenAtMs } of view.absent ?? []) {
      const seenMs = Math.max(0, view.timeMs - seenAtMs);
      if (!present.has(id)) seen.set(id, Math.min(seen.get(id) ?? Infinity, seenMs));
    }
  return [...seen].map(([id, seenMs]) => ({ id, seenMs })).sort((a, b) => a.seenMs - b.seenMs);
}

function positive(text: string | undefined): number | null {
  const value = Number(text);
  return Number.isSafeInteger(value) && value > 0 ? value : null;
}
