import { describe, expect, it } from 'vitest';
import { compareItems, linesOf } from '../../src/lab/compare.js';

const bytes = (lines: string[]): Uint8Array[] => lines.map((line) => Buffer.from(line));

describe('lab demo: what was sent against what was read', () => {
  // prettier-ignore
  const table: [name: string, sent: string, read: string, lost: number, duplicates: number, unexpected: number, identical: boolean][] = [
    //                         sent     read     lost dup unexpected identical
    ['all in order',           'a b c', 'a b c', 0,   0,  0,      true],
    ['one missing',            'a b c', 'a c',   1,   0,  0,      false],
    ['one twice',              'a b c', 'a b b c', 0, 1,  0,      false],
    ['a line occurs twice',    'a a b', 'a a b', 0,   0,  0,      true],
    ['… and once of it came',  'a a b', 'a b',   1,   0,  0,      false],
    ['… and three came',       'a a b', 'a a a b', 0, 1,  0,      false],
    ['order broken',           'a b c', 'a c b', 0,   0,  0,      false],
    ['something else',         'a b c', 'a x c', 1,   0,  1,      false],
    ['nothing came',           'a b c', '',      3,   0,  0,      false],
  ];
  it.each(table)('compare: %s', (_name, sent, read, lost, duplicates, unexpected, identical) => {
    const split = (text: string) => bytes(text === '' ? [] : text.split(' '));
    expect(compareItems(split(sent), split(read))).toMatchObject({ lost, duplicates, unexpected, identical });
  });

  it('compare: bytes that are no UTF-8 → told apart', () => {
    expect(compareItems([Buffer.from([0xff])], [Buffer.from([0xfe])])).toMatchObject({
      lost: 1,
      unexpected: 1,
      firstDifference: { at: 0 },
    });
  });

  it.each([
    ['', []],
    ['a', ['a']],
    ['a\n', ['a']],
    ['a\n\nb', ['a', '', 'b']],
    ['\n', ['']],
    ['a\r\nb\n', ['a\r', 'b']],
  ])('lines: %j → %j', (text, lines) => {
    expect(linesOf(Buffer.from(text)).map((line) => Buffer.from(line).toString())).toEqual(lines);
  });
});
