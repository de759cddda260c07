// How fast a node is filled anew while blocks are being committed (docs/PROTOCOL.md section 8, step 2): after each
// batch a pause, so that filling takes a tenth of the time; more where a tenth would not clearly gain on what is
// committed meanwhile, all of it where the window slides away. Nothing is spared before the gain was measured: to
// arrive comes first, to spare the commits second. Decides timing only, nothing of safety.

/** A block costs about as much as this many bytes of payload. */
const BLOCK_AS_BYTES = 4096;
/** Of the time, what filling takes when that is enough. */
const LEAST_SHARE = 0.1;
/** Above this share, pauses save hardly anything. */
const MOST_SHARE = 0.5;
/** Filling is this much faster than what comes new. */
const GAIN = 2;
/** The gain is measured over so long at a time, ms. */
const MEASURED_MS = 200;
/**
 * Of the window, what may slide away before nothing is spared any more: the node holds that much more than the others
 * meanwhile.
 */
const SLIDE = 0.25;
/** One batch that took long says little about the next. */
const MOST_PAUSE_MS = 250;

export interface FillPace {
  begunAt: number;
  /** Since when what follows was measured. */
  since: number;
  /** Everything committed by then, as weight. */
  fresh: number;
  /** Weight that was filled since, and ms that took. */
  filled: number;
  busyMs: number;
  /** Of the time, what filling takes; 1 = all it can get; above that it would take more if there were more. */
  share: number;
  /**
   * Batches in a row that took everything there was when they were sent; below 0 after a gate that was closed in
   * vain.
   */
  level: number;
  /** Gates closed in vain. */
  missed: number;
}

export interface BatchSize {
  bytes: number;
  blocks: number;
}

/** Nobody is disturbed, or the node would not arrive: what a call takes best. */
const CALM_BATCH: BatchSize = { bytes: 1024 * 1024, blocks: 128 };
const HURRIED_BATCH: BatchSize = { bytes: 256 * 1024, blocks: 128 };
/** What is handed to the socket at once holds up the next block. */
const SPARING_BATCH: BatchSize = { bytes: 64 * 1024, blocks: 24 };

export function weightOf(blocks: number, bytes: number): number {
  return blocks * BLOCK_AS_BYTES + bytes;
}

export function newPace(now: number, fresh: number): FillPace {
  return { begunAt: now, since: now, fresh, filled: 0, busyMs: 0, share: 1, level: 0, missed: 0 };
}

/** The next batch ends before it exceeds this, but has one block at least. */
export function batchSize(calm: boolean, pace: FillPace | undefined): BatchSize {
  if (calm || (pace && pace.share > 1)) return CALM_BATCH;
  return pace && pace.share <= MOST_SHARE ? SPARING_BATCH : HURRIED_BATCH;
}

/**
 * A batch was answered: the pause after it, ms. `all`: it took everything that there was when it was sent. `fresh` is
 * the weight of everything that this
 * term has committed, `slid` the part of the window that has slid away since the filling began.
 */
export function pauseAfter(
  pace: FillPace,
  batch: { weight: number; tookMs: number; all: boolean },
  fresh: number,
  slid: number,
  now: number,
): number {
  pace.level = batch.all || pace.level < 0 ? pace.level + 1 : 0;
  pace.filled += batch.weight;
  pace.busyMs += batch.tookMs;
  const seenMs = now - pace.since;
  if (seenMs >= MEASURED_MS) {
    // What copying what came new would have taken, of the time that it came in.
    const needed = (((fresh - pace.fresh) / pace.filled) * pace.busyMs) / seenMs;
    pace.share = Math.max(LEAST_SHARE, GAIN * needed);
    Object.assign(pace, { since: now, fresh, filled: 0, busyMs: 0 });
  }
  if (slid > SLIDE) pace.share = Math.max(1, pace.share);
  // What is missing came while the batch was under way: a pause would only let more come.
  if (pace.level > 0 || pace.share > MOST_SHARE) return 0;
  return Math.min(MOST_PAUSE_MS, batch.tookMs * (1 / pace.share - 1));
}

/** It comes no nearer by itself: blocks are committed faster than a batch goes there and back. */
export function abreast(pace: FillPace, now: number): boolean {
  return pace.level >= 2 && now - pace.begunAt >= MEASURED_MS;
}

/** The next block was held back, and the node was not admitted all the same: tried again later, and later each time. */
export function gateMissed(pace: FillPace): void {
  pace.missed += 1;
  pace.level = -(4 * 2 ** Math.min(8, pace.missed));
}
