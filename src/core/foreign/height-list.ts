// Heights as they come, in ascending pieces, at 4 bytes each; a set of numbers would need ten times that.
import type { ForeignHeight } from './words.js';

export class HeightList {
  private readonly pieces: Uint32Array[] = [];
  length = 0;

  /** Ascending, and above what is there. */
  push(heights: readonly ForeignHeight[]): void {
    if (heights.length === 0) return;
    this.pieces.push(Uint32Array.from(heights));
    this.length += heights.length;
  }

  get last(): ForeignHeight | undefined {
    return this.pieces.at(-1)?.at(-1);
  }

  has(height: ForeignHeight): boolean {
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

  *[Symbol.iterator](): Generator<ForeignHeight> {
    for (const piece of this.pieces) yield* piece;
  }
}

/** Where the first number stands that is not below; the length when there is none. */
export function firstAtLeast(sorted: Uint32Array, height: number): number {
  let from = 0;
  let to = sorted.length;
  while (from < to) {
    const mid = (from + to) >>> 1;
    if ((sorted[mid] as number) < height) from = mid + 1;
    else to = mid;
  }
  return from;
}
