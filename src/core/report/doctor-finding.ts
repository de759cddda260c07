// The input and output of the doctor: its readings of each node, and its findings. A finding has a severity and the
// command that fixes it.
import type { NodeCheckup } from '../ports.js';
import type { Finding } from '../view/cluster-view.js';
import type { NodeReply, NodeView } from '../protocol/types.js';

export type Severity = 'CRIT' | 'UNKNOWN' | 'WARN' | 'INFO';

export interface DoctorFinding {
  severity: Severity;
  /**
   * One of: cluster, version, eviction, memory, persistence, fsync, disk, notify, clock, rights, latency, uptime,
   * admission, epoch, replica, reach, sequencers.
   */
  check: string;
  /** '' when it concerns the whole cluster. */
  node: string;
  what: string;
  fix: string;
}

export interface CheckedNode {
  id: string;
  url: string;
  view: NodeReply<NodeView>;
  checkup: NodeReply<NodeCheckup>;
  /** Free space on the disk of its data, when that disk is on this machine. null otherwise. */
  diskFreeBytes?: number | null;
}

export interface DoctorOptions {
  nodeTimeoutMs: number;
  ttlMs: number;
  retainBytes: number;
  maxBlockBytes: number;
  target: string;
  /** What the one judge says of the cluster: `seq status` says the same. */
  judged?: readonly Finding[];
}
