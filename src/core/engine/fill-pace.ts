// How fast a node is filled anew while blocks are being committed (docs/PROTOCOL.md section 8, step 2): how much goes out at once, and how long the pause
// before it is. One part in nine of the time, unless the node would not arrive that way, or the window slides away from under it: then finishing goes
// before sparing the commits. What was learnt stays when a filling has to start over: the next attempt is not as slow as the one that was too slow.
// Decides timing only.

const MIB = 1024 * 1024;

export interface BatchSize {
  bytes: number;
  blocks: number;
}
/** Nobody commits: what a call takes best. */
export const CALM_BATCH: BatchSize = { bytes: MIB, blocks: 128 };
/** A spared filling would not arrive. */
export const HURRIED_BATCH: BatchSize = { bytes: MIB / 4, blocks: 128 };
/** What is handed to the socket at once holds up the next block. */
const SPARING_BATCH: BatchSize = { bytes: MIB / 16, blocks: 32 };

/** The pause before a batch is this many times what the batch before took, and no longer than most. */
const FULL_PAUSE = 8;
const MOST_PAUSE_MS = 30;
/** A filling has to be this much faster than what comes new. */
const FASTER = 1.5;
/** How far back the window and the commits are looked at, and how long they have to be seen before anything is spared. */
const OVER_MS = 500;
const SEEN_MS = 50;
/** A block costs about as much as this many bytes. */
const BLOCK_AS_BYTES = 4096;
/** Smaller batches say more of the way there and back than of what a block costs. */
const TELLING_BYTES = 8 * BLOCK_AS_BYTES;

/** What a node was sent last, and how long that took. */
export interface Sent {
  blocks: number;
  bytes: number;
  tookMs: number;
}

export interface Turn {
  pauseMs: number;
  batch: BatchSize;
  /** Nothing is spared, because the node would never arrive otherwise. */
  hurried: boolean;
}

export class FillPace {
  private readonly seen: { at: number; floor: number; weight: number }[] = [];
  /** Of everything committed by this tenure, in bytes and what stands for bytes. */
  private weight = 0;
  /** Of what was sent, ms for each. */
  private costMs = 0;

  committed(bytes: number): void {
    this.weight += BLOCK_AS_BYTES + bytes;
  }

  /** The turn of a node that has everything up to `head`. `last` is null at the start of an attempt. */
  next(now: number, calm: boolean, head: number, floor: number, last: Sent | null): Turn {
    const { seen } = this;
    seen.push({ at: now, floor, weight: this.weight });
    while (seen.length > 1 && now - seen[1]!.at >= OVER_MS) seen.shift();
    if (last !== null) {
      const weight = last.blocks * BLOCK_AS_BYTES + last.bytes;
      if (weight >= TELLING_BYTES) this.costMs = last.tookMs / weight;
    }
    if (calm) return { pauseMs: 0, batch: CALM_BATCH, hurried: false };
    const first = seen[0]!;
    const seenMs = now - first.at;
    if (last === null || seenMs < SEEN_MS) return { pauseMs: 0, batch: SPARING_BATCH, hurried: false };
    const wanted = Math.min(MOST_PAUSE_MS, last.tookMs * FULL_PAUSE);
    // The share of the time that it takes to copy what comes new, and half as much again.
    const needed = FASTER * (((this.weight - first.weight) / seenMs) * this.costMs);
    const arrives = needed === 0 ? Infinity : last.tookMs / needed - last.tookMs;
    // Never so long that half of what is left of the window goes by.
    const slide = (floor - first.floor) / seenMs;
    const stays = slide <= 0 ? Infinity : (head - floor) / (2 * slide);
    const allowed = Math.max(0, Math.min(arrives, stays));
    return allowed < wanted / 2 ? { pauseMs: allowed, batch: HURRIED_BATCH, hurried: true } : { pauseMs: Math.min(wanted, allowed), batch: SPARING_BATCH, hurried: false };
  }
}
