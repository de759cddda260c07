// The time that blocks bear: the nodes' median, carried on by the monotonic clock. A row a situation.
import { describe, expect, test } from 'vitest';
import { ChainTime } from '../../src/core/sequencer/lead/chain-time.js';

const START = 1_700_000_000_000;
const HOUR = 3_600_000;

/** How far each node's clock is ahead; null: never heard. All are heard now, with round trips of 4 ms. */
function hear(time: ChainTime, now: number, ...aheadMs: (number | null)[]): void {
  aheadMs.forEach((ahead, i) => {
    if (ahead === null) return;
    time.hear({ node: `r${i + 1}`, timeMs: START + now + ahead, sentAt: now - 2, heardAt: now + 2 });
  });
}
function heard(...aheadMs: (number | null)[]): ChainTime {
  const time = new ChainTime(() => Math.floor(aheadMs.length / 2) + 1);
  hear(time, 0, ...aheadMs);
  return time;
}

describe('a first block', () => {
  test.each([
    ['all agree', [0, 0, 0], 0],
    ['one of three is a day ahead', [0, 25 * HOUR, 0], 0],
    ['one of three is a day behind', [0, 0, -25 * HOUR], 0],
    ['one of three is ahead, one silent: the lower of two', [0, 25 * HOUR, null], 0],
    ['two of five are ahead', [0, 9000, 9000, 5, -3], 5],
    ['one of two is ahead', [7000, 3], 3],
    ['the only one', [3], 3],
  ])('chain time: %s → the median', (_what, aheadMs, expected) => {
    expect(heard(...aheadMs).next(0, 0) - START).toBe(expected);
  });

  test('chain time: the parent is later → as late as the parent', () => {
    expect(heard(0, 0, 0).next(START + 5000, 0)).toBe(START + 5000);
  });
  test.each([
    ['nobody was heard', [null, null, null]],
    ['one of three was heard', [0, null, null]],
  ])('chain time: %s → the time of the parent', (_what, aheadMs) => {
    expect(heard(...aheadMs).next(START - 1, 1000)).toBe(START - 1);
  });
});

describe('the blocks after it', () => {
  /** Blocks each `everyMs` up to `untilMs`; the clocks are set at 1000 and set right at 3500. Gains over real time. */
  function gains(everyMs: number, untilMs: number, aheadMs: number[]): number {
    const time = heard(0, 0, 0);
    time.began();
    let parent = time.next(0, 0);
    for (let now = everyMs; now <= untilMs; now += everyMs) {
      hear(time, now, ...(now >= 1000 && now < 3500 ? aheadMs : [0, 0, 0]));
      parent = time.next(parent, now);
    }
    return parent - START - untilMs;
  }

  test.each([
    ['one node a day ahead for 2.5 s, a block a second', 1000, 3000, [25 * HOUR, 0, 0], 0],
    ['two nodes a day ahead for 2.5 s, a block a second', 1000, 3000, [25 * HOUR, 25 * HOUR, 0], 3000],
    ['two nodes a day ahead for 2.5 s, ten blocks a second', 100, 3400, [25 * HOUR, 25 * HOUR, 0], 2500],
    ['two nodes a day ahead for 2.5 s, 4000 blocks a second', 0.25, 3400, [25 * HOUR, 25 * HOUR, 0], 2400],
    ['and some time later', 100, 8000, [25 * HOUR, 25 * HOUR, 0], 0],
    ['two nodes a day behind for 2.5 s: it stands still', 100, 3000, [-25 * HOUR, 0, -25 * HOUR], -2100],
    ['and some time later', 100, 6200, [-25 * HOUR, 0, -25 * HOUR], 0],
  ])('chain time: %s → follows at twice the pace at most', (_what, everyMs, untilMs, aheadMs, expected) => {
    expect(Math.abs(gains(everyMs, untilMs, aheadMs) - expected)).toBeLessThanOrEqual(1);
  });

  test('chain time: a pause of an hour between two blocks → nothing is gained beyond a second', () => {
    const time = heard(0, 0, 0);
    time.began();
    const parent = time.next(0, 0);
    hear(time, HOUR, 25 * HOUR, 25 * HOUR, 0);
    expect(time.next(parent, HOUR) - START).toBe(HOUR + 1000);
  });
  test('chain time: the clocks of most nodes were wrong for good → a new leader takes the median', () => {
    const time = heard(0, 0, 0);
    const parent = time.next(0, 0);
    hear(time, 1000, 9 * HOUR, 9 * HOUR, 9 * HOUR);
    time.began();
    expect(time.next(parent, 1000) - START).toBe(9 * HOUR + 1000);
  });
});

describe('wrong clocks', () => {
  test.each([
    ['all agree', 0, [0, 0, 0], []],
    ['within the bound', 2000, [0, 0, -1900], []],
    ['its own, ahead', 25 * HOUR, [0, 0, 0], [['', 25 * HOUR]]],
    ['its own, behind', -3000, [0, 0, 0], [['', -3000]]],
    ['one node', 0, [0, 0, 180_000], [['r3', 180_000]]],
    ['its own and two of five', 5000, [0, -4000, 0, 0, 9000], [['', 5000], ['r2', -4000], ['r5', 9000]]], // prettier-ignore
    ['fewer than a quorum were heard', 5000, [0, null, null], []],
  ])('chain time: %s → named', (_what, wallAheadMs, aheadMs, expected) => {
    const found = heard(...(aheadMs as (number | null)[])).wrong(START + 100 + wallAheadMs, 100);
    expect(found.map(({ node, aheadMs: ms }) => [node, ms])).toEqual(expected);
  });

  test('chain time: a round trip of 10 s hides 5 s → nothing is said', () => {
    const time = new ChainTime(() => 1);
    time.hear({ node: 'r1', timeMs: START, sentAt: 0, heardAt: 10_000 });
    expect(time.wrong(START + 5000 + 6900, 10_000)).toEqual([]);
    expect(time.wrong(START + 5000 + 7100, 10_000)).toHaveLength(1);
  });
});
