// What form a text has, and the lines of UTF-8 that --text makes of it, however the bytes arrive.
import { describe, expect, test } from 'vitest';
import { asLines, describeForm, textForms, told, type TextForm } from '../../src/core/submit/text-form.js';

const LE = Buffer.from('\ufeffeins\r\nzwei 😀\r\n', 'utf16le');
const BE = Buffer.from(LE).swap16();
const MARK = Buffer.from([0xef, 0xbb, 0xbf]);

async function* parts(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
async function all(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = [];
  for await (const chunk of chunks) found.push(chunk);
  return Buffer.concat(found);
}

const ROWS: [name: string, bytes: Buffer, forms: TextForm[], lines: Buffer][] = [
  ['UTF-16, little end first', LE, ['utf-16le'], Buffer.from('eins\nzwei 😀\n')],
  ['UTF-16, big end first', BE, ['utf-16be'], Buffer.from('eins\nzwei 😀\n')],
  ['UTF-16 without a mark', LE.subarray(2), ['utf-16le'], Buffer.from('eins\nzwei 😀\n')],
  ['a byte-order mark', Buffer.concat([MARK, Buffer.from('a\nb')]), ['byte-order-mark'], Buffer.from('a\nb')],
  ['both', Buffer.concat([MARK, Buffer.from('a\r\nb\r\n')]), ['byte-order-mark', 'crlf'], Buffer.from('a\nb\n')],
  ['CR LF', Buffer.from('a\r\n\r\nb'), ['crlf'], Buffer.from('a\n\nb')],
  ['a CR that ends nothing', Buffer.from('a\rb\nc\r'), [], Buffer.from('a\rb\nc\r')],
  ['UTF-8', Buffer.from('ä\nö\n'), [], Buffer.from('ä\nö\n')],
  ['bytes that are no UTF-8', Buffer.from([0xff, 0x0a, 0xe4, 0x0a]), [], Buffer.from([0xff, 0x0a, 0xe4, 0x0a])],
  ['zero bytes on both sides', Buffer.from([0, 0, 1, 0, 0, 0, 0x0a]), [], Buffer.from([0, 0, 1, 0, 0, 0, 0x0a])],
  ['one byte', Buffer.from('a'), [], Buffer.from('a')],
  ['nothing', Buffer.alloc(0), [], Buffer.alloc(0)],
];

describe.each([1, 2, 3, 7, 10_000])('text: in parts of %i bytes', (size) => {
  test.each(ROWS)('%s', async (_name, bytes, forms, lines) => {
    const seen: TextForm[] = [];
    expect(await all(told(parts(bytes, size), (form) => seen.push(form)))).toEqual(bytes);
    expect(seen).toEqual(forms);
    expect(await all(asLines(parts(bytes, size)))).toEqual(lines);
  });
});

test('text: each form is described, before the first byte is passed on', async () => {
  const order: string[] = [];
  for await (const chunk of told(parts(LE, 4), (form) => order.push(describeForm(form)))) order.push(`${chunk.length}`);
  expect(order[0]).toContain('UTF-16');
  expect(textForms(MARK).map(describeForm)[0]).toContain('byte-order mark');
});

test('text: UTF-16 that breaks off inside a character → NOT_TEXT', async () => {
  await expect(all(asLines(parts(Buffer.concat([LE, Buffer.from([0x3d, 0xd8])]), 5)))).rejects.toMatchObject({
    code: 'NOT_TEXT',
    exit: 65,
  });
});
