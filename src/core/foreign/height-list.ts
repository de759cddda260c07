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

/** Of two ascending lists, which may repeat themselves: each height once, ascending. */
export function union(a: Uint32Array, b: Uint32Array): Uint32Array<ArrayBuffer> {
  const both = new Uint32Array(a.length + b.length);
  let length = 0;
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    const next = j >= b.length || (i < a.length && (a[i] as number) <= (b[j] as number)) ? a[i++] as number : b[j++] as number;
    if (length === 0 || both[length - 1] !== next) both[length++] = next;
  }
  return both.slice(0, length);
}

/** Heights in any order, in one block of memory: thousands of small ones would leave holes that no collector closes. */
export class HeightBag {
  private held = new Uint32Array(1024);
  length = 0;

  add(height: ForeignHeight): void {
    if (this.length === this.held.length) {
      const more = new Uint32Array(this.held.length * 2);
      more.set(this.held);
      this.held = more;
    }
    this.held[this.length++] = height;
  }

  all(): Uint32Array {
    return this.held.subarray(0, this.length);
  }
}
