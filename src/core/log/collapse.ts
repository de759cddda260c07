// Collapses repeated log lines, so that a node that is down for an hour does not hide the important line. Two lines are
// the same when kind, names and words are the same; numbers may differ. The first line is written at once. Repeats
// within a time window are counted. One summary is written when the window ends, when the memory bound is reached, or
// at the end. Every line that is left out is counted.

export interface Repeats<T> {
  /** The last of the repeated lines. */
  line: T;
  times: number;
}

export class Collapser<T> {
  readonly #seen = new Map<string, { until: number; last: T | undefined; times: number }>();

  constructor(
    private readonly options: {
      windowMs: number;
      maxKinds: number;
      now: () => number;
      summary: (repeats: Repeats<T>) => void;
    },
  ) {}

  /** True: write it now. False: it was counted. */
  admit(key: string, line: T): boolean {
    const now = this.options.now();
    const known = this.#seen.get(key);
    if (known && now < known.until) {
      known.times += 1;
      known.last = line;
      return false;
    }
    if (known) this.#tell(key);
    else if (this.#seen.size >= this.options.maxKinds) this.#tell(this.#seen.keys().next().value as string);
    this.#seen.set(key, { until: now + this.options.windowMs, last: undefined, times: 0 });
    return true;
  }

  /** Writes the summaries that are due; all of them when `all`. */
  flush(all = false): void {
    const now = this.options.now();
    for (const [key, { until }] of [...this.#seen]) if (all || now >= until) this.#tell(key);
  }

  get kinds(): number {
    return this.#seen.size;
  }

  #tell(key: string): void {
    const known = this.#seen.get(key);
    this.#seen.delete(key);
    if (known?.last !== undefined) this.options.summary({ line: known.last, times: known.times });
  }
}

/** What makes two lines the same: their text without numbers. Names with digits (r1, seq-2) stay different. */
export function sameness(...parts: string[]): string {
  return parts
    .map((part) => part.replace(/(?<![A-Za-z0-9_-])\d+(?:\.\d+)?/g, '#'))
    .join('\u0000')
    .slice(0, 500);
}
