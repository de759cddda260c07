// The one way to wait for a while. It uses the clock of the port, so that the simulator decides how long it takes.
import type { Clock } from '../ports.js';

/** Resolves after `ms`, or as soon as `signal` is aborted. It never rejects: the caller checks the signal. */
export function pause(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}
