// What can be read on a node of the fuel dialect (docs/FUEL.md): a lock, a fencing counter, a stream with automatic
// ids, an index of heights. The port has no method to write.
import type { NodeReply } from '../protocol/types.js';

/** A u32 in the programs that write it. */
export type FuelHeight = number;
export const MOST_HEIGHT = 2 ** 32 - 1;

/** One entry without its payload. Equal digests mean equal bytes, and so the same block. */
export interface FuelEntry {
  id: string;
  height: FuelHeight;
  /** First 128 bits of the SHA-256 of the bytes, 32 hex digits. */
  digest: string;
  /** The writer's epoch, u64. 0 when the field is missing. */
  epoch: bigint;
  /** ms since 1970; the stream has seconds. Null when it cannot be read. */
  timestamp: number | null;
  size: number;
  /** A field that exists and cannot be read, although the entry as a whole can. '' when every field can be read. */
  malformed: string;
}

/** An entry that the dialect's own readers skip. */
export interface UnreadableEntry {
  id: string;
  why: string;
}

export interface FuelPiece {
  entries: FuelEntry[];
  unreadable: UnreadableEntry[];
  /** The last id of this piece in reading order. '' when the piece is empty. */
  lastId: string;
  /** Entries that were returned, readable or not. */
  count: number;
  /** The largest payload among them. */
  largest: number;
}

export interface IndexPiece {
  heights: FuelHeight[];
  /** Members that are no height, or whose score is a different number. */
  wrong: string[];
  /** Where the next read starts. Null when nothing is left. */
  next: string | null;
}

/** A key that exists with the wrong type. */
export interface WrongKey {
  key: string;
  why: string;
}

export interface FuelProbeResult {
  lock: { owner: string; pttlMs: number } | null;
  /** Null when there is no counter. */
  epoch: bigint | null;
  entries: number;
  /** Heights in the index. Null when this node keeps no index (older scripts). */
  indexed: number | null;
  /** True when entries have left the stream since it began. Null when the server does not say (Redis before 7.0). */
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
  /**
   * Entries after this id (newest first: before this id). The id itself is excluded. '' starts at the first or the
   * newest entry.
   */
  entries(
    range: { after: string; count: number; newestFirst?: boolean },
    limitMs: number,
  ): Promise<NodeReply<FuelPiece>>;
  /** The index above a score (exclusive), ascending. '' starts at the beginning. `newest`: only the highest heights. */
  index(range: { after: string; count: number; newest?: boolean }, limitMs: number): Promise<NodeReply<IndexPiece>>;
  close(): Promise<void>;
}

/** The dialect's quorum: a majority plus a budget, never more than all nodes. */
export function fuelQuorumOf(nodes: number, budget: number): number {
  return Math.min(nodes, Math.floor(nodes / 2) + 1 + budget);
}
