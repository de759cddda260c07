// Reads committed blocks below the nodes' retained range from another sequencer's feed (docs/PROTOCOL.md section 7).
// The feed is proven, not believed. Every block's hash is recomputed, and its parent link is followed from a block
// that the caller has (`after`). The caller may know the last block of the range from the nodes (`anchor`). Then no
// block is handed out before the chain has reached it. Without an end (`to`) the feed is live: it ends when the
// peer ends it. No hash covers the epoch: that is only the peer's claim.
// Memory: 32 bytes a block while proving, and at most `keepBytes` of payload.
import type { IncomingMessage } from 'node:http';
import { blockHash } from '../chain/block.js';
import { MAX_BLOCK_BYTES } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import { errorWord, inBetween, parseObject } from '../http-answer.js';
import { openRequest, targetOf, type ClientTls } from '../http-call.js';
import type { CommittedBlock } from '../ports.js';
import type { Hash, Height } from '../protocol/types.js';

export interface PeerRange {
  /** Base URL of the peer's HTTP server. */
  url: string;
  /**
   * The block before the first wanted one. For the whole chain: height 0 with the genesis hash. `null`: its hash is not
   * known, and the first block is taken with the parent that it names.
   */
  after: { height: Height; hash: Hash | null };
  /** Last wanted height. The peer must have it. Without it the feed is live, and blocks come as they are committed. */
  to?: Height;
  /** The proven hash of block `to`. Without it the links are checked, but a peer could have made up the whole range. */
  anchor?: Hash;
  token?: string;
  tls?: ClientTls;
  signal: AbortSignal;
  /** Time limit to connect, and between two blocks. */
  idleMs?: number;
  /** Payload bytes kept while proving. A longer range is fetched a second time and compared with the proven hashes. */
  keepBytes?: number;
}

/**
 * The largest number of blocks proven in one call: 32 MiB of hashes. Without an anchor, ask for longer ranges piece by
 * piece.
 */
const MAX_PROVEN_BLOCKS = 1_048_576;
const MAX_OTHER_BYTES = 64 * 1024;
const MAX_LINE_BYTES = Math.ceil(MAX_BLOCK_BYTES / 3) * 4 + 1024;

type Failure = 'PEER_UNREACHABLE' | 'PEER_LACKS_BLOCKS' | 'PEER_SPOKE_GARBAGE' | 'CHAIN_MISMATCH';

function peerError(url: string, code: Failure, message: string, why: string): SeqError {
  const exit = code === 'PEER_LACKS_BLOCKS' ? EXIT.notFound : code === 'PEER_UNREACHABLE' ? EXIT.tryAgain : EXIT.data;
  return new SeqError({
    code,
    exit,
    message: `peer ${new URL(url).host}: ${message}`,
    why,
    changed: 'nothing',
    retryable: code === 'PEER_UNREACHABLE',
    next:
      code === 'CHAIN_MISMATCH'
        ? ['compare the two: seq stream verify', 'do not use this peer before its chain is understood']
        : ['ask another peer (--peer URL)'],
  });
}

/**
 * Blocks after.height+1 … to, in order, each verified. Throws SeqError (CHAIN_MISMATCH, PEER_LACKS_BLOCKS,
 * PEER_UNREACHABLE, PEER_SPOKE_GARBAGE).
 */
export async function* fetchFromPeer(range: PeerRange): AsyncGenerator<CommittedBlock> {
  const target = targetOf(range.url, '/v1/blocks');
  if (typeof target === 'string')
    throw new SeqError({
      code: 'PEER_URL',
      exit: EXIT.config,
      message: `--peer: ${target}`,
      why: 'a peer is the HTTP address of a sequencer',
      changed: 'nothing',
      next: ['--peer http://HOST:PORT'],
    });
  const { to } = range;
  if (to === undefined || range.anchor === undefined) {
    if (to === undefined || to > range.after.height) yield* linked(range, range.after, to);
    return;
  }
  const count = to - range.after.height;
  if (count <= 0) return;
  if (count > MAX_PROVEN_BLOCKS)
    throw new SeqError({
      code: 'RANGE_TOO_LONG',
      exit: EXIT.data,
      message: `${count} blocks cannot be proven in one go`,
      why: `at most ${MAX_PROVEN_BLOCKS} at a time`,
      changed: 'nothing',
      next: ['copy the store of another sequencer instead'],
    });

  const proven = Buffer.alloc(count * 32);
  const keepBytes = range.keepBytes ?? 64 * 1024 * 1024;
  let kept: CommittedBlock[] | null = [];
  let bytes = 0;
  let last = range.after.hash;
  for await (const block of linked(range, range.after, to)) {
    proven.write(block.hash, (block.height - range.after.height - 1) * 32, 'hex');
    last = block.hash;
    bytes += block.data.length + 256;
    if (kept && bytes > keepBytes) kept = null;
    kept?.push(block);
  }
  if (last !== range.anchor)
    throw peerError(
      range.url,
      'CHAIN_MISMATCH',
      `its block ${to} is ${last?.slice(0, 12)}…, not ${range.anchor.slice(0, 12)}…`,
      'the nodes prove another block at that height',
    );
  if (kept) {
    yield* kept;
    return;
  }
  for await (const block of linked(range, range.after, to)) {
    const at = (block.height - range.after.height - 1) * 32;
    if (proven.toString('hex', at, at + 32) !== block.hash)
      throw peerError(
        range.url,
        'CHAIN_MISMATCH',
        `its block ${block.height} is not the one it showed before`,
        'a feed never changes',
      );
    yield block;
  }
}

/** Reads the feed once. Every block must have the right height, the right parent and the right hash. */
async function* linked(
  range: PeerRange,
  after: PeerRange['after'],
  to: Height | undefined,
): AsyncGenerator<CommittedBlock> {
  let { height, hash } = after;
  for await (const line of feedLines(range, after.height + 1, to)) {
    const block = blockOf(line);
    if (!block) {
      const error = errorWord(parseObject(line));
      if (error)
        throw peerError(
          range.url,
          'PEER_LACKS_BLOCKS',
          `its feed ended after block ${height}: ${error.message}`,
          error.why,
        );
      throw peerError(
        range.url,
        'PEER_SPOKE_GARBAGE',
        `a line after block ${height} is not a block`,
        'it is no sequencer, or one of another version',
      );
    }
    if (block.height !== height + 1)
      throw peerError(
        range.url,
        'CHAIN_MISMATCH',
        `block ${block.height} follows block ${height}`,
        'a feed has every height once, in order',
      );
    if (hash !== null && block.parent !== hash)
      throw peerError(
        range.url,
        'CHAIN_MISMATCH',
        `block ${block.height} does not link to block ${height}`,
        `its parent is ${block.parent.slice(0, 12)}…, block ${height} is ${hash.slice(0, 12)}…`,
      );
    if (blockHash(block) !== block.hash)
      throw peerError(
        range.url,
        'CHAIN_MISMATCH',
        `block ${block.height} does not have the hash it bears`,
        'its content was changed or damaged',
      );
    ({ height, hash } = block);
    yield block;
    if (height === to) return;
  }
  throw peerError(
    range.url,
    'PEER_UNREACHABLE',
    `its feed ended after block ${height}${to === undefined ? '' : `, before ${to}`}`,
    'it was stopped, or the connection was lost',
  );
}

function blockOf(line: string): CommittedBlock | undefined {
  const value = parseObject(line);
  if (!value) return undefined;
  const { height, hash, parent, timestamp, epoch, data } = value;
  const isHash = (text: unknown): text is string => typeof text === 'string' && /^[0-9a-f]{64}$/.test(text);
  const isNumber = (number: unknown): number is number => Number.isSafeInteger(number) && (number as number) >= 0;
  if (
    !isNumber(height) ||
    !isHash(hash) ||
    !isHash(parent) ||
    !isNumber(timestamp) ||
    !isNumber(epoch) ||
    typeof data !== 'string'
  )
    return undefined;
  const bytes = Buffer.from(data, 'base64');
  return bytes.length <= MAX_BLOCK_BYTES && bytes.toString('base64') === data
    ? { height, hash, parent, timestamp, epoch, data: bytes }
    : undefined;
}

function isNdjson({ headers }: IncomingMessage): boolean {
  return (headers['content-type'] ?? '').startsWith('application/x-ndjson');
}

/** A sequencer's refusal in its own words, or whoever answered in its place. */
function notAFeed(url: string, { statusCode: status = 0, headers }: IncomingMessage, body: Buffer): SeqError {
  const error = errorWord(parseObject(body));
  if (!error)
    return peerError(url, 'PEER_UNREACHABLE', 'somebody in between answers', inBetween({ status, headers, body }));
  const code: Failure =
    status === 404 ? 'PEER_LACKS_BLOCKS' : status === 503 || status === 401 ? 'PEER_UNREACHABLE' : 'PEER_SPOKE_GARBAGE';
  return peerError(url, code, error.message, error.why);
}

async function* feedLines(range: PeerRange, from: Height, to: Height | undefined): AsyncGenerator<string> {
  const idleMs = range.idleMs ?? 10_000;
  const target = targetOf(range.url, `/v1/blocks?from=${from}${to === undefined ? '' : `&to=${to}`}`) as URL;
  const request = openRequest(target, {
    ...(range.token === undefined ? {} : { token: range.token }),
    ...(range.tls === undefined ? {} : { tls: range.tls }),
  });
  const stop = () => request.destroy(new Error('given up by the caller'));
  range.signal.addEventListener('abort', stop, { once: true });
  let timer: NodeJS.Timeout | undefined;
  // The timer runs only while this process waits for the peer. The peer is not to blame for the time that the caller
  // needs for a block.
  const expect = () => {
    timer = setTimeout(() => request.destroy(new Error(`nothing came for ${idleMs} ms`)), idleMs);
  };
  try {
    range.signal.throwIfAborted();
    expect();
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve);
      request.on('error', reject);
      request.end();
    });
    clearTimeout(timer);
    const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    const parts: Buffer[] = [];
    let size = 0;
    let lines = 0;
    /** Every line of a feed is an object. A page of somebody else is not read line by line. */
    let isFeed = response.statusCode === 200;
    for (;;) {
      expect();
      const { done, value: chunk } = await chunks.next();
      clearTimeout(timer);
      if (done) break;
      isFeed &&= lines > 0 || size > 0 || chunk[0] === 0x7b;
      let at = 0;
      for (let end = isFeed ? chunk.indexOf(0x0a) : -1; end >= 0; end = chunk.indexOf(0x0a, at)) {
        const line =
          parts.length === 0
            ? chunk.toString('utf8', at, end)
            : Buffer.concat([...parts.splice(0), chunk.subarray(at, end)]).toString('utf8');
        size = 0;
        at = end + 1;
        lines += 1;
        yield line;
      }
      if (at < chunk.length) parts.push(chunk.subarray(at));
      size += chunk.length - at;
      if (!isFeed && size > MAX_OTHER_BYTES) break;
      if (size > MAX_LINE_BYTES)
        throw peerError(
          range.url,
          'PEER_SPOKE_GARBAGE',
          `a line is longer than ${MAX_LINE_BYTES} bytes`,
          'no block is that large',
        );
    }
    // A feed that ends is told by its reader, who knows what is missing.
    if (isFeed && (lines > 0 || isNdjson(response))) return;
    throw notAFeed(range.url, response, Buffer.concat(parts));
  } catch (error) {
    if (error instanceof SeqError || range.signal.aborted) throw error;
    throw peerError(
      range.url,
      'PEER_UNREACHABLE',
      'its feed could not be read',
      (error as Error).message || String((error as { code?: string }).code),
    );
  } finally {
    clearTimeout(timer);
    range.signal.removeEventListener('abort', stop);
    request.destroy();
  }
}
