// What a simulated run leaves behind: everything that anybody did or saw, in order. Checkers read this and nothing
// else.
import type { SeqEvent } from '../../src/core/events.js';
import type { Receipt } from '../../src/core/ports.js';
import type { Epoch, Hash, Height, Owner } from '../../src/core/protocol/types.js';

/**
 * A call that a node ran. `stamped`: the epoch on the entry at `height` afterwards; `nodeEpoch`: the node's own
 * afterwards.
 */
export interface NodeOp {
  is: 'op';
  t: number;
  node: string;
  /** Grows when the node lost its memory or was admitted anew: promises do not reach across. */
  memory: number;
  incarnation: string;
  /** The configuration that the call carried; '' if it carries none. */
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
  /** 'accepted' or the reason of the refusal. */
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
  /** How far the store of who answered was synced then. */
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
/** What `stream tail` showed from the nodes by quorum; a session follows on without a gap. */
interface Tailed {
  is: 'tail';
  t: number;
  session: number;
  height: Height;
  hash: Hash;
}
/** What a sequencer's status says of its chain: it may be behind, never ahead. */
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
/** A process that could not go on: InvariantError, a rejection that nobody took, or a halt of its own. */
interface Trouble {
  is: 'trouble';
  t: number;
  who: string;
  kind: 'bug' | 'halt';
  text: string;
}

/** One run of an operator's command. `code`: DONE, KILLED, or that of its error. */
interface OperatorTask {
  is: 'errand';
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
  /** Nodes lost memory or had bytes changed: a few alarms are then the truth. */
  memoryFaults: boolean;
  entries: Entry[];
  final: { nodes: FinalNode[]; stores: FinalStore[] };
  /** When all faults were healed, whether everything then came together, and what was missing if not. */
  healedAt: number;
  convergedAt: number | null;
  boundMs: number;
  missing: string;
}

export interface Anomaly {
  checker: string;
  /** One sentence. */
  what: string;
  /** What shows it: the entries of the history in question, or of the final state. */
  witness: unknown[];
}

export type Checker = (history: History) => Anomaly[];
