// What every part of a tail needs to ask nodes: the nodes, the limit per call, the clock, and when to stop.
import type { Clock, NodePort } from '../ports.js';

export interface TailContext {
  nodes: readonly NodePort[];
  /** How many nodes the cluster has, whether or not all of them are among `nodes`: a quorum is one of these. */
  configured: number;
  /** nodeTimeout, per call; payloads get an allowance on top. */
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
}
