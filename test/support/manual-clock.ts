// A clock that moves only when a test moves it. Timers run in order of their time, then of their creation.
import type { Clock } from '../../src/core/ports.js';

export const WALL_START = 1_700_000_000_000;

export class ManualClock implements Clock {
  private time = 0;
  private made = 0;
  private timers: { at: number; order: number; run: () => void }[] = [];

  now(): number {
    return this.time;
  }

  wall(): number {
    return Math.floor(WALL_START + this.time);
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.time + Math.max(0, ms), order: this.made++, run };
    this.timers.push(timer);
    return () => void (this.timers = this.timers.filter((one) => one !== timer));
  }

  /** Moves on by `ms` and runs each timer that is due. Between timers, everything that needs no time runs. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (;;) {
      const due = this.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
      if (due === undefined) break;
      this.timers = this.timers.filter((one) => one !== due);
      this.time = due.at;
      due.run();
      await settle();
    }
    this.time = end;
  }
}

/** Runs all pending promises (no timers, no I/O). */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}
