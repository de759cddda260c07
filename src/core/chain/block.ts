// What does a block contain, and what is its hash? The hash covers everything in which two blocks can differ
// (docs/PROTOCOL.md section 2). So everywhere else, "the same hash" means "the same block".
import crypto, { createHash } from 'node:crypto';
import type { Block, Hash } from '../protocol/types.js';

const BLOCK_TAG = Buffer.from('seq/block/1\0');
const GENESIS_TAG = Buffer.from('seq/genesis/1\0');

/**
 * Tag, height, parent, timestamp, digest of the data. One buffer serves every block, because a commit waits for its
 * hash.
 */
const HEAD = Buffer.alloc(BLOCK_TAG.length + 8 + 32 + 8 + 32);
BLOCK_TAG.copy(HEAD);

/** The one-shot hash (from Node 20.12 on) needs no stream object. For a small block it costs half as much. */
const sha256: (bytes: Uint8Array) => string =
  typeof crypto.hash === 'function'
    ? (bytes) => crypto.hash('sha256', bytes, 'hex')
    : (bytes) => createHash('sha256').update(bytes).digest('hex');

/** SHA-256("seq/block/1" 0x00 ‖ height u64be ‖ parent ‖ timestamp u64be ‖ SHA-256(data)), as 64 hex digits. */
export function blockHash(block: Omit<Block, 'hash'>): Hash {
  const at = writeHead(block);
  HEAD.write(sha256(block.data), at, 32, 'hex');
  return sha256(HEAD);
}

/** As `blockHash`, for a caller that has only the SHA-256 of the data. */
export function blockHashOf(block: Omit<Block, 'hash' | 'data'>, dataDigest: Uint8Array): Hash {
  const head = HEAD.subarray(0, writeHead(block));
  return createHash('sha256').update(head).update(dataDigest).digest('hex');
}

function writeHead({ height, parent, timestamp }: Omit<Block, 'hash' | 'data'>): number {
  const parentAt = writeU64(height, BLOCK_TAG.length);
  // `write` stops at text that is not hex. Clear the rest, so that no bytes of the previous block stay in the buffer.
  const written = HEAD.write(parent, parentAt, 32, 'hex');
  if (written < 32) HEAD.fill(0, parentAt + written, parentAt + 32);
  return writeU64(timestamp, parentAt + 32);
}

function writeU64(value: number, at: number): number {
  const high = Math.floor(value / 0x1_0000_0000);
  HEAD.writeUInt32BE(high, at);
  return HEAD.writeUInt32BE(value - high * 0x1_0000_0000, at + 4);
}

/** The parent of block 1. It depends on the cluster and the lane, so that chains of two clusters never link. */
export function genesisHash(clusterId: string, lane: string): Hash {
  return createHash('sha256').update(GENESIS_TAG).update(clusterId).update('\0').update(lane).digest('hex');
}

/** Builds a block and computes its hash. */
export function makeBlock(parts: Omit<Block, 'hash'>): Block {
  return { ...parts, hash: blockHash(parts) };
}
