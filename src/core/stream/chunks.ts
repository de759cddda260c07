// Reads every node's entries over a range of heights, one bounded piece at a time, merged by height (docs/PROTOCOL.md
// section 9). It only reads. Payloads are read to check hashes, and dropped at once unless the caller wants them. So
// memory does not grow with the streams, nor, beyond one piece, with the size of blocks. A piece that does not come in
// time may only be too large, so it is asked for again in smaller pieces. The last try is a single height, with the
// time that the largest block takes. A node that misses that, too, is not waited for again.
import { MAX_BLOCK_BYTES } from '../config.js';
import type { Clock, NodePort } from '../ports.js';
import { shownBy } from '../protocol/copies.js';
import type { NodeLedger } from '../protocol/ledger.js';
import type { Entry, Height, NodeView } from '../protocol/types.js';
import type { NodeProbe } from '../view/cluster-view.js';
import { membershipOf } from '../view/membership.js';
import { bounded } from '../nodes/ask-all.js';

/** Payload bytes of one piece on one node. */
const PIECE_BYTES = 4 * 1024 * 1024;
const FIRST_PIECE = 16;
/**
 * Entries of one piece on all nodes together. With so few, V8 frees them while they are young, before it moves them to
 * the old generation.
 */
const MOST_ENTRIES = 1536;
/** Pieces of fewer heights are not requested ahead of time. */
const AHEAD_FROM = 8;
/** More entries than any server holds. */
const MOST_HELD = 50_000_000;
/** Time for a piece on top of the node timeout: twice the time that 50 MB/s needs. */
const PIECE_MS = (2 * PIECE_BYTES) / 50_000;
/** A single height comes with its two neighbours. Each of the three may be as large as a block can be. */
const ONE_HEIGHT_MS = (2 * 3 * MAX_BLOCK_BYTES) / 50_000;
/** The next try is smaller by this factor. */
const SHRINK = 8;

export interface ChunkOptions {
  nodes: readonly NodePort[];
  probes: readonly NodeProbe[];
  expectedCluster?: string;
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
  from: Height;
  to: Height;
  newestFirst: boolean;
  keepData?: boolean;
}

export interface Chunk {
  /** Heights of this piece. The entries one below and one above are included, for links and proofs. */
  from: Height;
  to: Height;
  ledgers: NodeLedger[];
  /** By node id, in ascending order. Only nodes that answered. */
  entries: Map<string, Entry[]>;
}

export async function* readChunks(options: ChunkOptions): AsyncGenerator<Chunk> {
  const { nodes, probes, from, to, newestFirst, signal } = options;
  // Null: nobody knows who the members are. Then the nodes that were named count.
  const { configuration } = membershipOf(probes, options.expectedCluster);
  const views = new Map(
    probes.flatMap((o): [string, NodeView][] =>
      o.reply.outcome === 'accepted' && isOurs(o.reply.value) ? [[o.id, o.reply.value]] : [],
    ),
  );
  const silent = new Set<string>();
  let count = FIRST_PIECE;
  let low = newestFirst ? to + 1 : from;
  let high = newestFirst ? to : from - 1;
  const readPiece = async (asked: ReadonlySet<NodePort>, from: Height, to: Height) => {
    const range = { from: Math.max(1, from - 1), to: to + 1 };
    const limitMs = options.limitMs + (from === to ? ONE_HEIGHT_MS : PIECE_MS);
    const entries = new Map<string, Entry[]>();
    const late: string[] = [];
    const refused: string[] = [];
    const ledgers = await Promise.all(
      nodes.map(async (node): Promise<NodeLedger> => {
        const view = views.get(node.id);
        if (view === undefined || !asked.has(node)) return { id: node.id, answered: false };
        const read = await bounded(
          node.read({ ...range, limit: 2 * (range.to - range.from + 1) + 4, data: true }, limitMs),
          limitMs,
          options.clock,
        );
        if (read.outcome !== 'accepted') {
          (read.outcome === 'unknown' ? late : refused).push(node.id);
          return { id: node.id, answered: false };
        }
        entries.set(node.id, read.value.entries);
        return {
          id: node.id,
          answered: true,
          admitted: view.admission === 'admitted' && read.incarnation === view.incarnation,
          facts: view,
          entries: read.value.entries,
          damaged: read.value.damaged,
          covers: range,
          shown: configuration && shownBy(view),
        };
      }),
    );
    return { ledgers, entries, late, refused };
  };
  /** Requests the next piece. null at the end. */
  const askNext = () => {
    if (!(newestFirst ? low > from : high < to) || signal?.aborted) return null;
    if (newestFirst) [low, high] = [Math.max(from, low - count), low - 1];
    else [low, high] = [high + 1, Math.min(to, high + count)];
    const asked = new Set(nodes.filter((node) => views.has(node.id) && !silent.has(node.id)));
    return { asked, coming: readPiece(asked, low, high) };
  };
  for (let next = askNext(); next !== null;) {
    const { asked, coming } = next;
    let piece = await coming;
    while (piece.late.length > 0 && high > low && !signal?.aborted) {
      count = Math.max(1, Math.floor((high - low + 1) / SHRINK));
      if (newestFirst) low = high - count + 1;
      else high = low + count - 1;
      piece = await readPiece(asked, low, high);
    }
    for (const id of [...piece.late, ...piece.refused]) silent.add(id);
    const { entries, ledgers } = piece;
    let largest = 1;
    for (const of of entries.values()) {
      for (const entry of of) {
        largest = Math.max(largest, entry.size);
        if (!options.keepData) delete entry.data;
      }
    }
    const chunk = { from: low, to: high, ledgers, entries };
    count = Math.max(1, Math.min(Math.ceil(MOST_ENTRIES / nodes.length), count * 4, Math.floor(PIECE_BYTES / largest)));
    // The servers read the next piece while the caller works on this one. Large blocks would be in memory twice.
    next = entries.size > 0 && count >= AHEAD_FROM ? askNext() : null;
    yield chunk;
    // No node is left to read from. All further heights would be unknown, and the verdict says that already.
    if (entries.size === 0) return;
    next ??= askNext();
  }
}

/** A node of another cluster has its own heights. They mean nothing here. */
function isOurs(view: NodeView): boolean {
  return view.admission !== 'foreign' && view.admission !== 'pristine';
}

/** Lowest and highest height that any of these nodes holds. null when they hold none. */
export function heldRange(
  probes: readonly NodeProbe[],
  ids?: ReadonlySet<string>,
): { from: Height; to: Height } | null {
  let from = Infinity;
  let to = 0;
  for (const { id, reply } of probes) {
    if (
      reply.outcome !== 'accepted' ||
      !isOurs(reply.value) ||
      (ids && !ids.has(id)) ||
      reply.value.head <= reply.value.floor
    )
      continue;
    from = Math.min(from, reply.value.floor + 1);
    // A record that somebody changed by hand may name any head, so the range is bounded.
    to = Math.max(to, Math.min(reply.value.head, reply.value.floor + MOST_HELD));
  }
  return to === 0 ? null : { from, to };
}
