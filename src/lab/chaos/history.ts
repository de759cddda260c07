// The record of a chaos run: everything that anybody did or was told, on one clock (ms since the start, of the watching
// process). Checkers read this and nothing else. One NDJSON line per entry.
import type { Epoch, Hash, Height } from '../../core/protocol/types.js';

/**
 * A reader received a committed block. A reader asks for one height after the other; a name stands for one such
 * sequence.
 */
interface BlockSeen {
  is: 'block';
  t: number;
  reader: string;
  height: Height;
  hash: Hash;
  parent: Hash;
  epoch: Epoch;
}

/**
 * One submitted item and what its client finally knows about it. `order`: its position among the client's items, from
 * 1.
 */
export interface ItemFate {
  is: 'item';
  client: string;
  order: number;
  /** Unique. The item's bytes begin with it. */
  token: string;
  digest: string;
  keyed: boolean;
  /** When it was first sent, and when its answer was complete; null while there is none. */
  sentAt: number;
  answeredAt: number | null;
  /**
   * `refused`: every answer said that nothing was taken in. `unknown`: at least one attempt has no answer, and no
   * answer said committed.
   */
  outcome: 'committed' | 'refused' | 'unknown';
  receipt: { height: Height; index: number; epoch: Epoch } | null;
  attempts: number;
}

/** `/v1/head`: the committed head, confirmed by a quorum after `from`. */
interface HeadRead {
  is: 'head';
  from: number;
  t: number;
  who: string;
  height: Height;
  hash: Hash;
  epoch: Epoch;
}

/** `/v1/status` of one sequencer: height and hash of its own store, synced. */
export interface StatusRead {
  is: 'status';
  from: number;
  t: number;
  who: string;
  height: Height;
  hash: Hash;
  role: string;
  epoch: Epoch;
  leaseMs: number;
}

/** From a sequencer's log: a block committed under its own epoch. In the order of its log. */
export interface LeaderCommit {
  is: 'commit';
  who: string;
  epoch: Epoch;
  height: Height;
  hash: Hash;
}
/** From a sequencer's log: it led under this epoch. */
export interface Term {
  is: 'term';
  who: string;
  epoch: Epoch;
}

/** A time at which all faults were healed, and what followed. */
export interface Healing {
  is: 'healing';
  /** When the last fault was healed. */
  t: number;
  boundMs: number;
  /**
   * ms until the next commit, until every sequencer had it, and until every node was admitted and had it. Null: not
   * within the bound.
   */
  commitMs: number | null;
  followersMs: number | null;
  nodesMs: number | null;
  missing: string;
}

/**
 * An event that no fault explains: a process that ended by itself, an answer that no sequencer gives, an alarm about
 * the chain.
 */
export interface Trouble {
  is: 'trouble';
  t: number;
  who: string;
  kind: 'ended' | 'answer' | 'alarm' | 'bug';
  text: string;
}

interface Note {
  is: 'note';
  t: number;
  text: string;
}

export type Entry = BlockSeen | ItemFate | HeadRead | StatusRead | LeaderCommit | Term | Healing | Trouble | Note;

export interface ChainBlock {
  height: Height;
  hash: Hash;
  parent: Hash;
  epoch: Epoch;
  items: { token: string; digest: string }[];
}
export interface FinalStore {
  who: string;
  blocks: { height: Height; hash: Hash; parent: Hash }[];
}
export interface FinalNode {
  id: string;
  admission: string;
  floor: Height;
  head: Height;
  entries: { height: Height; hash: Hash; parent: Hash }[];
  damaged: number;
  unread: string;
}

export interface History {
  genesis: Hash;
  entries: Entry[];
  /** The committed chain, from the longest store. */
  chain: ChainBlock[];
  stores: FinalStore[];
  nodes: FinalNode[];
}

export interface Anomaly {
  checker: string;
  /** One sentence. */
  what: string;
  /** The entries that show it. */
  witness: unknown[];
}

export type Checker = (history: History) => Anomaly[];

/** The entries of one kind. */
export function only<K extends Entry['is']>(history: Pick<History, 'entries'>, is: K): Extract<Entry, { is: K }>[] {
  return history.entries.filter((entry): entry is Extract<Entry, { is: K }> => entry.is === is);
}
