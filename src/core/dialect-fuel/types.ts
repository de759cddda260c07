// What there is to read on a node of the fuel dialect (docs/FUEL.md): a lock, a fencing counter, a stream with
// automatic ids, an index of heights. Nothing here can be written: the port has no way to.
import type { NodeReply } from '../protocol/types.js';

/** u32, as its writers say. */
export type FuelHeight = number;
export const MOST_HEIGHT = 2 ** 32 - 1;

/** One entry without its payload: equal digests are equal bytes, the same block. */
export interface FuelEntry {
  id: string;
  height: FuelHeight;
  /** First 128 bits of the SHA-256 of the bytes, 32 hex digits. */
  digest: string;
  /** The writer's, u64; 0 where the field is missing. */
  epoch: bigint;
  /** ms since 1970; the stream has seconds. null where it cannot be read. */
  timestamp: number | null;
  size: number;
  /** A field that is there and cannot be read, although the entry as such can; '' when all is well. */
  malformed: string;
}

/** An entry that its own readers skip. */
export interface UnreadableEntry {
  id: string;
  why: string;
}

export interface FuelPiece {
  entries: FuelEntry[];
  unreadable: UnreadableEntry[];
  /** The last id of this piece in reading order, '' when nothing came. */
  lastId: string;
  /** Entries that came, readable or not. */
  count: number;
  /** The largest payload among them. */
  largest: number;
}

export interface IndexPiece {
  heights: FuelHeight[];
  /** Members that are no height, or whose score is another number. */
  wrong: string[];
  /** To go on from; null when this was all. */
  next: string | null;
}

/** A key that is there and is of another type than it should be. */
export interface WrongKey {
  key: string;
  why: string;
}

export interface FuelProbeResult {
  lock: { owner: string; pttlMs: number } | null;
  /** null: there is no counter. */
  epoch: bigint | null;
  entries: number;
  /** Heights in the index; null: this node keeps none (older scripts). */
  indexed: number | null;
  /** True when entries have left the stream since it began; null when the server does not say (Redis before 7.0). */
  trimmed: boolean | null;
  wrong: WrongKey[];
  runId: string;
  version: string;
}

export interface FuelPort {
  readonly id: string;
  /** Without secrets. */
  readonly url: string;
  probe(limitMs: number): Promise<NodeReply<FuelProbeResult>>;
  /** Entries after (or, newest first, before) an id, which is not among them; '' from the end in question. */
  entries(
    range: { after: string; count: number; newestFirst?: boolean },
    limitMs: number,
  ): Promise<NodeReply<FuelPiece>>;
  /** The index from a score on (exclusive), ascending; '' from the beginning. `newest`: the highest heights alone. */
  index(range: { after: string; count: number; newest?: boolean }, limitMs: number): Promise<NodeReply<IndexPiece>>;
  close(): Promise<void>;
}

/** Its quorum: a majority and a budget on top, never more than all. */
export function fuelQuorumOf(nodes: number, budget: number): number {
  return Math.min(nodes, Math.floor(nodes / 2) + 1 + budget);
}
