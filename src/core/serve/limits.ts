// The sizes that the HTTP interface accepts, so that no caller can grow the memory without a bound. `/v1/status`
// publishes them as `limits`, and `seq submit` cuts its batches to them.
import { MAX_KEY_BYTES } from '../chain/items.js';
import { MIB } from '../config.js';

export { MAX_KEY_BYTES };

/** Bytes of a block kept free for its framing: version tag, item count, the length prefixes of one item. */
const BLOCK_FRAMING_BYTES = 64;

export interface HttpLimits {
  maxBlockBytes: number;
  /** Most lines in one NDJSON request. */
  maxBatchItems: number;
  /** Largest request body, bytes. */
  maxBodyBytes: number;
  /** Bytes of request bodies that the whole server holds at once. A request beyond it is answered 503. */
  maxHeldBytes: number;
  /** Most live feeds at once. Each feed may hold one encoded block and the buffers of its socket. */
  maxFeeds: number;
}

export function httpLimits(maxBlockBytes: number): HttpLimits {
  // An item of the largest size must fit even when JSON escapes double it, with its key and braces.
  const maxBodyBytes = Math.max(4 * MIB, 2 * maxBlockBytes + 64 * 1024);
  return {
    maxBlockBytes,
    maxBatchItems: 20_000,
    maxBodyBytes,
    maxHeldBytes: Math.max(32 * MIB, 2 * maxBodyBytes),
    maxFeeds: Math.max(4, Math.min(64, Math.floor((256 * MIB) / (3 * maxBlockBytes)))),
  };
}

/** The largest item that fits into one block with a key of that many bytes. */
export function maxItemBytes(maxBlockBytes: number, keyBytes: number): number {
  return Math.max(0, maxBlockBytes - BLOCK_FRAMING_BYTES - keyBytes);
}
