// How far down the newest blocks reach within a number of blocks and of payload bytes, both exact. Keeps a running window per
// pair of limits, so that asking after every block costs about one header read (docs/PROTOCOL.md section 6, retention).
import type { Height } from '../protocol/words.js';

interface Running {
  floor: Height;
  head: Height;
  bytes: number;
}

/** A sequencer asks with one pair of limits; a narrowed window (a node out of memory) adds a few more. */
const PAIRS_KEPT = 8;

export class WindowFloor {
  private readonly windows = new Map<string, Running>();

  /** `sizeOf`: payload bytes of the block at a height that exists. */
  constructor(private readonly sizeOf: (height: Height) => number) {}

  /** The lowest floor f so that blocks f+1…head keep within both limits; the head itself when it alone is too large. */
  floor(head: Height, limits: { blocks: number; bytes: number }): Height {
    const name = `${limits.blocks}/${limits.bytes}`;
    let window = this.windows.get(name);
    if (window === undefined || window.head > head) {
      window = this.measure(head, limits);
      if (this.windows.size >= PAIRS_KEPT) this.windows.delete(this.windows.keys().next().value!);
      this.windows.set(name, window);
    }
    // The floor never falls as the head rises, so the window only ever slides.
    while (window.head < head) window.bytes += this.sizeOf(++window.head);
    while (window.floor < head && (head - window.floor > limits.blocks || window.bytes > limits.bytes)) window.bytes -= this.sizeOf(++window.floor);
    return window.floor;
  }

  private measure(head: Height, limits: { blocks: number; bytes: number }): Running {
    let floor = head;
    let bytes = 0;
    while (floor > 0 && head - floor < limits.blocks) {
      const size = this.sizeOf(floor);
      if (bytes + size > limits.bytes) break;
      bytes += size;
      floor--;
    }
    return { floor, head, bytes };
  }
}
