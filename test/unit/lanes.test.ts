// The lane registry as values: one entry as a text, what several nodes' registries say together, and which lanes a
// pattern means.
import { describe, expect, test } from 'vitest';
import type { NodePort } from '../../src/core/ports.js';
import type { NodeReply, NodeView } from '../../src/core/protocol/types.js';
import {
  entriesOf,
  entryText,
  judgeLanes,
  mergeLanes,
  missingFrom,
  nextVersion,
  parseEntry,
  type LaneEntry,
} from '../../src/core/fleet/entries.js';
import { whatLaneShows } from '../../src/core/fleet/lane-nodes.js';
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

  test.each([
    ['a', ''],
    ['a', 'open'],
    ['a', '1 open'],
    ['a', '1 gone aa at=5 by=x'],
    ['a', '1 open xyz at=5 by=x'],
    ['a', '1 open AA at=5 by=x'],
    ['a', 'x open aa at=5 by=x'],
    ['a', '01 open aa at=5 by=x'],
    ['a', '1 open aa by=x'],
    ['a', '281474976710657 open aa at=5 by=x'],
    ['a', `1 open aa at=5 by=${'x'.repeat(500)}`],
    ['A', '1 open aa at=5 by=x'],
    ['a:b', '1 open aa at=5 by=x'],
    ['+memory', '1 open aa at=5 by=x'],
    ['a'.repeat(33), '1 open aa at=5 by=x'],
  ])('lanes: %j %j was written by no version of seq → left out', (name, text) => {
    expect(entriesOf([{ name, text }]).size).toBe(0);
  });
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

  /** Of three members, those that remember the list. */
  test.each([
    ['all have it', [[entry('a', 1)], [entry('a', 1)], [entry('a', 1)]], ['a 1 aa open'], ['a 1 aa open']],
    [
      'one node alone closed it',
      [[entry('a', 2, 'bb', 'closed')], [entry('a', 1)], [entry('a', 1)]],
      ['a 1 aa open'],
      ['a 1 aa open'],
    ],
    ['one node alone lists it', [[entry('a', 1)], [], []], [], []],
    ['one node alone lists it, and one is silent', [[entry('a', 1)], []], [], ['a 1 aa open']],
    [
      'one node closed it, and one is silent',
      [[entry('a', 2, 'bb', 'closed')], [entry('a', 1)]],
      ['a 1 aa open'],
      ['a 2 bb closed'],
    ],
    [
      'two nodes closed it',
      [[entry('a', 2, 'bb', 'closed')], [entry('a', 1)], [entry('a', 2, 'bb', 'closed')]],
      ['a 2 bb closed'],
      ['a 2 bb closed'],
    ],
    [
      'three changes at once: the one that two have passed',
      [[entry('a', 3)], [entry('a', 2)], [entry('a', 1)]],
      ['a 2 aa open'],
      ['a 2 aa open'],
    ],
  ])('lanes: %s → what counts, and what may', (_, nodes, counts, may) => {
    const { lanes, possible } = judgeLanes(
      nodes.map((entries) => registry(...entries)),
      3,
    );
    expect([shown(lanes), shown(possible)]).toEqual([counts, may]);
  });

  test('lanes: the next version → above all that was seen, but not above what somebody wrote at the end of the numbers', () => {
    const top = 2 ** 48;
    const told = (version: number) => [registry(entry('a', version)), registry(entry('a', 4)), registry(entry('a', 4))];
    expect(nextVersion(judgeLanes(told(7), 3), 'a')).toBe(8);
    expect(nextVersion(judgeLanes(told(top), 3), 'a')).toBe(5);
    expect(nextVersion(judgeLanes([], 3), 'a')).toBe(1);
    expect(nextVersion(judgeLanes([registry(entry('a', top)), registry(entry('a', top))], 3), 'a')).toBe(top);
  });

  test('lanes: what a node lacks → missing and older entries, nothing else', () => {
    const merged = registry(entry('a', 2), entry('b', 1), entry('c', 1));
    expect(missingFrom(registry(entry('a', 1), entry('c', 1)), merged).map(({ name }) => name)).toEqual(['a', 'b']);
    expect(missingFrom(merged, merged)).toEqual([]);
  });
});

describe('a lane on its nodes', () => {
  const [held, gone, empty, other, pending] = [
    { cluster: 'c.1', pending: '', admission: 'admitted' },
    { cluster: 'retired:c.1', movedTo: 'removed', pending: '', admission: 'foreign' },
    { cluster: '', pending: '', admission: 'pristine' },
    { cluster: 'd.1', pending: '', admission: 'foreign' },
    { cluster: 'c.1', pending: 'x', admission: 'admitting' },
  ];
  test.each([
    ['every node holds it', [held, held, held], 'made'],
    ['one node alone says that it was removed', [held, gone, held], 'made'],
    ['two nodes say that it was removed', [held, gone, gone], 'removed'],
    ['one node says so, and the others have forgotten', [gone, empty, empty], 'removed'],
    ['one node says so, and the others are silent', [gone], 'removed'],
    ['nothing is there', [empty, empty, empty], 'nothing'],
    ['it was begun', [held, pending, empty], 'begun'],
    ['too few answer', [held], 'too-few-answers'],
    ['another cluster has it', [held, held, other], 'other-cluster'],
  ])('lanes: %s → %j', (_, views, shows) => {
    const nodes = [1, 2, 3].map(() => ({}) as NodePort);
    const replies = views.map((value) => ({ outcome: 'accepted', incarnation: '', value }) as NodeReply<NodeView>);
    expect(whatLaneShows({ nodes, replies }, 'c.1')).toBe(shows);
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
