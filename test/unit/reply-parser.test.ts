// What a server says, however its bytes are cut: the same replies in the same order; what is not the protocol is
// never read as a value.
import { expect, test } from 'vitest';
import { ReplyError, ReplyParser } from '../../src/core/redis/own-resp/reply-parser.js';

function plain(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  if (reply instanceof ReplyError) return { error: reply.message };
  return Array.isArray(reply) ? reply.map(plain) : reply;
}
function read(chunks: Buffer[]): unknown[] {
  const replies: unknown[] = [];
  const parser = new ReplyParser((reply) => replies.push(plain(reply)));
  for (const chunk of chunks) parser.write(chunk);
  return replies;
}

const TEXT =
  '+OK\r\n-ERR no: ' +
  'é\r\n:0\r\n:-2\r\n:9007199254740991\r\n$-1\r\n*-1\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*0\r\n*2\r\n*2\r\n$1\r\nx\r\n*1\r\n:7\r\n$3\r\nabc\r\n*2\r\n-NOPERM\r\n$-1\r\n';
const REPLIES = [
  'OK',
  { error: 'ERR no: é' },
  0,
  -2,
  9007199254740991,
  null,
  null,
  '',
  'a\r\nb',
  [],
  [['x', [7]], 'abc'],
  [{ error: 'NOPERM' }, null],
];

test('replies: cut once at any byte, into any equal pieces, or not at all → the same replies', () => {
  const bytes = Buffer.from(TEXT);
  expect(read([bytes])).toEqual(REPLIES);
  for (let cut = 1; cut < bytes.length; cut += 1)
    expect(read([bytes.subarray(0, cut), bytes.subarray(cut)]), `cut at ${cut}`).toEqual(REPLIES);
  for (let size = 1; size < bytes.length; size += 1) {
    const pieces: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
    expect(read(pieces), `pieces of ${size}`).toEqual(REPLIES);
  }
});

test(
  'replies: entries that repeat each other in parts, in two answers, cut into any equal pieces → ' +
    'each has its own values',
  () => {
    const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`;
    const entry = (id: string, fields: string[]): string =>
      `*2\r\n${bulk(id)}*${fields.length}\r\n${fields.map(bulk).join('')}`;
    const entries: [string, string[]][] = [
      ['1-1', ['height', '1', 'owner', 'a/1']],
      ['2-1', ['height', '2', 'owner', 'a/1']],
      ['2-2', ['height', '2', 'owner', 'a/2']],
      ['3-2', ['owner', 'a/2', 'height', '3', 'height', '']],
      ['4-2', ['height', '4']],
    ];
    const bytes = Buffer.from(
      [entries, [...entries].reverse()]
        .map((list) => `*${list.length}\r\n${list.map(([id, fields]) => entry(id, fields)).join('')}`)
        .join(''),
    );
    for (let size = 1; size <= bytes.length; size += 1) {
      const pieces: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
      expect(read(pieces), `pieces of ${size}`).toEqual([entries, [...entries].reverse()]);
    }
  },
);

test('replies: a payload over many chunks, a list around it → its bytes, whole', () => {
  const data = Buffer.alloc(300_000, 'payload of a block ');
  const bytes = Buffer.concat([Buffer.from(`*2\r\n$${data.length}\r\n`), data, Buffer.from('\r\n:1\r\n+next\r\n')]);
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) pieces.push(bytes.subarray(at, at + 65_536));
  expect(read(pieces)).toEqual([[data.toString('latin1'), 1], 'next']);
});

test.each([
  ['HTTP', 'HTTP/1.1 400\r\n'],
  ['a length that is no number', '$x\r\n'],
  ['no length', '$\r\n'],
  ['a number with letters', ':1a\r\n'],
  ['a negative length', '$-2\r\n'],
  ['a string longer than any', '$999999999999\r\n'],
  ['a list longer than any', '*99999999999\r\n'],
  ['a string without its end', '$1\r\nabc\r\n'],
  ['lists in lists for ever', '*1\r\n'.repeat(40)],
  ['a line without an end', `+${'x'.repeat(70_000)}`],
  ['a number that never ends', `:${'1'.repeat(70_000)}`],
])('replies: %s → thrown, no value', (_what, text) => {
  expect(() => read([Buffer.from(text)])).toThrow(/^Protocol error: /);
});
