// Slows down attempts to lead that fail again and again for the same reason (docs/PROTOCOL.md section 5). Every attempt
// raises epochs, and takes locks from sequencers that might succeed. So the next attempt waits, and the wait is
// reported. A cause that passes by itself (a lost race, a node that is back) does not count. A cause that needs an
// operator, or data that is missing, counts.
import type { TermEnd, TermEndCode } from '../../protocol/term-codes.js';

export interface RetryBackoffOptions {
  firstMs: number;
  mostMs: number;
}

/** Ends that the next attempt will meet again unless something outside changes. */
const LASTING: ReadonlySet<TermEndCode> = new Set<TermEndCode>([
  'DAMAGED_HEADS',
  'PRODUCER_FAILED',
  'STORE_HOLE',
  'BAD_PROPOSAL',
]);
/** This many equal ends in a row start the back-off. */
const PATTERN = 3;

export class RetryBackoff {
  private code: TermEndCode | null = null;
  private reason = '';
  private count = 0;
  private until = -Infinity;
  private seen: string | null = null;

  constructor(private readonly options: RetryBackoffOptions) {}

  /** An attempt, or a term, has ended. True when the next one has to wait. */
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
   * True while the next attempt must wait. `nodes` is the nodes' state as text. After damage, a change of that text
   * ends the wait at once.
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
    return `it waits ${wait} s (back-off): ${this.count} attempts in a row ended with ${this.code} (${this.reason})`;
  }
}
