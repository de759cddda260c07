// What timestamp does a block get (docs/PROTOCOL.md section 6)? The median of the nodes' own TIME, continued by this
// process's monotonic clock. No wall clock of a sequencer is used, because block times never fall. A wall clock that
// was a day ahead for two seconds would end every de-duplication window for good. Pure: the caller passes the time of
// the monotonic clock.
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
  /** '' means the wall clock of this sequencer. */
  node: string;
  aheadMs: number;
}

/** What a probe says about the nodes' clocks. The clock of another cluster's node is not used. */
export function timesOf(seen: ProbeResult, nodes: readonly { id: string }[]): HeardTime[] {
  return seen.replies.flatMap((reply, i) => {
    const heardAt = seen.heardAt[i] ?? null;
    if (reply?.outcome !== 'accepted' || reply.value.admission === 'foreign' || heardAt === null) return [];
    return [{ node: nodes[i]!.id, timeMs: reply.value.timeMs, sentAt: seen.sentAt, heardAt }];
  });
}

/** From one block to the next, chain time gains at most the elapsed time, and never more than this. */
const MOST_GAIN_MS = 1000;

export class ChainTime {
  /** Per node: its TIME minus the monotonic clock, as last heard. It counts even while the node is silent. */
  private readonly readings = new Map<string, ClockReading>();
  /** The last block of this leadership, and when it was made. Its time is not rounded, so that short steps add up. */
  private last: { time: number; madeAt: number } | null = null;

  /** `quorum`: how many nodes must have been heard. */
  constructor(private readonly quorum: () => number) {}

  hear({ node, timeMs, sentAt, heardAt }: HeardTime): void {
    this.readings.set(node, readingOf(timeMs, sentAt, heardAt));
  }

  /** A leadership begins. Its first block takes the nodes' time without smoothing. */
  began(): void {
    this.last = null;
  }

  /**
   * The timestamp of the next block. When the median leaps (the clocks of most nodes were set), the timestamp follows
   * at twice the pace of the monotonic clock. So a short leap ends no window. Without a median, the next block gets its
   * parent's timestamp.
   */
  next(parent: number, now: number): number {
    const median = medianClock(this.readings.values(), this.quorum());
    const shown = median === null ? parent : median.ms + now;
    const time = Math.max(parent, this.last === null ? shown : Math.min(shown, latest(this.last, now)));
    this.last = { time, madeAt: now };
    return Math.floor(time);
  }

  /** Clocks that differ from the median: this sequencer's wall clock and those of nodes. */
  wrong(wall: number, now: number): WrongClock[] {
    const median = medianClock(this.readings.values(), this.quorum());
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
