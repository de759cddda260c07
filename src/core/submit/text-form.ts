// In what form is a text that is cut into lines? Editors and other systems write UTF-16, a byte-order mark or CRLF.
// The bytes are sequenced as they are, because an item belongs to whoever sends it. But the form is told before the
// first item is sent, and `--text` makes lines of UTF-8 of it.
import { TextDecoder } from 'node:util';
import { EXIT, SeqError } from '../errors.js';

/** What was found in the first bytes. */
export type TextForm = 'utf-16le' | 'utf-16be' | 'byte-order-mark' | 'crlf';

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const CR = 0x0d;
const LF = 0x0a;
/** Enough to see how the text is written. */
const START_BYTES = 4096;

/** Empty: lines of bytes that need nothing. UTF-16 is told alone, because nothing else can be seen in it. */
export function textForms(start: Buffer): TextForm[] {
  const wide = utf16Of(start);
  if (wide !== null) return [wide];
  const forms: TextForm[] = [];
  if (start.subarray(0, 3).equals(BYTE_ORDER_MARK)) forms.push('byte-order-mark');
  const end = start.indexOf(LF);
  if (end > 0 && start[end - 1] === CR) forms.push('crlf');
  return forms;
}

/** By its byte-order mark. Without one: ASCII has a zero byte beside each character, always on the same side. */
function utf16Of(start: Buffer): 'utf-16le' | 'utf-16be' | null {
  if (start[0] === 0xff && start[1] === 0xfe) return 'utf-16le';
  if (start[0] === 0xfe && start[1] === 0xff) return 'utf-16be';
  const pairs = Math.min(start.length, START_BYTES) >> 1;
  if (pairs < 2) return null;
  const zeros = [0, 0];
  for (let at = 0; at < pairs * 2; at += 1) if (start[at] === 0) zeros[at & 1] = (zeros[at & 1] as number) + 1;
  const [first, second] = zeros as [number, number];
  // A zero byte on the other side is rare, but real: U+0100, or half of an emoji.
  if (second * 2 > pairs && first * 8 < second) return 'utf-16le';
  if (first * 2 > pairs && second * 8 < first) return 'utf-16be';
  return null;
}

export function describeForm(form: TextForm): string {
  switch (form) {
    case 'utf-16le':
    case 'utf-16be':
      return 'the input is UTF-16: its lines are cut in the middle of characters, and each has zero bytes in it';
    case 'byte-order-mark':
      return 'the input begins with a byte-order mark (EF BB BF): it is part of the first item';
    case 'crlf':
      return 'the lines of the input end with CR LF: the CR is part of every item';
  }
}

/**
 * Passes everything on, and tells the form of the text before the first byte of it. Later chunks are passed on without
 * a turn of the event loop of their own: it would part the last line from the batch before it.
 */
export function told(chunks: AsyncIterable<Buffer>, tell: (form: TextForm) => void): AsyncIterable<Buffer> {
  return {
    [Symbol.asyncIterator]() {
      const source = withStart(chunks)[Symbol.asyncIterator]();
      let first = true;
      return {
        async next() {
          if (!first) return source.next();
          first = false;
          const start = await source.next();
          if (start.done !== true) for (const form of textForms(start.value)) tell(form);
          return start;
        },
        return: async () => (await source.return?.()) ?? { done: true, value: undefined },
      };
    },
  };
}

/** The same text as lines of UTF-8 that end with LF, without a byte-order mark. Bytes that are no UTF-8 stay. */
export async function* asLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let decoder: TextDecoder | null = null;
  let first = true;
  let held = false;
  const text = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of withStart(chunks)) {
      if (first) {
        first = false;
        const wide = utf16Of(chunk);
        if (wide !== null) decoder = new TextDecoder(wide, { fatal: true });
        else if (chunk.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
          yield chunk.subarray(3);
          continue;
        }
      }
      yield decoder === null ? chunk : decoded(decoder, chunk);
    }
    if (decoder !== null) yield decoded(decoder);
  };
  for await (const chunk of text()) {
    if (chunk.length === 0) continue;
    const whole: Buffer = held ? Buffer.concat([Buffer.from([CR]), chunk]) : chunk;
    held = whole.at(-1) === CR;
    const kept = withoutCr(held ? whole.subarray(0, -1) : whole);
    if (kept.length > 0) yield kept;
  }
  if (held) yield Buffer.from([CR]);
}

/** The first chunk is as long as it must be to see the form. */
function withStart(chunks: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  return {
    [Symbol.asyncIterator]() {
      const source = chunks[Symbol.asyncIterator]();
      let first = true;
      return {
        async next() {
          if (!first) return source.next();
          first = false;
          let start: Buffer = Buffer.alloc(0);
          // One line is enough to see the form.
          while (start.length < START_BYTES && !start.includes(LF)) {
            const part = await source.next();
            if (part.done === true) return start.length > 0 ? { done: false, value: start } : part;
            start = start.length === 0 ? part.value : Buffer.concat([start, part.value]);
          }
          return { done: false, value: start };
        },
        return: async () => (await source.return?.()) ?? { done: true, value: undefined },
      };
    },
  };
}

function decoded(decoder: TextDecoder, chunk?: Buffer): Buffer {
  try {
    return Buffer.from(chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true }), 'utf8');
  } catch (error) {
    throw new SeqError({
      code: 'NOT_TEXT',
      exit: EXIT.data,
      message: 'the input begins as UTF-16 and is none',
      why: (error as Error).message,
      changed: 'unknown',
      next: ['leave out --text: then the bytes are sequenced as they are', 'iconv -f UTF-16 -t UTF-8 FILE'],
    });
  }
}

/** CR LF → LF. */
function withoutCr(bytes: Buffer): Buffer {
  let end = bytes.indexOf('\r\n');
  if (end < 0) return bytes;
  const parts: Buffer[] = [];
  let at = 0;
  for (; end >= 0; end = bytes.indexOf('\r\n', at)) {
    parts.push(bytes.subarray(at, end));
    at = end + 1;
  }
  parts.push(bytes.subarray(at));
  return Buffer.concat(parts);
}
