// What the engine needs from outside: nodes, clock, randomness, store, producer. Production, simulator and tests each
// bring their own implementation.
import type { Standing } from './protocol/node-progress.js';
import type {
  AdmissionState,
  Block,
  EntriesRead,
  Epoch,
  Hash,
  Height,
  NodeCall,
  NodeReply,
  ReplyTo,
  WriteMode,
} from './protocol/types.js';

/** The identity that every call carries. A node of another identity answers WRONG_CLUSTER. */
export interface ClusterIdentity {
  /** `<clusterId>.<generation>`. */
  cluster: string;
  lane: string;
}

/** A range of committed blocks to send to one node in order. Sending stops at the first reply that is not accepted. */
export interface BackfillBatch {
  owner: string;
  epoch: Epoch;
  ttlMs: number;
  mode: WriteMode;
  /** When set, the node is being re-admitted under this nonce. Then `backfill` is called instead of `write_block`. */
  nonce?: string;
  /** With a nonce: what the node answered when the admission was begun. */
  challenge?: string;
  blocks: { block: Block; entryEpoch: Epoch }[];
}

/**
 * One Redis server. Whatever a node does or fails to do, no method throws: outcomes are data. Every step has a
 * deadline.
 */
export interface NodePort {
  readonly id: string;
  /** Without secrets. */
  readonly url: string;
  /**
   * Runs one script once and never resends it by itself. One exception: a NOSCRIPT reply proves that nothing ran, so
   * the port loads the script and tries once more.
   */
  call<C extends NodeCall>(call: C, limitMs: number): Promise<ReplyTo<C>>;
  /**
   * Pipelined write_block calls (or backfill calls, with a nonce). It resolves with one reply per block sent, up to the
   * first reply that is not accepted.
   */
  backfill(batch: BackfillBatch, limitMs: number): Promise<ReplyTo<Extract<NodeCall, { script: 'write_block' }>>[]>;
  /** Entries from…to (inclusive heights), at most `limit` of them. Their hashes are checked when `data` is set. */
  read(
    range: { from: Height; to: Height; limit: number; data: boolean; newestFirst?: boolean },
    limitMs: number,
  ): Promise<NodeReply<EntriesRead>>;
  /**
   * Waits up to waitMs for entries with an id above `afterId`. It has its own connection, so it never delays `call`. An
   * empty result means that nothing came.
   */
  tail(afterId: string, waitMs: number, limit: number): Promise<NodeReply<EntriesRead>>;
  /** How reading over the tail's connection goes. A port without this reads at once. */
  readonly reading?: NodeReading;
  /** The newest operator records (`seq:ops:audit`), newest first. When a port cannot read them, history omits them. */
  readAudit?(limit: number, limitMs: number): Promise<NodeReply<Record<string, string>[]>>;
  /** Entries that were superseded or set aside on this node (`seq:block:orphans`), newest first, without payloads. */
  readOrphans?(limit: number, limitMs: number): Promise<NodeReply<OrphansRead>>;
  /** One orphan with its payload, by its id in that stream. Its hash is checked. */
  readOrphan?(id: string, limitMs: number): Promise<NodeReply<Block>>;
  /**
   * Prepares what a promotion will use on this node (scripts, connections). It changes nothing that the node remembers.
   */
  prepare?(limitMs: number): Promise<void>;
  /** For `seq doctor`: reads facts about the server itself. */
  checkup?(limitMs: number): Promise<NodeReply<NodeCheckup>>;
  /** Only for a recorded node (in a bundle): how long its last answer took at the time. null: it gave no answer. */
  readonly recordedRttMs?: number | null;
  /** Calls the listener for each hint. A hint proves nothing. Returns a function that stops it. */
  onHint(listener: (hint: NodeHint) => void): () => void;
  /**
   * From now on, this node is the server at another address (`seq node replace`). The credentials stay the same. A port
   * without this method keeps its address.
   */
  moveTo?(url: string): void;
  /** The same node at another address, with the same credentials, on connections of its own. The caller closes it. */
  elsewhere?(url: string): NodePort;
  /** Grows each time the connection is lost. Data that was read before may be stale. */
  readonly connectionGeneration: number;
  close(): Promise<void>;
}

/** What the reads of a node's stream have shown of the link to it. */
export interface NodeReading {
  /** Bytes per second while a read filled the link. Null: no read has. */
  bytesPerS: number | null;
  /** What cuts reads off; '' while they pass. */
  trouble: string;
  /** How long to wait before the next read, after several that failed. */
  pauseMs: number;
}

/**
 * `released`: the holder gave the lock back, and anybody may take it. `gone`: the lock is no longer there (it expired,
 * or somebody else got it), so a probe is useful. `request`: a request arrived.
 */
export type NodeHint = 'released' | 'gone' | 'request';

export interface Clock {
  /** Monotonic, in ms with fractions. For leases and durations. */
  now(): number;
  /** Wall clock, whole ms. For timestamps only, never for safety (I9). */
  wall(): number;
  /** Calls `run` after ms (≥ 0). Returns a function that cancels it. */
  after(ms: number, run: () => void): () => void;
  /** Calls `run` at this time of now(), never before it. A clock with exact timers does not need this method. */
  at?(time: number, run: () => void): () => void;
}

export interface Random {
  /** `bytes` random bytes as hex. */
  hex(bytes: number): string;
  /** Uniform in [0, 1). */
  unit(): number;
}

export interface CommittedBlock extends Block {
  /** The epoch under which it was committed. 0 when only the fact of its commitment is known. */
  epoch: Epoch;
}

/** The receipt of a submission: the position of its item in the chain. `index` counts from 0 within the block. */
export interface Receipt {
  height: Height;
  index: number;
  epoch: Epoch;
}

/** A block whose bytes in the store are not the ones that were appended. */
export interface DamagedBlock {
  height: Height;
  why: string;
}

/** This sequencer's own copy of the committed chain (LMDB in production). It has one writer and many readers. */
export interface ChainStore {
  /** Highest block appended (it may not be synced yet). When the store is empty: height 0 and the genesis hash. */
  head(): { height: Height; hash: Hash; timestamp: number; epoch: Epoch };
  /**
   * Sees appended blocks at once, whether they are synced or not. A block whose hash does not match is given to nobody:
   * undefined, and `damaged` knows it.
   */
  get(height: Height): CommittedBlock | undefined;
  /** The damaged blocks found so far, by height. A store in memory has none. */
  readonly damaged?: ReadonlyMap<Height, DamagedBlock>;
  /** The listener gets every damaged block, also those that were found before. */
  onDamage?(listener: (damaged: DamagedBlock) => void): void;
  /**
   * Puts the right bytes in the place of a damaged block. Resolves once they are synced. False when this is not the
   * block that was there.
   */
  repair?(block: CommittedBlock): Promise<boolean>;
  /**
   * For stores that must fetch blocks before `get` sees them. It fetches from `from` on, as many as fit into one batch.
   */
  prefetch?(from: Height, to: Height): Promise<void>;
  /** The block without its payload. Cheaper than get. */
  header(height: Height): (Omit<CommittedBlock, 'data'> & { size: number }) | undefined;
  /**
   * Appends block head+1 and its items' receipts. Any other height throws InvariantError. Resolves once the block is
   * synced to disk.
   */
  append(block: CommittedBlock): Promise<void>;
  /** Syncs a write that changes nothing. It measures the disk. A store in memory has none. */
  checkDisk?(): Promise<void>;
  /**
   * The first receipt of this key within the de-duplication window, with the SHA-256 of the item's bytes (hex).
   * 'unproven': what it remembers of this key is damaged, and nobody can say whether the item is in the chain.
   */
  receipt(key: string): (Receipt & { digest: string }) | 'unproven' | undefined;
  /** Looks at some more of what is on disk. False: it has looked at all of it. A store in memory has none. */
  scrub?(): Promise<boolean>;
  /** The listener is called when it could not prove a key that it was asked for. The next scrub settles it. */
  onKeyInDoubt?(listener: () => void): void;
  /** True while what it remembers of keys is made anew: then it knows of no key that it is unknown. */
  readonly keysInDoubt?: boolean;
  /** The listener is told what was wrong with remembered keys, first of this block, once it is right. */
  onKeysRepaired?(listener: (height: Height, what: string) => void): void;
  /** The lowest floor f so that blocks f+1…head keep within both limits (exact). 0 when all blocks fit. */
  retainedFloor(limits: { blocks: number; bytes: number }): Height;
  close(): Promise<void>;
}

/** One submitted item. An item without a key is not de-duplicated. */
export interface Item {
  key?: string;
  data: Uint8Array;
}

export interface ProduceRequest {
  height: Height;
  parent: Hash;
  epoch: Epoch;
  /** After this many ms from now, the answer is useless. */
  deadlineMs: number;
  items: Item[];
}

/**
 * Makes the content of blocks. `produce` rejects with a SeqError when the producer failed. That ends the term, never
 * the chain.
 */
export interface Producer {
  readonly name: string;
  /**
   * True for a state machine that must be warm: it needs the acknowledgement of `committed` for H before `produce` for
   * H+1.
   */
  readonly needsChain?: boolean;
  ready(): { ready: true } | { ready: false; why: string };
  /** `taken`: how many of request.items (from the front) are in the block. */
  produce(request: ProduceRequest): Promise<{ data: Uint8Array; taken: number }>;
  /** Why it takes this item in no block: it has failed at it again and again. null: it may. */
  refusal?(item: Item): string | null;
  /** Gets every committed block once, in order, on leaders and followers alike. */
  committed(block: CommittedBlock): Promise<void>;
  /** The term has ended. A `produce` call that still runs has no effect any more. */
  revoked(reason: string): void;
  /** The listener is called when the producer exits, or sends garbage, on its own. */
  onFailure(listener: (why: string) => void): void;
  close(): Promise<void>;
}

/**
 * The outcome of one submitted item. `unknown`: the item was proposed, and the term was lost before its commit was
 * established. Ask again with the same key.
 */
export type SubmitOutcome =
  | { outcome: 'committed'; receipt: Receipt; duplicate: boolean }
  /** The sequencer accepted nothing of this submission. */
  | {
      outcome: 'refused';
      reason: 'not-leader' | 'busy' | 'too-large' | 'key-conflict' | 'stopping' | 'set-aside';
      why: string;
      retryAfterMs?: number;
    }
  | { outcome: 'unknown'; why: string };

/**
 * The state of a node as one sequencer sees it. A follower has the node's own word on its admission, or none
 * (`unknown`, `refused`). A leader has the node's standing in its term.
 */
export type SeenNodeState = 'unknown' | 'refused' | AdmissionState | Standing;

/** What one running sequencer says about itself. */
export interface SequencerStatus {
  id: string;
  role: 'follower' | 'promoting' | 'leader' | 'stopping';
  cluster: string;
  lane: string;
  /** Highest synced block in the local store. */
  height: Height;
  hash: Hash;
  /** Epoch of the term that this process holds. 0 when it holds none. */
  epoch: Epoch;
  /** The ms of lease validity that are left, as this process counts them. 0 when it does not lead. */
  leaseMs: number;
  /** The leader, as far as this process sees it. */
  leader: { id: string; epoch: Epoch; url: string } | null;
  /** Highest committed height seen on the nodes. */
  seenHeight: Height;
  /**
   * True when this sequencer could lead: its store is at the head, its producer is ready, and q nodes answer. Otherwise
   * `why` says what is missing.
   */
  ready: boolean;
  why: string;
  /**
   * Why this sequencer could not be promoted although it is ready: a hold, a hand-over to another one, locks that no
   * lease explains. '' when a living leader is all that stands in the way, and while it leads.
   */
  blocked: string;
  /** The nodes as this process sees them. */
  nodes: { id: string; state: SeenNodeState; why: string }[];
  inbox: { items: number; bytes: number; limitBytes: number };
  startedAtMs: number;
  /** Monotonic ms since the last turn of the main loop (livez). */
  loopAgeMs: number;
}

/** A sequencer as the HTTP server and the tests see it. */
/** When one process saw a block: ms since 1970 by its own clock. null: it has not happened here. */
export interface BlockTimes {
  height: Height;
  hash: Hash;
  /** Its term sent the block to the nodes. */
  proposedMs: number | null;
  /** It knew that the block is committed. */
  committedMs: number | null;
  /** The block was on this disk. Receipts are given from then on. */
  syncedMs: number | null;
}

export interface SequencerApi {
  status(): SequencerStatus;
  /** Resolves when the outcome of every item is settled. Outcomes come in the order of the items. */
  submit(items: Item[]): Promise<SubmitOutcome[]>;
  /**
   * Calls back when this sequencer begins to lead (before it makes its first block), when it stops leading, and when it
   * sees another leader. Returns a function that stops it.
   */
  onLeadership(listener: (status: SequencerStatus) => void): () => void;
  /**
   * The committed head, confirmed after the call on q nodes under this term's epoch. Otherwise the reason why it could
   * not be confirmed.
   */
  confirmHead(): Promise<
    { confirmed: true; height: Height; hash: Hash; epoch: Epoch } | { confirmed: false; why: string }
  >;
  /** From the local store. */
  block(height: Height): CommittedBlock | undefined;
  /** Where the item of this key is, from the local store. See ChainStore. */
  receipt(key: string): ReturnType<ChainStore['receipt']>;
  /** When this process saw the block at this height. undefined: not in this process' life, or too long ago. */
  blockTimes(height: Height): BlockTimes | undefined;
  /**
   * Committed (and synced) blocks from `from` on, live. It ends when it is aborted or the process stops. Below the
   * store's own first block it throws SeqError NOT_FOUND.
   */
  follow(from: Height, signal: AbortSignal): AsyncIterable<CommittedBlock>;
}

/** One entry that a node keeps as evidence after another entry replaced it (docs/PROTOCOL.md section 2). */
export interface OrphanEntry {
  /** Its id in the stream of orphans: the time when it came there, by the node's clock. */
  id: string;
  height: Height | null;
  epoch: Epoch | null;
  hash: Hash;
  parent: Hash;
  owner: string;
  timestamp: number | null;
  size: number;
  /** The block that is now at this height. */
  supersededBy: Hash;
  /** ms, by the node's clock. */
  at: number | null;
  /** '' when its hash matches its content. Otherwise what is wrong with it. */
  damage: string;
}

export interface OrphansRead {
  /** Newest first. */
  superseded: OrphanEntry[];
  /** How many the node keeps. */
  total: number;
  /** A whole stream that was set aside at a re-admission or rebase. It expires by itself. */
  setAside: { nonce: string; entries: number; from: Height | null; to: Height | null; expiresMs: number | null } | null;
}

/** What `seq doctor` reads on one node besides `inspect`. A value that could not be read is null, with the reason. */
export interface NodeCheckup {
  /** The answer of INFO, all sections. */
  info: Record<string, string>;
  /** CONFIG GET of the settings that matter. null when the user has no right to ask. */
  config: Record<string, string> | null;
  /** The Redis user that asks. */
  user: string;
  /**
   * Commands (with the key or channel) that this user may not run. null: the server cannot tell (it has no ACL DRYRUN,
   * or the user may not run that).
   */
  denied: string[] | null;
  /** The command that gives the user what it lacks. '' when it lacks nothing, or the server cannot tell. */
  grant: string;
  /** Denied commands that seq does not need. When they are allowed, seq saves one script call for each block. */
  scriptsOnly?: string[];
  /** Round trips of consecutive PINGs, ms. */
  roundTripsMs: number[];
  /** The server's clock minus this machine's clock, ms. It may be off by half a round trip. */
  clockMs: number;
  /** The ACL rule that gives exactly the rights that seq needs. */
  aclRule: string;
}

/** What `seq bench` does on one server besides writing blocks. A result is true when the server confirmed it. */
export interface BenchServer {
  /** A plain SET of the same bytes, under a key of the measuring lane. */
  set(data: Uint8Array, lifeMs: number, limitMs: number): Promise<boolean>;
  /** Gives the lane's keys (or those of another measurement's lane) a lifetime, after which they expire. */
  limitLife(lifeMs: number, limitMs: number, lane?: string): Promise<boolean>;
  /** Deletes the lane and checks that it is gone. */
  remove(limitMs: number): Promise<boolean>;
  close(): void;
}
