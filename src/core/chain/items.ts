// The formats of a block's data (docs/PROTOCOL.md section 2). `seq/items/1` holds submitted items. `seq/exec/1` holds
// the keys that a child took, then the child's data. The layout lets the de-duplication window be rebuilt from blocks
// alone. Reading never throws: bytes that match neither format exactly are `malformed`.
import * as crypto from 'node:crypto';
import type { Item } from '../ports.js';

/** Longest key of an item, in bytes of UTF-8. Empty keys do not exist: key length 0 means an item without a key. */
export const MAX_KEY_BYTES = 256;

const ITEMS_TAG = Buffer.from('seq/items/1\0');
const EXEC_TAG = Buffer.from('seq/exec/1\0');
const DIGEST_BYTES = 32;
const EMPTY = new Uint8Array(0);

/**
 * An item that an exec child took into its block. The block keeps nothing else of it. `digest` is the SHA-256 of its
 * bytes, hex.
 */
export interface TakenItem {
  key?: string;
  digest: string;
}

export type BlockContent =
  /** Also the empty block: no bytes, no items. */
  | { format: 'items'; items: Item[] }
  /** `data` is what the child gave; the items' bytes are not in the block. */
  | { format: 'exec'; taken: TakenItem[]; data: Uint8Array }
  | { format: 'malformed'; why: string };

/**
 * A keyed item of a block. `index` counts from 0 over all items, with and without keys. `digest` is the SHA-256 of its
 * bytes, hex.
 */
export interface KeyedItem {
  key: string;
  digest: string;
  index: number;
}

/** SHA-256 as hex: what a receipt remembers of an item's bytes. */
export const itemDigest: (data: Uint8Array) => string =
  // The one-shot call is twice as fast for small items; early releases of Node 20 lack it.
  typeof crypto.hash === 'function'
    ? (data) => crypto.hash('sha256', data, 'hex')
    : (data) => crypto.createHash('sha256').update(data).digest('hex');

/** Says why this text cannot be an item's key. Null when it can: 1…256 bytes of printable text. */
export function keyProblem(key: string): string | null {
  if (key.length === 0) return 'a key is at least one character long';
  if (key.length > MAX_KEY_BYTES || Buffer.byteLength(key) > MAX_KEY_BYTES)
    return `a key is at most ${MAX_KEY_BYTES} bytes long`;
  // Control characters, line and paragraph separators and lone surrogates do not print. Lone surrogates do not survive
  // UTF-8 either.
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(key)) return 'a key is printable text';
  return null;
}

/** Bytes that one item takes inside `seq/items/1`. */
export function encodedItemSize(item: Item): number {
  const key = item.key === undefined ? 0 : Buffer.byteLength(item.key);
  return varintSize(key) + key + varintSize(item.data.length) + item.data.length;
}

/** Bytes that `seq/items/1` takes in addition to `count` items. */
export function itemsOverhead(count: number): number {
  return ITEMS_TAG.length + varintSize(count);
}

/**
 * No items give no bytes. Throws RangeError for a key that `keyProblem` refuses: the code that accepts items checks
 * keys first.
 */
export function encodeItems(items: readonly Item[]): Uint8Array {
  if (items.length === 0) return EMPTY;
  let size = itemsOverhead(items.length);
  for (const item of items) size += encodedItemSize(item);
  const out = Buffer.allocUnsafe(size);
  let at = writeVarint(out, ITEMS_TAG.copy(out), items.length);
  for (const item of items) {
    at = writeKey(out, at, item.key);
    at = writeVarint(out, at, item.data.length);
    out.set(item.data, at);
    at += item.data.length;
  }
  return out;
}

/**
 * The envelope around an exec child's data. No taken items and no data give no bytes. Throws RangeError like
 * `encodeItems`.
 */
export function encodeExec(taken: readonly TakenItem[], data: Uint8Array): Uint8Array {
  if (taken.length === 0 && data.length === 0) return EMPTY;
  const size = execOverhead(taken) + data.length;
  const out = Buffer.allocUnsafe(size);
  let at = writeVarint(out, EXEC_TAG.copy(out), taken.length);
  for (const item of taken) {
    at = writeKey(out, at, item.key);
    at += out.write(item.digest, at, DIGEST_BYTES, 'hex');
  }
  out.set(data, at);
  return out;
}

/** Bytes that the envelope takes in addition to the child's data. */
export function execOverhead(taken: readonly { key?: string }[]): number {
  let size = EXEC_TAG.length + varintSize(taken.length);
  for (const item of taken) {
    const key = item.key === undefined ? 0 : Buffer.byteLength(item.key);
    size += varintSize(key) + key + DIGEST_BYTES;
  }
  return size;
}

/** Reads a block's data. Items' bytes are views into `data`, not copies. */
export function decodeBlockData(data: Uint8Array): BlockContent {
  if (data.length === 0) return { format: 'items', items: [] };
  const bytes = asBuffer(data);
  try {
    if (startsWith(bytes, ITEMS_TAG)) return { format: 'items', items: readItems(bytes) };
    if (startsWith(bytes, EXEC_TAG)) return readExec(bytes);
    return { format: 'malformed', why: 'the data starts with no format that this version knows' };
  } catch (error) {
    if (error instanceof Malformed) return { format: 'malformed', why: error.message };
    throw error;
  }
}

/** Keyed items of a block with their digests; none when the data is malformed. */
export function keysOf(data: Uint8Array): KeyedItem[] {
  const content = decodeBlockData(data);
  const keyed: KeyedItem[] = [];
  if (content.format === 'items') {
    content.items.forEach((item, index) => {
      if (item.key !== undefined) keyed.push({ key: item.key, digest: itemDigest(item.data), index });
    });
  } else if (content.format === 'exec') {
    content.taken.forEach((item, index) => {
      if (item.key !== undefined) keyed.push({ key: item.key, digest: item.digest, index });
    });
  }
  return keyed;
}

/** Only the keys: cheaper than `keysOf` where no digest is needed. */
export function keyNamesOf(data: Uint8Array): string[] {
  const content = decodeBlockData(data);
  if (content.format === 'malformed') return [];
  const keys: string[] = [];
  for (const item of content.format === 'items' ? content.items : content.taken)
    if (item.key !== undefined) keys.push(item.key);
  return keys;
}

/** How many items a block holds (an exec child: how many it took). 0 when the data is malformed. */
export function itemCountOf(data: Uint8Array): number {
  const content = decodeBlockData(data);
  return content.format === 'items' ? content.items.length : content.format === 'exec' ? content.taken.length : 0;
}

class Malformed extends Error {}

interface Cursor {
  at: number;
}

function readItems(bytes: Buffer): Item[] {
  const cursor = { at: ITEMS_TAG.length };
  const count = readCount(bytes, cursor, 2);
  if (count === 0) throw new Malformed('a block without items has no data at all');
  const items: Item[] = new Array<Item>(count);
  for (let index = 0; index < count; index++) {
    const key = readKey(bytes, cursor);
    const length = readVarint(bytes, cursor);
    const data = take(bytes, cursor, length);
    items[index] = key === undefined ? { data } : { key, data };
  }
  if (cursor.at !== bytes.length) throw new Malformed(`${bytes.length - cursor.at} bytes follow the last item`);
  return items;
}

function readExec(bytes: Buffer): BlockContent {
  const cursor = { at: EXEC_TAG.length };
  const count = readCount(bytes, cursor, 1 + DIGEST_BYTES);
  const taken: TakenItem[] = new Array<TakenItem>(count);
  for (let index = 0; index < count; index++) {
    const key = readKey(bytes, cursor);
    const digest = take(bytes, cursor, DIGEST_BYTES).toString('hex');
    taken[index] = key === undefined ? { digest } : { key, digest };
  }
  const data = bytes.subarray(cursor.at);
  if (count === 0 && data.length === 0) throw new Malformed('a block without content has no data at all');
  return { format: 'exec', taken, data };
}

/** Refuses a count that the remaining bytes cannot hold. So a hostile block cannot cause a large allocation. */
function readCount(bytes: Buffer, cursor: Cursor, leastEach: number): number {
  const count = readVarint(bytes, cursor);
  if (count * leastEach > bytes.length - cursor.at)
    throw new Malformed(`${count} items do not fit into ${bytes.length} bytes`);
  return count;
}

function readKey(bytes: Buffer, cursor: Cursor): string | undefined {
  const length = readVarint(bytes, cursor);
  if (length === 0) return undefined;
  if (length > MAX_KEY_BYTES) throw new Malformed(`a key of ${length} bytes is longer than ${MAX_KEY_BYTES}`);
  const raw = take(bytes, cursor, length);
  let plain = true;
  for (let at = 0; at < length && plain; at++) plain = raw[at]! >= 0x20 && raw[at]! < 0x7f;
  if (plain) return raw.toString('latin1');
  const key = raw.toString('utf8');
  // Invalid UTF-8 is decoded with replacement characters, which would make two different keys equal.
  if (!Buffer.from(key).equals(raw)) throw new Malformed('a key is not UTF-8');
  const problem = keyProblem(key);
  if (problem !== null) throw new Malformed(problem);
  return key;
}

function take(bytes: Buffer, cursor: Cursor, length: number): Buffer {
  const end = cursor.at + length;
  if (end > bytes.length) throw new Malformed('the data ends inside an item');
  const part = bytes.subarray(cursor.at, end);
  cursor.at = end;
  return part;
}

/** Unsigned LEB128 below 2^32, in its shortest form only, so that each content has one encoding. */
function readVarint(bytes: Buffer, cursor: Cursor): number {
  let value = 0;
  for (let shift = 0; shift < 5; shift++) {
    const byte = bytes[cursor.at++];
    if (byte === undefined) throw new Malformed('the data ends inside a number');
    value += (byte & 0x7f) * 2 ** (7 * shift);
    if (byte < 0x80) {
      if (byte === 0 && shift > 0) throw new Malformed('a number is not in its shortest form');
      if (value > 0xffffffff) break;
      return value;
    }
  }
  throw new Malformed('a number is too large');
}

function writeVarint(out: Buffer, at: number, value: number): number {
  while (value >= 0x80) {
    out[at++] = (value % 0x80) | 0x80;
    value = Math.floor(value / 0x80);
  }
  out[at++] = value;
  return at;
}

function varintSize(value: number): number {
  let size = 1;
  for (; value >= 0x80; value = Math.floor(value / 0x80)) size++;
  return size;
}

function writeKey(out: Buffer, at: number, key: string | undefined): number {
  if (key === undefined) return writeVarint(out, at, 0);
  const problem = keyProblem(key);
  if (problem !== null) throw new RangeError(problem);
  at = writeVarint(out, at, Buffer.byteLength(key));
  return at + out.write(key, at);
}

function startsWith(bytes: Buffer, tag: Buffer): boolean {
  return bytes.length >= tag.length && bytes.compare(tag, 0, tag.length, 0, tag.length) === 0;
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
