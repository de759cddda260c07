// The sequencers' own words, merged over all nodes: of each sequencer the newest record wins. They say nothing about
// leadership. Pure.
import type { Height, NodeView, Presence } from '../protocol/types.js';

export interface SequencerRow {
  id: string;
  role: Presence['role'];
  height: Height;
  /** Committed blocks its store lacks; null when the committed head is unknown. */
  lagBlocks: number | null;
  /** Age of its newest record, ms, by the node's clock; null when the record does not tell. */
  seenMs: number | null;
  url: string;
  version: string;
  pid: number;
  configDigest: string;
  /** False when it says that it could not lead; `why` is its reason. */
  ready: boolean;
  why: string;
  host: string;
  /** A leader that keeps fewer blocks on the nodes than it was told to: what it says of that; '' otherwise. */
  retentionWhy: string;
  /** Whether its store keeps within what the nodes retain, as it says itself. */
  margin: 'inside' | 'falling' | 'outside';
}

export function mergePresence(views: readonly NodeView[], committed: Height | null): SequencerRow[] {
  const newest = new Map<string, { presence: Presence; timeMs: number }>();
  for (const view of views) {
    for (const presence of view.sequencers) {
      const known = newest.get(presence.id);
      if (known === undefined || isNewer(presence, known.presence))
        newest.set(presence.id, { presence, timeMs: view.timeMs });
    }
  }
  return [...newest.values()]
    .map(({ presence, timeMs }): SequencerRow => {
      const saidAt = Number(presence.extra['seenAtMs']);
      return {
        id: presence.id,
        role: presence.role,
        height: presence.height,
        lagBlocks: committed === null ? null : Math.max(0, committed - presence.height),
        seenMs: Number.isSafeInteger(saidAt) && saidAt > 0 ? Math.max(0, timeMs - saidAt) : null,
        url: presence.url,
        version: presence.version,
        pid: presence.pid,
        configDigest: presence.configDigest,
        ready: !['false', '0', 'no'].includes(presence.extra['ready'] ?? ''),
        why: presence.extra['why'] ?? '',
        host: presence.extra['host'] ?? '',
        retentionWhy: presence.extra['retentionWhy'] ?? '',
        margin:
          presence.extra['margin'] === 'falling' || presence.extra['margin'] === 'outside'
            ? presence.extra['margin']
            : 'inside',
      };
    })
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}

/**
 * By the sequencer's own clock where it says one; else by the time left, which is longest on the node that heard it
 * last.
 */
function isNewer(a: Presence, b: Presence): boolean {
  const [atA, atB] = [Number(a.extra['seenAtMs']), Number(b.extra['seenAtMs'])];
  if (atA > 0 && atB > 0 && atA !== atB) return atA > atB;
  return a.pttlMs > b.pttlMs;
}
