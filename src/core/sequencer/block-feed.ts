// Gives readers the committed blocks from any height on, each one as soon as it is synced and reported (I10).
import { EXIT, SeqError } from '../errors.js';
import type { ChainStore, CommittedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';

export interface BlockFeedOptions {
  store: ChainStore;
  /** Highest height that readers may see. */
  reached(): Height;
  /** True when no more blocks will come. */
  over(): boolean;
}

export class BlockFeed {
  private watchers: (() => void)[] = [];

  constructor(private readonly options: BlockFeedOptions) {}

  /** Call it when there is a new block, or when no more blocks will come. */
  wake(): void {
    for (const wake of this.watchers.splice(0)) wake();
  }

  block(height: Height): CommittedBlock | undefined {
    return height <= this.options.reached() ? this.options.store.get(height) : undefined;
  }

  /** As `block`, for one reader: throws STORE_DAMAGED where the store holds the block and may not give it out. */
  proven(height: Height): CommittedBlock | undefined {
    const block = this.block(height);
    if (block === undefined && this.options.store.damaged?.has(height)) throw damagedBlock(height);
    return block;
  }

  async *follow(from: Height, signal: AbortSignal): AsyncIterable<CommittedBlock> {
    for (let height = Math.max(1, from); !signal.aborted;) {
      const block = this.block(height);
      if (block) {
        yield block;
        height++;
      } else if (this.options.store.damaged?.has(height)) {
        throw damagedBlock(height);
      } else if (height <= this.options.reached()) {
        throw new SeqError({
          code: 'NOT_FOUND',
          exit: EXIT.notFound,
          message: `block ${height} is not in this sequencer's store`,
          why: 'the store begins above it',
          changed: 'nothing',
          next: ['ask another sequencer'],
        });
      } else {
        if (this.options.over()) return;
        await new Promise<void>((resolve) => {
          const done = () => {
            signal.removeEventListener('abort', done);
            resolve();
          };
          signal.addEventListener('abort', done, { once: true });
          this.watchers.push(done);
        });
      }
    }
  }
}

function damagedBlock(height: Height): SeqError {
  return new SeqError({
    code: 'STORE_DAMAGED',
    exit: EXIT.tryAgain,
    message: `block ${height} in this sequencer's store is damaged`,
    why: 'its bytes do not match its hash, so nobody gets it; it is fetched from the nodes and from peers',
    changed: 'nothing',
    next: ['ask another sequencer, or try again: seq status names what is not repaired yet'],
    retryable: true,
  });
}
