// Asks many nodes at once, and limits how long anybody waits for the answers. Every answer is data. A node that hangs
// or a port that fails is `unknown` after the limit, and delays nothing else.
import type { Clock } from '../ports.js';
import type { NodeReply } from '../protocol/types.js';

export interface AskOptions {
  /** Limit for each call (nodeTimeout). */
  limitMs: number;
  clock: Clock;
}

/**
 * Asks all at once, each with its own limit. It returns one answer each, in their order, and resolves with the last
 * answer.
 */
export function askAll<P, T>(
  asked: readonly P[],
  call: (one: P, index: number) => Promise<NodeReply<T>>,
  { limitMs, clock }: AskOptions,
): Promise<NodeReply<T>[]> {
  return Promise.all(asked.map((one, index) => bounded(call(one, index), limitMs, clock)));
}

/** Like askAll, but with no limit except the ports' own deadlines. For what the sequencer itself does to its nodes. */
export function tellAll<P, R>(told: readonly P[], call: (one: P, index: number) => Promise<R>): Promise<R[]> {
  return Promise.all(told.map(call));
}

/**
 * A port keeps its own deadline (up to twice that time when this process was stalled). This limit holds even when a
 * port does not keep its deadline.
 */
export function bounded<T>(reply: Promise<NodeReply<T>>, limitMs: number, clock: Clock): Promise<NodeReply<T>> {
  const graceMs = limitMs + 20;
  return new Promise((resolve) => {
    const cancel = clock.after(limitMs + graceMs, () =>
      resolve({ outcome: 'unknown', step: 'call', cause: 'no answer', limitMs }),
    );
    reply.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error: unknown) => {
        cancel();
        resolve({
          outcome: 'unknown',
          step: 'call',
          cause: error instanceof Error ? error.message : String(error),
          limitMs,
        });
      },
    );
  });
}
