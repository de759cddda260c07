// What the sequencers say about themselves, merged over all nodes. Of each sequencer, the newest record wins. The
// records say nothing about leadership. Pure.
import type { Height, NodeView, Presence } from '../protocol/types.js';

export interface SequencerRow {
  id: string;
  role: Presence['role'];
  height: Height;
  /** Committed blocks that its store lacks. null when the committed head is unknown. */
  lagBlocks: number | null;
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
  /** Whether its store is inside the nodes' retained range, by its own statement. */
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
 * Compares by the sequencer's own clock when both records state a time. Otherwise it compares the time left, which is
 * longest on the node that got the record last.
 */
function isNewer(a: Presence, b: Presence): boolean {
  const [atA, atB] = [Number(a.extra['seenAtMs']), Number(b.extra['seenAtMs'])];
  if (atA > 0 && atB > 0 && atA !== atB) return atA > atB;
  return a.pttlMs > b.pttlMs;
}
