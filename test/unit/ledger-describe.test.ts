import { describe, expect, test } from 'vitest';
import {
  describeAnomaly,
  describeCopies,
  describeReplies,
  describeVerdict,
  describeVotes,
  listed,
} from '../../src/core/protocol/describe.js';
import { readLedger, type NodeLedger } from '../../src/core/protocol/ledger.js';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);
const facts = { head: 9, headEpoch: 1, headHash: 'p', floor: 8, floorHash: 'o' };
const below = { height: 9, epoch: 1, hash: 'p', parent: 'o' };
const silent = (id: string): NodeLedger => ({ id, answered: false });
const bare = (id: string): NodeLedger => ({ id, answered: true, admitted: true, facts, entries: [below], damaged: [] });
const with_ = (id: string, hash: string, epoch: number, admitted = true): NodeLedger => ({
  id,
  answered: true,
  admitted,
  facts: { ...facts, head: 10, headHash: hash, headEpoch: epoch },
  entries: [below, { height: 10, epoch, hash, parent: 'p' }],
  damaged: [],
});
const bad = (id: string): NodeLedger => ({
  id,
  answered: true,
  admitted: true,
  facts: { ...facts, head: 10 },
  entries: [below],
  damaged: [{ id: '10-1', height: 10, why: 'its hash is wrong' }],
});

describe('describe: one height', () => {
  test.each<[string, NodeLedger[], string]>([
    [
      'all',
      [with_('r1', A, 1), with_('r2', A, 1), with_('r3', A, 1)],
      'height 10: aaaaaaaa is committed, 3 of 3 hold it',
    ],
    [
      'one silent',
      [with_('r1', A, 1), silent('r2'), with_('r3', A, 1)],
      'height 10: aaaaaaaa is committed, 2 of 3 hold it; r2 did not answer',
    ],
    [
      'one lacks',
      [with_('r1', A, 1), with_('r2', A, 1), bare('r3')],
      'height 10: aaaaaaaa is committed, 2 of 3 hold it; r3 lacks it',
    ],
    [
      'orphan',
      [with_('r1', A, 1), with_('r2', A, 1), with_('r3', B, 2)],
      'height 10: aaaaaaaa is committed, 2 of 3 hold it; r3 holds bbbbbbbb of epoch 2, an orphan',
    ],
    [
      'not admitted',
      [with_('r1', A, 1), with_('r2', A, 1), with_('r3', A, 1, false)],
      'height 10: aaaaaaaa is committed, 2 of 3 hold it; r3 is not admitted and counts for nothing',
    ],
    [
      'pending',
      [with_('r1', A, 1), bare('r2'), bare('r3')],
      'height 10: pending, 1 of 3 hold aaaaaaaa under epoch 1, 2 are needed; r2 and r3 lack it',
    ],
    [
      'pending, open',
      [with_('r1', A, 1), bare('r2'), silent('r3')],
      'height 10: pending, 1 of 3 hold aaaaaaaa under epoch 1, 2 are needed; those that cannot be ' +
        'asked or believed could make it committed; r2 lacks it; r3 did not answer',
    ],
    [
      'two epochs',
      [with_('r1', A, 1), with_('r2', A, 2), bare('r3')],
      'height 10: pending, 1 of 3 hold aaaaaaaa under epoch 2, 2 are needed (it stands under epochs 1 ' +
        'and 2, which do not add up); r3 lacks it',
    ],
    [
      'silence',
      [silent('r1'), silent('r2'), bare('r3')],
      'height 10: undetermined, too few nodes answered to tell; r1 and r2 did not answer',
    ],
    [
      'conflict',
      [with_('r1', A, 1), with_('r2', B, 1), bare('r3')],
      'height 10: CONFLICT, epoch 1 has two blocks: aaaaaaaa and bbbbbbbb',
    ],
    [
      'damage',
      [with_('r1', A, 1), bad('r2'), bare('r3')],
      'height 10: damaged, and too few sound copies to tell what is committed; r3 lacks it; r2 is ' +
        'damaged there (its hash is wrong)',
    ],
    ['nothing', [bare('r1'), bare('r2'), bare('r3')], 'height 10: nothing there'],
  ])('describe: %s', (_name, nodes, sentence) => {
    expect(describeVerdict(readLedger(nodes, nodes.length, { from: 10, to: 10 })[0]!)).toBe(sentence);
  });
});

describe('describe: tallies and replies', () => {
  test('describe: votes → counts, need, and whether silence could still decide', () => {
    expect(describeVotes({ yes: 2, no: 0, unknown: 1, n: 3 }, 'hold it')).toBe(
      '2 of 3 hold it, 2 are needed; 1 did not answer',
    );
    expect(describeVotes({ yes: 1, no: 1, unknown: 1, n: 3 })).toBe(
      '1 of 3 accepted, 2 are needed; 1 refused, 1 did not answer, which could still make it 2',
    );
    expect(describeVotes({ yes: 1, no: 0, unknown: 0, n: 1 })).toBe('1 of 1 accepted, 1 is needed');
  });
  test('describe: replies → every node that did not accept in its own words, with step and limit', () => {
    const sentence = describeReplies(
      [
        { node: 'r1', reply: { outcome: 'accepted', incarnation: 'i', value: {} } },
        { node: 'r2', reply: { outcome: 'refused', reason: 'LOCK_HELD', detail: { holder: 'seq-b/1', pttlMs: 40 } } },
        { node: 'r3', reply: { outcome: 'unknown', step: 'connect', cause: 'ECONNREFUSED', limitMs: 100 } },
      ],
      4,
    );
    expect(sentence).toBe(
      '1 of 4 accepted, 3 are needed; r2: LOCK_HELD by seq-b/1 for 40 ms; r3: no answer at connect ' +
        'within 100 ms: ECONNREFUSED; 1 was not asked',
    );
  });
  test('describe: copies, lists, anomalies', () => {
    expect(describeCopies(2, ['r2'], 3)).toBe('2 of 3 hold it; r2 did not answer');
    expect(describeCopies(1, ['r2'], 3)).toBe('1 of 3 hold it; r2 did not answer and could make it committed');
    expect([listed([]), listed(['a']), listed(['a', 'b']), listed(['a', 'b', 'c'])]).toEqual([
      '',
      'a',
      'a and b',
      'a, b and c',
    ]);
    expect(describeAnomaly({ kind: 'chain-mismatch', height: 3, why: 'x', nodes: ['r1'] })).toBe(
      'CHAIN_MISMATCH at height 3: x (r1)',
    );
  });
});
