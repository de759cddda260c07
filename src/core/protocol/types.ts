// The words of the protocol (docs/PROTOCOL.md section 1) as types: what a node can be asked, and the three outcomes of
// a call. All code that makes a decision uses these types. Redis, the simulator's node and the model's node all produce
// them.

// Each of these is a type of its own. The compiler accepts a plain number or text for it, but refuses one of these
// types where another one is wanted. The mark exists for the compiler only; no value ever has it.

/**
 * The upper limit of every number that the protocol counts with. No cluster reaches it: a larger number was written by
 * hand or by mistake. A node that holds a larger number is damaged. A script refuses a larger number as an argument
 * (docs/PROTOCOL.md section 4).
 */
export const MAX_NUMBER: number = 2 ** 48;
/**
 * An epoch is stray if it is further than this above every epoch that a quorum has reached. No leader renews its term
 * to reach it.
 */
export const MAX_EPOCH_LEAP: number = 2 ** 32;

/** A block's position in the chain: a whole number, 0 … 2^48. */
export type Height = number & { readonly __flavour?: 'height' };
/** A term's number on the nodes: a whole number, 0 … 2^48. */
export type Epoch = number & { readonly __flavour?: 'epoch' };
/** A block's hash: 64 lower-case hex digits (SHA-256). */
export type Hash = string & { readonly __flavour?: 'hash' };
/** `<sequencerId>/<16 hex>`, new for every term. The part before the last slash names the sequencer. */
export type Owner = string & { readonly __flavour?: 'owner' };
/** A node's memory from one admission to the next. */
export type Incarnation = string & { readonly __flavour?: 'incarnation' };

/** A block without its payload. `hash` covers height, parent, timestamp and data (chain/block.ts). */
export interface Header {
  height: Height;
  hash: Hash;
  parent: Hash;
  /** The block's own time in ms since the Unix epoch. It is never below its parent's. */
  timestamp: number;
}

/** A block. The protocol never looks into `data`. */
export interface Block extends Header {
  data: Uint8Array;
}

/** One node's copy of a block, stamped with the epoch and owner under which it was written. */
export interface Entry extends Header {
  epoch: Epoch;
  owner: Owner;
  /** Present when the reader asked for payloads. */
  data?: Uint8Array;
  /** Payload size in bytes. */
  size: number;
}

/**
 * An entry that is damaged in a way that the server cannot see: wrong hash, missing field, unparsable number, or an id
 * that contradicts its fields.
 */
export interface DamagedEntry {
  id: string;
  height: Height | null;
  why: string;
  /** What its owner field says. Absent when it has none. */
  owner?: Owner;
}

/** The highest and the lowest block of a node's stream. The head of an empty stream is its floor. */
export interface HeadFacts {
  head: Height;
  headEpoch: Epoch;
  headHash: Hash;
  floor: Height;
  floorHash: Hash;
}

export type WriteMode = 'append' | 'repair';

/** A request to the leader. It waits on a node until the leader reads it (`seq:leader:request`). */
export interface LeaderRequest {
  id: string;
  /** stepdown, repair, admit, replace, resize or set. A later version may know others. */
  kind: string;
  to: string;
  plan: string;
  by: string;
  reason: string;
  /** The term that the request is meant for. Another term ignores the request. */
  epoch: Epoch;
}

/** A sequencer's presence record. It says nothing about leadership. All numbers are as the sequencer wrote them. */
export interface Presence {
  id: string;
  role: 'follower' | 'promoting' | 'leader' | 'stopping';
  height: Height;
  version: string;
  url: string;
  pid: number;
  configDigest: string;
  /** ms until the record expires on that node. */
  pttlMs: number;
  /** Any further field, e.g. `host`, `ready`, `why`, `ttlMs` (lease ttl), `seenAtMs`. */
  extra: Record<string, string>;
}

/**
 * Everything that one script run on one node can be asked to do (docs/PROTOCOL.md section 4). Each script is one file
 * in lua/.
 */
export type NodeCall =
  | { script: 'promote_leader'; owner: Owner; expectedEpoch: Epoch; ttlMs: number; previousOwner?: Owner }
  | {
      script: 'claim';
      owner: Owner;
      epoch: Epoch;
      acquireTtlMs?: number;
      /**
       * The configuration that this term counts by (configuration.ts). The node notes it. The node refuses a
       * configuration that is earlier than the one it knows, or that does not name its memory (I13).
       */
      config?: string;
    }
  | {
      script: 'write_block';
      owner: Owner;
      /** The writer's epoch E. Fencing compares this one. */
      epoch: Epoch;
      ttlMs: number;
      mode: WriteMode;
      block: Block;
      /** The epoch stamped on the entry, ≤ epoch (a backfilled block keeps its committed epoch). */
      entryEpoch: Epoch;
      /**
       * Trim everything up to and including `to` (appends only). `hash` is that block's hash and becomes floor_hash.
       */
      trim?: { to: Height; hash: Hash };
    }
  | { script: 'rebase'; owner: Owner; epoch: Epoch; floor: Height; floorHash: Hash; nonce: string; keepMs: number }
  /** The lock of a term without work lasts for ttlMs again. */
  | { script: 'extend_lock'; owner: Owner; epoch: Epoch; ttlMs: number }
  | { script: 'release_lock'; owner: Owner; handover?: { to: string; ttlMs: number } }
  /** `brief`: leave `info` empty, for callers that only need the leader and the heads. */
  | { script: 'inspect'; brief?: boolean }
  | { script: 'raise_epoch'; value: Epoch; ofOwner?: Owner; highestSeen: Epoch; mayDepose: boolean }
  | { script: 'bootstrap_prepare'; nonce: string }
  /** `config`: the first configuration of the cluster (configuration.ts), the same text on every node. */
  | { script: 'bootstrap_commit'; nonce: string; config?: string; challenge?: string }
  | {
      script: 'begin_admission';
      owner: Owner;
      epoch: Epoch;
      nonce: string;
      floor: Height;
      floorHash: Hash;
      keepMs: number;
      /**
       * The incarnation to set aside when the node considers itself intact. Without it an intact node refuses
       * (STALE_NONCE).
       */
      replaces?: string;
      /**
       * The last block that an unfinished admission filled in. If the node's stream ends with this committed block, the
       * stream is kept and filling resumes there.
       */
      resume?: { head: Height; hash: Hash };
      /** The configuration that names the new memory. It also carries the addresses of replaced nodes. */
      config?: string;
    }
  /** `challenge`: what the node answered to begin_admission or recover_node. */
  | {
      script: 'backfill';
      owner: Owner;
      epoch: Epoch;
      nonce: string;
      challenge?: string;
      block: Block;
      entryEpoch: Epoch;
    }
  | {
      script: 'admit';
      owner: Owner;
      epoch: Epoch;
      nonce: string;
      challenge?: string;
      ttlMs: number;
      head: Height;
      headHash: Hash;
    }
  | {
      /**
       * Below a quorum: puts a node under the next generation (the port's identity), in the state of being admitted.
       * `expect` is `recoveryExpectation(view)`.
       */
      script: 'recover_node';
      owner: Owner;
      epoch: Epoch;
      nonce: string;
      expect: string;
      /**
       * true: the node's stream is kept, and `facts` are its verified contents. false: the stream is set aside, and
       * `facts` say where filling begins.
       */
      keep: boolean;
      facts: HeadFacts;
      keepMs: number;
      config?: string;
    }
  /** Retires this node for good: a successor takes its place. `expect` is its incarnation, or its pending nonce. */
  | { script: 'retire_node'; expect: string; movedTo: string }
  | { script: 'set_hold'; by: string; reason: string; ttlMs: number; expect?: Expectation }
  | { script: 'clear_hold'; expect?: Expectation }
  | { script: 'request_leader'; request: LeaderRequest; ttlMs: number; expect?: Expectation }
  | { script: 'clear_request'; id: string }
  | { script: 'announce'; presence: Omit<Presence, 'pttlMs'>; ttlMs: number }
  | { script: 'audit'; record: Record<string, string>; maxRecords: number }
  /**
   * At most 128 entries of the lane registry, as texts. `version`: that of the configuration that the caller counts by.
   * Without `fills` the node must remember the registry.
   */
  | { script: 'note_lanes'; version: string; entries: readonly LaneText[]; fills?: LanesFill }
  | { script: 'read_lanes' }
  /** Deletes what the node holds of a retired lane, except the record. */
  | { script: 'forget_lane' };

/** A node that forgot the lane registry gets it again. With the last call it remembers: `marks`. */
export interface LanesFill {
  /** The memory that is filled. Another one is refused. */
  incarnation: string;
  marks: boolean;
}

/** A lane and its entry in the registry of a node: `<version> <state> <writer> …`. */
export interface LaneText {
  name: string;
  text: string;
}

export type ScriptName = NodeCall['script'];

/** The leader and the epoch that an operator saw before acting. The script checks them and refuses with EXPECTATION. */
export interface Expectation {
  leader?: string;
  epoch?: Epoch;
}

/** What an accepted reply carries, script by script. */
export interface CallResult {
  promote_leader: { epoch: Epoch };
  claim: HeadFacts;
  write_block: { head: Height; request?: LeaderRequest };
  rebase: HeadFacts;
  extend_lock: { head: Height; request?: LeaderRequest };
  release_lock: Record<string, never>;
  inspect: NodeView;
  raise_epoch: { epoch: Epoch };
  bootstrap_prepare: Record<string, never>;
  bootstrap_commit: Record<string, never>;
  /** The height at which filling begins, and what the later calls of this admission bring back. */
  begin_admission: { head: Height; challenge?: string };
  backfill: { head: Height };
  admit: HeadFacts;
  recover_node: { challenge?: string };
  retire_node: Record<string, never>;
  set_hold: Record<string, never>;
  clear_hold: Record<string, never>;
  request_leader: Record<string, never>;
  clear_request: Record<string, never>;
  /** The server's memory in bytes. maxMemory 0: no limit, or not known. */
  announce: { usedMemory: number; maxMemory: number; timeMs: number };
  audit: Record<string, never>;
  /** How many of the entries the node did not have yet. */
  note_lanes: { changed: number };
  /**
   * `mark`: the memory that the registry of this node belongs to. `config`, `epoch`: by whom it is to be counted, and
   * whether the node can know it.
   */
  read_lanes: { epoch: Epoch; config: string; mark: string; entries: LaneText[] };
  forget_lane: Record<string, never>;
}

/** Why one of our scripts refused. */
export const SCRIPT_REASONS = [
  'LOCK_HELD',
  'HELD',
  'HANDOVER',
  'EPOCH_MOVED',
  'FENCING_ERROR',
  'HEIGHT_EXISTS',
  'GAP',
  'PARENT_MISMATCH',
  'TRIMMED',
  'CONFLICT',
  'NOT_BEHIND',
  'WOULD_DEPOSE',
  'NOT_ADMITTED',
  'WRONG_CLUSTER',
  'NOT_READY',
  'STALE_NONCE',
  'EXPECTATION',
  'NOT_PRISTINE',
  'CONFIG_STALE',
  'NOT_MEMBER',
  'BAD_ARGUMENT',
  'WRONG_TYPE',
] as const;

/** Why Redis itself refused. */
export const SERVER_REASONS = [
  'LOADING',
  'BUSY',
  'READONLY',
  'NOREPLICAS',
  'MISCONF',
  'OOM',
  'NOPERM',
  'NOAUTH',
] as const;

/** Why a node refused. In both cases nothing was executed. */
export type RefusalReason = (typeof SCRIPT_REASONS)[number] | (typeof SERVER_REASONS)[number];

/** The details of a refusal. Which fields are set depends on the reason: see the file headers in lua/. */
export interface RefusalDetail {
  /**
   * FENCING_ERROR: which check failed. `lock`: another owner holds the lock, or nobody does. `epoch`: the node's epoch
   * is higher, or equal with another claimant.
   */
  check?: 'lock' | 'epoch';
  holder?: Owner;
  pttlMs?: number;
  /**
   * The node's epoch (EPOCH_MOVED, FENCING_ERROR epoch), or the epoch of the conflicting entry (HEIGHT_EXISTS,
   * PARENT_MISMATCH, CONFLICT).
   */
  epoch?: Epoch;
  /** The hash of the conflicting entry. */
  hash?: Hash;
  head?: Height;
  floor?: Height;
  to?: string;
  by?: string;
  /**
   * NOT_ADMITTED: wiped | restarted | damaged | bootstrap | admitting. WRONG_CLUSTER: cluster | node. Otherwise a
   * sentence.
   */
  why?: string;
  /**
   * The actual value (EXPECTATION, WRONG_CLUSTER), the configuration that the node knows (CONFIG_STALE), or the node's
   * incarnation (NOT_MEMBER).
   */
  actual?: string;
  message?: string;
  /** NOPERM: the command that gives the user what it lacks. */
  grant?: string;
}

/** The step at which no answer came. */
export type Step = 'resolve' | 'connect' | 'handshake' | 'load' | 'call' | 'reply';

export interface Accepted<T> {
  outcome: 'accepted';
  incarnation: Incarnation;
  value: T;
}
export interface Refused {
  outcome: 'refused';
  reason: RefusalReason;
  detail: RefusalDetail;
}
/** An unknown outcome is neither "no" nor "empty": the call may have run, may still run, or may never run. */
export interface Unknown {
  outcome: 'unknown';
  step: Step;
  cause: string;
  limitMs?: number;
  /** It was not asked now: an attempt just before failed, and the next one begins in this many ms. */
  retryInMs?: number;
  alarm?: boolean;
}
export type NodeReply<T> = Accepted<T> | Refused | Unknown;
export type ReplyTo<C extends NodeCall> = NodeReply<CallResult[C['script']]>;

export type AdmissionState =
  /** Record and stream agree, and the run id is the one that was admitted. */
  | 'admitted'
  /** The node has no key of ours at all. */
  | 'pristine'
  /** The node has a bootstrap nonce and nothing else. */
  | 'bootstrap'
  /** A leader is re-admitting it (pending nonce). */
  | 'admitting'
  | 'wiped'
  | 'restarted'
  | 'damaged'
  /** The record names another cluster, generation or node. */
  | 'foreign';

/** What `inspect` reads from one node in one step. */
export interface NodeView extends HeadFacts {
  admission: AdmissionState;
  /** A sentence that says why, for `damaged`, `foreign`, `restarted`. */
  admissionWhy: string;
  /**
   * The configuration in its record, when no term can have made it. Then `config` is '', and the node is `damaged`
   * until that field is deleted by hand: it would refuse every later configuration.
   */
  strayConfig?: string;
  /** `<clusterId>.<generation>`, '' when there is no record. */
  cluster: string;
  /** The node id in its record, '' when there is none. */
  node: string;
  /** Of a retired server: the address of its successor, '-' without one, 'removed' when its lane was removed. */
  movedTo?: string;
  incarnation: Incarnation;
  /** `bootstrap:<nonce>` during a bootstrap, the bare nonce during a re-admission, '' otherwise. */
  pending: string;
  /**
   * While something is pending: a value of the node's own, new in each memory. A copy of old calls does not know it.
   * Absent in a record of version 0.1.0.
   */
  challenge?: string;
  /** The configuration that this node knows, as text (configuration.ts); '' when it knows none. */
  config: string;
  /** The run id that was noted at admission, and the server's run id now. */
  admittedRunId: string;
  runId: string;
  lock: { owner: Owner; pttlMs: number } | null;
  epoch: Epoch;
  claimant: Owner;
  /** XLEN of the block stream. */
  length: number;
  hold: { by: string; reason: string; pttlMs: number } | null;
  handover: { to: string; pttlMs: number } | null;
  request: LeaderRequest | null;
  sequencers: Presence[];
  /**
   * Sequencers of the last day whose presence record has expired, and when it was last written, by the server's clock.
   * Absent where nobody read it.
   */
  absent?: readonly { id: string; seenAtMs: number }[];
  /** The server's clock, ms. */
  timeMs: number;
  /**
   * Fields of INFO as texts, e.g. redis_version, uptime_in_seconds, used_memory, maxmemory, aof_enabled, loading. May
   * be empty.
   */
  info: Record<string, string>;
}

/** Entries of a node's stream in id order. Nobody ever adopts, counts or supersedes `damaged` entries. */
export interface EntriesRead {
  entries: Entry[];
  damaged: DamagedEntry[];
  /** The id after which the next read starts; '' when nothing was read. */
  lastId: string;
}

/** The sequencer's id inside an owner token. */
export function sequencerOf(owner: Owner): string {
  const slash = owner.lastIndexOf('/');
  return slash < 0 ? owner : owner.slice(0, slash);
}

/** The run id of the server process, taken from the name of a memory. That name is in the form of a view's `runId`. */
export function serverOf(memory: string): string {
  return memory.split(/[+/]/, 1)[0]!;
}

/** The number as the scripts read it: 0 for a number that no cluster can have reached. */
export function reached(value: number): number {
  return value <= MAX_NUMBER ? value : 0;
}

/** Everything about a node that a recovery relies on, in the form that `recover_node` compares. */
export function recoveryExpectation(
  view: Pick<
    NodeView,
    'runId' | 'cluster' | 'incarnation' | 'pending' | 'epoch' | 'head' | 'headEpoch' | 'headHash' | 'length'
  >,
): string {
  return [
    view.runId,
    view.cluster,
    view.incarnation,
    view.pending,
    reached(view.epoch),
    reached(view.head),
    reached(view.headEpoch),
    view.headHash,
    view.length,
  ].join('|');
}
