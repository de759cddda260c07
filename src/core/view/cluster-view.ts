// What is known of one cluster after it was asked: what each node said, the row per node, the leader, the findings and
// the verdict. Types only; model.ts computes them, verdict.ts judges them.
import type {
  AdmissionState,
  EntriesRead,
  Epoch,
  Hash,
  Height,
  NodeReply,
  NodeView,
  Owner,
  Step,
} from '../protocol/types.js';
import type { SequencerRow } from './presence.js';
import type { Committed, Conflict, Pending } from './proof.js';

export type Verdict = 'OK' | 'WARN' | 'CRIT' | 'UNKNOWN';
export type ReasonCode =
  | 'OK'
  | 'WRONG_CLUSTER'
  | 'CLUSTER_MIXED'
  | 'SAME_SERVER'
  | 'CONFLICT'
  | 'NOT_INITIALISED'
  | 'NO_QUORUM'
  | 'LEADER_UNKNOWN'
  | 'NO_LEADER'
  | 'LEADER_STALLED'
  | 'NODE_DOWN'
  | 'NODE_REFUSED'
  | 'NODE_NOT_ADMITTED'
  | 'NODE_FOREIGN'
  | 'NOT_MEMBER'
  | 'NODE_LAGGING'
  | 'NODE_FENCED'
  | 'NODE_UNLEASED'
  | 'NODE_ORPHAN'
  | 'PENDING_BLOCK'
  | 'HELD'
  | 'CONFIG_DRIFT'
  | 'CLOCK_OFF'
  | 'RETENTION_NARROWED'
  | 'RETENTION_CLOSING'
  | 'RETENTION_LOST';

export interface Finding {
  verdict: Exclude<Verdict, 'OK'>;
  code: ReasonCode;
  reason: string;
  /** The nodes it is about, [] for the cluster. */
  nodes: string[];
  next: string[];
}

/** What one node said, or that it said nothing. */
export interface NodeProbe {
  id: string;
  /** Without secrets. */
  url: string;
  reply: NodeReply<NodeView>;
  /** How long the answer took; null when there was none. */
  rttMs: number | null;
  /** When it was asked, on the monotonic clock of who asked; absent where nobody noted it. */
  askedAt?: number;
  /** The header of its head, read only when heads alone do not settle what is committed. */
  headEntry?: NodeReply<EntriesRead>;
}

export type NodeState =
  /** Admitted, at the committed head, and the leader's where there is one. */
  | 'OK'
  /** Admitted, yet something keeps it from counting fully; `note` says what. */
  | 'WARN'
  /** Answers, and is not admitted: nothing may be counted on it. */
  | 'OUT'
  /** No key of ours. */
  | 'EMPTY'
  /** Belongs to another cluster, generation or node id. */
  | 'FOREIGN'
  /** Was named, and the configuration of the cluster does not have it: it counts for nothing. */
  | 'STRANGER'
  /** Answered with a refusal of Redis itself (password, rights, loading). */
  | 'REFUSED'
  /** Did not answer in time. */
  | 'DOWN';

interface NodeError {
  /** The step that did not end (unknown) or null (refused). */
  step: Step | null;
  limitMs: number | null;
  /** TIMEOUT-like cause is in the sentence; for a refusal the word, e.g. NOAUTH. */
  code: string;
  message: string;
}

export interface NodeRow {
  id: string;
  url: string;
  state: NodeState;
  admitted: boolean;
  /** The admission word of section 8; null when it did not answer. */
  admission: AdmissionState | null;
  /** Sequencer id that holds its lock, null when free or unknown (see `state`). */
  holder: string | null;
  owner: Owner | null;
  ttlMs: number | null;
  epoch: Epoch | null;
  floor: Height | null;
  head: Height | null;
  headEpoch: Epoch | null;
  headHash: Hash | null;
  /** Committed blocks it lacks; null when either side is unknown. */
  lag: number | null;
  /** Of the last call that it answered; null when it answered none. */
  rttMs: number | null;
  error: NodeError | null;
  /** One sentence for any state but OK. */
  note: string;
  cluster: string;
  runId: string;
  /** From the server's INFO; may be empty. */
  info: Record<string, string>;
}

export interface LeaderRow {
  id: string;
  epoch: Epoch;
  owner: Owner;
  /** Until the lock is no longer held on a quorum, as the nodes count it. */
  ttlMs: number;
  /** Ids of the nodes that hold its lock under its claim. */
  nodes: string[];
}

export interface ClusterView {
  verdict: Verdict;
  reason: string;
  reasonCode: ReasonCode;
  /** Exact commands, best first. */
  next: string[];
  /** Everything found, worst first; the first one is the verdict's. Empty when OK. */
  findings: Finding[];
  /** `<id>.<generation>` that most answers name, '' when none does. */
  cluster: string;
  /** How many nodes the cluster has: its configuration's, or those that were named when there is none. */
  configured: number;
  answered: number;
  quorum: number;
  /** Healthy admitted nodes minus the quorum: how many more may be lost. Negative: how many are missing. */
  margin: number;
  leader: LeaderRow | null;
  /** False when too few nodes answered to say whether there is a leader. */
  leaderKnown: boolean;
  committed: Committed | null;
  pending: Pending | null;
  conflicts: Conflict[];
  hold: { by: string; reason: string; ttlMs: number; nodes: number } | null;
  handover: { to: string; ttlMs: number; nodes: number } | null;
  nodes: NodeRow[];
  sequencers: SequencerRow[];
}

export interface SummarizeOptions {
  /** The cluster the operator means, e.g. from the context; '' or absent: whatever the nodes say. */
  expectedCluster?: string;
  /** An earlier look at the same nodes: what was committed then must be everywhere now, or the node really lags. */
  earlier?: { committed: Committed | null; pending: Pending | null };
  /** Flags that name this cluster in a command, e.g. `-c lab`. */
  target?: string;
  /** The command that starts a node's server, when we know one. */
  startCommand?: (nodeId: string) => string | undefined;
  /** The commands that make its sequencers run again, when we know them. */
  startSequencers?: () => string[];
}
