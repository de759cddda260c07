// Makes chains of valid blocks for tests.
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { encodeItems } from '../../src/core/chain/items.js';
import type { CommittedBlock, Item } from '../../src/core/ports.js';

export const text = (value: string): Uint8Array => new Uint8Array(Buffer.from(value));
export const keyed = (...keys: string[]): Item[] => keys.map((key) => ({ key, data: text(`bytes of ${key}`) }));

/** Makes one block after another. All that the caller leaves out is deterministic. */
export class ChainMaker {
  height = 0;
  hash: string;
  constructor(
    readonly cluster = 'c1',
    readonly lane = '',
  ) {
    this.hash = genesisHash(cluster, lane);
  }

  block(content: Item[] | Uint8Array = [], parts: { epoch?: number; timestamp?: number } = {}): CommittedBlock {
    const data = content instanceof Uint8Array ? content : encodeItems(content);
    const block = makeBlock({
      height: this.height + 1,
      parent: this.hash,
      timestamp: parts.timestamp ?? 1_000 + this.height + 1,
      data,
    });
    this.height = block.height;
    this.hash = block.hash;
    return { ...block, epoch: parts.epoch ?? 1 };
  }
}
