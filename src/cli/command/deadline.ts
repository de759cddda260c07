// When does a command end before its work is done? On Ctrl-C (SIGTERM, SIGHUP), on --timeout, and when nobody reads its
// output any more. All three are one AbortSignal. After the abort the work has a grace time to end by itself.
import { SeqError } from '../../core/errors.js';
import { DeadlinePassed, interrupted } from '../support/interrupt.js';
import { onOutputFailure, ReaderGone } from '../support/output.js';
import { watchReader } from '../support/reader.js';

/** How long a cancelled command may take to end by itself and show what it knows. After that it is abandoned. */
export const GRACE_MS = 90;
export const DEFAULT_TIMEOUT_MS = 10_000;

export class Deadline {
  private readonly cancel = new AbortController();
  private readonly stops: (() => void)[] = [];

  constructor(private readonly graceMs: () => number) {}

  get signal(): AbortSignal {
    return this.cancel.signal;
  }

  /** True when the reader of the output has closed it. */
  get readerGone(): boolean {
    return this.signal.reason instanceof ReaderGone;
  }

  /** From here on, signals and a failed output cancel the work. */
  listen(): void {
    this.stops.push(onOutputFailure((error) => this.cancel.abort(error)));
    const onSignal = () => this.cancel.abort(interrupted.reason);
    if (interrupted.aborted) onSignal();
    interrupted.addEventListener('abort', onSignal, { once: true });
    this.stops.push(() => interrupted.removeEventListener('abort', onSignal));
  }

  /** For a command that may have nothing to write for a long time: it ends with the reader of its output. */
  endWithReader(): void {
    this.stops.push(watchReader((reason) => this.cancel.abort(reason)));
  }

  limit(timeoutMs: number): void {
    const timer = setTimeout(() => this.cancel.abort(new DeadlinePassed(timeoutMs)), timeoutMs);
    this.stops.push(() => clearTimeout(timer));
  }

  /** Stops listening. */
  stop(): void {
    for (const stop of this.stops.splice(0)) stop();
  }

  /**
   * The result of the work. If the work does not end within the grace time after a cancel, the reason of the cancel.
   */
  async bound<T>(work: Promise<T>): Promise<T> {
    const { signal } = this;
    let stop = () => {};
    const cancelled = new Promise<never>((_, reject) => {
      const onAbort = () => {
        const graceMs = this.readerGone ? Math.min(this.graceMs(), GRACE_MS) : this.graceMs();
        const timer = setTimeout(() => reject(signal.reason as Error), graceMs);
        stop = () => clearTimeout(timer);
      };
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      stop = () => signal.removeEventListener('abort', onAbort);
    });
    cancelled.catch(() => undefined);
    try {
      return await Promise.race([work, cancelled]);
    } catch (error) {
      // A use case that the signal stops usually throws an AbortError. The reason of the signal says more.
      if (signal.aborted && !(error instanceof SeqError)) throw signal.reason;
      throw error;
    } finally {
      stop();
      work.catch(() => undefined);
    }
  }
}
