// How many nodes are asked at once, and how long anybody waits for their answers. Every answer is data: a node that
// hangs or a port that fails is `unknown` after the limit, and delays nothing else.
import type { Clock } from '../ports.js';
import type { NodeReply } from '../protocol/types.js';

export interface AskOptions {
  /** Per call (nodeTimeout). */
  limitMs: number;
  clock: Clock;
}

/** Asks all at once, each with its own bound. One answer each, in their order; resolves when the last one is there. */
export function askAll<P, T>(
  asked: readonly P[],
  call: (one: P, index: number) => Promise<NodeReply<T>>,
  { limitMs, clock }: AskOptions,
): Promise<NodeReply<T>[]> {
  return Promise.all(asked.map((one, index) => bounded(call(one, index), limitMs, clock)));
}

/** As askAll, bounded by nothing but the ports' own deadlines: what the sequencer itself does to its nodes. */
export function tellAll<P, R>(told: readonly P[], call: (one: P, index: number) => Promise<R>): Promise<R[]> {
  return Promise.all(told.map(call));
}

/**
 * A port keeps its own deadline (up to twice, when this process was stalled); this one holds even where a port does
 * not.
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
