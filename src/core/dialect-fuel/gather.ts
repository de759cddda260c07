// Reads whole streams whose heights come in any order, and returns them height by height, newest first (docs/FUEL.md).
// A first pass notes every height (4 bytes an entry) and the height range of each piece. It keeps the entries while
// they are few. When they are many, a second pass reads the pieces of some thousand heights at a time. Payloads are
// dropped at once. No read waits again for a node that stayed silent.
import { bounded } from '../nodes/ask-all.js';
import type { Clock } from '../ports.js';
import type { NodeReply } from '../protocol/types.js';
import { classify, type FuelVerdict, type HeightOnNode } from './classify.js';
import { HeightBag, HeightList, union } from './height-list.js';
import type { FuelEntry, FuelHeight, FuelProbeResult, FuelPort, UnreadableEntry } from './types.js';

const PIECE_BYTES = 4 * 1024 * 1024;
/**
 * Entries of one piece over all nodes. The number is small, so that they are collected while young and are not moved to
 * the old generation.
 */
const MOST_ENTRIES = 1536;
/** Time for a piece beyond the node timeout: twice what 50 MB/s take. */
const PIECE_MS = (2 * PIECE_BYTES) / 50_000;
const INDEX_PIECE = 5000;
/** Entries kept in the first pass, over all nodes, and of one window in the second. */
const HELD_ENTRIES = 20_000;
/** After the end is reached: how often to read the entries that were written meanwhile. */
const CATCH_UPS = 3;
const MOST_UNREADABLE = 1000;

export interface GatherOptions {
  nodes: readonly FuelPort[];
  probes: ReadonlyMap<string, NodeReply<FuelProbeResult>>;
  quorum: number;
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
  from?: FuelHeight;
  to?: FuelHeight;
  /** Reads at most this many heights, from the top. */
  limit?: number;
  heldEntries?: number;
  progress?: (done: number, total: number) => void;
}

export interface ScannedNode {
  id: string;
  answered: boolean;
  entries: number;
  /** The first thousand unreadable entries. */
  unreadable: UnreadableEntry[];
  unreadableTotal: number;
  malformed: { height: FuelHeight; why: string }[];
  wrongIndex: string[];
  /** The highest epoch in any entry. */
  epoch: bigint;
  head: FuelHeight | null;
}

interface PictureCell {
  node: string;
  answered: boolean;
  entries: FuelEntry[];
  indexed: boolean | null;
  trimmed: boolean;
}
export interface HeightPicture {
  verdict: FuelVerdict;
  cells: PictureCell[];
}

export interface Gathered {
  nodes: ScannedNode[];
  /** Distinct heights in the requested range, over all nodes. */
  heights: number;
  range: { from: FuelHeight; to: FuelHeight } | null;
  pictures: AsyncGenerator<HeightPicture>;
}

/** `low`, `high`: the least and the greatest requested height in the piece. Without one, low is above high. */
interface Piece {
  after: string;
  first: string;
  count: number;
  low: FuelHeight;
  high: FuelHeight;
}

/** One node's stream and index as they are being read. */
class Scan {
  readonly scanned: ScannedNode;
  readonly pieces: Piece[] = [];
  /** In the order of the stream. */
  readonly heights = new HeightBag();
  kept: Map<FuelHeight, FuelEntry[]> | null = new Map();
  /** Null when the node keeps no index. */
  index: HeightList | null = null;
  /**
   * The height of the oldest entry. A missing height below it may have been trimmed. 0: nothing ever left the stream.
   * Null: not read yet.
   */
  oldest: FuelHeight | null = null;
  lastId = '';
  readonly probe: FuelProbeResult | null;
  /** Entries that came after the index was read. Whether the index has them is unknown. */
  late = new Set<FuelHeight>();
  count = 1;

  constructor(
    readonly port: FuelPort,
    probe: FuelProbeResult | null,
  ) {
    // A stream or index of another type can be neither read nor written. What the node should hold is unknown.
    this.probe =
      probe !== null && probe.wrong.some(({ key }) => /:(block:stream|heights:index)$/.test(key)) ? null : probe;
    this.scanned = {
      id: port.id,
      answered: this.probe !== null,
      entries: 0,
      unreadable: [],
      unreadableTotal: 0,
      malformed: [],
      wrongIndex: [],
      epoch: 0n,
      head: null,
    };
    if (this.probe !== null && this.probe.indexed !== null) this.index = new HeightList();
  }

  get answered(): boolean {
    return this.scanned.answered;
  }
  get floor(): FuelHeight {
    return this.oldest ?? 0;
  }
  lost(): void {
    this.scanned.answered = false;
    this.kept = null;
  }
}

export async function gather(options: GatherOptions): Promise<Gathered> {
  const scans = options.nodes.map((node) => {
    const probe = options.probes.get(node.id);
    return new Scan(node, probe?.outcome === 'accepted' ? probe.value : null);
  });
  await survey(scans, options);
  const heights = chosenHeights(scans, options);
  const [first, last] = [heights[0], heights[heights.length - 1]];
  return {
    nodes: scans.map((scan) => scan.scanned),
    heights: heights.length,
    range: first === undefined || last === undefined ? null : { from: first, to: last },
    pictures: pictures(scans, heights, options),
  };
}

/** Reads only the newest entries of every node: positive evidence, and what is missing at the very top. */
export async function gatherNewest(options: GatherOptions, most: number): Promise<HeightPicture[]> {
  const scans = await Promise.all(
    options.nodes.map(async (node) => {
      const probe = options.probes.get(node.id);
      const scan = new Scan(node, probe?.outcome === 'accepted' ? probe.value : null);
      if (!scan.answered) return scan;
      if (scan.index !== null) {
        const read = await bounded(
          node.index({ after: '', count: 2 * most, newest: true }, options.limitMs),
          options.limitMs,
          options.clock,
        );
        if (read.outcome === 'accepted') scan.index.push(read.value.heights.toReversed());
        else scan.lost();
      }
      while (scan.answered && scan.scanned.entries < most) {
        const limitMs = options.limitMs + PIECE_MS;
        const asked = Math.min(scan.count, most - scan.scanned.entries);
        const read = await bounded(
          node.entries({ after: scan.lastId, count: asked, newestFirst: true }, limitMs),
          limitMs,
          options.clock,
        );
        if (read.outcome !== 'accepted') {
          scan.lost();
          break;
        }
        take(scan, read.value, true, true);
        scan.lastId = read.value.lastId;
        if (read.value.count < asked) break;
        scan.count = nextCount(scan.count, read.value.largest, options.nodes.length);
      }
      return scan;
    }),
  );
  const heights = Uint32Array.from(new Set(scans.flatMap((scan) => [...(scan.kept?.keys() ?? [])]))).sort();
  const found: HeightPicture[] = [];
  for await (const picture of pictures(scans, heights, options)) found.push(picture);
  return found;
}

function nextCount(count: number, largest: number, nodes: number): number {
  return Math.max(
    1,
    Math.min(Math.ceil(MOST_ENTRIES / nodes), count * 4, Math.floor(PIECE_BYTES / Math.max(1, largest))),
  );
}

async function survey(scans: Scan[], options: GatherOptions): Promise<void> {
  const { signal } = options;
  const total = scans.reduce((sum, scan) => sum + (scan.probe?.entries ?? 0), 0);
  await Promise.all(
    scans.map(async (scan) => {
      await readIndex(scan, options);
      while (scan.answered && !signal?.aborted) {
        const more = await nextPiece(scan, scans, options);
        options.progress?.(
          scans.reduce((sum, one) => sum + one.scanned.entries, 0),
          total,
        );
        if (!more) break;
      }
    }),
  );
  signal?.throwIfAborted();
  // The reads of the nodes end at different moments. Entries written since are read from all nodes together, so that
  // only blocks under way differ.
  for (let round = 0; round < CATCH_UPS; round += 1) {
    const more = await Promise.all(
      scans.map(async (scan) => {
        if (!scan.answered) return false;
        await readIndex(scan, options);
        const before = scan.scanned.entries;
        const again = await nextPiece(scan, scans, options, true);
        return again || scan.scanned.entries - before > 1;
      }),
    );
    if (!more.includes(true)) break;
  }
}

/** Continues where the last read ended. */
async function readIndex(scan: Scan, options: GatherOptions): Promise<void> {
  if (scan.index === null) return;
  let after = scan.index.last === undefined ? '' : String(scan.index.last);
  while (scan.answered && !options.signal?.aborted) {
    const read = await bounded(
      scan.port.index({ after, count: INDEX_PIECE }, options.limitMs + PIECE_MS),
      options.limitMs + PIECE_MS,
      options.clock,
    );
    if (read.outcome !== 'accepted') return scan.lost();
    scan.index.push(read.value.heights);
    // Entries before the end are read again when the end is searched again.
    const { wrongIndex } = scan.scanned;
    if (wrongIndex.length < MOST_UNREADABLE)
      wrongIndex.push(...read.value.wrong.filter((one) => !wrongIndex.includes(one)));
    if (read.value.next === null) return;
    after = read.value.next;
  }
}

async function nextPiece(scan: Scan, scans: Scan[], options: GatherOptions, late = false): Promise<boolean> {
  const limitMs = options.limitMs + PIECE_MS;
  const asked = scan.count;
  const read = await bounded(scan.port.entries({ after: scan.lastId, count: asked }, limitMs), limitMs, options.clock);
  if (read.outcome !== 'accepted') {
    scan.lost();
    return false;
  }
  const { value } = read;
  if (value.count === 0) return false;
  if (scan.oldest === null && value.entries[0] !== undefined)
    scan.oldest = scan.probe?.trimmed === false ? 0 : value.entries[0].height;
  const inRange = (height: FuelHeight): boolean => height >= (options.from ?? 0) && height <= (options.to ?? Infinity);
  const piece: Piece = {
    after: scan.lastId,
    first: value.entries[0]?.id ?? '',
    count: value.count,
    low: Infinity,
    high: -1,
  };
  for (const { height } of value.entries) {
    if (!inRange(height)) continue;
    scan.heights.add(height);
    piece.low = Math.min(piece.low, height);
    piece.high = Math.max(piece.high, height);
  }
  scan.pieces.push(piece);
  take(scan, value, scan.kept !== null, false, inRange);
  if (late) for (const entry of value.entries) scan.late.add(entry.height);
  scan.lastId = value.lastId;
  scan.count = nextCount(asked, value.largest, options.nodes.length);
  const held = scans.reduce((sum, one) => sum + (one.kept === null ? 0 : one.scanned.entries), 0);
  if (held > (options.heldEntries ?? HELD_ENTRIES)) for (const one of scans) one.kept = null;
  return value.count === asked;
}

function take(
  scan: Scan,
  piece: { entries: FuelEntry[]; unreadable: UnreadableEntry[]; count: number },
  keep: boolean,
  newestFirst: boolean,
  inRange: (height: number) => boolean = () => true,
): void {
  const { scanned } = scan;
  scanned.entries += piece.count;
  scanned.unreadableTotal += piece.unreadable.length;
  if (scanned.unreadable.length < MOST_UNREADABLE) scanned.unreadable.push(...piece.unreadable);
  for (const entry of piece.entries) {
    if (entry.malformed !== '' && scanned.malformed.length < MOST_UNREADABLE)
      scanned.malformed.push({ height: entry.height, why: `entry ${entry.id}: ${entry.malformed}` });
    if (entry.epoch > scanned.epoch) scanned.epoch = entry.epoch;
    scanned.head = Math.max(scanned.head ?? 0, entry.height);
    if (keep && scan.kept !== null && inRange(entry.height)) put(scan.kept, entry, newestFirst);
  }
}

function put(map: Map<FuelHeight, FuelEntry[]>, entry: FuelEntry, front = false): void {
  const there = map.get(entry.height);
  // A piece that was trimmed meanwhile returns entries of the next piece.
  if (there?.some((one) => one.id === entry.id)) return;
  if (there === undefined) map.set(entry.height, [entry]);
  else if (front) there.unshift(entry);
  else there.push(entry);
}

/** Every height that a stream holds, or that only an index holds although it cannot have been trimmed. Ascending. */
function chosenHeights(scans: Scan[], options: GatherOptions): Uint32Array {
  const { from, to } = options;
  const lists = scans.flatMap((scan) => {
    const own = scan.heights.sorted();
    const lowest = Math.max(scan.floor, from ?? 0);
    return [
      () => own.values(),
      ...(scan.answered && scan.index !== null ? [() => within(scan.index as HeightList, lowest, to ?? Infinity)] : []),
    ];
  });
  // The caller asked for one height. Report its state even when no stream has it.
  if (from !== undefined && from === to) lists.push(() => [from].values());
  const all = union(lists);
  for (const scan of scans) scan.heights.drop();
  return all.subarray(Math.max(0, all.length - Math.min(all.length, options.limit ?? all.length)));
}

function* within(list: HeightList, lowest: FuelHeight, highest: FuelHeight): Generator<FuelHeight> {
  for (const height of list) if (height >= lowest && height <= highest) yield height;
}

async function* pictures(scans: Scan[], heights: Uint32Array, options: GatherOptions): AsyncGenerator<HeightPicture> {
  const held = scans.every((scan) => scan.kept !== null || !scan.answered);
  const window = held
    ? heights.length
    : Math.max(1, Math.floor((options.heldEntries ?? HELD_ENTRIES) / (2 * Math.max(1, scans.length))));
  for (let end = heights.length; end > 0 && !options.signal?.aborted; end -= window) {
    const part = heights.subarray(Math.max(0, end - window), end);
    if (!held) {
      for (const scan of scans) if (scan.answered) scan.kept = new Map();
      await Promise.all(scans.map((scan) => readRetained(scan, part, options)));
    }
    for (let at = part.length - 1; at >= 0; at -= 1) {
      const picture = pictureOf(part[at] as number, scans, options.quorum);
      if (picture !== null) yield picture;
    }
  }
}

function pictureOf(height: FuelHeight, scans: readonly Scan[], quorum: number): HeightPicture | null {
  const cells = scans.map((scan): PictureCell => {
    const entries = scan.kept?.get(height) ?? [];
    const indexed = scan.index === null ? null : scan.index.has(height) ? true : scan.late.has(height) ? null : false;
    return {
      node: scan.port.id,
      answered: scan.answered,
      entries,
      indexed,
      trimmed: scan.answered && entries.length === 0 && height < scan.floor,
    };
  });
  const verdict = classify(
    height,
    cells.map((cell): HeightOnNode => ({ ...cell, id: cell.node })),
    quorum,
  );
  return verdict === null ? null : { verdict, cells };
}

/**
 * Reads again the pieces that hold a height of this window. Entries that are gone since then were trimmed meanwhile.
 */
async function readRetained(scan: Scan, heights: Uint32Array, options: GatherOptions): Promise<void> {
  if (!scan.answered) return;
  const [low, high] = [heights[0] as number, heights[heights.length - 1] as number];
  const kept = new Map<FuelHeight, FuelEntry[]>();
  const limitMs = options.limitMs + PIECE_MS;
  for (const piece of scan.pieces) {
    if (options.signal?.aborted) return;
    if (piece.low > high || piece.high < low) continue;
    const read = await bounded(
      scan.port.entries({ after: piece.after, count: piece.count }, limitMs),
      limitMs,
      options.clock,
    );
    if (read.outcome !== 'accepted') return scan.lost();
    const [first] = read.value.entries;
    if (first !== undefined && first.id !== piece.first) scan.oldest = Math.max(scan.floor, first.height);
    for (const entry of read.value.entries) if (entry.height >= low && entry.height <= high) put(kept, entry);
  }
  scan.kept = kept;
}
