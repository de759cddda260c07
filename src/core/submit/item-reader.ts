// Cuts a byte stream into items: lines, or frames with a 4-byte big-endian length. A line is an item without its
// newline. A last line without a newline counts, and so does an empty line. It never holds more than one item and one
// chunk. An item over the limit, or a frame that is cut short, ends the reading with its number, before it is read
// whole. All earlier items are handed over first.
import { EXIT, SeqError } from '../errors.js';

export interface RawItem {
  /** From 1: the line or frame number within the whole input. */
  number: number;
  data: Buffer;
  /** A key of its own. Without one, the submission makes it of its prefix and the number. */
  key?: string;
  /** Bytes of the input that it took: data plus newline or length. */
  consumed: number;
}

export interface ReadOptions {
  binary: boolean;
  /** The number of the first item of this stream. */
  firstNumber: number;
  /** Largest item that can be sequenced, given its key's length. */
  limitOf(number: number): number;
}

const NEWLINE = 0x0a;

function tooLarge(number: number, { binary, firstNumber }: ReadOptions, bytes: string, limit: number): SeqError {
  const what = binary ? 'frame' : 'line';
  return new SeqError({
    code: 'ITEM_TOO_LARGE',
    exit: EXIT.data,
    message: `${what} ${number} has ${bytes} bytes; at most ${limit} fit into one block`,
    why: 'one item has to fit into one block together with its key',
    changed: number > firstNumber ? 'some' : 'nothing',
    next: [
      `split ${what} ${number}, or raise --max-block-bytes on every sequencer`,
      ...(binary && number === 1 ? ['leave out --binary if the items are lines of text'] : []),
      'seq submit --resume FILE',
    ],
  });
}

/** Items, one array per chunk that completed any. Throws SeqError 65 at the first item that cannot be sent. */
export async function* readItems(chunks: AsyncIterable<Buffer>, options: ReadOptions): AsyncGenerator<RawItem[]> {
  let number = options.firstNumber;
  let rest: Buffer[] = [];
  let restBytes = 0;
  const join = (last: Buffer): Buffer => {
    if (rest.length === 0) return last;
    const whole = Buffer.concat([...rest, last], restBytes + last.length);
    rest = [];
    restBytes = 0;
    return whole;
  };
  for await (const chunk of chunks) {
    const items: RawItem[] = [];
    let problem: SeqError | undefined;
    if (options.binary) {
      // A frame's size is known from its first 4 bytes. So chunks are joined once it is complete, not at every chunk.
      if (restBytes + chunk.length < frameNeed(rest)) {
        rest.push(chunk);
        restBytes += chunk.length;
        continue;
      }
      const buffer = join(chunk);
      let at = 0;
      while (buffer.length - at >= 4) {
        const length = buffer.readUInt32BE(at);
        const limit = options.limitOf(number);
        if (length > limit) {
          problem = tooLarge(number, options, String(length), limit);
          break;
        }
        if (buffer.length - at < 4 + length) break;
        items.push({ number: number++, data: buffer.subarray(at + 4, at + 4 + length), consumed: 4 + length });
        at += 4 + length;
      }
      if (!problem && at < buffer.length) {
        rest = [buffer.subarray(at)];
        restBytes = buffer.length - at;
      }
    } else {
      let at = 0;
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, at)) {
        const data = join(chunk.subarray(at, end));
        const limit = options.limitOf(number);
        if (data.length > limit) {
          problem = tooLarge(number, options, String(data.length), limit);
          break;
        }
        items.push({ number: number++, data, consumed: data.length + 1 });
        at = end + 1;
      }
      if (!problem && at < chunk.length) {
        rest.push(chunk.subarray(at));
        restBytes += chunk.length - at;
        const limit = options.limitOf(number);
        if (restBytes > limit) problem = tooLarge(number, options, `more than ${limit}`, limit);
      }
    }
    if (items.length > 0) yield items;
    if (problem) throw problem;
  }
  if (restBytes === 0) return;
  if (options.binary) {
    throw new SeqError({
      code: 'FRAME_TRUNCATED',
      exit: EXIT.data,
      message: `frame ${number} breaks off after ${restBytes} bytes`,
      why: 'the input ended before the length that the frame announces',
      changed: number > options.firstNumber ? 'some' : 'nothing',
      next: ['check how the input was written: each frame is a 4-byte big-endian length and that many bytes'],
    });
  }
  const data = join(Buffer.alloc(0));
  yield [{ number, data, consumed: data.length }];
}

/** Bytes needed before the pending frame can be complete. */
function frameNeed(rest: Buffer[]): number {
  const first = rest[0];
  return first !== undefined && first.length >= 4 ? 4 + first.readUInt32BE(0) : 4;
}
