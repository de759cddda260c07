// Reads committed blocks that the nodes still hold, in order, in batches of bounded size (docs/PROTOCOL.md sections 7
// and 9). One node gives the payloads. Their hashes and parent links are checked. Before any block of a batch is handed
// out, the other nodes must prove its last block. The links then prove the rest. So an orphan at a lagging node's head
// is never handed out.
import { EXIT, SeqError } from '../errors.js';
import { quorumOf } from '../config.js';
import type { CommittedBlock, NodePort } from '../ports.js';
import type { Accepted, EntriesRead, Entry, Hash, Height, NodeReply, NodeView } from '../protocol/types.js';
import { askAll, bounded } from '../nodes/ask-all.js';
import type { TailContext } from './tail-context.js';

/**
 * Payload bytes that a batch aims at, and the largest number of blocks in one batch. Memory stays near the first
 * number, as long as block sizes stay near those of the last batch.
 */
const BATCH_BYTES = 2 * 1024 * 1024;
const MOST_BLOCKS = 64;
/** Speed at which payloads are expected to move. Their time comes on top of the node timeout. */
const BYTES_PER_MS = 50_000;

export interface RetainedNode {
  port: NodePort;
  view: NodeView;
}

export interface RetainedRange {
  from: Height;
  to: Height;
  /** Hash of block from − 1 when it is known. The first block must name it as its parent. */
  parent: Hash | null;
  committed: { height: Height; hash: Hash | null };
}

/**
 * Yields from…to. It ends early when no node has the next block (it was trimmed meanwhile, or all such nodes went
 * away). The caller sees that by the height.
 */
export async function* readRetained(
  context: TailContext,
  nodes: RetainedNode[],
  range: RetainedRange,
): AsyncGenerator<CommittedBlock> {
  let next = range.from;
  let parent = range.parent;
  let limit = 8;
  let preferred = 0;
  let failures = 0;
  while (next <= range.to && failures < nodes.length && !context.signal?.aborted) {
    const node = nodes[preferred % nodes.length] as RetainedNode;
    const batch = await readBatch(context, node, next, Math.min(range.to, next + limit - 1), parent);
    const proven = batch.length === 0 ? 0 : await provenCount(context, nodes, node, batch, range.committed);
    if (proven === 0) {
      preferred += 1;
      failures += 1;
      continue;
    }
    failures = 0;
    let largest = 1;
    for (const entry of batch.slice(0, proven)) {
      largest = Math.max(largest, entry.size);
      parent = entry.hash;
      next = entry.height + 1;
      yield {
        height: entry.height,
        hash: entry.hash,
        parent: entry.parent,
        timestamp: entry.timestamp,
        epoch: entry.epoch,
        data: entry.data as Uint8Array,
      };
    }
    limit = Math.max(1, Math.min(MOST_BLOCKS, Math.floor(BATCH_BYTES / largest)));
  }
}

/** The unbroken, linked run of entries that this node has from `from` on. */
async function readBatch(
  context: TailContext,
  node: RetainedNode,
  from: Height,
  to: Height,
  parent: Hash | null,
): Promise<Entry[]> {
  const limitMs = context.limitMs + Math.ceil((16 * 1024 * 1024) / BYTES_PER_MS);
  const read = await bounded(
    node.port.read({ from, to, limit: to - from + 1, data: true }, limitMs),
    limitMs,
    context.clock,
  );
  if (!isOfNode(read, node)) return [];
  const run: Entry[] = [];
  let expected = parent;
  for (const entry of read.value.entries) {
    if (entry.height !== from + run.length || entry.data === undefined) break;
    if (expected !== null && entry.parent !== expected) {
      // A broken link inside one node's run is damage. A first block that contradicts what another node proved is a
      // conflict, unless it is only an uncommitted head.
      if (run.length === 0 && entry.height < node.view.head)
        throw conflict(entry.height - 1, expected, [node.port.id], entry.parent);
      break;
    }
    run.push(entry);
    expected = entry.hash;
  }
  return run;
}

/** Whether the memory that answered is the one that the probe has shown. The connections may reach two servers. */
function isOfNode(read: NodeReply<EntriesRead>, { view }: RetainedNode): read is Accepted<EntriesRead> {
  return read.outcome === 'accepted' && read.incarnation === view.incarnation;
}

/**
 * How many blocks of the batch, from its start, are proven committed.
 *
 * Copies are counted by hash alone, also at the committed head. Copies of different epochs prove nothing about a height
 * that is still open. But a quorum, or an entry on top, had settled this height before any of these reads was sent.
 * From then on q nodes hold the committed block, under whatever epoch, and give it up for no other (I4). So fewer than
 * q nodes can hold another block there, and q copies are copies of the committed one.
 */
async function provenCount(
  context: TailContext,
  nodes: RetainedNode[],
  source: RetainedNode,
  batch: Entry[],
  committed: RetainedRange['committed'],
): Promise<number> {
  const last = batch.at(-1) as Entry;
  // An entry on top proves the one below it (I5). So the batch itself proves all its blocks except the last.
  if (last.height > committed.height) return batch.filter((e) => e.height <= committed.height).length;
  if (last.height === committed.height && committed.hash !== null)
    return last.hash === committed.hash ? batch.length : batch.length - 1;
  const others = nodes.filter((n) => n !== source);
  const limitMs = context.limitMs;
  const reads = await askAll(
    others,
    (n) => n.port.read({ from: last.height, to: last.height + 1, limit: 2, data: false }, limitMs),
    context,
  );
  let copies = 1;
  let successor = last.height < source.view.head;
  reads.forEach((read, at) => {
    if (!isOfNode(read, others[at] as RetainedNode)) return;
    const here = read.value.entries.find((e) => e.height === last.height);
    const above = read.value.entries.find((e) => e.height === last.height + 1);
    const other = (others[at] as RetainedNode).port.id;
    if (above !== undefined && above.parent !== last.hash)
      throw conflict(last.height, last.hash, [source.port.id, other], above.parent);
    if (above !== undefined) successor = true;
    if (here?.hash === last.hash) copies += 1;
  });
  return successor || copies >= quorumOf(context.configured) ? batch.length : batch.length - 1;
}

function conflict(height: Height, one: Hash, nodes: string[], other: Hash): SeqError {
  return new SeqError({
    code: 'CONFLICT',
    exit: EXIT.data,
    message:
      `height ${height}: two blocks are proven committed, ${one.slice(0, 12)} and ` +
      `${other.slice(0, 12)} (${nodes.join(', ')})`,
    why: 'I4 is broken: an entry was tampered with, or a node was given data of another life',
    changed: 'nothing',
    next: [`seq stream inspect --from ${height} --to ${height}`, 'seq stream verify'],
  });
}
