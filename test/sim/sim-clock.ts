// How does virtual time work for a whole cluster? The clock is a binary heap of timers. Between two timers, every
// promise that can continue does so. Timers run in order of their time, then of their creation, so that one seed gives
// one history. A `quiet` timer wakes no promise, so the clock does not wait for promises after it.
import type { Clock } from '../../src/core/ports.js';

interface Timer {
  at: number;
  order: number;
  run: (() => void) | null;
  quiet: boolean;
}

/** After this many timers, the real event loop gets a turn (signals, unhandled rejections). */
const TURN = 4096;

/**
 * The wall clock of nodes and processes at the start of a run, ms. It is large enough that a clock can be a day behind,
 * and small enough that fractions of a ms stay exact.
 */
export const WALL_START = 100_000_000;

export class SimClock implements Clock {
  private time = 0;
  private made = 0;
  private readonly heap: Timer[] = [];
  /** How many timers have run. */
  ran = 0;
  onError: (error: unknown) => void = (error) => {
    throw error;
  };

  now(): number {
    return this.time;
  }

  wall(): number {
    return Math.floor(WALL_START + this.time);
  }

  after(ms: number, run: () => void, quiet = false): () => void {
    const timer: Timer = { at: this.time + Math.max(0, ms), order: this.made++, run, quiet };
    this.push(timer);
    return () => void (timer.run = null);
  }

  /** Runs until `end`, or until `stop` returns true (asked after every timer that is not quiet). */
  runUntil(end: number, stop?: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      let turn = 0;
      const settled = () => process.nextTick(step); // queued as a microtask: runs when all other microtasks are done
      const step = (): void => {
        if (stop?.()) return resolve();
        for (;;) {
          const next = this.heap[0];
          if (next === undefined || next.at > end) {
            this.time = Math.max(this.time, end);
            return resolve();
          }
          this.pop();
          const { run } = next;
          if (run === null) continue;
          this.time = next.at;
          this.ran++;
          try {
            run();
          } catch (error) {
            this.onError(error);
          }
          if (!next.quiet) break;
        }
        if (++turn % TURN === 0) setImmediate(step);
        else queueMicrotask(settled);
      };
      setImmediate(step);
    });
  }

  private push(timer: Timer): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up]!;
      if (before(parent, timer)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = timer;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && before(heap[child + 1]!, heap[child]!)) child++;
      if (before(last, heap[child]!)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
  }
}

function before(a: Timer, b: Timer): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
