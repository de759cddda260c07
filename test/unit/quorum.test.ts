import { describe, expect, test } from 'vitest';
import {
  commits,
  fencedOut,
  margin,
  mayBeCommitted,
  quorumOf,
  tally,
  votesOf,
  type TallyOutcome,
} from '../../src/core/protocol/quorum.js';

describe('quorum: size', () => {
  test.each([
    [1, 1],
    [2, 2],
    [3, 2],
    [4, 3],
    [5, 3],
    [6, 4],
    [7, 4],
  ])('quorum: n=%i → q=%i', (n, q) => {
    expect(quorumOf(n)).toBe(q);
    expect(2 * q, 'two quorums share a node').toBeGreaterThan(n);
  });
});

// One row per n: every (yes, no) with the rest unknown. Row = yes 0…n, letter = no 0…n−yes. w won, l lost, p pending.
const TABLE: Record<number, string[]> = {
  1: ['pl', 'w'],
  2: ['pll', 'pl', 'w'],
  3: ['ppll', 'ppl', 'ww', 'w'],
  4: ['pplll', 'ppll', 'ppl', 'ww', 'w'],
  5: ['ppplll', 'pppll', 'pppl', 'www', 'ww', 'w'],
};
const OUTCOME: Record<string, TallyOutcome> = { w: 'won', l: 'lost', p: 'pending' };

for (const [size, rows] of Object.entries(TABLE)) {
  const n = Number(size);
  describe(`quorum: every answer of n=${n}`, () => {
    rows.forEach((row, yes) => {
      test(`quorum: ${yes} yes of ${n}, no = 0…${n - yes} → ${row}`, () => {
        expect(row).toHaveLength(n - yes + 1);
        [...row].forEach((letter, no) => {
          expect(tally({ yes, no, unknown: n - yes - no, n }), `yes ${yes} no ${no}`).toBe(OUTCOME[letter]);
        });
      });
    });
    test('quorum: won and lost never change as unknown answers arrive', () => {
      for (let yes = 0; yes <= n; yes += 1) {
        for (let no = 0; no + yes <= n; no += 1) {
          const unknown = n - yes - no;
          const now = tally({ yes, no, unknown, n });
          if (unknown === 0) expect(now).not.toBe('pending');
          if (unknown === 0 || now === 'pending') continue;
          expect(tally({ yes: yes + 1, no, unknown: unknown - 1, n })).toBe(now);
          expect(tally({ yes, no: no + 1, unknown: unknown - 1, n })).toBe(now);
        }
      }
    });
    test('quorum: fenced out exactly when the others are no quorum', () => {
      for (let fenced = 0; fenced <= n; fenced += 1) {
        expect(fencedOut(fenced, n)).toBe(tally({ yes: 0, no: fenced, unknown: n - fenced, n }) === 'lost');
        expect(margin(n - fenced, n) < 0).toBe(fencedOut(fenced, n));
      }
    });
    test('quorum: committed means q copies, maybe committed means q with the unknown ones', () => {
      for (let copies = 0; copies <= n; copies += 1) {
        expect(commits(copies, n)).toBe(tally({ yes: copies, no: n - copies, unknown: 0, n }) === 'won');
        for (let unknown = 0; unknown + copies <= n; unknown += 1) {
          const outcome = tally({ yes: copies, no: n - copies - unknown, unknown, n });
          expect(mayBeCommitted(copies, unknown, n)).toBe(outcome !== 'lost');
        }
      }
    });
  });
}

describe('quorum: votes', () => {
  const yes = { outcome: 'accepted', incarnation: 'i', value: 1 } as const;
  const no = { outcome: 'refused', reason: 'GAP', detail: {} } as const;
  const lost = { outcome: 'unknown', step: 'reply', cause: 'timeout' } as const;
  test.each([
    ['quorum: case 24, two of five reachable and both say yes → pending', [yes, yes], 5, 'pending'],
    ['quorum: a lost reply is not a no → pending (n=3)', [yes, no, lost], 3, 'pending'],
    ['quorum: not yet there is not a no → pending (n=3)', [yes, no, undefined], 3, 'pending'],
    ['quorum: two refusals of three → lost', [yes, no, no], 3, 'lost'],
    ['quorum: 2–2 of 4 → lost', [yes, yes, no, no], 4, 'lost'],
  ])('%s', (_name, replies, n, outcome) => {
    expect(tally(votesOf(replies, n))).toBe(outcome);
  });
  test('quorum: more answers than nodes → a bug, said so', () => {
    expect(() => tally({ yes: 2, no: 2, unknown: 0, n: 3 })).toThrow(/do not add up to 3/);
    expect(() => tally({ yes: 4, no: 0, unknown: -1, n: 3 })).toThrow(RangeError);
  });
});
