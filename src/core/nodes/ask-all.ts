// How many nodes are asked at once, and how long anybody waits for their answers. Every answer is data: a node that
// hangs or a port that fails is `unknown` after the limit, and delays nothing else.
import type { Clock } from '../ports.js';
import type { NodeReply } from '../protocol/types.js';

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
