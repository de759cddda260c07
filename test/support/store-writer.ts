// A process that appends to a store as fast as it can, with several blocks in flight, and reports on stdout what is
// synced. Arguments: directory, cluster. It never ends by itself.
import { encodeItems } from '../../src/core/chain/items.js';
import { makeBlock } from '../../src/core/chain/block.js';
import { openStore } from '../../src/core/store/lmdb-store.js';

const [dir, cluster] = process.argv.slice(2) as [string, string];
const store = await openStore({ dir, cluster, lane: '' });
process.stdout.write(`open ${store.head().height} ${store.head().hash}\n`);
const IN_FLIGHT = 20;
const inFlight = new Set<Promise<void>>();
for (;;) {
  const head = store.head();
  const height = head.height + 1;
  const items = Array.from({ length: 5 }, (_, index) => ({
    key: `k${height}.${index}`,
    data: Buffer.alloc(100 + (height % 7) * 500, height + index),
  }));
  const block = makeBlock({ height, parent: head.hash, timestamp: head.timestamp + 1, data: encodeItems(items) });
  const synced: Promise<void> = store.append({ ...block, epoch: 3 }).then(() => {
    process.stdout.write(`synced ${height} ${block.hash}\n`);
    inFlight.delete(synced);
  });
  inFlight.add(synced);
  if (inFlight.size >= IN_FLIGHT) await Promise.race(inFlight);
}
