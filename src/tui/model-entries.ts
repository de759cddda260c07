// What is known of one node's newest entries, and which heights still have to be read. Pure. An entry is forgotten when
// the node's head facts or the parent of the next entry contradict it (it was superseded), or when the node's memory
// has changed.
import type { DamagedEntry, EntriesRead, Entry, Height, NodeView } from '../core/protocol/types.js';

/** Heights kept per node. */
const ENTRY_COUNT = 32;

export interface KnownEntries {
  incarnation: string;
  entries: readonly Entry[];
  damaged: readonly DamagedEntry[];
  /** The range that was read, inclusive. to < from: nothing. */
  from: Height;
  to: Height;
}

export const NO_ENTRIES: KnownEntries = { incarnation: '', entries: [], damaged: [], from: 1, to: 0 };

/** The heights to read next. Null when all of the newest ENTRY_COUNT are known. */
export function wantedEntries(known: KnownEntries, view: NodeView): { from: Height; to: Height } | null {
  if (view.head <= view.floor) return null;
  const lowest = Math.max(view.floor + 1, view.head - ENTRY_COUNT + 1);
  const still = checked(known, view);
  const from = still.to >= lowest && still.from <= lowest ? still.to + 1 : lowest;
  return from > view.head ? null : { from, to: view.head };
}

/**
 * What to read of a node for a height that is open as a detail, after it has left the newest heights. Null when it is
 * known.
 */
export function wantedPinned(
  known: KnownEntries,
  pinned: KnownEntries,
  view: NodeView,
  height: Height,
): { from: Height; to: Height } | null {
  if (height <= view.floor || height > view.head) return null;
  if (known.from <= height && known.to >= height) return null;
  const still = checked(pinned, view);
  return still.from <= height && still.to >= height ? null : { from: height, to: Math.min(height + 1, view.head) };
}

/** The entries without those that `view` contradicts. */
export function checked(known: KnownEntries, view: NodeView): KnownEntries {
  if (known.to < known.from) return known;
  if (known.incarnation !== view.incarnation || known.to < view.floor || known.from > view.head) return NO_ENTRIES;
  const atHead = known.entries.find((entry) => entry.height === view.head);
  const superseded = atHead !== undefined && (atHead.hash !== view.headHash || atHead.epoch !== view.headEpoch);
  const to = Math.min(known.to, superseded ? view.head - 1 : view.head);
  return to === known.to ? known : below(known, to);
}

function below(known: KnownEntries, to: Height): KnownEntries {
  return {
    ...known,
    to,
    entries: known.entries.filter((entry) => entry.height <= to),
    damaged: known.damaged.filter((bad) => (bad.height ?? 0) <= to),
  };
}

export function addEntries(
  known: KnownEntries,
  read: EntriesRead,
  range: { from: Height; to: Height },
  incarnation: string,
): KnownEntries {
  const joins = known.incarnation === incarnation && known.to === range.from - 1 && known.to >= known.from;
  const first = read.entries.find((entry) => entry.height === range.from);
  const before = known.entries.find((entry) => entry.height === range.from - 1);
  // The previous head has been replaced since it was read: read all entries again.
  if (joins && first !== undefined && before !== undefined && first.parent !== before.hash) return NO_ENTRIES;
  const entries = joins ? [...known.entries, ...read.entries] : read.entries;
  const damaged = joins ? [...known.damaged, ...read.damaged] : read.damaged;
  const from = Math.max(joins ? known.from : range.from, range.to - ENTRY_COUNT + 1);
  return {
    incarnation,
    from,
    to: range.to,
    entries: entries.filter((entry) => entry.height >= from && entry.height <= range.to),
    damaged: damaged.filter((bad) => bad.height === null || bad.height >= from).slice(-ENTRY_COUNT),
  };
}
