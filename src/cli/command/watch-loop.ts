// `--watch` of a verb that only reads: the same answer again and again, until the count is reached or somebody stops
// it.
import { SeqError } from '../../core/errors.js';

export interface WatchLoop<Answer> {
  intervalMs: number;
  count: number;
  signal: AbortSignal;
  /** One answer of the command, bounded by its deadline. */
  ask(): Promise<Answer>;
  /** After each answer: nothing stays open in between. */
  close(): Promise<void>;
  /** Before an answer is shown. */
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
    // An outage is what one watches for: it is shown, and the next round may find the end of it.
    else if (outcome.error instanceof SeqError && outcome.error.retryable && !loop.signal.aborted)
      await loop.showFailure(outcome.error);
    else throw outcome.error;
    if (round < loop.count) await loop.pause(loop.intervalMs);
  }
}

/** Rejects with the signal's reason when it aborts. Without a signal the wait does not keep the process alive. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    timer.unref?.();
    if (signal) {
      timer.ref?.();
      signal.addEventListener(
        'abort',
        () => {
          clearTimeout(timer);
          reject(signal.reason as Error);
        },
        { once: true },
      );
    }
  });
}
