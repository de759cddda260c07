// What is there at the end? Reads every store from its first block to its last and every node's stream, and checks each
// entry.
import { decodeBlockData, itemDigest } from '../../core/chain/items.js';
import type { CommittedBlock, NodePort } from '../../core/ports.js';
import type { ChainBlock, FinalNode, FinalStore } from './history.js';

/** Opens a sequencer's store for reading. The caller of the lab decides how. */
export type OpenStore = (directory: string) => {
  range(from: number, to?: number): Iterable<CommittedBlock>;
  close(): Promise<void>;
};

const READ_AT_ONCE = 16;
const READ_LIMIT_MS = 10_000;

export async function readStore(
  who: string,
  directory: string,
  open: OpenStore,
): Promise<{ store: FinalStore; chain: ChainBlock[] }> {
  const reader = open(directory);
  try {
    const chain: ChainBlock[] = [];
    for (const block of reader.range(1)) chain.push(chainBlock(block));
    return { store: { who, blocks: chain.map(({ height, hash, parent }) => ({ height, hash, parent })) }, chain };
  } finally {
    await reader.close();
  }
}

function chainBlock({ height, hash, parent, epoch, data }: CommittedBlock): ChainBlock {
  const content = decodeBlockData(data);
  const items =
    content.format === 'items'
      ? content.items.map((item) => ({ token: tokenOf(item.data), digest: itemDigest(item.data) }))
      : [{ token: `(${content.format})`, digest: '' }];
  return { height, hash, parent, epoch, items };
}

/** The text before the first line end. */
function tokenOf(data: Uint8Array): string {
  const end = data.subarray(0, 100).indexOf(10);
  return Buffer.from(data.subarray(0, end < 0 ? 100 : end)).toString('latin1');
}

export async function readNode(node: NodePort, limitMs: number): Promise<FinalNode> {
  const final: FinalNode = {
    id: node.id,
    admission: 'unknown',
    floor: 0,
    head: 0,
    entries: [],
    damaged: 0,
    unread: '',
  };
  const reply = await patiently(() => node.call({ script: 'inspect' }, limitMs));
  if (reply.outcome !== 'accepted')
    return {
      ...final,
      unread: reply.outcome === 'unknown' ? `no answer: ${reply.cause}` : `it refused to be inspected: ${reply.reason}`,
    };
  const { admission, floor, head } = reply.value;
  Object.assign(final, { admission, floor, head });
  for (let from = floor + 1; from <= head;) {
    const start = from;
    const read = await patiently(() =>
      node.read({ from: start, to: head, limit: READ_AT_ONCE, data: true }, READ_LIMIT_MS),
    );
    if (read.outcome !== 'accepted')
      return {
        ...final,
        unread: `block ${from} could not be read: ${read.outcome === 'unknown' ? read.cause : read.reason}`,
      };
    final.damaged += read.value.damaged.length;
    for (const { height, hash, parent } of read.value.entries) final.entries.push({ height, hash, parent });
    const last = Math.max(
      ...read.value.entries.map(({ height }) => height),
      ...read.value.damaged.map(({ height }) => height ?? 0),
    );
    if (!(last >= from)) return { ...final, unread: `its stream ends at ${from - 1}, below its head ${head}` };
    from = last + 1;
  }
  return final;
}

/** Asks again when there is no answer: nothing else is running any more. */
async function patiently<T extends { outcome: string }>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const reply = await ask();
    if (reply.outcome === 'accepted' || attempt === 20) return reply;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
