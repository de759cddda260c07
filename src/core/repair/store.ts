// The committed chain as a repair's term needs it, without a disk. Hashes come from the evidence. Payloads are read
// from nodes, a batch at a time, and checked against the hashes. It holds one batch and the term's own commits, never
// the whole retained range.
import type { ChainStore, Clock, CommittedBlock, NodePort } from '../ports.js';
import type { LocalChain } from '../protocol/term-state.js';
import type { Hash, Height } from '../protocol/types.js';
import { bounded } from '../nodes/ask-all.js';
import type { PackedChain } from './scan.js';

const BATCH_BLOCKS = 128;
const BATCH_BYTES = 1024 * 1024;
const READ_MS = 2000;

export interface RepairStoreOptions {
  chain: PackedChain;
  head: { height: Height; hash: Hash };
  floor: { height: Height; hash: Hash };
  /** Nodes to read from, best first. */
  sources: readonly NodePort[];
  clock: Clock;
}

export class RepairStore implements ChainStore {
  private readonly cache = new Map<Height, CommittedBlock>();
  private readonly own = new Map<Height, CommittedBlock>();
  private top: { height: Height; hash: Hash; timestamp: number; epoch: number };
  private size = 0;
  private cached = 0;

  constructor(private readonly options: RepairStoreOptions) {
    this.top = { ...options.head, timestamp: 0, epoch: 0 };
  }

  head(): { height: Height; hash: Hash; timestamp: number; epoch: number } {
    return this.top;
  }

  get(height: Height): CommittedBlock | undefined {
    return this.own.get(height) ?? this.cache.get(height);
  }

  header(height: Height): (Omit<CommittedBlock, 'data'> & { size: number }) | undefined {
    const block = this.get(height);
    return block === undefined
      ? undefined
      : {
          height,
          hash: block.hash,
          parent: block.parent,
          timestamp: block.timestamp,
          epoch: block.epoch,
          size: block.data.byteLength,
        };
  }

  append(block: CommittedBlock): Promise<void> {
    this.own.set(block.height, block);
    this.top = { height: block.height, hash: block.hash, timestamp: block.timestamp, epoch: block.epoch };
    return Promise.resolve();
  }

  receipt(): undefined {
    return undefined;
  }

  retainedFloor(): Height {
    return this.options.floor.height;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  hashAt(height: Height): Hash | undefined {
    return (
      this.own.get(height)?.hash ?? (height <= this.options.head.height ? this.options.chain.get(height) : undefined)
    );
  }

  /** The floor for the term: a repair never trims. */
  localChain(): LocalChain {
    return {
      head: () => this.top,
      hashAt: (height) => this.hashAt(height),
      trimFor: () => undefined,
      retainedFloor: () => this.options.floor,
    };
  }

  /**
   * Makes the blocks of the next batch available to `get`, as far as any source has them. A batch has as many blocks as
   * fit, so batches of large blocks are small.
   */
  async prefetch(from: Height, to: Height): Promise<void> {
    if (this.get(from) !== undefined && this.get(Math.min(to, from + this.room() - 1)) !== undefined) return;
    // Two nodes may be filled at once, from different heights. So blocks that the other one needs soon are kept.
    if (this.cached > 8 * BATCH_BYTES) {
      this.cache.clear();
      this.cached = 0;
    }
    for (const source of this.options.sources) {
      const read = await bounded(
        source.read({ from, to, limit: this.room(), data: true }, READ_MS),
        READ_MS,
        this.options.clock,
      );
      if (read.outcome !== 'accepted') continue;
      let taken = 0;
      for (const entry of read.value.entries) {
        if (entry.height !== from + taken || entry.data === undefined || entry.hash !== this.hashAt(entry.height))
          break;
        const { height, hash, parent, timestamp, epoch, data } = entry;
        this.cache.set(height, { height, hash, parent, timestamp, epoch, data });
        this.cached += data.byteLength + 256;
        this.size = Math.max(this.size * 0.9, data.byteLength);
        taken += 1;
      }
      if (taken > 0) return;
    }
  }

  private room(): number {
    return Math.max(1, Math.min(BATCH_BLOCKS, Math.floor(BATCH_BYTES / Math.max(1, this.size))));
  }
}
