// The form of a check: its name, its limits and its answer. The checks over this project's nodes (check.ts) and over
// nodes of the fuel dialect (dialect-fuel/check.ts) give the same answers.
import type { Verdict } from './cluster-view.js';

export type CheckName = 'leader' | 'quorum' | 'epoch' | 'stream' | 'lag' | 'nodes';
export const CHECKS: readonly CheckName[] = ['leader', 'quorum', 'epoch', 'stream', 'lag', 'nodes'];

export interface Metric {
  name: string;
  /** Node or sequencer that it is about, '' for the cluster. */
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
  /** WARN, CRIT when the margin is below. */
  marginWarn: number;
  marginCrit: number;
  /** WARN, CRIT when a node or sequencer is so many blocks behind, or more. */
  lagWarn: number;
  lagCrit: number;
  /** WARN, CRIT when so many nodes, or more, are not in order. */
  nodesWarn: number;
  nodesCrit: number;
}
