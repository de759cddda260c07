// What every change takes that an operator asks a leader for: whom to ask, for how long, what the operator expects, and
// whom to tell.
import type { Clock, NodePort, Random } from '../ports.js';

export interface OperatorChange<Plan> {
  /** The members that were found. */
  nodes: readonly NodePort[];
  /** Of one call to one node. */
  limitMs: number;
  /** Of the whole change. */
  timeoutMs: number;
  clock: Clock;
  random: Random;
  signal: AbortSignal;
  expectedCluster: string;
  /** The flags that name the cluster in a command of `next`. */
  target: string;
  dryRun: boolean;
  expect: { leader?: string; epoch?: number };
  /** Throws when the operator does not agree. */
  confirm(plan: Plan): Promise<void>;
  step(doing: string): void;
}
