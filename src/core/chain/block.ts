// The content of a block and its name. The hash covers everything that makes two blocks different (docs/PROTOCOL.md
// section 2), so that "the same hash" may stand for "the same block" everywhere else.
import crypto, { createHash } from 'node:crypto';
import type { Block, Hash } from '../protocol/types.js';

const BLOCK_TAG = Buffer.from('seq/block/1\0');
const GENESIS_TAG = Buffer.from('seq/genesis/1\0');

/**
 * Tag, height, parent, timestamp, digest of the data: filled in anew for every block, for a commit waits for its
 * hash.
 */
const HEAD = Buffer.alloc(BLOCK_TAG.length + 8 + 32 + 8 + 32);
BLOCK_TAG.copy(HEAD);

/** From Node 20.12 on without a stream's machinery, at half the cost for a small block. */
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

/** The same where only the SHA-256 of the data is at hand. */
export function blockHashOf(block: Omit<Block, 'hash' | 'data'>, dataDigest: Uint8Array): Hash {
  const head = HEAD.subarray(0, writeHead(block));
  return createHash('sha256').update(head).update(dataDigest).digest('hex');
}

function writeHead({ height, parent, timestamp }: Omit<Block, 'hash' | 'data'>): number {
  const parentAt = writeU64(height, BLOCK_TAG.length);
  // What is no hash stands for nothing, and never for what stood there before.
  const written = HEAD.write(parent, parentAt, 32, 'hex');
  if (written < 32) HEAD.fill(0, parentAt + written, parentAt + 32);
  return writeU64(timestamp, parentAt + 32);
}

function writeU64(value: number, at: number): number {
  const high = Math.floor(value / 0x1_0000_0000);
  HEAD.writeUInt32BE(high, at);
  return HEAD.writeUInt32BE(value - high * 0x1_0000_0000, at + 4);
}

/** The parent of block 1: a cluster and lane of their own, so that chains of two clusters never link. */
export function genesisHash(clusterId: string, lane: string): Hash {
  return createHash('sha256').update(GENESIS_TAG).update(clusterId).update('\0').update(lane).digest('hex');
}

/** Builds a block and names it. */
export function makeBlock(parts: Omit<Block, 'hash'>): Block {
  return { ...parts, hash: blockHash(parts) };
}
