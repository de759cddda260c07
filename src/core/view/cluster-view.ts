// What is known of one cluster after its nodes were asked: each node's answer, the row per node, the leader, the
// findings and the verdict. This file has only types. model.ts computes them, verdict.ts judges them.
import type {
  AdmissionState,
  EntriesRead,
  Epoch,
  Hash,
  Height,
  NodeReply,
  NodeView,
  Owner,
  RefusalReason,
  Step,
} from '../protocol/types.js';
import type { AbsentSequencer, SequencerRow } from './presence.js';
import type { Committed, Conflict, Pending } from './proof.js';

export type Verdict = 'OK' | 'WARN' | 'CRIT' | 'UNKNOWN';
export type ReasonCode =
  | 'OK'
  | 'WRONG_CLUSTER'
  | 'LANE_REMOVED'
  | 'CLUSTER_MIXED'
  | 'SAME_SERVER'
  | 'TWO_LEADERS'
  | 'CONFLICT'
  | 'NODES_SET_BACK'
  | 'NOT_INITIALISED'
  | 'NO_QUORUM'
  | 'LEADER_UNKNOWN'
  | 'NO_LEADER'
  | 'LEADER_STALLED'
  | 'LEADER_SILENT'
  | 'LEASE_CLOSING'
  | 'LOCK_STUCK'
  | 'NO_STANDBY'
  | 'NODE_DOWN'
  | 'NODE_REFUSED'
  | 'NODE_DENIED'
  | 'NODE_NOT_ADMITTED'
  | 'NODE_FOREIGN'
  | 'NOT_MEMBER'
  | 'NODE_LAGGING'
  | 'NODE_FENCED'
  | 'EPOCH_BEHIND'
  | 'NODE_UNLEASED'
  | 'NODE_ORPHAN'
  | 'DIVERGED'
  | 'PENDING_BLOCK'
  | 'HELD'
  | 'CONFIG_DRIFT'
  | 'CLOCK_OFF'
  | 'RETENTION_NARROWED'
  | 'RETENTION_CLOSING'
  | 'RETENTION_LOST'
  | 'STORE_DAMAGED';

export interface Finding {
  verdict: Exclude<Verdict, 'OK'>;
  code: ReasonCode;
  reason: string;
  /** The nodes that it is about. [] for the whole cluster. */
  nodes: string[];
  next: string[];
}

/** The answer of one node, or the fact that it did not answer. */
export interface NodeProbe {
  id: string;
  /** Without secrets. */
  url: string;
  reply: NodeReply<NodeView>;
  /** How long the answer took. null when there was none. */
  rttMs: number | null;
  /** Why there was no answer at the first try, when the second one was answered. */
  firstTry?: string;
  /** When the node was asked, on the monotonic clock of the process that asked. Absent when nobody recorded it. */
  askedAt?: number;
  /** The header of its head entry. It is read only when the heads alone do not settle what is committed. */
  headEntry?: NodeReply<EntriesRead>;
  /**
   * For a node that is behind: what a node that has the committed head holds at the head of this one. It is read only
   * when a second probe still shows this node behind.
   */
  chainAtHead?: NodeReply<EntriesRead>;
}

export type NodeState =
  /** Admitted, at the committed head, and with the leader's lock when there is a leader. */
  | 'OK'
  /** Admitted, but something keeps it from counting fully. `note` says what. */
  | 'WARN'
  /** Answers, but is not admitted: nothing may be counted on it. */
  | 'OUT'
  /** Holds no key of this project. */
  | 'EMPTY'
  /** Belongs to another cluster, generation or node id. */
  | 'FOREIGN'
  /** Was named, but the cluster's configuration does not contain it: it counts for nothing. */
  | 'STRANGER'
  /** Answered with a refusal by Redis itself (password, rights, loading). */
  | 'REFUSED'
  /** Did not answer in time. */
  | 'DOWN';

interface NodeError {
  /** The step that did not end. null when the node refused. */
  step: Step | null;
  limitMs: number | null;
  /** The word of a refusal, e.g. NOAUTH. For a timeout, the cause is in the sentence. */
  code: RefusalReason | 'NO_ANSWER';
  message: string;
  /** NOPERM: the command of the server that gives what is missing. */
  grant?: string;
}

export interface NodeRow {
  id: string;
  url: string;
  state: NodeState;
  admitted: boolean;
  /** The admission word of section 8. null when the node did not answer. */
  admission: AdmissionState | null;
  /** Id of the sequencer that holds its lock. null when the lock is free or unknown (see `state`). */
  holder: string | null;
  owner: Owner | null;
  ttlMs: number | null;
  /** Why its lock cannot be a running lease: nobody renews it, and nobody may take it. '' otherwise. */
  lockStuck: string;
  epoch: Epoch | null;
  floor: Height | null;
  head: Height | null;
  headEpoch: Epoch | null;
  headHash: Hash | null;
  /** The number of committed blocks that it lacks. null when either side is unknown. */
  lag: number | null;
  /** Its head is another block than the committed one at that height. null when it is not, or when nobody read it. */
  diverged: { height: Height; has: Hash; committed: Hash; epoch: Epoch } | null;
  /** Round trip of the last call that it answered. null when it answered none. */
  rttMs: number | null;
  error: NodeError | null;
  /** One sentence, for every state except OK. */
  note: string;
  cluster: string;
  runId: string;
  /** From the server's INFO. May be empty. */
  info: Record<string, string>;
}

export interface LeaderRow {
  id: string;
  epoch: Epoch;
  owner: Owner;
  /** Time until a quorum no longer holds the lock, by the nodes' own count. */
  ttlMs: number;
  /** How long ago its lease was renewed on a quorum, by the nodes' own count. null when nobody says how long one is. */
  renewedMs: number | null;
  /** Ids of the nodes that hold the leader's lock under its claim. */
  nodes: string[];
}

export interface ClusterView {
  verdict: Verdict;
  reason: string;
  reasonCode: ReasonCode;
  /** Exact commands, best first. */
  next: string[];
  /** All findings, worst first. The first one is the verdict's. Empty when the verdict is OK. */
  findings: Finding[];
  /** The `<id>.<generation>` that most answers name. '' when no answer names one. */
  cluster: string;
  /** The number of nodes in the cluster: those of its configuration. Without a configuration: those that were named. */
  configured: number;
  answered: number;
  quorum: number;
  /** Healthy admitted nodes minus the quorum: how many more nodes may fail. Negative: how many are missing. */
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
  /** Sequencers of the last day that no node shows any more. */
  absent: AbsentSequencer[];
}

/** How the processes of this cluster are started, where that is known. So all verbs that judge name one command. */
export type StartCommands = Pick<SummarizeOptions, 'startCommand' | 'startSequencers' | 'complete'>;

export interface SummarizeOptions {
  /** Makes a command for the operator run as it stands (TLS and user of a node). */
  complete?: (command: string) => string;
  /** The cluster that the operator means, e.g. from the context. '' or absent: the cluster that the nodes name. */
  expectedCluster?: string;
  /**
   * The result of an earlier probe of the same nodes. Each node must have now what was committed then. Otherwise it
   * really lags.
   */
  earlier?: {
    committed: Committed | null;
    pending: Pending | null;
    /** The highest block that a sequencer had announced then: q nodes held it. */
    announced?: { id: string; height: Height };
  };
  /** Flags that name this cluster in a command, e.g. `-c lab`. */
  target?: string;
  /** The command that starts a node's server, when it is known. */
  startCommand?: (nodeId: string) => string | undefined;
  /** The commands that start the cluster's sequencers again, when they are known. */
  startSequencers?: (id?: string) => string[];
}
