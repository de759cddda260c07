// What does a simulated run leave behind? Everything that anybody did or saw, in order. Checkers read this and nothing
// else.
import type { SeqEvent } from '../../src/core/events.js';
import type { Receipt } from '../../src/core/ports.js';
import type { Epoch, Hash, Height, Owner } from '../../src/core/protocol/types.js';

/**
 * A call that a node ran. `stamped`: afterwards, the epoch on the entry at `height`. `nodeEpoch`: afterwards, the epoch
 * of the node.
 */
export interface NodeOp {
  is: 'op';
  t: number;
  node: string;
  /** Rises when the node loses its memory or is admitted again. Promises hold only within one value. */
  memory: number;
  incarnation: string;
  /** The configuration that the call carried, or ''. */
  config: string;
  script:
    | 'promote_leader'
    | 'claim'
    | 'write_block'
    | 'extend_lock'
    | 'rebase'
    | 'raise_epoch'
    | 'admit'
    | 'backfill'
    | 'begin_admission'
    | 'release_lock'
    | 'recover_node'
    | 'retire_node'
    | 'bootstrap_prepare'
    | 'bootstrap_commit';
  owner: Owner;
  epoch: Epoch;
  /** 'accepted', or the reason of the refusal. */
  outcome: string;
  claimant: Owner;
  nodeEpoch: Epoch;
  height: Height;
  hash: Hash;
  parent: Hash;
  entryEpoch: Epoch;
  stamped: Epoch;
  /** A second copy of a call that was sent once. */
  stray: boolean;
}

interface Happening {
  is: 'event';
  t: number;
  who: string;
  event: SeqEvent;
}
interface FaultNote {
  is: 'fault';
  t: number;
  text: string;
}
export interface Submitted {
  is: 'submit';
  t: number;
  call: number;
  client: string;
  who: string;
  keys: string[];
}
export interface Answered {
  is: 'answer';
  t: number;
  call: number;
  client: string;
  who: string;
  key: string;
  outcome: 'committed' | 'refused' | 'unknown';
  receipt: Receipt | null;
  /** The synced height of the answering sequencer's store at that time. */
  synced: Height;
  why: string;
}
interface ReadBlock {
  is: 'read';
  t: number;
  who: string;
  reader: string;
  height: Height;
  hash: Hash;
}
/** A block that `stream tail` showed from the nodes by quorum. One session has no gaps. */
interface Tailed {
  is: 'tail';
  t: number;
  session: number;
  height: Height;
  hash: Hash;
}
/** What a sequencer's status says about its chain. It may be behind, but never ahead. */
interface Status {
  is: 'status';
  t: number;
  who: string;
  height: Height;
  hash: Hash;
}
export interface Confirmed {
  is: 'confirm';
  from: number;
  t: number;
  who: string;
  height: Height;
  hash: Hash;
  epoch: Epoch;
}
/** A process that could not go on: an InvariantError, an unhandled rejection, or a fatal error. */
interface Trouble {
  is: 'trouble';
  t: number;
  who: string;
  kind: 'bug' | 'fatal-error';
  text: string;
}

/** One run of an operator's command. `code`: DONE, KILLED, or the code of its error. */
interface OperatorTask {
  is: 'operator-task';
  t: number;
  who: string;
  verb: string;
  code: string;
  text: string;
}

export type Entry =
  | NodeOp
  | Happening
  | FaultNote
  | Submitted
  | Answered
  | ReadBlock
  | Tailed
  | Status
  | Confirmed
  | Trouble
  | OperatorTask;

interface FinalNode {
  id: string;
  admitted: boolean;
  floor: Height;
  floorHash: Hash;
  entries: { height: Height; hash: Hash; parent: Hash; epoch: Epoch }[];
}

export interface FinalStore {
  id: string;
  blocks: { height: Height; hash: Hash; parent: Hash; timestamp: number; keys: string[] }[];
}

export interface History {
  nodes: number;
  quorum: number;
  genesis: Hash;
  retainBlocks: number;
  /** Nodes lost memory or had bytes changed. Then some alarms are correct. */
  memoryFaults: boolean;
  entries: Entry[];
  final: { nodes: FinalNode[]; stores: FinalStore[] };
  /**
   * healedAt: when all faults were healed. convergedAt: when everything was in order again, null = not within boundMs.
   * missing: what was not in order.
   */
  healedAt: number;
  convergedAt: number | null;
  boundMs: number;
  missing: string;
}

export interface Anomaly {
  checker: string;
  /** One sentence. */
  what: string;
  /** The entries of the history, or of the final state, that show it. */
  witness: unknown[];
}

export type Checker = (history: History) => Anomaly[];
