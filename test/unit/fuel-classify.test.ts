// What one height of the other dialect adds up to: every class, its margins, and what is said about it
// (docs/FUEL.md).
import { describe, expect, test } from 'vitest';
import { classify, type HeightOnNode } from '../../src/core/dialect-fuel/classify.js';
import { concernsOf } from '../../src/core/dialect-fuel/concern.js';
import { describeFuel } from '../../src/core/dialect-fuel/describe.js';
import { fuelQuorumOf } from '../../src/core/dialect-fuel/types.js';

/**
 * A node a word: `X5` block X at epoch 5, `X5Y6` both, `.` nothing, `?` silent, `-` trimmed, `!` only in the index,
 * `X5~` not in the index.
 */
function nodes(words: string): HeightOnNode[] {
  return words.split(' ').map((word, at) => ({
    id: `r${at + 1}`,
    answered: word !== '?',
    trimmed: word === '-',
    indexed: word === '!' ? true : word.endsWith('~') ? false : /[A-Z]/.test(word) ? true : null,
    entries: [...word.matchAll(/([A-Z])(\d+)/g)].map((one) => ({
      digest: (one[1] as string).repeat(32),
      epoch: BigInt(one[2] as string),
    })),
  }));
}
const of = (words: string, budget = 0) => classify(7, nodes(words), fuelQuorumOf(words.split(' ').length, budget));

describe('classify', () => {
  test.each([
    // words, class, committed, also
    ['X1 X1 X1', 'committed', true, ''],
    ['X1 X1 .', 'committed', true, ''],
    ['X1 X1 ?', 'committed', true, ''],
    ['X268 X268 X268 X269 X270 X270', 'committed', true, ''],
    ['X1 X2 Y1', 'committed', true, ''],
    ['X1 X1 -', 'committed', true, ''],
    ['X1 . .', 'repairable', false, ''],
    ['X1 . ?', 'repairable', null, ''],
    ['X1 X1 X1 . . .', 'repairable', false, ''],
    ['X1 Y2 .', 'winnable-conflict', false, ''],
    ['X1 X1 Y2 Y2 . .', 'winnable-conflict', false, ''],
    ['X1 X1 Y2 . ?', 'winnable-conflict', null, ''],
    ['X1 Y2 Z3', 'unwinnable-conflict', false, ''],
    ['X1 X1 X1 Y2 Y2 Y2', 'unwinnable-conflict', false, ''],
    ['X1 Y2', 'unwinnable-conflict', false, ''],
    ['X1 X1Y2 Y2', 'unwinnable-conflict', null, 'duplicate'],
    ['X5 X5 Y7', 'shadowed', true, ''],
    ['X5 X5 Y5', 'committed', true, ''],
    ['X5 X9 Y7', 'committed', true, ''],
    ['X5 X5Y7 .', 'shadowed', true, 'duplicate'],
    ['X1 X1X2 X1', 'duplicate', true, ''],
    ['X1X2 . .', 'repairable', false, 'duplicate'],
    ['X1 X1Y1 X1', 'duplicate', true, ''],
    ['X1 X1 !', 'index-mismatch', true, ''],
    ['X1~ X1 X1', 'index-mismatch', true, ''],
    ['X1 ! !', 'index-mismatch', false, ''],
    ['X1 ! .', 'repairable', false, 'index-mismatch'],
    ['! . .', 'index-mismatch', false, ''],
    ['X1 X1X2 !', 'duplicate', true, 'index-mismatch'],
    ['- - X1', 'trimmed', null, ''],
    ['- - -', 'trimmed', null, ''],
    ['X1 - .', 'trimmed', null, ''],
    ['- . .', 'trimmed', null, ''],
    ['X1 Y1 - - .', 'trimmed', null, ''],
    ['? ? X1', 'unknown', null, ''],
    ['? ? ?', 'unknown', null, ''],
    ['X1 Y1 ?', 'unknown', null, ''],
    ['X1 X1 Y1 Y1 ?', 'unknown', null, ''],
    ['X1 ! ?', 'unknown', null, 'index-mismatch'],
  ])('height: %s → %s', (words, kind, committed, also) => {
    expect(of(words)).toMatchObject({ class: kind, committed, also: also.split(' ').filter(Boolean) });
  });

  test('height: nobody who answered has anything of it → no verdict', () => {
    expect(of('. . .')).toBeNull();
    expect(of('. . ?')).toBeNull();
  });

  test.each([
    [1, 0, 1],
    [2, 0, 2],
    [3, 0, 2],
    [4, 0, 3],
    [5, 0, 3],
    [6, 0, 4],
    [6, 1, 5],
    [6, 9, 6],
    [3, 1, 3],
  ])('quorum: %i nodes, budget %i → %i', (n, budget, q) => {
    expect(fuelQuorumOf(n, budget)).toBe(q);
  });

  test('budget: what a majority holds is not enough where one more is asked for', () => {
    expect(of('X1 X1 .')?.class).toBe('committed');
    expect(of('X1 X1 .', 1)?.class).toBe('repairable');
  });

  test('case 11 repair burns the last free node: X on two, Y on three, one empty of six → Y alone can win', () => {
    expect(
      of('X1 X1 Y2 Y2 Y2 .')?.blocks.map((block) => `${block.digest[0]} ${block.nodes.length} ${block.canWin}`),
    ).toEqual(['Y 3 true', 'X 2 false']);
  });

  test('properties: more copies, answers or nodes never contradict a commitment', () => {
    const words = ['X1', 'Y2', '.', '?', '-', 'X3'];
    for (const a of words)
      for (const b of words)
        for (const c of words)
          for (const d of words)
            for (const e of words) {
              const all = [a, b, c, d, e];
              const verdict = of(all.join(' '));
              const x = all.filter((word) => word.startsWith('X')).length;
              const y = all.filter((word) => word.startsWith('Y')).length;
              expect(verdict?.committed === true, all.join(' ')).toBe(x >= 3 || y >= 3);
              // If a silent or trimmed node could make it true, it is not denied.
              if (verdict?.committed === false)
                expect(Math.max(x, y) + all.filter((word) => word === '?').length, all.join(' ')).toBeLessThan(3);
            }
  });
});

describe('concerns', () => {
  test.each([
    ['X1 X1 .', true, ''],
    ['X1 X1X2 X1', true, ''],
    ['X1~ X1 X1', true, ''],
    ['X1 X1 Y1', false, ''],
    ['- - X1', false, ''],
    ['X1 . .', true, 'WARN REPAIRABLE'],
    ['X1 . .', false, ''],
    ['X1 Y2 .', false, 'WARN WINNABLE_CONFLICT'],
    ['X1 Y2 Z3', true, 'CRIT UNWINNABLE_CONFLICT'],
    ['X1 Y2 Z3', false, 'WARN UNWINNABLE_CONFLICT'],
    ['X1 X1Y2 Y2', false, 'CRIT UNWINNABLE_CONFLICT,WARN DUPLICATE'],
    ['X5 X5 Y7', false, 'WARN SHADOWED'],
    ['X1 X1 !', false, 'WARN INDEX_MISMATCH'],
    ['X1 X1Y1 X1', false, 'WARN DUPLICATE'],
    ['? ? X1', true, 'UNKNOWN UNDETERMINED'],
  ])('concern: %s, nothing committed above: %s → %s', (words, above, expected) => {
    expect(
      concernsOf(of(words)!, above)
        .map((one) => `${one.verdict} ${one.code}`)
        .join(','),
    ).toBe(expected);
  });
});

describe('sentences', () => {
  const x = 'X'.repeat(12);
  const y = 'Y'.repeat(12);
  test.each([
    ['X1 X1 .', 'height 7 is committed on 2 of 3'],
    ['X1 . .', 'height 7: 1 of 3 hold it, 2 are needed, and r2 and r3 can still take it'],
    [
      'X1 . ?',
      'height 7: 1 of 3 hold it, 2 are needed, and r2 can still take it; r3 did not answer and could make it committed',
    ],
    [
      'X1 Y2 .',
      `height 7: the bytes differ: ${y} on r2 at epoch 2 and ${x} on r1 at epoch 1; ${y} and ${x} can ` +
        'still reach 2 of 3',
    ],
    [
      'X1 Y2',
      `height 7: the bytes differ: ${y} on r2 at epoch 2 and ${x} on r1 at epoch 1; none can reach 2 ` +
        'of 2: nothing is produced here until a person decides',
    ],
    [
      'X5 X5 Y7',
      `height 7 is committed on 2 of 3, and the bytes differ on ${y} on r3 at epoch 7, above the epoch ` +
        '5 of the committed block: a reconciler may prefer it',
    ],
    ['X1 X1X2 X1', 'height 7 is committed on 3 of 3; r2 holds 2 entries here, of the same bytes'],
    [
      'X1 X1 !',
      'height 7 is committed on 2 of 3; on r3 the index has it and the stream does not: writes are ' +
        'refused as HEIGHT_EXISTS',
    ],
    ['X1~ X1 X1', 'height 7 is committed on 3 of 3; on r1 it is missing in the index: it could be written there again'],
    [
      '- - X1',
      'height 7: 1 of 3 still hold it, r1 and r2 may have trimmed it: whether it was committed cannot be told any more',
    ],
    ['? ? X1', 'height 7: only 1 of 3 nodes could be read, 2 are needed to tell'],
  ])('say: %s → %s', (words, sentence) => {
    const said = describeFuel(of(words)!);
    expect(said).toBe(sentence);
    expect(said).not.toMatch(/fork/i);
  });
});
