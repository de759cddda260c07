// What happens after a commit (I10)? The block is synced to the store first. Then receipts, subscribers and the
// producer get it, strictly in order of height. The next block may be proposed while this one is being synced. This
// file bounds how far commits may run ahead.
import type { ChainStore, CommittedBlock } from '../ports.js';
import type { Hash, Height } from '../protocol/types.js';

const MAX_BEHIND = 64;

export interface CommitPipelineOptions {
  store: ChainStore;
  /** Called for every block, synced, in order; awaited before the next one. */
  deliver(block: CommittedBlock): Promise<void> | void;
  onFailure(error: unknown): void;
  /** Told of every block that is being synced. */
  syncing?(height: Height, synced: Promise<void>): void;
}

export class CommitPipeline {
  private last: Promise<void> = Promise.resolve();
  private behind = 0;
  private waiting: (() => void)[] = [];
  private failed = false;
  /** Highest block that is synced and delivered. */
  height: Height;
  hash: Hash;

  constructor(private readonly options: CommitPipelineOptions) {
    ({ height: this.height, hash: this.hash } = options.store.head());
  }

  /** Appends to the store (visible at once) and delivers once it is synced. */
  take(block: CommittedBlock): void {
    if (this.failed) return;
    const synced = this.options.store.append(block);
    this.options.syncing?.(block.height, synced);
    this.behind++;
    this.last = this.last
      .then(() => synced)
      .then(async () => {
        await this.options.deliver(block);
        this.reached(block);
        this.behind--;
        if (this.behind <= MAX_BEHIND / 2) for (const go of this.waiting.splice(0)) go();
      })
      .catch((error: unknown) => {
        if (this.failed) return;
        this.failed = true;
        this.options.onFailure(error);
      });
    synced.catch(() => {}); // the chain above handles it, in order
  }

  /** This height may be reported. `deliver` may call it before its own work is done. */
  reached({ height, hash }: { height: Height; hash: Hash }): void {
    this.height = height;
    this.hash = hash;
  }

  /** Undefined while there is room. Otherwise resolves when there is room again. */
  room(): Promise<void> | undefined {
    return this.behind < MAX_BEHIND ? undefined : new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Undefined when every block taken is synced and delivered. Otherwise resolves when those under way now are. */
  syncing(): Promise<void> | undefined {
    return this.behind === 0 ? undefined : this.last;
  }

  /** Everything taken so far has been delivered (or failed). */
  drained(): Promise<void> {
    return this.last;
  }
}
