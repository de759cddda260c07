// How a call goes on after a failed attempt: a jittered pause that doubles, until the time without progress is over.
import { EXIT, SeqError } from '../core/errors.js';
import { pause } from '../core/nodes/pause.js';
import { systemClock, systemRandom } from '../core/nodes/system-clock.js';

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1000;

export class Patience {
  #progressAt = systemClock.now();
  #failures = 0;

  constructor(
    private readonly giveUpMs: number,
    private readonly signal: AbortSignal,
  ) {}

  /** Something was achieved: the time begins again. */
  progress(): void {
    this.#progressAt = systemClock.now();
    this.#failures = 0;
  }

  get isOver(): boolean {
    return systemClock.now() - this.#progressAt >= this.giveUpMs;
  }

  /** Waits before the next attempt. It ends early when the signal is aborted. */
  async wait(): Promise<void> {
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures) * (0.5 + systemRandom.unit());
    this.#failures = Math.min(this.#failures + 1, 16);
    await pause(systemClock, ms, this.signal);
  }
}

export function noSequencer(giveUpMs: number, why: string): SeqError {
  return new SeqError({
    code: 'NO_SEQUENCER',
    exit: EXIT.noQuorum,
    message: `no sequencer could be used for ${giveUpMs} ms`,
    why,
    changed: 'nothing',
    next: [],
    retryable: true,
  });
}
