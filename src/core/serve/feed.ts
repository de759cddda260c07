// Committed blocks as JSON: the block at one height, or a live feed of lines (I10: only committed blocks). A feed holds
// at most one encoded block beside the buffers of its socket. The next block is read when the reader has taken the last
// one.
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { CommittedBlock, SequencerApi } from '../ports.js';
import { envelope, failureFrom } from './envelope.js';

export function blockLine(block: CommittedBlock): string {
  const { data } = block;
  const base64 = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  // All fields are digits, hex or base64 and need no escaping. So a template is exact, and saves a copy.
  const { height, hash, parent, timestamp, epoch } = block;
  return (
    `{"height":${height},"hash":"${hash}","parent":"${parent}",` +
    `"timestamp":${timestamp},"epoch":${epoch},"data":"${base64}"}`
  );
}

export interface FeedOptions {
  from: number;
  /** Ends after this height. Without it the feed is live. */
  to?: number;
  /** A reader that takes nothing for this long is dropped. */
  stallMs: number;
  /** Aborted when the server closes. */
  signal: AbortSignal;
}

/**
 * Writes the feed until its end, the reader's end or the server's. Resolves when the response is finished; rejects
 * only before its first byte.
 */
export async function writeFeed(api: SequencerApi, response: ServerResponse, options: FeedOptions): Promise<void> {
  const gone = new AbortController();
  const stop = () => gone.abort();
  response.once('close', stop);
  options.signal.addEventListener('abort', stop, { once: true });
  if (options.signal.aborted) stop();
  const start = () => {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' });
    response.flushHeaders();
  };
  const blocks = api.follow(options.from, gone.signal)[Symbol.asyncIterator]();
  try {
    // The first block may be refused (below the store), and that must become a status. So wait for it, unless it does
    // not exist yet.
    let next = blocks.next();
    if (options.from > api.status().height) {
      next.catch(() => {});
      start();
    }
    while (!gone.signal.aborted) {
      const { done, value } = await next;
      if (done || gone.signal.aborted) break;
      start();
      if (!response.write(`${blockLine(value)}\n`)) await drained(response, options.stallMs, gone.signal);
      if (options.to !== undefined && value.height >= options.to) break;
      next = blocks.next();
    }
    start();
  } catch (error) {
    if (!response.headersSent && !gone.signal.aborted) throw error;
    if (!gone.signal.aborted) response.write(`${JSON.stringify(envelope(failureFrom(error)))}\n`);
  } finally {
    options.signal.removeEventListener('abort', stop);
    stop();
    // Not awaited: a source that hangs while it cleans up must not keep the response open.
    void Promise.resolve(blocks.return?.()).catch(() => {});
    if (response.headersSent) response.end();
  }
}

async function drained(response: ServerResponse, stallMs: number, signal: AbortSignal): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(stallMs)]);
  try {
    await once(response, 'drain', { signal: limit });
  } catch {
    // The reader takes no data, so a clean end would not reach it either.
    if (!signal.aborted) response.destroy();
  }
}
