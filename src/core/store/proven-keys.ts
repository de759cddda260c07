// Gives out receipts of remembered keys only when the block of the receipt proves them (docs/PROTOCOL.md section 7). A
// disk may change a bit of a receipt, or of a key. A receipt that is wrong is put right from its block. Which key is
// missing is found by the scrub, which goes through the blocks of the window.
import { decodeBlockData, itemDigest } from '../chain/items.js';
import type { CommittedBlock } from '../ports.js';
import type { Height } from '../protocol/types.js';
import type { StoredReceipt } from './records.js';

/** A store's word on a key. 'unproven': it remembers something, and cannot say what. */
export type Remembered = StoredReceipt | 'unproven' | undefined;

/** So many blocks' keys are kept: who sends items again sends those of neighbouring blocks. */
const KEPT_BLOCKS = 4;
/** A height is a number below 2^53. One changed bit makes another one of it. */
const HEIGHT_BITS = 53;

/** The keyed items of one block. Of two items with one key, the first one counts. */
export class KeysOfBlock {
  private readonly found = new Map<string, { index: number; of: Uint8Array | string }>();

  constructor(private readonly block: CommittedBlock) {
    const content = decodeBlockData(block.data);
    if (content.format === 'malformed') return;
    const items = content.format === 'items' ? content.items : content.taken;
    items.forEach((item, index) => {
      if (item.key === undefined || this.found.has(item.key)) return;
      this.found.set(item.key, { index, of: 'digest' in item ? item.digest : item.data });
    });
  }

  get names(): string[] {
    return [...this.found.keys()];
  }

  receipt(key: string): StoredReceipt | undefined {
    const one = this.found.get(key);
    if (one === undefined) return undefined;
    const digest = typeof one.of === 'string' ? one.of : itemDigest(one.of);
    return { height: this.block.height, index: one.index, epoch: this.block.epoch, digest };
  }
}

export class ProvenKeys {
  private readonly kept = new Map<Height, KeysOfBlock>();
  /** Keys whose record no block proves, until the scrub has gone through the window once more. */
  private readonly open = new Set<string>();

  /** `read`: a proven block of the file; undefined when there is none. `told`: a key could not be proven. */
  constructor(
    private readonly read: (height: Height) => CommittedBlock | undefined,
    private readonly told: () => void,
  ) {}

  /** Keys that could not be proven. */
  get unproven(): ReadonlySet<string> {
    return this.open;
  }

  /** What a record on disk proves. `record`: null when it is no receipt. `from`: the first block of the window. */
  prove(key: string, record: StoredReceipt | null, from: Height): Remembered {
    const proof = record && (this.at(record.height)?.receipt(key) ?? this.near(key, record, from));
    if (proof) return withEpoch(proof, record);
    this.open.add(key);
    this.told();
    return 'unproven';
  }

  settled(key: string): void {
    this.open.delete(key);
  }

  allSettled(): void {
    this.open.clear();
  }

  /** undefined when the block is damaged or not there. */
  private at(height: Height): KeysOfBlock | undefined {
    const known = this.kept.get(height);
    if (known !== undefined) return known;
    const block = this.read(height);
    if (block === undefined) return undefined;
    const keys = new KeysOfBlock(block);
    this.kept.set(height, keys);
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= KEPT_BLOCKS) break;
      this.kept.delete(oldest);
    }
    return keys;
  }

  /** One bit of the height was changed: the block at one of these heights has the key. */
  private near(key: string, record: StoredReceipt, from: Height): StoredReceipt | undefined {
    for (let bit = 0; bit < HEIGHT_BITS; bit++) {
      const height = Number(BigInt(record.height) ^ (1n << BigInt(bit)));
      const proof = height < from ? undefined : this.at(height)?.receipt(key);
      if (proof !== undefined) return proof;
    }
    return undefined;
  }
}

/** No hash covers the epoch, and it is stored twice. Where the two differ, it is unknown. */
function withEpoch(proof: StoredReceipt, record: StoredReceipt): StoredReceipt {
  return proof.epoch === record.epoch ? proof : { ...proof, epoch: 0 };
}
