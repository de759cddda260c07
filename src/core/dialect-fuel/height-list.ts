// Lists of heights in ascending pieces, at 4 bytes a height. A Set of numbers would need ten times as much memory.
import type { FuelHeight } from './types.js';

export class HeightList {
  private readonly pieces: Uint32Array[] = [];
  length = 0;

  /** `heights` must ascend and be above all heights in the list. */
  push(heights: readonly FuelHeight[]): void {
    if (heights.length === 0) return;
    this.pieces.push(Uint32Array.from(heights));
    this.length += heights.length;
  }

  get last(): FuelHeight | undefined {
    return this.pieces.at(-1)?.at(-1);
  }

  has(height: FuelHeight): boolean {
    let from = 0;
    let to = this.pieces.length;
    while (from < to) {
      const mid = (from + to) >>> 1;
      if ((this.pieces[mid]?.at(-1) as number) < height) from = mid + 1;
      else to = mid;
    }
    const piece = this.pieces[from];
    return piece !== undefined && piece[firstAtLeast(piece, height)] === height;
  }

  *[Symbol.iterator](): Generator<FuelHeight> {
    for (const piece of this.pieces) yield* piece;
  }
}

/** Index of the first number that is at least `height`. The length when there is none. */
function firstAtLeast(sorted: Uint32Array, height: number): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const mid = (from + to) >>> 1;
    if ((sorted[mid] as number) < height) from = mid + 1;
    else to = mid;
  }
  return from;
}

/**
 * Merges ascending lists that may have heights in common: each height once, ascending. It reads the lists twice, so
 * that it allocates only the answer.
 */
export function union(lists: readonly (() => Iterator<FuelHeight>)[]): Uint32Array<ArrayBuffer> {
  let length = 0;
  for (const _ of merged(lists)) length += 1;
  const all = new Uint32Array(length);
  let at = 0;
  for (const height of merged(lists)) all[at++] = height;
  return all;
}

function* merged(lists: readonly (() => Iterator<FuelHeight>)[]): Generator<FuelHeight> {
  const iterators = lists.map((list) => list());
  const heads = Float64Array.from(iterators, next);
  for (;;) {
    let least = Infinity;
    for (const head of heads) if (head < least) least = head;
    if (least === Infinity) return;
    yield least;
    for (let at = 0; at < heads.length; at += 1)
      while (heads[at] === least) heads[at] = next(iterators[at] as Iterator<FuelHeight>);
  }
}

function next(iterator: Iterator<FuelHeight>): number {
  const { done, value } = iterator.next() as IteratorResult<FuelHeight, undefined>;
  return done === true ? Infinity : value;
}

/** Heights in any order, in one block of memory. Thousands of small blocks would fragment the heap. */
export class HeightBag {
  private held = new Uint32Array(1024);
  length = 0;

  add(height: FuelHeight): void {
    if (this.length === this.held.length) {
      const more = new Uint32Array(this.held.length * 2);
      more.set(this.held);
      this.held = more;
    }
    this.held[this.length++] = height;
  }

  /** Ascending. No height can be added afterwards. */
  sorted(): Uint32Array {
    return this.held.subarray(0, this.length).sort();
  }

  drop(): void {
    this.held = new Uint32Array(1);
    this.length = 0;
  }
}
