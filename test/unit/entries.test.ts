// Entries of a stream, whatever order their fields have and whatever was read before: sound ones are read, the others
// are named with what is wrong.
import { expect, test } from 'vitest';
import { makeBlock } from '../../src/core/chain/block.js';
import { parseEntries } from '../../src/core/redis/entries.js';

const block = makeBlock({ height: 7, parent: 'ab'.repeat(32), timestamp: 5, data: Buffer.from('payload') });
const other = makeBlock({ height: 7, parent: 'cd'.repeat(32), timestamp: 6, data: Buffer.from('payload') });

type Fields = [name: string, value: string | Uint8Array][];
const fieldsOf = ({ height, parent, timestamp, hash, data }: typeof block): Fields => [
  ['height', String(height)],
  ['data', data],
  ['epoch', '3'],
  ['timestamp', String(timestamp)],
  ['parent', parent],
  ['hash', hash],
  ['owner', 'a/1'],
];
const bytes = (value: string | Uint8Array): Buffer => Buffer.from(value as string);
const raw = (fields: Fields, id = '7-3'): unknown => [
  bytes(id),
  fields.flatMap(([name, value]) => [bytes(name), bytes(value)]),
];
const but = (name: string, value: string | Uint8Array, of = block): Fields =>
  fieldsOf(of).map((field) => (field[0] === name ? [name, value] : field));

test.each<[string, Fields, string]>([
  ['the usual order', fieldsOf(block), 'read'],
  ['another block at this height', fieldsOf(other), 'read'],
  ['another order', fieldsOf(block).reverse(), 'read'],
  ['a field more', [['note', 'x'], ...fieldsOf(block)], 'read'],
  [
    'another epoch and owner',
    but('epoch', '3').map(([name, value]) => [name, name === 'owner' ? 'b/2' : value]),
    'read',
  ],
  ['a field twice, the later one counts', [['epoch', '9'], ...fieldsOf(block)], 'read'],
  ['a field twice, the later one wrong', [...fieldsOf(block), ['data', 'x']], 'its hash is not that of its content'],
  ['other data', but('data', 'payloae'), 'its hash is not that of its content'],
  ['other time', but('timestamp', '6'), 'its hash is not that of its content'],
  ['the parent of the other block', but('parent', other.parent), 'its hash is not that of its content'],
  ['the hash of the other block', but('hash', other.hash), 'its hash is not that of its content'],
  ['a hash in capitals', but('hash', block.hash.toUpperCase()), 'field hash is not 64 hex digits'],
  ['a leading zero', but('epoch', '03'), 'field epoch is not a whole number of at most 2^48'],
  ['a time above 2^48', but('timestamp', '281474976710657'), 'field timestamp is not a whole number of at most 2^48'],
  ['another height than its id', but('height', '8'), 'its fields say 8-3'],
  ['no owner', fieldsOf(block).slice(0, -1), 'field owner is missing'],
  ['no fields', [], 'field height is missing'],
])('entries: %s, after a sound one and before one → %s', (_what, fields, expected) => {
  const { entries, damaged, lastId } = parseEntries([raw(fieldsOf(block)), raw(fields), raw(fieldsOf(block))], {
    data: true,
  });
  expect(damaged.map(({ id, height, why }) => [id, height, why])).toEqual(
    expected === 'read' ? [] : [['7-3', 7, expected]],
  );
  expect(entries).toHaveLength(3 - damaged.length);
  expect(lastId).toBe('7-3');
  const text = (name: string): string => Buffer.from(new Map(fields).get(name) as string).toString();
  if (expected === 'read')
    expect(entries[1]).toEqual({
      height: 7,
      hash: text('hash'),
      parent: text('parent'),
      timestamp: Number(text('timestamp')),
      epoch: 3,
      owner: text('owner'),
      size: 7,
      data: Buffer.from('payload'),
    });
});

test('entries: without payloads → the same, and no hash is checked', () => {
  const { entries, damaged } = parseEntries([raw(fieldsOf(block)), raw(but('data', 'x')), raw(but('hash', 'no'))], {
    data: false,
  });
  expect(entries.map(({ size, data }) => [size, data])).toEqual([
    [7, undefined],
    [1, undefined],
  ]);
  expect(damaged.map(({ why }) => why)).toEqual(['field hash is not 64 hex digits']);
});
