// How late are the timers of this process? The proxies run in it. When the machine gives it no time every link is slow,
// and a delay then says nothing about the sequencers. So the time in which the loop was late is not counted against
// them.
const BEAT_MS = 20;

export class LoopLag {
  /** The largest delay of one beat. */
  worstMs = 0;
  /** Total time in stretches that were late. */
  slowMs = 0;
  private last = performance.now();
  private readonly timer: NodeJS.Timeout;

  /** A beat that is late by more than `toleratedMs` is slow. */
  constructor(private readonly toleratedMs: number) {
    this.timer = setInterval(() => {
      const now = performance.now();
      const late = now - this.last - BEAT_MS;
      this.last = now;
      this.worstMs = Math.max(this.worstMs, late);
      if (late > this.toleratedMs) this.slowMs += late + BEAT_MS;
    }, BEAT_MS);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }
}
