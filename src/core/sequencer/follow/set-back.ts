// Were the nodes set back in time (docs/PERSISTENCE.md)? A snapshot of a whole machine that is resumed keeps every name
// and every epoch, and has forgotten what it acknowledged. A sequencer announces only blocks that are committed and on
// its disk, so q nodes held them then. A later probe of q nodes must show one that has them.
import type { Height } from '../../protocol/types.js';
import { highestAnnounced, type Announced } from '../../nodes/announced.js';
import { admittedViews, type ProbeResult } from '../../nodes/probe.js';

export interface Missing {
  /** This store does not have it either, so that nobody may lead from here. */
  lost: boolean;
  /** It was known before the probe was sent. Otherwise one node may have answered a moment before another one. */
  certain: boolean;
  why: string;
}

export class SetBack {
  /** The highest block that the last probe showed as announced by another sequencer, and the one that was here then. */
  private announced: Announced = { id: '', height: 0 };

  constructor(
    private readonly id: string,
    private own: Height,
  ) {}

  /** What this probe of q nodes does not show, although it is known. null: nothing is missing. */
  judge(seen: ProbeResult, mine: Height, quorum: number): Missing | null {
    const { announced, own } = this;
    const views = admittedViews(seen);
    const head = Math.max(0, ...views.map((view) => view.head));
    this.own = mine;
    this.announced = highestAnnounced(views, quorum, this.id);
    const nodes = `no node that answers has a block above ${head}`;
    for (const [told, certain] of [
      [announced, true],
      [this.announced, false],
    ] as const)
      if (told.height > Math.max(head, mine))
        return {
          lost: true,
          certain,
          why:
            `${told.id} has announced block ${told.height}, and ${nodes}: the nodes were set back in time; ` +
            `${told.id} has to lead, or to be stopped if its store is lost`,
        };
    if (own <= head) return null;
    return {
      lost: false,
      certain: true,
      why: `this store has block ${own}, and ${nodes}: the nodes were set back in time`,
    };
  }
}
