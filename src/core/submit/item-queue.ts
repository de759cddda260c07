// Reads ahead while a batch is under way, within a bound, and hands out batches. A slow input (somebody types, or a
// pipe trickles) gives small batches at once, a fast input large ones. A reading error comes only after every item
// before it was handed out.
import type { RawItem } from './item-reader.js';

const LINGER_MS = 5;

export class ItemQueue {
  readonly #items: RawItem[] = [];
  #bytes = 0;
  #ended = false;
  #error: unknown;
  #changed: (() => void)[] = [];

  constructor(
    source: AsyncIterable<RawItem[]>,
    private readonly maxBytes: number,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener('abort', () => this.#notify(), { once: true });
    void this.#pump(source);
  }

  async #pump(source: AsyncIterable<RawItem[]>): Promise<void> {
    try {
      for await (const items of source) {
        for (const item of items) {
          this.#items.push(item);
          this.#bytes += item.consumed;
        }
        this.#notify();
        while (this.#bytes >= this.maxBytes && !this.signal.aborted) await this.#change();
        if (this.signal.aborted) return;
      }
    } catch (error) {
      this.#error = error;
    }
    this.#ended = true;
    this.#notify();
  }

  #notify(): void {
    for (const wake of this.#changed.splice(0)) wake();
  }

  #change(limitMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = limitMs === undefined ? undefined : setTimeout(resolve, limitMs);
      this.#changed.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  /**
   * Waits for the first item, then a moment for more. Empty: the input ended or the signal was aborted. Throws what
   * reading threw.
   */
  async next(maxItems: number, maxBytes: number): Promise<RawItem[]> {
    while (this.#items.length === 0 && !this.#ended && !this.signal.aborted) await this.#change();
    if (this.signal.aborted) return [];
    // This bounds the whole wait. Otherwise a source that never pauses would be waited for until the batch is full.
    const until = performance.now() + LINGER_MS;
    for (
      let left = LINGER_MS;
      left > 0 && !this.#ended && this.#items.length < maxItems && this.#bytes < maxBytes;
      left = until - performance.now()
    )
      await this.#change(left);
    let count = 0;
    let bytes = 0;
    for (const item of this.#items) {
      if (count > 0 && (count >= maxItems || bytes + item.consumed > maxBytes)) break;
      count += 1;
      bytes += item.consumed;
    }
    if (count === 0 && this.#error !== undefined) throw this.#error;
    this.#bytes -= bytes;
    const batch = this.#items.splice(0, count);
    this.#notify();
    return batch;
  }
}
