// The default producer: a block is the submitted items that fit, in the order they came (`seq/items/1`,
// docs/PROTOCOL.md section 2).
import { encodeItems, encodedItemSize, itemsOverhead } from '../chain/items.js';
import type { Producer } from '../ports.js';

/** `maxBlockBytes`: largest payload of one block. */
export function batchProducer(options: { maxBlockBytes: number }): Producer {
  return {
    name: 'batch',
    needsChain: false,
    ready: () => ({ ready: true }),
    async produce({ items }) {
      let bytes = itemsOverhead(items.length);
      let taken = 0;
      while (taken < items.length && bytes + encodedItemSize(items[taken]!) <= options.maxBlockBytes)
        bytes += encodedItemSize(items[taken++]!);
      return { data: encodeItems(items.slice(0, taken)), taken };
    },
    async committed() {},
    revoked() {},
    onFailure() {},
    async close() {},
  };
}

/** The largest item, as encoded, that fits into a block alone. The inbox accepts items up to this size. */
export function largestItem(maxBlockBytes: number): number {
  return maxBlockBytes - itemsOverhead(1);
}
