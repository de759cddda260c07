// Which clock is right, where several differ: the median of the nodes' own TIME. For block time, for a sequencer's log,
// for `seq status` and `seq doctor` alike. Pure.
import { duration } from '../duration.js';

/** A clock's difference to any clock that all of them are measured against. */
export interface ClockReading {
  ms: number;
  /** What it says was true at any moment of a round trip: it may be so much more or less. */
  errorMs: number;
}

/** A clock that is further off than this is named. */
const CLOCK_OFF_MS = 2000;

/** The node's TIME came in the answer to a question of `sentAt`, heard at `heardAt`. */
export function readingOf(timeMs: number, sentAt: number, heardAt: number): ClockReading {
  const errorMs = (heardAt - sentAt) / 2;
  return { ms: timeMs - (sentAt + errorMs), errorMs };
}

/** null until a quorum was heard. Of an even number the lower one: a clock that is ahead must not win. */
export function medianClock(readings: Iterable<ClockReading>, quorum: number): ClockReading | null {
  const sorted = [...readings].sort((a, b) => a.ms - b.ms);
  return sorted.length < quorum ? null : (sorted[Math.floor((sorted.length - 1) / 2)] ?? null);
}

/** How much it is ahead of the median; null when that is within the bound and what round trips hide. */
export function wrongBy(reading: ClockReading, median: ClockReading): number | null {
  const aheadMs = reading.ms - median.ms;
  return Math.abs(aheadMs) > CLOCK_OFF_MS + reading.errorMs + median.errorMs ? aheadMs : null;
}

/** For people: `the clock of r3 is 25 h ahead of the median of the nodes' clocks`. */
export function wrongClockText(whose: string, aheadMs: number): string {
  const how = `${duration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
  return `${whose} is ${how} the median of the nodes' clocks`;
}
