// How fast a node is filled while blocks are being committed (docs/PROTOCOL.md section 8, step 2). A pause follows each
// batch, so that filling takes a tenth of the time. It takes more where a tenth would not clearly gain on new commits,
// and all of it where the retained range slides away. At first there are no pauses: the node's arrival matters first,
// the speed of commits second. This file decides timing only, never safety.

/** A block costs about as much as this many bytes of payload. */
const BLOCK_AS_BYTES = 4096;
/** The share of the time that filling takes when that is enough. */
const LEAST_SHARE = 0.1;
/** Above this share, pauses save hardly anything. */
const MOST_SHARE = 0.5;
/** Filling must be this many times faster than new blocks come. */
const GAIN = 2;
/** The gain is measured over this time, ms. */
const MEASURED_MS = 200;
/**
 * What is filled without pauses first, and the most time for it, ms. A small retained range is filled as a whole, so
 * that its node arrives at once. For a large one that is a short part of a long time.
 */
const AT_ONCE = 16 * 1024 * 1024;
const AT_ONCE_MS = 1500;
/**
 * The part of the retained range that may slide away before pauses end. Until the filling ends, the node holds this
 * much more than the others.
 */
const SLIDE = 0.25;
/** The longest pause, ms. One slow batch says little about the next. */
const MOST_PAUSE_MS = 250;

export interface FillPace {
  begunAt: number;
  /** The start of the present measurement: the fields below count from here. */
  since: number;
  /** The weight of everything that was committed by then. */
  fresh: number;
  /** The weight that was filled since then, and how long that took in ms. */
  filled: number;
  busyMs: number;
  /** The weight that was filled since the filling began. */
  total: number;
  /** The share of the time that filling takes. 1: all the time. Above 1: even all the time is not enough. */
  share: number;
  /**
   * How many batches in a row took everything that was there when they were sent. Below 0 after a gate was closed
   * without success.
   */
  level: number;
  /** How many gates were closed without success. */
  missed: number;
}

export interface BatchSize {
  bytes: number;
  blocks: number;
}

/** The best size for one call. Used when filling disturbs nobody, or when the node would not arrive otherwise. */
const CALM_BATCH: BatchSize = { bytes: 1024 * 1024, blocks: 128 };
const HURRIED_BATCH: BatchSize = { bytes: 256 * 1024, blocks: 128 };
/** A small batch: the next block waits behind whatever is handed to the socket at once. */
const SPARING_BATCH: BatchSize = { bytes: 64 * 1024, blocks: 24 };

export function weightOf(blocks: number, bytes: number): number {
  return blocks * BLOCK_AS_BYTES + bytes;
}

export function newPace(now: number, fresh: number): FillPace {
  return { begunAt: now, since: now, fresh, filled: 0, busyMs: 0, total: 0, share: 1, level: 0, missed: 0 };
}

/** The limits of the next batch. A batch stays below them, but has at least one block. */
export function batchSize(calm: boolean, pace: FillPace | undefined): BatchSize {
  if (calm || (pace && pace.share > 1)) return CALM_BATCH;
  return pace && pace.share <= MOST_SHARE ? SPARING_BATCH : HURRIED_BATCH;
}

/**
 * A batch was answered: returns the pause after it in ms. `all`: the batch took everything that was there when it was
 * sent. `fresh`: the weight of everything that this term has committed. `slid`: the part of the retained range that has
 * slid away since the filling began.
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
  pace.total += batch.weight;
  pace.busyMs += batch.tookMs;
  const seenMs = now - pace.since;
  const first = pace.total < AT_ONCE && now - pace.begunAt < AT_ONCE_MS;
  if (seenMs >= MEASURED_MS && !first) {
    // The share of the time that copying the new blocks would have taken.
    const needed = (((fresh - pace.fresh) / pace.filled) * pace.busyMs) / seenMs;
    pace.share = Math.max(LEAST_SHARE, GAIN * needed);
    Object.assign(pace, { since: now, fresh, filled: 0, busyMs: 0 });
  }
  if (slid > SLIDE) pace.share = Math.max(1, pace.share);
  // The missing blocks came while the batch was under way. A pause would only let more come.
  if (pace.level > 0 || pace.share > MOST_SHARE) return 0;
  return Math.min(MOST_PAUSE_MS, batch.tookMs * (1 / pace.share - 1));
}

/** Whether the node cannot come any nearer by itself: blocks are committed faster than a batch goes there and back. */
export function abreast(pace: FillPace, now: number): boolean {
  return pace.level >= 2 && now - pace.begunAt >= MEASURED_MS;
}

/** The gate delayed the next block, but the node was not admitted. The next try comes later each time. */
export function gateMissed(pace: FillPace): void {
  pace.missed += 1;
  pace.level = -(4 * 2 ** Math.min(8, pace.missed));
}
