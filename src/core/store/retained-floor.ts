// How far down the newest blocks reach within a number of blocks and of payload bytes, both exact. Keeps one running
// window that slides up with the head and either way with the limits, so that asking after every block costs about
// one header read, also when the limits leave room for the next block and so differ a little each time
// (docs/PROTOCOL.md section 6, retention).
import type { Height } from '../protocol/types.js';

export class RetainedFloor {
  private floorHeight: Height = 0;
  private head: Height = 0;
  /** Payload bytes of blocks floorHeight+1…head. */
  private bytes = 0;
  private started = false;

  /** `sizeOf`: payload bytes of the block at a height that exists. */
  constructor(private readonly sizeOf: (height: Height) => number) {}

  /** The lowest floor f so that blocks f+1…head keep within both limits; the head itself when it alone is too large. */
  floor(head: Height, limits: { blocks: number; bytes: number }): Height {
    // The first answer is measured from the top: a long chain is not walked from its beginning.
    if (!this.started) this.floorHeight = this.head = head;
    this.started = true;
    while (this.head < head) this.bytes += this.sizeOf(++this.head);
    while (this.floorHeight < head && (head - this.floorHeight > limits.blocks || this.bytes > limits.bytes))
      this.bytes -= this.sizeOf(++this.floorHeight);
    while (this.floorHeight > 0 && head - this.floorHeight < limits.blocks) {
      const size = this.sizeOf(this.floorHeight);
      if (this.bytes + size > limits.bytes) break;
      this.bytes += size;
      this.floorHeight--;
    }
    return this.floorHeight;
  }
}
