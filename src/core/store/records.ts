// The layout of the store's small records on disk: header, receipt, window. Widths are fixed and big-endian: keys sort
// by height, and a record of another length is damaged. Nothing here reads or writes the disk.
import type { CommittedBlock, Receipt } from '../ports.js';
import type { Height } from '../protocol/types.js';

/** Grows when the layout changes so that an older version would misread it. */
export const FORMAT_VERSION = 1;

/** A block without its payload, as the store keeps it. */
export interface StoredHeader extends Omit<CommittedBlock, 'data'> {
  size: number;
  /** Items of the block that carry a key: what the de-duplication window counts. */
  keyed: number;
}

export interface StoredReceipt extends Receipt {
  /** SHA-256 of the item's bytes, hex. */
  digest: string;
}

/** The range of the de-duplication window. */
export interface KeyWindow {
  /** Keys of blocks below this height are outside the window, whether or not they are still on disk. */
  from: Height;
  /** Keyed items in blocks from…head. */
  keyed: number;
  /** Keys of blocks up to this height have been removed from disk. */
  prunedTo: Height;
}

const HEADER_BYTES = 88;
const RECEIPT_BYTES = 52;

export function heightKey(height: Height): Buffer {
  const key = Buffer.allocUnsafe(8);
  key.writeBigUInt64BE(BigInt(height));
  return key;
}

export function heightOfKey(key: Uint8Array): Height {
  return Number(Buffer.from(key.buffer, key.byteOffset, key.byteLength).readBigUInt64BE());
}

export function encodeHeader(header: StoredHeader): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES);
  out.write(header.hash, 0, 32, 'hex');
  out.write(header.parent, 32, 32, 'hex');
  out.writeBigUInt64BE(BigInt(header.timestamp), 64);
  out.writeBigUInt64BE(BigInt(header.epoch), 72);
  out.writeUInt32BE(header.size, 80);
  out.writeUInt32BE(header.keyed, 84);
  return out;
}

/** undefined when the bytes are not a header. */
export function decodeHeader(height: Height, bytes: Buffer): StoredHeader | undefined {
  if (bytes.length !== HEADER_BYTES) return undefined;
  return {
    height,
    hash: bytes.toString('hex', 0, 32),
    parent: bytes.toString('hex', 32, 64),
    timestamp: Number(bytes.readBigUInt64BE(64)),
    epoch: Number(bytes.readBigUInt64BE(72)),
    size: bytes.readUInt32BE(80),
    keyed: bytes.readUInt32BE(84),
  };
}

export function encodeReceipt(receipt: StoredReceipt): Buffer {
  const out = Buffer.allocUnsafe(RECEIPT_BYTES);
  out.writeBigUInt64BE(BigInt(receipt.height), 0);
  out.writeBigUInt64BE(BigInt(receipt.epoch), 8);
  out.writeUInt32BE(receipt.index, 16);
  out.write(receipt.digest, 20, 32, 'hex');
  return out;
}

/** undefined when the bytes are not a receipt. */
export function decodeReceipt(bytes: Buffer): StoredReceipt | undefined {
  if (bytes.length !== RECEIPT_BYTES) return undefined;
  return {
    height: Number(bytes.readBigUInt64BE(0)),
    epoch: Number(bytes.readBigUInt64BE(8)),
    index: bytes.readUInt32BE(16),
    digest: bytes.toString('hex', 20, 52),
  };
}
