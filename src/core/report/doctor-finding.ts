// What the doctor is given of each node, and what it says: one finding, its severity, and the command that fixes it.
import type { NodeCheckup } from '../ports.js';
import type { NodeReply, NodeView } from '../protocol/types.js';

export type Severity = 'CRIT' | 'WARN' | 'INFO';

export interface DoctorFinding {
  severity: Severity;
  /**
   * version, eviction, memory, persistence, fsync, disk, notify, clock, rights, latency, uptime, admission, epoch, replica,
   * reach, sequencers.
   */
  check: string;
  /** '' when it concerns the cluster. */
  node: string;
  what: string;
  fix: string;
}

export interface CheckedNode {
  id: string;
  url: string;
  view: NodeReply<NodeView>;
  checkup: NodeReply<NodeCheckup>;
  /** Left on the disk of its data, where that is on this machine; null otherwise. */
  diskFreeBytes?: number | null;
}
