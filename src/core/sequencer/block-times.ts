// When did this process see a block? It remembers the last blocks only, so that a trace of one item can tell when its
// block was proposed, committed and synced here. It decides nothing.
import type { BlockTimes } from '../ports.js';
import type { Hash, Height } from '../protocol/types.js';

/** About a quarter of an hour at four blocks a second, and less than 1 MiB. */
const REMEMBERED = 4096;

export class RecentBlockTimes {
  private readonly slots: (BlockTimes | undefined)[] = [];

  /** `wall`: ms since 1970. */
  constructor(private readonly wall: () => number) {}

  proposed({ height, hash }: { height: Height; hash: Hash }): void {
    this.slots[height % REMEMBERED] = { height, hash, proposedMs: this.wall(), committedMs: null, syncedMs: null };
  }

  /** A block that this process has not proposed, or another one than it has proposed, was proposed elsewhere. */
  committed({ height, hash }: { height: Height; hash: Hash }): void {
    const own = this.at(height);
    const proposedMs = own?.hash === hash ? own.proposedMs : null;
    this.slots[height % REMEMBERED] = { height, hash, proposedMs, committedMs: this.wall(), syncedMs: null };
  }

  synced(height: Height): void {
    const times = this.at(height);
    if (times !== undefined) times.syncedMs = this.wall();
  }

  at(height: Height): BlockTimes | undefined {
    const times = this.slots[height % REMEMBERED];
    return times?.height === height ? times : undefined;
  }
}
