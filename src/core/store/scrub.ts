// Looks at everything that is on disk, slowly, so that damage is found before somebody needs what is damaged
// (docs/PROTOCOL.md section 7). It goes through the blocks, those of the de-duplication window first, and proves each
// by its hash. In the window it looks for every key, too, and puts wrong receipts right. Where a key is missing, a
// changed bit has made another key of it, and the table may be out of order: then it is made anew (lmdb-store.ts).
// Other threads bring pages into memory first: a disk that hangs must not stop the main loop.
import type { CommittedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';
import { commitReason, readHeader, type ChainFile } from './chain-file.js';
import { KeysOfBlock, type ProvenKeys } from './proven-keys.js';
import { decodeReceipt, encodeReceipt, heightKey, type StoredReceipt } from './records.js';

/** One step: so many blocks or bytes, a few milliseconds. */
const STEP_BLOCKS = 256;
const STEP_BYTES = 1024 * 1024;
const STEP_KEYS = 1024;

export interface ScrubOptions {
  file: ChainFile;
  keys: ProvenKeys;
  /** A proven block; undefined when it is damaged. */
  read(height: Height): CommittedBlock | undefined;
  /** The first block of the de-duplication window. */
  windowFrom(): Height;
  /** The highest block that is on disk. */
  synced(): Height;
  /** So many receipts of keys of this block were wrong, and are right now. */
  repaired(height: Height, receipts: number): void;
  /** A key of this block is missing, or a record is of no block. */
  rebuild(height: Height): Promise<void>;
  /** A block of the window is damaged, so that its keys cannot be known. */
  windowDamaged(): boolean;
  closed(): boolean;
}

export class Scrub {
  /** The next height of this pass, and the last one. The window comes first, then what is below it. */
  private at = 0;
  private end = 0;
  private inWindow = false;
  /** Keys that were unproven when this pass began. */
  private suspects: string[] = [];

  constructor(private readonly options: ScrubOptions) {}

  /** True: there is more to look at in this pass. */
  async step(): Promise<boolean> {
    const { options } = this;
    if (this.at === 0) this.begin();
    const heights = await this.next();
    for (const height of heights) {
      if (options.closed()) return false;
      const block = options.read(height);
      if (block === undefined || !this.inWindow || height < options.windowFrom()) continue;
      if (!(await this.checkKeys(block))) return this.anew(height);
    }
    if (this.at <= this.end) return true;
    if (!this.inWindow) {
      this.at = 0;
      return false;
    }
    const { keys, windowDamaged } = options;
    if (!windowDamaged() && this.suspects.some((name) => keys.unproven.has(name))) return this.anew(this.end);
    this.inWindow = false;
    [this.at, this.end] = [1, options.windowFrom() - 1];
    return this.at <= this.end || this.restart();
  }

  /** The table of keys is made anew. Then all of it is looked at again. */
  private async anew(height: Height): Promise<true> {
    await this.options.rebuild(height);
    this.at = 0;
    return true;
  }

  private restart(): false {
    this.at = 0;
    return false;
  }

  private begin(): void {
    this.inWindow = true;
    this.at = Math.max(1, this.options.windowFrom());
    this.end = this.options.synced();
    this.suspects = [...this.options.keys.unproven];
  }

  private async next(): Promise<Height[]> {
    const { file } = this.options;
    const from = this.at;
    const wanted = Array.from({ length: Math.max(0, Math.min(STEP_BLOCKS, this.end - from + 1)) }, (_, i) => from + i);
    await file.headers.prefetch(wanted.map(heightKey));
    const heights: Height[] = [];
    for (let bytes = 0; heights.length < wanted.length && (heights.length === 0 || bytes < STEP_BYTES);) {
      if (this.options.closed()) return [];
      const height = wanted[heights.length]!;
      bytes += sizeOf(file, height);
      heights.push(height);
    }
    await file.blocks.prefetch(heights.map(heightKey));
    this.at += heights.length;
    return heights;
  }

  /** Is every key of this block remembered, by this block or by an earlier one? False: one is not there. */
  private async checkKeys(block: CommittedBlock): Promise<boolean> {
    const { file, keys, closed, repaired } = this.options;
    const own = new KeysOfBlock(block);
    const { names } = own;
    let count = 0;
    for (let from = 0; from < names.length; from += STEP_KEYS) {
      const some = names.slice(from, from + STEP_KEYS);
      await file.keys.prefetch(some.map((name) => Buffer.from(name)));
      if (closed()) return true;
      if (some.some((name) => file.keys.get(Buffer.from(name)) === undefined)) return false;
      const wrong = some.flatMap((name) => {
        const right = own.receipt(name)!;
        return this.isRight(name, right) ? [] : [[name, right] as const];
      });
      if (wrong.length > 0) await this.write(wrong);
      for (const [name] of wrong) keys.settled(name);
      count += wrong.length;
    }
    if (count > 0) repaired(block.height, count);
    return true;
  }

  private isRight(name: string, right: StoredReceipt): boolean {
    const { file, keys, windowFrom } = this.options;
    const bytes = file.keys.get(Buffer.from(name));
    const record = bytes && decodeReceipt(bytes);
    if (record === undefined) return false;
    if (record.height === right.height)
      return record.index === right.index && record.digest === right.digest && record.epoch === right.epoch;
    if (record.height > right.height || record.height < windowFrom()) return false;
    const earlier = keys.prove(name, record, windowFrom());
    keys.settled(name);
    return earlier !== 'unproven' && earlier?.height === record.height;
  }

  private write(wrong: readonly (readonly [string, StoredReceipt])[]): Promise<void> {
    const { file } = this.options;
    return written(
      file.root.batch(() => {
        for (const [name, right] of wrong) void file.keys.put(Buffer.from(name), encodeReceipt(right));
      }),
    );
  }
}

async function written(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    throw await commitReason(error);
  }
}

function sizeOf(file: ChainFile, height: Height): number {
  try {
    return readHeader(file, height)?.size ?? 0;
  } catch {
    return 0; // The block is read next, and told as damaged then.
  }
}
