// This sequencer's own copy of the committed chain, on disk. Keeps I5 and I10 (docs/PROTOCOL.md section 3): blocks
// are appended in order, each with its header, its items' receipts and the head in one transaction, and `append`
// resolves only once that transaction is synced. Appends made while a sync runs share the next one. Readers here see
// appended blocks at once.
import { blockHash, genesisHash } from '../chain/block.js';
import { keyNamesOf, keysOf } from '../chain/items.js';
import { invariant } from '../errors.js';
import { makeFolder } from '../home.js';
import type { ChainStore, CommittedBlock, DamagedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';
import {
  META,
  claimFor,
  commitReason,
  openChainFile,
  readBlock,
  readHeader,
  readRetained,
  verifiedHead,
  type ChainFile,
} from './chain-file.js';
import {
  decodeReceipt,
  encodeHeader,
  encodeReceipt,
  heightKey,
  type KeyWindow,
  type StoredHeader,
  type StoredReceipt,
} from './records.js';
import { cannotBeMade, closed, readFailed, writeFailed } from './store-errors.js';
import { ProvenBlocks } from './proven.js';
import { KeysOfBlock, ProvenKeys, type Remembered } from './proven-keys.js';
import { RetainedFloor } from './retained-floor.js';
import { Scrub } from './scrub.js';
import { takeWriterLock } from './writer-lock.js';

export interface StoreOptions {
  dir: string;
  /** The cluster's id without its generation: a recovered cluster continues the chain. */
  cluster: string;
  lane: string;
  /** The newest known generation of the cluster. */
  generation?: number;
  /**
   * The de-duplication window ends at the limit that is reached first. It holds whole blocks. Its time is the time of
   * the blocks.
   */
  keepItems?: number;
  keepMs?: number;
}

const KEEP_ITEMS = 1_000_000;
const KEEP_MS = 24 * 3600 * 1000;

/** Most bytes in one transaction. A long backlog must not become one huge write. */
const TRANSACTION_BYTES = 64 * 1024 * 1024;
/**
 * Keys that one transaction removes, beyond twice the number of keys that it adds. The next transaction removes the
 * rest.
 */
const PRUNE_KEYS = 10_000;
const PRUNE_BLOCKS = 10_000;
/** Keys that one transaction puts back when the table of keys is made anew. */
const REBUILT_AT_ONCE = 4096;

/** Opens or creates the store in `dir`; throws SeqError STORE_FOREIGN (76), STORE_UNREADABLE or STORE_LOCKED (78). */
export async function openStore(options: StoreOptions): Promise<LmdbStore> {
  const { dir, cluster, lane, generation = 0 } = options;
  try {
    makeFolder(dir);
  } catch (error) {
    throw cannotBeMade(dir, error);
  }
  const lock = takeWriterLock(dir);
  let file: ChainFile | undefined;
  try {
    file = openChainFile(dir, false, lock.afterCrash);
    await claimFor(file, dir, { cluster, lane, generation });
    const head = verifiedHead(file, dir, { cluster, lane });
    const store = new LmdbStore(file, () => lock.release(), options, head, readRetained(file));
    if (file.meta.get(META.rebuild) !== undefined) await store.rebuildKeys(head?.height ?? 0);
    return store;
  } catch (error) {
    await file?.root.close();
    lock.release(!lock.afterCrash);
    throw readFailed(dir, error);
  }
}

interface Pending {
  block: CommittedBlock;
  header: StoredHeader;
  receipts: Map<string, StoredReceipt>;
  /** The de-duplication window once this block is the head. */
  window: KeyWindow;
  synced: () => void;
  failed: (error: unknown) => void;
}

export class LmdbStore implements ChainStore {
  private readonly genesis: string;
  private readonly keepItems: number;
  private readonly keepMs: number;
  private readonly floors: RetainedFloor;
  /** Blocks that are appended but not synced yet, by height in order and by item key. */
  private readonly pending = new Map<Height, Pending>();
  private readonly pendingKeys = new Map<string, StoredReceipt>();
  /** The header at which the window began at its last check. */
  private oldest: StoredHeader | undefined;
  private unsent: Pending[] = [];
  private writing: Promise<void> | null = null;
  private prunedTo: Height;
  private failure: unknown = null;
  private isClosed = false;
  private readonly proven: ProvenBlocks;
  private readonly damageListeners: ((damaged: DamagedBlock) => void)[] = [];
  private readonly keyListeners: ((height: Height, what: string) => void)[] = [];
  private readonly doubtListeners: (() => void)[] = [];
  private readonly provenKeys: ProvenKeys;
  private readonly scrubber: Scrub;
  private rebuilding = false;
  private scrubbing: Promise<boolean> = Promise.resolve(false);

  constructor(
    private readonly file: ChainFile,
    private readonly unlock: () => void,
    private readonly options: StoreOptions,
    private top: StoredHeader | undefined,
    private window: KeyWindow,
  ) {
    this.proven = new ProvenBlocks(file, (damaged) => this.damageListeners.forEach((tell) => tell(damaged)));
    const stored = (height: Height): CommittedBlock | undefined =>
      this.holds(height) && !this.pending.has(height) ? this.proven.read(height) : undefined;
    this.provenKeys = new ProvenKeys(stored, () => this.doubtListeners.forEach((tell) => tell()));
    this.scrubber = new Scrub({
      file,
      keys: this.provenKeys,
      read: stored,
      windowFrom: () => this.window.from,
      synced: () => this.syncedHeight(),
      repaired: (height, receipts) =>
        this.tellRepaired(height, `${receipts} of its receipts ${receipts === 1 ? 'was' : 'were'} wrong`),
      rebuild: (height) => this.rebuildKeys(height),
      windowDamaged: () => [...this.proven.damaged.keys()].some((height) => height >= this.window.from),
      closed: () => this.isClosed,
    });
    this.genesis = genesisHash(options.cluster, options.lane);
    this.keepItems = options.keepItems ?? KEEP_ITEMS;
    this.keepMs = options.keepMs ?? KEEP_MS;
    this.prunedTo = window.prunedTo;
    this.floors = new RetainedFloor((height) => this.storedHeader(height).size);
  }

  head(): ReturnType<ChainStore['head']> {
    const top = this.top;
    if (top === undefined) return { height: 0, hash: this.genesis, timestamp: 0, epoch: 0 };
    return { height: top.height, hash: top.hash, timestamp: top.timestamp, epoch: top.epoch };
  }

  /** The highest synced block. */
  syncedHeight(): Height {
    for (const height of this.pending.keys()) return height - 1;
    return this.top?.height ?? 0;
  }

  get(height: Height): CommittedBlock | undefined {
    if (!this.holds(height)) return undefined;
    this.mustBeOpen();
    return this.pending.get(height)?.block ?? this.proven.read(height);
  }

  get damaged(): ReadonlyMap<Height, DamagedBlock> {
    return this.proven.damaged;
  }

  onDamage(listener: (damaged: DamagedBlock) => void): void {
    this.damageListeners.push(listener);
    for (const damaged of this.proven.damaged.values()) listener(damaged);
  }

  onKeysRepaired(listener: (height: Height, what: string) => void): void {
    this.keyListeners.push(listener);
  }

  onKeyInDoubt(listener: () => void): void {
    this.doubtListeners.push(listener);
  }

  async scrub(): Promise<boolean> {
    this.mustBeOpen();
    this.scrubbing = this.scrubber.step().catch((error: unknown) => {
      throw writeFailed(this.options.dir, error);
    });
    return this.scrubbing;
  }

  /** True while nobody can say of a key that it is unknown. */
  get keysInDoubt(): boolean {
    return this.rebuilding;
  }

  get unprovenKeys(): number {
    return this.provenKeys.unproven.size;
  }

  async repair(block: CommittedBlock): Promise<boolean> {
    const { height, data } = block;
    if (!this.proven.damaged.has(height)) return false;
    this.mustBeOpen();
    const above = this.pending.get(height + 1)?.header ?? this.proven.header(height + 1);
    if (!this.proven.proves(block, above?.parent)) return false;
    // No hash covers the epoch. The store's own word comes first, where the rest of its header is right.
    const former = this.proven.header(height);
    const intact =
      former?.hash === block.hash && former.parent === block.parent && former.timestamp === block.timestamp;
    const { hash, parent, timestamp } = block;
    const header: StoredHeader = {
      ...{ height, hash, parent, timestamp },
      epoch: intact ? former.epoch : block.epoch,
      size: data.length,
      keyed: keysOf(data).length,
    };
    try {
      await this.file.root.batch(() => {
        void this.file.blocks.put(heightKey(height), asBuffer(data));
        void this.file.headers.put(heightKey(height), encodeHeader(header));
      });
    } catch (error) {
      throw writeFailed(this.options.dir, await commitReason(error));
    }
    this.proven.repaired(height);
    return true;
  }

  header(height: Height): ReturnType<ChainStore['header']> {
    if (!this.holds(height)) return undefined;
    this.mustBeOpen();
    const { keyed: _, ...header } = this.storedHeader(height);
    return header;
  }

  append(block: CommittedBlock): Promise<void> {
    if (this.isClosed) return Promise.reject(closed(this.options.dir));
    if (this.failure !== null) return Promise.reject(this.failure);
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

    const receipts = new Map<string, StoredReceipt>();
    const keyed = keysOf(block.data);
    for (const { key, digest, index } of keyed) {
      // The first receipt is valid as long as it is in the window, even when a later block has the same key.
      if (receipts.has(key) || this.remembered(key) !== undefined) continue;
      receipts.set(key, { height: block.height, index, epoch: block.epoch, digest });
    }
    const { data, ...rest } = block;
    const header = {
      height: rest.height,
      hash: rest.hash,
      parent: rest.parent,
      timestamp: rest.timestamp,
      epoch: rest.epoch,
      size: data.length,
      keyed: keyed.length,
    };
    return new Promise<void>((synced, failed) => {
      const pending: Pending = { block, header, receipts, window: this.window, synced, failed };
      this.pending.set(block.height, pending);
      for (const [key, receipt] of receipts) this.pendingKeys.set(key, receipt);
      this.top = header;
      pending.window = this.window = this.slide(header);
      this.unsent.push(pending);
      // In a microtask: all appends of this turn of the event loop go into one transaction.
      this.writing ??= Promise.resolve().then(() => this.write());
    });
  }

  async checkDisk(): Promise<void> {
    this.mustBeOpen();
    try {
      await this.file.meta.put(META.checked, Buffer.from(this.options.lane));
    } catch (error) {
      throw writeFailed(this.options.dir, await commitReason(error));
    }
  }

  receipt(key: string): Remembered {
    this.mustBeOpen();
    const found = this.remembered(key);
    return found === undefined && this.rebuilding ? 'unproven' : found;
  }

  private remembered(key: string): Remembered {
    const found = this.pendingKeys.get(key) ?? this.storedReceipt(key);
    return found === undefined || found === 'unproven' || found.height >= this.window.from ? found : undefined;
  }

  private tellRepaired(height: Height, what: string): void {
    for (const tell of this.keyListeners) tell(height, what);
  }

  /**
   * Makes the table of keys anew from the blocks of the window. Until it is done, nobody can say of a key that it is
   * unknown. What was appended meanwhile is in the table, and an earlier block with the same key takes its place.
   */
  async rebuildKeys(height: Height): Promise<void> {
    const { meta, keys, root } = this.file;
    this.rebuilding = true;
    await meta.put(META.rebuild, Buffer.from('1'));
    await keys.clearAsync();
    this.provenKeys.allSettled();
    for (let at = this.window.from; at <= this.syncedHeight() && !this.isClosed; at++) {
      const block = this.pending.has(at) ? undefined : this.proven.read(at);
      if (block === undefined) continue;
      const own = new KeysOfBlock(block);
      for (let from = 0; from < own.names.length; from += REBUILT_AT_ONCE) {
        const missing = own.names.slice(from, from + REBUILT_AT_ONCE).filter((name) => this.isLater(name, at));
        await root.batch(() => {
          for (const name of missing) void keys.put(Buffer.from(name), encodeReceipt(own.receipt(name)!));
        });
      }
    }
    if (this.isClosed) return;
    await meta.remove(META.rebuild);
    this.rebuilding = false;
    this.tellRepaired(height, 'a key was missing, so that all of them were taken from the blocks anew');
  }

  /** There is no record of this key, or one of a later block. */
  private isLater(name: string, height: Height): boolean {
    const bytes = this.file.keys.get(Buffer.from(name));
    return bytes === undefined || (decodeReceipt(bytes)?.height ?? Infinity) > height;
  }

  retainedFloor(limits: { blocks: number; bytes: number }): Height {
    this.mustBeOpen();
    return this.floors.floor(this.top?.height ?? 0, limits);
  }

  /** Resolves once everything appended is synced (or has failed) and the file is closed. */
  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    await this.writing;
    await this.scrubbing.catch(() => {});
    await this.file.root.close();
    this.unlock();
  }

  /** lmdb would crash the process on a read of a closed file. */
  private mustBeOpen(): void {
    if (this.isClosed) throw closed(this.options.dir);
  }

  private holds(height: Height): boolean {
    return Number.isSafeInteger(height) && height >= 1 && height <= (this.top?.height ?? 0);
  }

  private storedHeader(height: Height): StoredHeader {
    const header = this.pending.get(height)?.header ?? readHeader(this.file, height);
    invariant(header !== undefined, `I6: the store has no header at height ${height}`);
    return header;
  }

  private storedReceipt(key: string): Remembered {
    const bytes = this.file.keys.get(Buffer.from(key));
    return bytes && this.provenKeys.prove(key, decodeReceipt(bytes) ?? null, this.window.from);
  }

  /** Whether the record of this key leaves the disk with the block at this height. */
  private leavesWith(key: Buffer, height: Height): boolean {
    const bytes = this.file.keys.get(key);
    if (bytes === undefined) return false;
    const record = decodeReceipt(bytes);
    return record === undefined || record.height <= height;
  }

  /**
   * Computes the de-duplication window after `head`. Blocks that are too old, or not needed to cover `keepItems`, leave
   * it.
   */
  private slide(head: StoredHeader): KeyWindow {
    let { from, keyed } = this.window;
    keyed += head.keyed;
    while (from < head.height) {
      if (this.oldest?.height !== from) this.oldest = this.storedHeader(from);
      const { oldest } = this;
      if (oldest.timestamp >= head.timestamp - this.keepMs && keyed - oldest.keyed < this.keepItems) break;
      keyed -= oldest.keyed;
      from++;
    }
    return { from, keyed, prunedTo: this.window.prunedTo };
  }

  /** Writes all appended blocks, one transaction after another. */
  private async write(): Promise<void> {
    while (this.unsent.length > 0) {
      const batch = this.nextBatch();
      try {
        if (this.failure !== null) throw this.failure;
        await this.commit(batch);
      } catch (error) {
        // After a failed write, no block may be acknowledged: the chain on disk would have a hole.
        this.failure ??= writeFailed(this.options.dir, error);
        for (const pending of batch) pending.failed(this.failure);
        continue;
      }
      for (const pending of batch) {
        this.pending.delete(pending.block.height);
        for (const [key, receipt] of pending.receipts)
          if (this.pendingKeys.get(key) === receipt) this.pendingKeys.delete(key);
        pending.synced();
      }
    }
    this.writing = null;
  }

  private nextBatch(): Pending[] {
    let count = 0;
    for (let bytes = 0; count < this.unsent.length && (count === 0 || bytes < TRANSACTION_BYTES); count++)
      bytes += this.unsent[count]!.header.size;
    const batch = this.unsent.slice(0, count);
    this.unsent = this.unsent.slice(count);
    return batch;
  }

  private async commit(batch: Pending[]): Promise<void> {
    const { meta, headers, blocks, keys, root } = this.file;
    const last = batch[batch.length - 1]!;
    const added = batch.reduce((sum, pending) => sum + pending.receipts.size, 0);
    const gone = this.expired(last.window.from, 2 * added + PRUNE_KEYS);
    try {
      await root.batch(() => {
        // Removals go first: a key that left the window may come again in this very batch.
        for (const key of gone.keys) void keys.remove(key);
        for (const { block, header, receipts } of batch) {
          const height = heightKey(block.height);
          void blocks.put(height, asBuffer(block.data));
          void headers.put(height, encodeHeader(header));
          for (const [key, receipt] of receipts) void keys.put(Buffer.from(key), encodeReceipt(receipt));
        }
        const window: KeyWindow = { from: last.window.from, keyed: last.window.keyed, prunedTo: gone.to };
        void meta.put(META.window, Buffer.from(JSON.stringify(window)));
        void meta.put(META.head, Buffer.from(String(last.block.height)));
      });
    } catch (error) {
      throw await commitReason(error);
    }
    this.prunedTo = gone.to;
  }

  /** Keys on disk of blocks below the retained range, up to about `limit` of them. */
  private expired(windowFrom: Height, limit: number): { keys: Buffer[]; to: Height } {
    const gone: Buffer[] = [];
    let to = this.prunedTo;
    const furthest = Math.min(windowFrom - 1, to + PRUNE_BLOCKS);
    while (to < furthest && gone.length < limit) {
      // An unsynced block has no keys on disk yet; a later transaction removes them.
      if (this.pending.has(to + 1)) break;
      to++;
      if (this.storedHeader(to).keyed === 0) continue;
      for (const key of keyNamesOf(readBlock(this.file, to)?.data ?? new Uint8Array(0))) {
        const name = Buffer.from(key);
        if (this.leavesWith(name, to)) gone.push(name);
      }
    }
    return { keys: gone, to };
  }
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
