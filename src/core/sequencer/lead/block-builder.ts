// When does a leader ask its producer for a block, and what happens to the answer (docs/PROTOCOL.md sections 6.1, 6.8)?
// It builds one block each blockTime, empty ones too, because work is the heartbeat (I8). A lane that may rest makes no
// empty blocks: while it has no work, its lease is extended instead. With `eager` it builds at
// once when there is work that the producer takes. It builds one block at a time.
import { makeBlock } from '../../chain/block.js';
import { SeqError } from '../../errors.js';
import type { Clock, Producer } from '../../ports.js';
import { stepdownCode } from '../../protocol/term-codes.js';
import type { Block, Hash, Height } from '../../protocol/types.js';
import type { Inbox } from './inbox.js';
import type { TermDriver } from './term-driver.js';

const MAX_ITEMS = 16_384;
/**
 * After a sync, work waits for other clients who have just been answered, so that one block takes all of it. It waits
 * half of the time of the last block, and at least this long.
 */
const BATCHING_DELAY_MS = 2;
/** After a fruitless wait, skip batching opportunities. Their number doubles each time, up to this many. */
const MOST_PASSED = 64;

export interface BlockBuilderOptions {
  producer: Producer;
  inbox: Inbox;
  clock: Clock;
  blockTimeMs: number;
  nodeTimeoutMs: number;
  eager: boolean;
  /** The lane may rest: without work, its lease is extended without a block. */
  rests: boolean;
  maxBlockBytes: number;
  /** Bytes of items that fit into one block. */
  maxItemsBytes: number;
  /** The timestamp of the next block, never below its parent's. */
  timestamp(): number;
  /**
   * Resolves when the commit pipeline has room. For a producer that needs the chain, it also waits until that producer
   * has every block.
   */
  caughtUp(): Promise<void> | undefined;
  /** Undefined when no block is being synced. Otherwise resolves when those under way are synced and reported. */
  syncing(): Promise<void> | undefined;
  onProposed(block: Block, items: number): void;
}

export class BlockBuilder {
  private wanted: { driver: TermDriver; height: Height; parent: Hash } | null = null;
  private making = false;
  private gathering = false;
  /**
   * The producer took none of the items that it was offered. To ask again at once would make empty blocks as fast as
   * nodes and disk allow.
   */
  private declined = false;
  /** Items of the last block. This many submitters were answered when it was synced. */
  private lastTaken = 0;
  /** The next block waits until this time, or until the queue holds this many items. */
  private batching = { until: -Infinity, items: 0 };
  private inVain = 0;
  private pass = 0;
  private lastAt = -Infinity;
  /** The term that has made a block. Each term makes one before it rests, so that everybody sees that it commits. */
  private begun: TermDriver | null = null;
  private cancelTimer: () => void = () => {};

  constructor(private readonly options: BlockBuilderOptions) {
    options.inbox.onWork(() => {
      if (options.eager && this.wanted && !this.making) this.schedule();
    });
  }

  /** The term is ready for this height. Any earlier call is void. */
  ready(driver: TermDriver, height: Height, parent: Hash): void {
    this.wanted = { driver, height, parent };
    this.schedule();
  }

  /** Why no block is being written although the term leads; '' while all is well. */
  get stalled(): string {
    const { clock, blockTimeMs, producer } = this.options;
    const ready = producer.ready();
    if (!ready.ready) return `its producer is not ready: ${ready.why}`;
    const overdueMs = clock.now() - this.lastAt - 2 * blockTimeMs;
    return this.making && overdueMs > 0
      ? `it has waited ${Math.round(overdueMs + 2 * blockTimeMs)} ms for its producer`
      : '';
  }

  /** The term is gone. A block that is being built is dropped when it arrives. */
  stop(): void {
    this.wanted = null;
    this.declined = false;
    this.cancelTimer();
  }

  private schedule(): void {
    this.cancelTimer();
    if (!this.wanted || this.making) return;
    const { clock, blockTimeMs, eager, inbox, syncing } = this.options;
    const dueInMs = this.lastAt + blockTimeMs - clock.now();
    const hurries = eager && inbox.queued > 0 && !this.declined;
    const mayWait = eager && dueInMs > 0 && inbox.queuedBytes < this.options.maxItemsBytes;
    const unsynced = mayWait ? syncing() : undefined;
    if (unsynced) this.gather(unsynced);
    else if (mayWait && hurries && inbox.queued < this.batching.items && clock.now() < this.batching.until) {
      this.cancelTimer = clock.after(Math.min(dueInMs, this.batching.until - clock.now()), () => this.alone());
      return;
    }
    if (dueInMs <= 0 || (hurries && !unsynced)) void this.make();
    else this.cancelTimer = clock.after(dueInMs, () => void this.make());
  }

  /**
   * Receipts wait for the sync. A block proposed during the sync would get its receipts no sooner than a larger block
   * proposed right after it. So items are gathered until the sync is done.
   */
  private gather(unsynced: Promise<void>): void {
    if (this.gathering) return;
    this.gathering = true;
    void unsynced.then(() => {
      this.gathering = false;
      if (!this.wanted || this.making) return;
      this.awaitBatch();
      this.schedule();
    });
  }

  /**
   * Many submitters send one item after the other. Without a wait, the first one that returns after its answer gets a
   * block of its own, and the others wait for that block. All submitters that were just answered return within a
   * moment. A block that waits for them holds all their items. It costs as much as a block with half of them.
   */
  private awaitBatch(): void {
    const { inbox, clock, blockTimeMs } = this.options;
    if (this.pass > 0) {
      this.pass--;
    } else if (this.lastTaken > 0) {
      const forMs = Math.min(Math.max(BATCHING_DELAY_MS, (clock.now() - this.lastAt) / 2), blockTimeMs / 10);
      this.batching = { until: clock.now() + forMs, items: inbox.queued + this.lastTaken };
    }
  }

  /** The submitters did not come back in time, or only some of them did. */
  private alone(): void {
    this.inVain =
      this.options.inbox.queued < this.batching.items - this.lastTaken / 2
        ? Math.min(MOST_PASSED, 2 * this.inVain + 1)
        : 0;
    this.pass = this.inVain;
    this.batching.until = -Infinity;
    this.schedule();
  }

  private async make(): Promise<void> {
    const { clock, producer, inbox, nodeTimeoutMs } = this.options;
    const wanted = this.wanted;
    if (!wanted || this.making || this.rest(wanted.driver)) return;
    this.making = true;
    try {
      const waiting = this.options.caughtUp();
      if (waiting) await waiting;
      if (this.wanted !== wanted) return;
      this.lastAt = clock.now();
      const { driver, height, parent } = wanted;
      const items = inbox.peek(this.options.maxItemsBytes, MAX_ITEMS);
      const deadlineMs = Math.max(1, driver.leaseMs() - nodeTimeoutMs);
      const { data, taken } = await this.within(
        deadlineMs,
        producer.produce({ height, parent, epoch: driver.state.epoch, deadlineMs, items }),
      );
      if (this.wanted !== wanted) return;
      this.declined = items.length > 0 && taken === 0;
      this.propose(wanted, data, taken);
    } catch (error) {
      if (this.wanted === wanted) {
        this.wanted = null;
        const why = error instanceof Error ? error.message : String(error);
        wanted.driver.stepdown(stepdownCode(error instanceof SeqError ? error.code : '', 'PRODUCER_FAILED'), why);
      }
    } finally {
      this.making = false;
      if (this.wanted) this.schedule();
    }
  }

  /** True: there is no work, and the lease is extended instead. The term says when it is ready again. */
  private rest(driver: TermDriver): boolean {
    const { rests, inbox, clock, blockTimeMs } = this.options;
    if (!rests || this.begun !== driver || inbox.queued > 0) return false;
    const { lastAt } = this;
    this.lastAt = clock.now();
    this.cancelTimer();
    // The extension may fail: then this asks again, until the lease ends.
    this.cancelTimer = clock.after(blockTimeMs, () => void this.make());
    if (driver.extend()) return true;
    this.lastAt = lastAt;
    this.cancelTimer();
    return false;
  }

  private propose({ driver, height, parent }: NonNullable<typeof this.wanted>, data: Uint8Array, taken: number): void {
    const { inbox, maxBlockBytes } = this.options;
    if (data.byteLength > maxBlockBytes) {
      this.wanted = null;
      return driver.stepdown(
        'BLOCK_TOO_LARGE',
        `the producer made a block of ${data.byteLength} bytes, at most ${maxBlockBytes} are allowed`,
      );
    }
    const block = makeBlock({
      height,
      parent,
      timestamp: this.options.timestamp(),
      data,
    });
    this.wanted = null;
    this.begun = driver;
    this.batching.until = -Infinity;
    this.lastTaken = taken;
    if (!inbox.propose(block, taken)) return;
    this.options.onProposed(block, taken);
    driver.propose(block);
  }

  /** The producer has its own deadline. This limit holds even when the producer misses it. */
  private within<T>(ms: number, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.options.clock.after(ms, () =>
        reject(new Error(`the producer did not answer within ${Math.round(ms)} ms`)),
      );
      work.then(
        (value) => {
          cancel();
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }
}
