// The codec of block data: every content has one encoding, and hostile bytes are malformed, never an exception.
import '../support/fuzz-seed.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeBlockData,
  encodeExec,
  encodeItems,
  encodedItemSize,
  execOverhead,
  itemCountOf,
  itemDigest,
  itemsOverhead,
  keyNamesOf,
  keyProblem,
  keysOf,
} from '../../src/core/chain/items.js';
import type { Item } from '../../src/core/ports.js';

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const hex = (text: string) => new Uint8Array(Buffer.from(text.replaceAll(' ', ''), 'hex'));
const TAG = Buffer.from('seq/items/1\0').toString('hex');
const EXEC = Buffer.from('seq/exec/1\0').toString('hex');

const printable = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
  .filter((key) => keyProblem(key) === null);
const anItem: fc.Arbitrary<Item> = fc.record(
  { key: printable, data: fc.uint8Array({ maxLength: 300 }) },
  { requiredKeys: ['data'] },
);
const plain = (items: Item[]) => items.map((item) => [item.key, Buffer.from(item.data).toString('hex')]);

describe('items: what is written is read back', () => {
  test('items: any items → the same items, and the size foretold', () => {
    fc.assert(
      fc.property(fc.array(anItem, { maxLength: 40 }), (items) => {
        const data = encodeItems(items);
        const foretold =
          items.length === 0
            ? 0
            : items.reduce((sum, item) => sum + encodedItemSize(item), itemsOverhead(items.length));
        expect(data.length).toBe(foretold);
        const content = decodeBlockData(data);
        expect(content.format).toBe('items');
        if (content.format === 'items') expect(plain(content.items)).toEqual(plain(items));
        expect(keysOf(data)).toEqual(
          items.flatMap((item, index) =>
            item.key === undefined ? [] : [{ key: item.key, digest: itemDigest(item.data), index }],
          ),
        );
        expect(keyNamesOf(data)).toEqual(items.flatMap((item) => (item.key === undefined ? [] : [item.key])));
        expect(itemCountOf(data)).toBe(items.length);
      }),
    );
  });

  test('exec: any taken items and child data → the same', () => {
    fc.assert(
      fc.property(fc.array(anItem, { maxLength: 20 }), fc.uint8Array({ maxLength: 400 }), (items, own) => {
        const taken = items.map((item) => ({
          ...(item.key === undefined ? {} : { key: item.key }),
          digest: itemDigest(item.data),
        }));
        const data = encodeExec(taken, own);
        if (taken.length + own.length > 0) expect(data.length).toBe(execOverhead(taken) + own.length);
        const content = decodeBlockData(data);
        // A producer that takes nothing and makes nothing makes the empty block.
        expect(content.format).toBe(taken.length + own.length === 0 ? 'items' : 'exec');
        if (content.format === 'exec') {
          expect(content.taken).toEqual(taken);
          expect(Buffer.from(content.data).equals(Buffer.from(own))).toBe(true);
        }
        // The same window can be rebuilt, whichever producer made the block.
        expect(keysOf(data)).toEqual(keysOf(encodeItems(items)));
      }),
    );
  });

  test('items: no bytes → the empty block', () =>
    expect(decodeBlockData(new Uint8Array(0))).toEqual({ format: 'items', items: [] }));
});

describe('items: hostile bytes are malformed, never an exception', () => {
  const table: [name: string, data: Uint8Array, why: RegExp][] = [
    ['another format', bytes('hello'), /no format/],
    ['a newer version', bytes('seq/items/2\0\x01\x00\x00'), /no format/],
    ['tag alone', hex(TAG), /ends inside a number/],
    ['zero items behind a tag', hex(TAG + '00'), /no data at all/],
    ['more items than bytes', hex(TAG + 'ffffffff0f 00'), /do not fit/],
    ['a number of six bytes', hex(TAG + 'ffffffffffff01'), /too large/],
    ['a number above 2^32', hex(TAG + 'ffffffff7f'), /too large/],
    ['a number in a longer form', hex(TAG + '8100 0000'), /shortest form/],
    ['an item longer than the rest', hex(TAG + '01 00 7f 61'), /ends inside an item/],
    ['a key longer than 256 bytes', hex(TAG + '01 8102' + '61'.repeat(257) + '00'), /longer than 256/],
    ['a key with a control character', hex(TAG + '01 01 0a 00'), /printable/],
    ['a key that is not UTF-8', hex(TAG + '01 02 c328 00'), /not UTF-8/],
    ['bytes behind the last item', hex(TAG + '01 00 01 61 62'), /follow the last item/],
    ['exec: nothing at all', hex(EXEC + '00'), /no data at all/],
    ['exec: a digest cut short', hex(EXEC + '01 00' + 'ab'.repeat(31)), /do not fit/],
  ];
  test.each(table)('items: %s → malformed', (_name, data, why) => {
    const content = decodeBlockData(data);
    expect(content.format).toBe('malformed');
    if (content.format === 'malformed') expect(content.why).toMatch(why);
    expect(keysOf(data)).toEqual([]);
    expect(itemCountOf(data)).toBe(0);
  });

  test('items: any bytes behind either tag → an answer, and what is accepted encodes to the same bytes', () => {
    fc.assert(
      fc.property(fc.constantFrom(TAG, EXEC, ''), fc.uint8Array({ maxLength: 200 }), (tag, rest) => {
        const data = new Uint8Array(Buffer.concat([Buffer.from(tag, 'hex'), rest]));
        const content = decodeBlockData(data);
        if (content.format === 'items')
          expect(Buffer.from(encodeItems(content.items)).equals(Buffer.from(data))).toBe(true);
        if (content.format === 'exec')
          expect(Buffer.from(encodeExec(content.taken, content.data)).equals(Buffer.from(data))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  test('items: a valid block with one byte changed or cut → an answer', () => {
    fc.assert(
      fc.property(
        fc.array(anItem, { minLength: 1, maxLength: 5 }),
        fc.nat(),
        fc.nat(255),
        fc.boolean(),
        (items, at, value, cut) => {
          const data = new Uint8Array(encodeItems(items));
          if (cut) decodeBlockData(data.subarray(0, at % data.length));
          data[at % data.length] = value;
          decodeBlockData(data);
          keysOf(data);
        },
      ),
      { numRuns: 1000 },
    );
  });
});

describe('items: keys', () => {
  test.each([
    ['', /at least/],
    ['a'.repeat(257), /at most/],
    ['ü'.repeat(129), /at most/],
    ['a\nb', /printable/],
    ['\u0000', /printable/],
    ['\u0085', /printable/],
    ['a\u2028', /printable/],
    ['\ud800', /printable/],
  ])('items: key %j → refused', (key, why) => {
    expect(keyProblem(key)).toMatch(why);
    expect(() => encodeItems([{ key, data: bytes('x') }])).toThrow(RangeError);
  });
  test.each(['a', 'order 17/4', 'ü'.repeat(128), '日本', '😀', '0'.repeat(256)])('items: key %j → taken', (key) =>
    expect(keyProblem(key)).toBeNull(),
  );
});

test('items: 50,000 items of 200 bytes → every key read back, in order', () => {
  const items = Array.from({ length: 50_000 }, (_, line) => ({
    key: `file-7f3a:${line}`,
    data: Buffer.alloc(200, line),
  }));
  const keys = keysOf(encodeItems(items));
  expect(keys).toHaveLength(50_000);
  expect(keys.at(-1)).toMatchObject({ key: 'file-7f3a:49999', index: 49_999 });
});
