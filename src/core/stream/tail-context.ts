// What every part of a tail needs to ask nodes: the nodes, the limit per call, the clock, and when to stop.
import type { Clock, NodePort } from '../ports.js';
import type { Configuration } from '../protocol/configuration.js';

export interface TailContext {
  nodes: readonly NodePort[];
  /**
   * The number of nodes in the cluster, even when `nodes` has only some of them. The quorum is a quorum of this number.
   */
  configured: number;
  /** The configuration by which `nodes` were chosen. Null: none is known. */
  configuration?: Configuration | null;
  /** nodeTimeout, for each call. Payloads get an allowance on top. */
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
}
