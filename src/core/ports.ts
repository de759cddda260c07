// What the engine needs from the outside: nodes, clock, randomness, store, producer. Production, simulator and tests
// each bring their own.
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

/** Identity that every call carries (WRONG_CLUSTER otherwise). */
export interface ClusterIdentity {
  /** `<clusterId>.<generation>`. */
  cluster: string;
  lane: string;
}

/** A committed block range to send to one node in order; stops at the first reply that is not accepted. */
export interface BackfillBatch {
  owner: string;
  epoch: Epoch;
  ttlMs: number;
  mode: WriteMode;
  /** Set: the node is being re-admitted under this nonce, and `backfill` is called instead of `write_block`. */
  nonce?: string;
  blocks: { block: Block; entryEpoch: Epoch }[];
}

/**
 * One Redis server. Nothing here ever throws for what a node does or does not: outcomes are data. Every step has a
 * deadline.
 */
export interface NodePort {
  readonly id: string;
  /** Without secrets. */
  readonly url: string;
  /**
   * Runs one script once; never resends by itself (a NOSCRIPT reply proves that nothing ran and is followed by load
   * and one more try).
   */
  call<C extends NodeCall>(call: C, limitMs: number): Promise<ReplyTo<C>>;
  /**
   * Pipelined write_block calls (or backfill calls, with a nonce); resolves with one reply per block sent, up to the
   * first that is not accepted.
   */
  backfill(batch: BackfillBatch, limitMs: number): Promise<ReplyTo<Extract<NodeCall, { script: 'write_block' }>>[]>;
  /** Entries from..to (inclusive heights), hash-checked when `data`; at most `limit` entries. */
  read(
    range: { from: Height; to: Height; limit: number; data: boolean; newestFirst?: boolean },
    limitMs: number,
  ): Promise<NodeReply<EntriesRead>>;
  /**
   * Blocks up to waitMs for entries with an id above `afterId`; own connection, so it never delays `call`. Empty =
   * nothing came.
   */
  tail(afterId: string, waitMs: number, limit: number): Promise<NodeReply<EntriesRead>>;
  /** The newest operator records (`seq:ops:audit`), newest first. Where a port cannot, history goes without them. */
  readAudit?(limit: number, limitMs: number): Promise<NodeReply<Record<string, string>[]>>;
  /** What was superseded or set aside here (`seq:block:orphans`), newest first, without payloads. */
  readOrphans?(limit: number, limitMs: number): Promise<NodeReply<OrphansRead>>;
  /** One of them with its payload, by its id there; its hash is checked. */
  readOrphan?(id: string, limitMs: number): Promise<NodeReply<Block>>;
  /** Makes ready what a promotion will use here (scripts, connections). Changes nothing that this node remembers. */
  prepare?(limitMs: number): Promise<void>;
  /** For `seq doctor`: the server itself. */
  checkup?(limitMs: number): Promise<NodeReply<NodeCheckup>>;
  /**
   * Of a node that is only remembered (a bundle): how long its last answer took when it was given; null: it gave
   * none.
   */
  readonly recordedRttMs?: number | null;
  /** Hints only. Returns how to stop. */
  onHint(listener: (hint: NodeHint) => void): () => void;
  /**
   * From now on this node is the server at another address (`seq node replace`); credentials stay. Where a port
   * cannot, it stays where it is.
   */
  moveTo?(url: string): void;
  /** Grows whenever the connection was lost: what was read before may be stale. */
  readonly connectionGeneration: number;
  close(): Promise<void>;
}

/**
 * `released`: whoever held the lock gave it back, for anybody to take; `gone`: it is not there any more (expired, or
 * given to somebody), which is
 * worth a look; `request`: a request came.
 */
export type NodeHint = 'released' | 'gone' | 'request';

export interface Clock {
  /** Monotonic, ms, fractional. For leases and durations. */
  now(): number;
  /** Wall clock, whole ms. For timestamps only, never for safety (I9). */
  wall(): number;
  /** Calls back after ms (≥ 0); returns cancel. */
  after(ms: number, run: () => void): () => void;
  /** Calls back at this time of now(), never before it; a clock whose timers are exact has no need of it. */
  at?(time: number, run: () => void): () => void;
}

export interface Random {
  /** `bytes` random bytes as hex. */
  hex(bytes: number): string;
  /** Uniform in [0, 1). */
  unit(): number;
}

export interface CommittedBlock extends Block {
  /** The epoch under which it was committed; 0 when only its commitment is known. */
  epoch: Epoch;
}

/** What a submission got: where it stands. `index` counts from 0 within the block. */
export interface Receipt {
  height: Height;
  index: number;
  epoch: Epoch;
}

/** This sequencer's own copy of the committed chain (LMDB in production). Single writer, many readers. */
export interface ChainStore {
  /** Highest block appended (not necessarily synced yet); height 0 and the genesis hash when empty. */
  head(): { height: Height; hash: Hash; timestamp: number; epoch: Epoch };
  /** Sees appended blocks at once, synced or not. */
  get(height: Height): CommittedBlock | undefined;
  /** Where blocks have to be fetched before `get` sees them: as many as one batch takes, from `from` on. */
  prefetch?(from: Height, to: Height): Promise<void>;
  /** Without payload; cheaper than get. */
  header(height: Height): (Omit<CommittedBlock, 'data'> & { size: number }) | undefined;
  /** Appends head+1 (throws InvariantError otherwise) and its items' receipts; resolves once it is on disk (synced). */
  append(block: CommittedBlock): Promise<void>;
  /** The first receipt of this key within the window, with the SHA-256 of the item's bytes (hex). */
  receipt(key: string): (Receipt & { digest: string }) | undefined;
  /** The lowest floor f so that blocks f+1…head keep within both limits (exact); 0 when all fit. */
  retainedFloor(limits: { blocks: number; bytes: number }): Height;
  close(): Promise<void>;
}

/** One submitted item. Without a key nothing is de-duplicated. */
export interface Item {
  key?: string;
  data: Uint8Array;
}

export interface ProduceRequest {
  height: Height;
  parent: Hash;
  epoch: Epoch;
  /** ms from now after which the answer is useless. */
  deadlineMs: number;
  items: Item[];
}

/**
 * Makes the content of blocks. `produce` rejects with a SeqError when the producer failed: that ends the term,
 * never the chain.
 */
export interface Producer {
  readonly name: string;
  /**
   * True when `produce` for H+1 may only be asked after `committed` for H was acknowledged (a state machine that must
   * be warm).
   */
  readonly needsChain?: boolean;
  ready(): { ready: true } | { ready: false; why: string };
  /** `taken`: how many of request.items (from the front) are in the block. */
  produce(request: ProduceRequest): Promise<{ data: Uint8Array; taken: number }>;
  /** Every committed block, in order, once; on leaders and followers alike. */
  committed(block: CommittedBlock): Promise<void>;
  /** The term is gone; a produce under way is void. */
  revoked(reason: string): void;
  /** The producer ended or spoke garbage on its own. */
  onFailure(listener: (why: string) => void): void;
  close(): Promise<void>;
}

/**
 * What became of one submitted item. `unknown`: it was proposed and the term was lost before its commit was
 * established; ask again with the same key.
 */
export type SubmitOutcome =
  | { outcome: 'committed'; receipt: Receipt; duplicate: boolean }
  /** Nothing was taken in. */
  | {
      outcome: 'refused';
      reason: 'not-leader' | 'busy' | 'too-large' | 'key-conflict' | 'stopping';
      why: string;
      retryAfterMs?: number;
    }
  | { outcome: 'unknown'; why: string };

/**
 * A node as one sequencer sees it. A follower has the node's own word on its admission, or none (`unknown`, `refused`);
 * a leader has where the node stands with its term.
 */
export type SeenNodeState = 'unknown' | 'refused' | AdmissionState | Standing;

/** What one running sequencer says of itself. */
export interface SequencerStatus {
  id: string;
  role: 'follower' | 'promoting' | 'leader' | 'stopping';
  cluster: string;
  lane: string;
  /** Highest block in the local store, synced. */
  height: Height;
  hash: Hash;
  /** Epoch of the term this process holds; 0 when it holds none. */
  epoch: Epoch;
  /** ms of lease validity left as this process counts it; 0 when it leads not. */
  leaseMs: number;
  /** Who leads as far as this process sees it. */
  leader: { id: string; epoch: Epoch; url: string } | null;
  /** Highest committed height seen on the nodes. */
  seenHeight: Height;
  /**
   * True when it could lead: store at the head, producer ready, q nodes answer. `why` says what is missing otherwise.
   */
  ready: boolean;
  why: string;
  /** Nodes as this process sees them. */
  nodes: { id: string; state: SeenNodeState; why: string }[];
  inbox: { items: number; bytes: number; limitBytes: number };
  startedAtMs: number;
  /** Monotonic ms since the main loop last turned (livez). */
  loopAgeMs: number;
}

/** A sequencer as the HTTP server and the tests see it. */
export interface SequencerApi {
  status(): SequencerStatus;
  /** Resolves when every item's fate is settled; outcomes in order. */
  submit(items: Item[]): Promise<SubmitOutcome[]>;
  /**
   * Calls back when this one begins to lead (before its first block is made) or ceases to, and when it sees another
   * leader. Returns how to stop.
   */
  onLeadership(listener: (status: SequencerStatus) => void): () => void;
  /**
   * The committed head, confirmed on q nodes under this term's epoch after the call; or why that could not be
   * confirmed.
   */
  confirmHead(): Promise<
    { confirmed: true; height: Height; hash: Hash; epoch: Epoch } | { confirmed: false; why: string }
  >;
  /** From the local store. */
  block(height: Height): CommittedBlock | undefined;
  /**
   * Committed (and synced) blocks from `from` on, live; ends when aborted or the process stops. Below the store's own
   * first block: throws SeqError NOT_FOUND.
   */
  follow(from: Height, signal: AbortSignal): AsyncIterable<CommittedBlock>;
}

/** One entry that is kept as evidence after another took its place (docs/PROTOCOL.md section 2). */
export interface OrphanEntry {
  /** Of the stream of orphans: when it came there, by the node's clock. */
  id: string;
  height: Height | null;
  epoch: Epoch | null;
  hash: Hash;
  parent: Hash;
  owner: string;
  timestamp: number | null;
  size: number;
  /** The block that stands there instead. */
  supersededBy: Hash;
  /** ms, by the node's clock. */
  at: number | null;
  /** '' when its hash is that of its content; otherwise what is wrong with it. */
  damage: string;
}

export interface OrphansRead {
  /** Newest first. */
  superseded: OrphanEntry[];
  /** How many the node keeps. */
  total: number;
  /** A whole stream that was put aside at a re-admission or rebase, and goes away by itself. */
  setAside: { nonce: string; entries: number; from: Height | null; to: Height | null; expiresMs: number | null } | null;
}

/**
 * What `seq doctor` looks at on one node besides `inspect`. Everything that could not be read is null, with the
 * reason.
 */
export interface NodeCheckup {
  /** Of INFO, all sections. */
  info: Record<string, string>;
  /** CONFIG GET of what matters; null when the user may not ask. */
  config: Record<string, string> | null;
  /** The user it is asked as. */
  user: string;
  /**
   * Commands (with the key or channel) that this user may not run; null: the server cannot tell (no ACL DRYRUN, or
   * not allowed).
   */
  denied: string[] | null;
  /** The same of what is not needed but spares a script for each block. */
  scriptsOnly?: string[];
  /** Round trips of PING, ms, one after the other. */
  roundTripsMs: number[];
  /** The server's clock minus ours, ms, give or take half a round trip. */
  clockMs: number;
  /** The ACL rule that gives exactly what is needed. */
  aclRule: string;
}

/** What `seq bench` does on one server besides writing blocks; true when the server confirmed it. */
export interface BenchServer {
  /** A plain SET of the same bytes, under a key of the measuring lane. */
  set(data: Uint8Array, lifeMs: number, limitMs: number): Promise<boolean>;
  /** From now on the lane's keys vanish by themselves (or those of another measurement's lane). */
  limitLife(lifeMs: number, limitMs: number, lane?: string): Promise<boolean>;
  /** Deletes the lane, and looks that it is gone. */
  remove(limitMs: number): Promise<boolean>;
  close(): void;
}
