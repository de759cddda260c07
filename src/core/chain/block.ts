// The content of a block and its name. The hash covers everything that makes two blocks different (docs/PROTOCOL.md section 2),
// so that "the same hash" may stand for "the same block" everywhere else.
import { createHash } from 'node:crypto';
import type { Block, Hash } from '../protocol/words.js';

const BLOCK_TAG = Buffer.from('seq/block/1\0');
const GENESIS_TAG = Buffer.from('seq/genesis/1\0');

/** SHA-256("seq/block/1" 0x00 ‖ height u64be ‖ parent ‖ timestamp u64be ‖ SHA-256(data)), as 64 hex digits. */
export function blockHash(block: Omit<Block, 'hash'>): Hash {
  return blockHashOf(block, createHash('sha256').update(block.data).digest());
}

/** The same where only the SHA-256 of the data is at hand. */
export function blockHashOf(block: Omit<Block, 'hash' | 'data'>, dataDigest: Uint8Array): Hash {
  const head = Buffer.allocUnsafe(BLOCK_TAG.length + 8 + 32 + 8);
  let at = BLOCK_TAG.copy(head);
  at = head.writeBigUInt64BE(BigInt(block.height), at);
  at += head.write(block.parent, at, 32, 'hex');
  head.writeBigUInt64BE(BigInt(block.timestamp), at);
  return createHash('sha256').update(head).update(dataDigest).digest('hex');
}

/** The parent of block 1: a cluster and lane of their own, so that chains of two clusters never link. */
export function genesisHash(clusterId: string, lane: string): Hash {
  return createHash('sha256').update(GENESIS_TAG).update(clusterId).update('\0').update(lane).digest('hex');
}

/** Builds a block and names it. */
export function makeBlock(parts: Omit<Block, 'hash'>): Block {
  return { ...parts, hash: blockHash(parts) };
}
