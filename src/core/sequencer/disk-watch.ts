// Does the disk under the local store sync (docs/PROTOCOL.md sections 5 and 6)? Receipts wait for the sync, so who
// cannot sync must not lead. A disk may hang for minutes and report no error. This file measures every sync against one
// bound. After a sync that took too long, one that is in time shows that the disk is well again.
import { pause } from '../nodes/pause.js';
import type { Clock } from '../ports.js';
import type { Height } from '../protocol/types.js';

export interface DiskWatchOptions {
  clock: Clock;
  /** A sync that takes longer than this is a stall. */
  boundMs: number;
  /** Syncs a write that changes nothing. Absent: the store's own writes are all there is to measure. */
  check?: () => Promise<void>;
  /** The sequencer has stopped: the disk, or a store that is closed, is not asked any more. */
  over(): boolean;
  /** It stalls, or it is well again. Called once for each change. */
  changed(): void;
}

export class DiskWatch {
  /** Blocks that wait for their sync, in order. */
  private readonly waiting: { height: Height; since: number }[] = [];
  private lastDone = -Infinity;
  private late: { tookMs: number } | null = null;
  private stalls = false;
  private timer = false;
  private checking = false;

  constructor(private readonly options: DiskWatchOptions) {}

  /** True while the disk does not sync, and after that until a sync was in time. */
  get stalled(): boolean {
    return this.stalls;
  }

  /** What the disk does not do; '' while it syncs in time. */
  get why(): string {
    if (!this.stalls) return '';
    const first = this.waiting[0];
    const sinceMs = Math.round(this.stillMs());
    if (first !== undefined && sinceMs > this.options.boundMs)
      return `its disk has not synced block ${first.height} for ${sinceMs} ms`;
    return `its disk took ${Math.round(this.late?.tookMs ?? sinceMs)} ms for a sync, and none has been in time since`;
  }

  /** Measures the sync of one block. The blocks come in order, and so do their syncs. */
  follow(height: Height, synced: Promise<void>): void {
    const block = { height, since: this.options.clock.now() };
    this.waiting.push(block);
    this.arm();
    synced.then(
      () => this.done(block),
      () => this.waiting.splice(0), // A store that failed ends the process.
    );
  }

  private done(block: { since: number }): void {
    this.waiting.shift();
    this.judge(block.since);
  }

  private judge(since: number): void {
    const { clock, boundMs } = this.options;
    const now = clock.now();
    // Of several blocks that one sync wrote, each has waited for all of it. A queue that moves is no stall.
    const tookMs = now - Math.max(since, this.lastDone);
    this.lastDone = now;
    if (tookMs > boundMs) this.late = { tookMs };
    else if (now - since <= boundMs) this.late = null;
    this.tell();
    if (this.late) void this.check();
  }

  /** Since when nothing was synced although a block waits, ms. */
  private stillMs(): number {
    const first = this.waiting[0];
    return first === undefined ? 0 : this.options.clock.now() - Math.max(first.since, this.lastDone);
  }

  private arm(): void {
    if (this.timer) return;
    this.timer = true;
    const { clock, boundMs } = this.options;
    clock.after(Math.max(0, boundMs - this.stillMs()) + 1, () => {
      this.timer = false;
      this.tell();
      if (this.waiting.length > 0 && !this.stalls) this.arm();
    });
  }

  private tell(): void {
    const stalls = this.late !== null || this.stillMs() > this.options.boundMs;
    if (stalls === this.stalls) return;
    this.stalls = stalls;
    this.options.changed();
  }

  /** While nobody leads there may be nothing to sync. So the disk is asked. */
  private async check(): Promise<void> {
    const { clock, boundMs, check, over } = this.options;
    if (this.checking) return;
    this.checking = true;
    while (this.late !== null && !over()) {
      const since = clock.now();
      if (check === undefined) this.late = null;
      else await check().catch(() => {}); // A store that failed ends the process by its own error.
      if (check !== undefined && this.late !== null && clock.now() - since <= boundMs) this.late = null;
      this.tell();
      if (this.late !== null) await pause(clock, boundMs / 2);
    }
    this.checking = false;
  }
}
