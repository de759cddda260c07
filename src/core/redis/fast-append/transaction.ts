// A block as the second half of a transaction: PEXPIRE XADD HSET EXEC. It is encoded once for all nodes that get the
// same block. The encoding is written by hand, because it runs for every block.
import { MAX_NUMBER, type Block } from '../../protocol/types.js';
import { HASH } from '../entries.js';
import type { NodeKeys } from '../keys.js';
import { asciiBulk, bulk, type Piece } from '../own-resp/encode.js';
import { JOIN_BYTES } from '../own-resp/own-wire.js';
import type { WriteCall } from './watched-state.js';

/** A block goes to several nodes in the same bytes, so the bytes are put together once. */
interface EncodedAppend {
  owner: string;
  epoch: number;
  ttlMs: number;
  trimTo: number | undefined;
  trimHash: string | undefined;
  trims: boolean;
  stream: string;
  pieces: Piece[];
}
const encodings = new WeakMap<Block, EncodedAppend>();

export class TransactionEncoder {
  /** The key of the stream, and all keys as bulk strings. */
  private readonly stream: string;
  private readonly keys: { lock: string; admission: string; stream: string };

  /** `then` follows a transaction: the questions that begin to watch the node again. */
  constructor(
    { lock, admission, stream }: NodeKeys,
    private readonly then: Buffer,
  ) {
    this.stream = stream;
    this.keys = { lock: bulk(lock), admission: bulk(admission), stream: bulk(stream) };
  }

  /** Null: the script would refuse to read an argument. The script must report that itself. */
  encode(call: WriteCall, trims: boolean): Piece[] | null {
    const { block, owner, epoch, ttlMs, trim } = call;
    const { stream } = this;
    const known = encodings.get(block);
    // A stored encoding is used again only for exactly the same call, whose arguments were valid.
    if (
      known?.owner === owner &&
      known.epoch === epoch &&
      known.ttlMs === ttlMs &&
      known.trimTo === trim?.to &&
      known.trimHash === trim?.hash &&
      known.trims === trims &&
      known.stream === stream
    )
      return known.pieces;
    if (!isReadable(call)) return null;
    const pieces = this.commands(call, trims);
    encodings.set(block, { owner, epoch, ttlMs, trimTo: trim?.to, trimHash: trim?.hash, trims, stream, pieces });
    return pieces;
  }

  private commands({ block, owner, epoch, ttlMs, trim }: WriteCall, trims: boolean): Piece[] {
    const { lock, admission, stream } = this.keys;
    const { height, hash, timestamp, parent } = block;
    const data = Buffer.isBuffer(block.data)
      ? block.data
      : Buffer.from(block.data.buffer, block.data.byteOffset, block.data.byteLength);
    const trimStream = trims ? `$5\r\nMINID\r\n$1\r\n=\r\n${asciiBulk(`${trim!.to + 1}-0`)}` : '';
    const setFloor = trims ? `$5\r\nfloor\r\n${asciiBulk(trim!.to)}$10\r\nfloor_hash\r\n${asciiBulk(trim!.hash)}` : '';
    const before =
      `*3\r\n$7\r\npexpire\r\n${lock}${asciiBulk(ttlMs)}` +
      `*${trims ? 20 : 17}\r\n$4\r\nxadd\r\n${stream}${trimStream}${asciiBulk(`${height}-${epoch}`)}` +
      `$6\r\nheight\r\n${asciiBulk(height)}$4\r\ndata\r\n$${data.length}\r\n`;
    const behind =
      `\r\n$5\r\nepoch\r\n${asciiBulk(epoch)}$9\r\ntimestamp\r\n${asciiBulk(timestamp)}` +
      `$6\r\nparent\r\n${asciiBulk(parent)}$4\r\nhash\r\n${asciiBulk(hash)}$5\r\nowner\r\n${bulk(owner)}` +
      `*${trims ? 10 : 6}\r\n$4\r\nhset\r\n${admission}` +
      `$4\r\nhead\r\n${asciiBulk(height)}$9\r\nhead_hash\r\n${asciiBulk(hash)}${setFloor}` +
      `*1\r\n$4\r\nexec\r\n`;
    return data.byteLength >= JOIN_BYTES
      ? [before, data, behind, this.then]
      : [Buffer.concat([Buffer.from(before), data, Buffer.from(behind), this.then])];
  }
}

function isReadable({ block, ttlMs, trim }: WriteCall): boolean {
  return (
    HASH.test(block.hash) &&
    isWhole(block.height) &&
    isWhole(block.timestamp) &&
    isWhole(ttlMs) &&
    ttlMs > 0 &&
    (trim === undefined || (isWhole(trim.to) && trim.to <= block.height - 2 && HASH.test(trim.hash)))
  );
}

function isWhole(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MAX_NUMBER;
}
