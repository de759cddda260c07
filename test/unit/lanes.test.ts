// The lane registry as values: one entry as a text, what several nodes' registries say together, and which lanes a
// pattern means.
import { describe, expect, test } from 'vitest';
import {
  entriesOf,
  entryText,
  mergeLanes,
  missingFrom,
  parseEntry,
  type LaneEntry,
} from '../../src/core/fleet/entries.js';
import { lanePattern } from '../../src/core/fleet/pattern.js';

function entry(name: string, version: number, writer = 'aa', state: LaneEntry['state'] = 'open'): LaneEntry {
  return { name, version, state, writer, by: 'op@host', atMs: 5 };
}
const registry = (...entries: LaneEntry[]) => new Map(entries.map((one) => [one.name, one]));
const shown = (lanes: ReadonlyMap<string, LaneEntry>) =>
  [...lanes.values()].map(({ name, version, writer, state }) => `${name} ${version} ${writer} ${state}`);

describe('an entry', () => {
  test('lanes: text and back → the same entry', () => {
    expect(parseEntry({ name: 'a', text: entryText(entry('a', 7, 'beef', 'closed')) })).toEqual(
      entry('a', 7, 'beef', 'closed'),
    );
  });

  test('lanes: words of a later version behind it → still read', () => {
    expect(parseEntry({ name: 'a', text: `${entryText(entry('a', 1))} pin=seq-a` })).toEqual(entry('a', 1));
  });

  test('lanes: an operator name with other characters → no character that ends the entry', () => {
    expect(entryText({ ...entry('a', 1), by: 'jö @ höst' })).toBe('1 open aa at=5 by=j__@_h_st');
  });

  test.each(['', 'open', '1 open', '1 gone aa at=5 by=x', '1 open xyz at=5 by=x', 'x open aa at=5 by=x'])(
    'lanes: %j was written by no version of seq → left out',
    (text) => {
      expect(entriesOf([{ name: 'a', text }]).size).toBe(0);
    },
  );
});

describe('several nodes', () => {
  test.each([
    ['higher version wins', [entry('a', 1, 'ff')], [entry('a', 2, '00', 'closed')], ['a 2 00 closed']],
    ['same version: the greater writer', [entry('a', 1, '0a')], [entry('a', 1, '0b', 'closed')], ['a 1 0b closed']],
    ['one node lacks a lane', [entry('b', 1)], [entry('a', 1)], ['a 1 aa open', 'b 1 aa open']],
    ['removed stays removed', [entry('a', 3, 'aa', 'removed')], [entry('a', 2)], ['a 3 aa removed']],
  ])('lanes: %s', (_, one, other, wanted) => {
    expect(shown(mergeLanes([registry(...one), registry(...other)]))).toEqual(wanted);
    expect(shown(mergeLanes([registry(...other), registry(...one)]))).toEqual(wanted);
  });

  test('lanes: what a node lacks → missing and older entries, nothing else', () => {
    const merged = registry(entry('a', 2), entry('b', 1), entry('c', 1));
    expect(missingFrom(registry(entry('a', 1), entry('c', 1)), merged).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(missingFrom(merged, merged)).toEqual([]);
  });
});

describe('a pattern', () => {
  test.each([
    ['tile-*', 'tile-1', true],
    ['tile-*', 'tiles', false],
    ['tile-?', 'tile-12', false],
    ['tile-?', 'tile-1', true],
    ['*', 'anything', true],
    ['market-eu', 'market-eu-1', false],
    ['a-*,b-*', 'b-1', true],
    ['a-*, b-*', 'c-1', false],
  ])('lanes: %s and %s → %s', (pattern, lane, fits) => {
    expect(lanePattern(pattern)(lane)).toBe(fits);
  });

  test.each(['', 'tile-[0-9]', 'Tile-*', 'a,,b', 'a:b', '.*'])('lanes: %j is no pattern → BAD_LANE', (pattern) => {
    expect(() => lanePattern(pattern)).toThrow(expect.objectContaining({ code: 'BAD_LANE' }));
  });
});
