// What time a block bears (docs/PROTOCOL.md section 6): the median of the nodes' own TIME, carried on by this process's
// monotonic clock. No wall clock of a sequencer is asked, because block times never fall: one that was a day ahead for
// two seconds would end every de-duplication window for good. Pure: every call says what the monotonic clock shows.
import type { ProbeResult } from '../../nodes/probe.js';
import { medianClock, readingOf, wrongBy, type ClockReading } from '../../nodes/node-clocks.js';

/** A node's TIME, and when it was asked and answered on this process's monotonic clock. */
export interface HeardTime {
  node: string;
  timeMs: number;
  sentAt: number;
  heardAt: number;
}

/** A clock that differs from the median of the nodes' clocks. */
export interface WrongClock {
  /** '': the wall clock of this sequencer. */
  node: string;
  aheadMs: number;
}

/** What a probe says of the nodes' clocks. The clock of another cluster's node is not asked for. */
export function timesOf(seen: ProbeResult, nodes: readonly { id: string }[]): HeardTime[] {
  return seen.replies.flatMap((reply, i) => {
    const heardAt = seen.heardAt[i] ?? null;
    if (reply?.outcome !== 'accepted' || reply.value.admission === 'foreign' || heardAt === null) return [];
    return [{ node: nodes[i]!.id, timeMs: reply.value.timeMs, sentAt: seen.sentAt, heardAt }];
  });
}

/** From one block to the next, chain time gains at most as much as passed, and at most this. */
const MOST_GAIN_MS = 1000;

export class ChainTime {
  /** By node: its TIME minus the monotonic clock, as last heard. It counts also while the node is silent. */
  private readonly readings = new Map<string, ClockReading>();
  /** The last block of this leadership, and when it was made. Its time is not rounded, so that short steps add up. */
  private last: { time: number; madeAt: number } | null = null;

  constructor(private readonly quorum: number) {}

  hear({ node, timeMs, sentAt, heardAt }: HeardTime): void {
    this.readings.set(node, readingOf(timeMs, sentAt, heardAt));
  }

  /** A leadership begins: its first block takes the nodes' time as it is. */
  began(): void {
    this.last = null;
  }

  /**
   * The timestamp of the next block. A median that leaps (the clocks of most nodes were set) is followed at twice the
   * pace of the monotonic clock, so that a short leap ends no window. Without a median it is the parent's timestamp.
   */
  next(parent: number, now: number): number {
    const median = medianClock(this.readings.values(), this.quorum);
    const shown = median === null ? parent : median.ms + now;
    const time = Math.max(parent, this.last === null ? shown : Math.min(shown, latest(this.last, now)));
    this.last = { time, madeAt: now };
    return Math.floor(time);
  }

  /** Its own wall clock, and those of nodes, that differ from the median. */
  wrong(wall: number, now: number): WrongClock[] {
    const median = medianClock(this.readings.values(), this.quorum);
    if (median === null) return [];
    const all: [string, ClockReading][] = [['', { ms: wall - now, errorMs: 0 }], ...this.readings];
    return all.flatMap(([node, reading]) => {
      const aheadMs = wrongBy(reading, median);
      return aheadMs === null ? [] : [{ node, aheadMs }];
    });
  }
}

function latest(last: { time: number; madeAt: number }, now: number): number {
  const elapsedMs = Math.max(0, now - last.madeAt);
  return last.time + elapsedMs + Math.min(elapsedMs, MOST_GAIN_MS);
}
