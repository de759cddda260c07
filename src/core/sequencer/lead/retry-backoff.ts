// Attempts to lead that fail again and again for the same reason: hold back, say so, and go on trying at a pace that
// hurts nobody. Every attempt raises epochs and takes locks from those who might do better. What heals by itself (a
// lost race, a node that is back) is no setback; what needs a hand, or a block of data that is not there, is
// (docs/PROTOCOL.md section 5).
import type { TermEnd } from '../../protocol/term-state.js';

export interface RetryBackoffOptions {
  firstMs: number;
  mostMs: number;
}

/** Ends that the next attempt meets again unless something outside changes. */
const LASTING: ReadonlySet<string> = new Set(['DAMAGED_HEADS', 'PRODUCER_FAILED', 'STORE_HOLE', 'BAD_PROPOSAL']);
/** So many in a row are a pattern. */
const PATTERN = 3;

export class RetryBackoff {
  private code = '';
  private reason = '';
  private count = 0;
  private until = -Infinity;
  private seen: string | null = null;

  constructor(private readonly options: RetryBackoffOptions) {}

  /** An attempt, or a term, has ended. True when the next one is held back. */
  note(end: TermEnd, progressed: boolean, now: number): boolean {
    const same = !progressed && LASTING.has(end.code) && (end.code === this.code || this.count === 0);
    this.count = same ? this.count + 1 : !progressed && LASTING.has(end.code) ? 1 : 0;
    this.code = end.code;
    this.reason = end.reason;
    this.seen = null;
    const { firstMs, mostMs } = this.options;
    this.until =
      this.count < PATTERN ? -Infinity : now + Math.min(mostMs, firstMs * 2 ** Math.min(20, this.count - PATTERN + 1));
    return this.count >= PATTERN;
  }

  /**
   * Whether to wait still. `nodes` is what they look like: damage that is no longer the same damage is tried at once.
   */
  activeAt(now: number, nodes: string): boolean {
    if (now >= this.until) return false;
    this.seen ??= nodes;
    if (this.code !== 'DAMAGED_HEADS' || this.seen === nodes) return true;
    this.count = 0;
    this.until = -Infinity;
    return false;
  }

  why(now: number): string {
    const wait = (Math.max(0, this.until - now) / 1000).toFixed(1);
    return `it holds back for ${wait} s: ${this.count} attempts in a row ended with ${this.code} (${this.reason})`;
  }
}
