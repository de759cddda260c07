// A chain store without a disk that behaves like the one in src/core/store. Appended blocks can be read at once and are
// synced later, several in one sync. `crash` loses what was not synced, like a power cut.
import { blockHash, genesisHash } from '../../src/core/chain/block.js';
import { keysOf } from '../../src/core/chain/items.js';
import { invariant } from '../../src/core/errors.js';
import type { ChainStore, Clock, CommittedBlock, Receipt } from '../../src/core/ports.js';
import type { Height } from '../../src/core/protocol/types.js';
import { RetainedFloor } from '../../src/core/store/retained-floor.js';

export interface MemoryStoreOptions {
  /** Without generation. */
  cluster: string;
  lane: string;
  clock: Clock;
  /** How long one sync takes, ms. */
  syncMs?: number;
  keepItems?: number;
  keepMs?: number;
}

export class MemoryStore implements ChainStore {
  private blocks: CommittedBlock[] = [];
  private keyed: number[] = [];
  private receipts = new Map<string, Receipt & { digest: string }>();
  private windowFrom = 1;
  private windowKeyed = 0;
  private synced = 0;
  private syncing = false;
  private waiting: { height: Height; done: () => void }[] = [];
  /** Rises at a crash: a sync that began before has no effect afterwards. */
  private life = 0;
  private hung = false;
  private whenHealed: (() => void)[] = [];
  private floors = this.freshFloors();
  private readonly genesis: string;

  constructor(private readonly options: MemoryStoreOptions) {
    this.genesis = genesisHash(options.cluster, options.lane);
  }

  head(): ReturnType<ChainStore['head']> {
    const top = this.blocks.at(-1);
    if (top === undefined) return { height: 0, hash: this.genesis, timestamp: 0, epoch: 0 };
    return { height: top.height, hash: top.hash, timestamp: top.timestamp, epoch: top.epoch };
  }

  syncedHeight(): Height {
    return this.synced;
  }

  get(height: Height): CommittedBlock | undefined {
    return this.blocks[height - 1];
  }

  header(height: Height): ReturnType<ChainStore['header']> {
    const block = this.get(height);
    if (block === undefined) return undefined;
    const { data, ...header } = block;
    return { ...header, size: data.length };
  }

  append(block: CommittedBlock): Promise<void> {
    this.take(block);
    return new Promise<void>((done) => {
      this.waiting.push({ height: block.height, done });
      this.sync();
    });
  }

  receipt(key: string): (Receipt & { digest: string }) | undefined {
    const found = this.receipts.get(key);
    return found !== undefined && found.height >= this.windowFrom ? found : undefined;
  }

  retainedFloor(limits: { blocks: number; bytes: number }): Height {
    return this.floors.floor(this.blocks.length, limits);
  }

  /** Syncs as a disk does. Does not return while the disk hangs. */
  async checkDisk(): Promise<void> {
    if (this.hung) await new Promise<void>((healed) => this.whenHealed.push(healed));
  }

  /** From now on the disk accepts writes and syncs none. */
  hang(): void {
    this.hung = true;
  }

  heal(): void {
    this.hung = false;
    for (const go of this.whenHealed.splice(0)) go();
  }

  async close(): Promise<void> {}

  /** The process dies: appends that were not synced never resolve, and their blocks are lost. */
  crash(): void {
    const kept = this.blocks.slice(0, this.synced);
    this.life++;
    this.waiting = [];
    this.syncing = false;
    this.blocks = [];
    this.keyed = [];
    this.receipts = new Map();
    this.windowFrom = 1;
    this.windowKeyed = 0;
    this.floors = this.freshFloors();
    for (const block of kept) this.take(block);
  }

  private take(block: CommittedBlock): void {
    const head = this.head();
    invariant(
      block.height === head.height + 1,
      `I5: block ${block.height} appended to a store whose head is ${head.height}`,
    );
    invariant(
      block.parent === head.hash,
      `I5: block ${block.height} appended with parent ${block.parent}, but the head is ${head.hash}`,
    );
    invariant(block.timestamp >= head.timestamp, `I5: block ${block.height} is older than its parent`);
    invariant(blockHash(block) === block.hash, `I6: block ${block.height} does not match its hash ${block.hash}`);
    const keyed = keysOf(block.data);
    for (const { key, digest, index } of keyed) {
      if (this.receipt(key) === undefined)
        this.receipts.set(key, { height: block.height, index, epoch: block.epoch, digest });
    }
    this.blocks.push(block);
    this.keyed.push(keyed.length);
    this.windowKeyed += keyed.length;
    const { keepItems = 1_000_000, keepMs = 24 * 3600 * 1000 } = this.options;
    for (; this.windowFrom < block.height; this.windowFrom++) {
      const leaving = this.keyed[this.windowFrom - 1]!;
      if (
        this.blocks[this.windowFrom - 1]!.timestamp >= block.timestamp - keepMs &&
        this.windowKeyed - leaving < keepItems
      )
        break;
      this.windowKeyed -= leaving;
    }
  }

  private sync(): void {
    if (this.syncing || this.waiting.length === 0) return;
    this.syncing = true;
    const life = this.life;
    const batch = this.waiting.splice(0);
    const finish = (): void => {
      if (life !== this.life) return;
      if (this.hung) return void this.whenHealed.push(finish);
      this.synced = batch.at(-1)!.height;
      this.syncing = false;
      for (const { done } of batch) done();
      this.sync();
    };
    if (this.options.syncMs === undefined) queueMicrotask(finish);
    else this.options.clock.after(this.options.syncMs, finish);
  }

  private freshFloors(): RetainedFloor {
    return new RetainedFloor((height) => this.blocks[height - 1]!.data.length);
  }
}
