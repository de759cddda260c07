// The form of a check: its name, its limits and its answer. Checks over this project's nodes (check.ts) and over nodes
// of the fuel dialect (dialect-fuel/check.ts) give answers of the same form.
import type { Verdict } from './cluster-view.js';

export type CheckName = 'leader' | 'quorum' | 'epoch' | 'stream' | 'lag' | 'nodes';
export const CHECKS: readonly CheckName[] = ['leader', 'quorum', 'epoch', 'stream', 'lag', 'nodes'];

export interface Metric {
  name: string;
  /** The node or sequencer that it is about. '' for the whole cluster. */
  of: string;
  value: number;
  /** '' for a plain number. */
  unit: '' | 'ms';
  warn: number | null;
  crit: number | null;
}

export interface CheckAnswer {
  check: CheckName;
  verdict: Verdict;
  reason: string;
  reasonCode: string;
  metrics: Metric[];
  next: string[];
}

export interface Thresholds {
  /** The answer is WARN, or CRIT, when the margin is below this number. */
  marginWarn: number;
  marginCrit: number;
  /** The answer is WARN, or CRIT, when a node or sequencer is this many blocks behind, or more. */
  lagWarn: number;
  lagCrit: number;
  /** The answer is WARN, or CRIT, when this many nodes, or more, are not in order. */
  nodesWarn: number;
  nodesCrit: number;
}
