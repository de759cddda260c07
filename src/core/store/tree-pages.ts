// Checks the pages of an LMDB file before LMDB walks over them. LMDB trusts what a page says of its own content and of
// other pages. One changed bit there ends the process (segmentation fault) without a sentence. The levels of every
// tree are checked from the root down. So a small store is checked as a whole, and of a large one what every read
// needs. The content of blocks is proven by their hashes (proven.ts).
import { readSync } from 'node:fs';

/** The head of a tree: MDB_db. */
interface TreeHead {
  root: bigint;
  depth: number;
}
export interface Snapshot {
  pageSize: number;
  lastPage: bigint;
  txnid: bigint;
  /** The tree of free pages, and the tree that names the others. */
  trees: TreeHead[];
}

// A page header (24 bytes): number, transaction, pad, flags, lower, upper. Offsets of nodes count from behind it.
const PAGE_HEADER = 24;
const AT = { txnid: 8, flags: 18, lower: 20, upper: 22 };
const BRANCH = 0x01;
const LEAF = 0x02;
const KIND = 0x7f;
// A node: two words of size or page number, flags, key size, key, data.
const NODE_HEADER = 8;
const BIG_DATA = 0x01;
const SUB_TREE = 0x02;
const TREE_BYTES = 48;
const BIG_BYTES = 24;
export const NO_ROOT = 0xffff_ffff_ffff_ffffn;
/** LMDB's own limit. */
const DEEPEST = 32;
/** At every start: 64 MiB of 4 KiB pages, some tenths of a second. */
export const MOST_PAGES = 16_384;

interface Visit {
  page: bigint;
  /** Levels from here down to the leaves, with this one. */
  levels: number;
}

/** '' when nothing is wrong with the pages that were looked at. Otherwise what is. */
export function damagedPage(fd: number, snapshot: Snapshot, mostPages: number): string {
  const queue: Visit[] = [];
  const seen = new Set<bigint>();
  const grown = ({ root, depth }: TreeHead): string => {
    if (root === NO_ROOT) return '';
    if (root < 2n || root > snapshot.lastPage) return `a tree begins at page ${root} of ${snapshot.lastPage}`;
    if (depth < 1 || depth > DEEPEST) return `a tree of ${depth} levels begins at page ${root}`;
    queue.push({ page: root, levels: depth });
    return '';
  };
  for (const tree of snapshot.trees) {
    const wrong = grown(tree);
    if (wrong !== '') return wrong;
  }
  const bytes = Buffer.alloc(snapshot.pageSize);
  for (let at = 0; at < queue.length && at < mostPages; at++) {
    const { page, levels } = queue[at]!;
    if (seen.has(page)) return `page ${page} is in two places`;
    seen.add(page);
    const wrong =
      pageIsWrong(fd, bytes, queue[at]!, snapshot) || nodesAreWrong(bytes, levels, { snapshot, queue, grown });
    if (wrong !== '') return `page ${page}: ${wrong}`;
  }
  return '';
}

function pageIsWrong(fd: number, bytes: Buffer, { page, levels }: Visit, { txnid }: Snapshot): string {
  if (readSync(fd, bytes, 0, bytes.length, Number(page) * bytes.length) < bytes.length) return 'it is cut off';
  if (bytes.readBigUInt64LE(0) !== page) return `it says that it is page ${bytes.readBigUInt64LE(0)}`;
  if (bytes.readBigUInt64LE(AT.txnid) > txnid) return 'a later transaction wrote it';
  const kind = bytes.readUInt16LE(AT.flags) & KIND;
  if (kind !== (levels > 1 ? BRANCH : LEAF)) return `its kind is ${kind}, ${levels} levels above the end of its tree`;
  const [lower, upper] = [bytes.readUInt16LE(AT.lower), bytes.readUInt16LE(AT.upper)];
  if (lower % 2 !== 0 || lower === 0 || lower > upper || PAGE_HEADER + upper > bytes.length)
    return `its free space is from ${lower} to ${upper}`;
  return '';
}

interface Walk {
  snapshot: Snapshot;
  queue: Visit[];
  grown(tree: TreeHead): string;
}

function nodesAreWrong(bytes: Buffer, levels: number, walk: Walk): string {
  const count = bytes.readUInt16LE(AT.lower) / 2;
  const spans: { start: number; end: number }[] = [];
  for (let at = 0; at < count; at++) {
    const start = PAGE_HEADER + bytes.readUInt16LE(PAGE_HEADER + 2 * at);
    if (start + NODE_HEADER > bytes.length) return `node ${at} is outside of it`;
    const data = start + NODE_HEADER + bytes.readUInt16LE(start + 6);
    if (data > bytes.length) return `the key of node ${at} is outside of it`;
    const wrong = levels > 1 ? branchIsWrong(bytes, start, levels, walk) : leafIsWrong(bytes, start, data, walk);
    if (wrong !== '') return `node ${at}: ${wrong}`;
    const end = levels > 1 ? data : data + dataInPage(bytes, start);
    spans.push({ start, end: end + (end % 2) });
  }
  return gapBetween(spans, PAGE_HEADER + bytes.readUInt16LE(AT.upper), bytes.length);
}

/** LMDB leaves no gap between the nodes of a page, from the free space to its end. */
function gapBetween(spans: { start: number; end: number }[], from: number, to: number): string {
  let at = from;
  for (const { start, end } of spans.sort((a, b) => a.start - b.start)) {
    if (start !== at) return `its nodes do not fill it: one begins at ${start}, and the last one ended at ${at}`;
    at = end;
  }
  return at === to ? '' : `its nodes end at ${at} of ${to}`;
}

function dataInPage(bytes: Buffer, start: number): number {
  return bytes.readUInt16LE(start + 4) === BIG_DATA ? BIG_BYTES : bytes.readUInt32LE(start);
}

function branchIsWrong(bytes: Buffer, start: number, levels: number, { snapshot, queue }: Walk): string {
  const child = BigInt(bytes.readUInt32LE(start)) + (BigInt(bytes.readUInt16LE(start + 4)) << 32n);
  if (child < 2n || child > snapshot.lastPage) return `it leads to page ${child} of ${snapshot.lastPage}`;
  queue.push({ page: child, levels: levels - 1 });
  return '';
}

function leafIsWrong(bytes: Buffer, start: number, data: number, { snapshot, grown }: Walk): string {
  const size = bytes.readUInt32LE(start);
  const flags = bytes.readUInt16LE(start + 4);
  const room = bytes.length - data;
  if (flags === 0) return size > room ? `its ${size} bytes are outside of the page` : '';
  if (flags === SUB_TREE) {
    if (size !== TREE_BYTES || size > room) return 'it is no head of a tree';
    return grown({ root: bytes.readBigUInt64LE(data + 40), depth: bytes.readUInt16LE(data + 6) });
  }
  if (flags !== BIG_DATA) return `its flags are ${flags}`;
  if (room < BIG_BYTES) return 'it is cut off';
  const [first, pages] = [bytes.readBigUInt64LE(data), bytes.readBigUInt64LE(data + 16)];
  if (first < 2n || pages < 1n || first + pages - 1n > snapshot.lastPage) return `its data is at page ${first}`;
  const needed = BigInt(Math.ceil((PAGE_HEADER + size) / bytes.length));
  return needed > pages ? `its ${size} bytes are in ${pages} pages` : '';
}
