// How late this process's own timers are. The proxies live in it: when the machine gives it no time, every link is
// slow, and what does not happen in time then says nothing about the sequencers. Time in which the loop was late is
// not counted against them.
const BEAT_MS = 20;

export class LoopLag {
  /** Most that one beat was late. */
  worstMs = 0;
  /** Time spent in stretches that were late, in all. */
  slowMs = 0;
  private last = performance.now();
  private readonly timer: NodeJS.Timeout;

  /** A beat later than `toleratedMs` is slow. */
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
