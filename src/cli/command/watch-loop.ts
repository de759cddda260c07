// `--watch` of a command that only reads: asks and shows the answer again and again, until the count is reached or the
// user stops it.
import { SeqError } from '../../core/errors.js';

export interface WatchLoop<Answer> {
  intervalMs: number;
  count: number;
  signal: AbortSignal;
  /** One answer of the command, bounded by its deadline. */
  ask(): Promise<Answer>;
  /** Called after each answer: nothing stays open between two answers. */
  close(): Promise<void>;
  /** Called before an answer is shown. */
  clear(): Promise<void>;
  show(answer: Answer): Promise<void>;
  showFailure(error: SeqError): Promise<void>;
  /** Waits; throws when the signal aborts. */
  pause(ms: number): Promise<void>;
}

export async function watchLoop<Answer>(loop: WatchLoop<Answer>): Promise<void> {
  for (let round = 1; round <= loop.count; round += 1) {
    const outcome = await loop.ask().then(
      (answer) => ({ answer }),
      (error: unknown) => ({ error }),
    );
    await loop.close();
    await loop.clear();
    if ('answer' in outcome) await loop.show(outcome.answer);
    // The user watches in order to see an outage. So the error is shown, and the next round may show the recovery.
    else if (outcome.error instanceof SeqError && outcome.error.retryable && !loop.signal.aborted)
      await loop.showFailure(outcome.error);
    else throw outcome.error;
    if (round < loop.count) await loop.pause(loop.intervalMs);
  }
}

/** Rejects with the signal's reason when it aborts. Without a signal the wait does not keep the process alive. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    timer.unref?.();
    if (signal) {
      timer.ref?.();
      signal.addEventListener('abort', onAbort, { once: true });
    }
  });
}
