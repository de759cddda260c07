// Which clock is right when several differ? The median of the nodes' own TIME. Block time, a sequencer's log, `seq
// status` and `seq doctor` all use it. Pure.
import { duration } from '../duration.js';

/** The difference between a clock and the reference clock. All readings use the same reference. */
export interface ClockReading {
  ms: number;
  /** The reading was true at some moment of a round trip. So it may be off by this much in both directions. */
  errorMs: number;
}

/** A clock that is off by more than this is reported. */
const CLOCK_OFF_MS = 2000;

/** Makes a reading of a node's TIME. The question was sent at `sentAt`, the answer was heard at `heardAt`. */
export function readingOf(timeMs: number, sentAt: number, heardAt: number): ClockReading {
  const errorMs = (heardAt - sentAt) / 2;
  return { ms: timeMs - (sentAt + errorMs), errorMs };
}

/**
 * null until a quorum was heard. Of an even number of readings, it takes the lower middle one: a clock that is ahead
 * must not win.
 */
export function medianClock(readings: Iterable<ClockReading>, quorum: number): ClockReading | null {
  const sorted = [...readings].sort((a, b) => a.ms - b.ms);
  return sorted.length < quorum ? null : (sorted[Math.floor((sorted.length - 1) / 2)] ?? null);
}

/**
 * How far the clock is ahead of the median. null when the difference is within the bound plus the error of the round
 * trips.
 */
export function wrongBy(reading: ClockReading, median: ClockReading): number | null {
  const aheadMs = reading.ms - median.ms;
  return Math.abs(aheadMs) > CLOCK_OFF_MS + reading.errorMs + median.errorMs ? aheadMs : null;
}

/** For people, e.g. `the clock of r3 is 25 h ahead of the median of the nodes' clocks`. */
export function wrongClockText(whose: string, aheadMs: number): string {
  const how = `${duration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  return `${whose} is ${how} the median of the nodes' clocks`;
}
