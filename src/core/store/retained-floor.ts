// Down to which height do the newest blocks fit into a number of blocks and a number of payload bytes? Both limits are
// exact. It keeps one running range. The range moves up with the head, and in both directions with the limits. So the
// question after each block costs about one header read, even when the limits differ a little each time
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

  /**
   * The lowest floor f for which blocks f+1…head are within both limits. The head when the head's block alone is too
   * large.
   */
  floor(head: Height, limits: { blocks: number; bytes: number }): Height {
    // The first answer counts from the top, so that a long chain is not read from its beginning.
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
