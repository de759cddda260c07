// Does one node's stream keep the promises of docs/PROTOCOL.md section 3: contiguous, parent-linked, one entry for each
// height, right hashes, epochs and times in order (I3, I5, I6)? It gets entries in ascending order, piece by piece, and
// keeps only the last one. Pure.
import type { DamagedEntry, Entry, Height, NodeView } from '../protocol/types.js';

export type ViolationCode =
  | 'NOT_ADMITTED'
  | 'DAMAGED'
  | 'HOLE'
  | 'DOUBLE'
  | 'LINK'
  | 'FLOOR_LINK'
  | 'TIME'
  | 'HEAD'
  | 'EPOCH_ABOVE_FENCE'
  | 'CONFLICT'
  | 'STRAY';

export interface Violation {
  /** '' when the violation is between nodes. */
  node: string;
  height: Height | null;
  code: ViolationCode;
  /** The evidence, with the ids and hashes that prove it. */
  witness: string;
}

export class NodeProof {
  readonly violations: Violation[] = [];
  entries = 0;
  private last: Entry | null = null;
  private highestEpoch: Entry | null = null;
  private lowestRead: Height | null = null;
  private readonly damagedAt = new Set<Height>();

  constructor(
    readonly node: string,
    readonly view: NodeView,
    private readonly from: Height,
  ) {
    if (view.admission !== 'admitted') {
      this.found(
        null,
        'NOT_ADMITTED',
        `${view.admission}${view.admissionWhy === '' ? '' : `: ${view.admissionWhy}`}; what it holds ` +
          'counts for nothing until it is admitted again',
      );
    }
  }

  take(entries: readonly Entry[], damaged: readonly DamagedEntry[], range: { from: Height; to: Height }): void {
    for (const bad of damaged) {
      if (bad.height === null || bad.height < range.from || bad.height > range.to) continue;
      this.damagedAt.add(bad.height);
      this.found(bad.height, 'DAMAGED', `entry ${bad.id}: ${bad.why}`);
    }
    for (const entry of entries) if (entry.height >= range.from && entry.height <= range.to) this.next(entry);
  }

  /**
   * `later`: the node's state after everything was read. Entries that were trimmed or superseded meanwhile are no
   * violation.
   */
  finish(later: NodeView | null): Violation[] {
    const { view, last, highestEpoch } = this;
    const fence = Math.max(view.epoch, later?.epoch ?? 0);
    if (highestEpoch !== null && highestEpoch.epoch > fence) {
      this.found(
        highestEpoch.height,
        'EPOCH_ABOVE_FENCE',
        `entry ${highestEpoch.height}-${highestEpoch.epoch} bears an epoch above the node's ${fence}`,
      );
    }
    if (last !== null && last.height === view.head && last.epoch === view.headEpoch && last.hash !== view.headHash) {
      this.found(
        view.head,
        'HEAD',
        `the record says ${view.headHash.slice(0, 16)} at the head, the stream holds ${last.hash.slice(0, 16)}`,
      );
    }
    const floor = Math.max(view.floor, later?.floor ?? 0);
    return this.violations.filter((one) => one.height === null || one.height > floor);
  }

  private next(entry: Entry): void {
    this.entries += 1;
    const { last, view } = this;
    const id = `${entry.height}-${entry.epoch}`;
    if (this.highestEpoch === null || entry.epoch > this.highestEpoch.epoch) this.highestEpoch = entry;
    if (this.lowestRead === null) {
      this.lowestRead = entry.height;
      const expected = Math.max(this.from, view.floor + 1);
      // The hole is reported at its upper end. If that height was trimmed meanwhile, the node moved on and nothing is
      // missing.
      if (entry.height > expected && !this.damagedAt.has(expected))
        this.found(
          entry.height - 1,
          'HOLE',
          `nothing from ${expected} to ${entry.height - 1}, the floor is ${view.floor}`,
        );
      if (entry.height === view.floor + 1 && entry.parent !== view.floorHash) {
        this.found(
          entry.height,
          'FLOOR_LINK',
          `entry ${id} names parent ${entry.parent.slice(0, 16)}, the block at the floor is ` +
            `${view.floorHash.slice(0, 16)}`,
        );
      }
    }
    if (last !== null) this.compare(last, entry, id);
    this.last = entry;
  }

  private compare(last: Entry, entry: Entry, id: string): void {
    if (entry.height === last.height) {
      this.found(
        entry.height,
        'DOUBLE',
        `entries ${last.height}-${last.epoch} (${last.hash.slice(0, 16)}) and ${id} ` +
          `(${entry.hash.slice(0, 16)}) at one height`,
      );
      return;
    }
    if (entry.height > last.height + 1) {
      if (!this.damagedAt.has(last.height + 1))
        this.found(entry.height - 1, 'HOLE', `nothing from ${last.height + 1} to ${entry.height - 1}`);
      return;
    }
    if (entry.parent !== last.hash)
      this.found(
        entry.height,
        'LINK',
        `entry ${id} names parent ${entry.parent.slice(0, 16)}, entry ${last.height}-${last.epoch} is ` +
          `${last.hash.slice(0, 16)}`,
      );
    else if (entry.timestamp < last.timestamp)
      this.found(
        entry.height,
        'TIME',
        `entry ${id} is dated ${entry.timestamp}, before its parent (${last.timestamp})`,
      );
  }

  private found(height: Height | null, code: ViolationCode, witness: string): void {
    this.violations.push({ node: this.node, height, code, witness });
  }
}
