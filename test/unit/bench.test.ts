// The harness of `npm run bench`: how it summarises samples, and how it judges ratios against the baseline. No bench
// runs here.
import { describe, expect, test } from 'vitest';
import { exitOf, judge, meets, renew, type Baseline } from '../../bench/harness/budget.js';
import { digits, markdownOf, summaryText } from '../../bench/harness/report.js';
import { interleave } from '../../bench/harness/rounds.js';
import { quantile, ratioOfRounds, ratioOfTails, rowOf } from '../../bench/harness/statistics.js';
import { atLeast, atMost, type Goal, type Outcome } from '../../bench/harness/words.js';

function outcome(
  name: string,
  ratios: [id: string, value: number, goal: Goal | null, tolerance?: number][],
  rest: Partial<Outcome> = {},
): Outcome {
  return {
    name,
    title: name,
    form: 'short',
    at: '2026-01-01T00:00:00.000Z',
    seconds: 1,
    loadBefore: 0,
    loadAfter: 0,
    tables: [],
    figures: [],
    skipped: [],
    notes: [],
    failure: null,
    ratios: ratios.map(([id, value, goal, tolerance = 0.5]) => ({
      id,
      what: id,
      value,
      low: value,
      high: value,
      goal,
      tolerance,
    })),
    ...rest,
  };
}
const baselineOf = (ratios: Record<string, number>, tolerance = 0.5): Baseline => ({
  machine: 'm',
  at: '2026-01-01',
  ratios: Object.fromEntries(Object.entries(ratios).map(([id, value]) => [id, { value, tolerance, goal: '' }])),
});

describe('bench statistics', () => {
  test.each([
    [[], 0.5, NaN],
    [[3], 0.99, 3],
    [[1, 2], 0.5, 1.5],
    [[3, 1, 2], 0.5, 2],
    [[1, 2, 3, 4, 5], 0, 1],
    [[1, 2, 3, 4, 5], 1, 5],
    [[0, 10], 0.95, 9.5],
  ])('bench: quantile of %j at %d → %d', (values, q, wanted) => {
    expect(quantile(values, q)).toBe(wanted);
  });

  test('bench: one round disturbed on both sides → the ratio of the others stands', () => {
    const a = [
      [1, 1],
      [1, 1],
      [100, 100],
    ];
    const b = [
      [2, 2],
      [2, 2],
      [200, 200],
    ];
    expect(ratioOfRounds(a, b, 0.5)).toEqual({ value: 2, low: 2, high: 2 });
    expect(ratioOfTails(a, b, 0.5).value).toBe(2);
  });

  test('bench: a row → quantiles of all samples, spread of the rounds, throughput', () => {
    expect(
      rowOf(
        'x',
        [
          [1, 3],
          [5, 7],
        ],
        2,
      ),
    ).toMatchObject({ side: 'x', n: 4, p50: 4, low: 2.4, high: 5.6, perSecond: 2 });
    expect(rowOf('x', [[1]], 0).perSecond).toBeNull();
    expect(rowOf('x', [[1]], 2, 100).perSecond).toBe(50);
  });

  test('bench: interleaved rounds → A B B A, warm-up left out, own samples taken as they are', async () => {
    const order: string[] = [];
    const side = (name: string, value: number) => ({
      name,
      work: async () => {
        order.push(name);
        return value;
      },
    });
    const measured = await interleave([side('a', 2), side('b', 6)], { rounds: 2, perRound: 1, warm: 1 });
    expect(order.join('')).toBe('abbaab');
    expect(measured.rows.map(({ n, p50 }) => [n, p50])).toEqual([
      [2, 2],
      [2, 6],
    ]);
    expect(measured.ratio('a', 'b').value).toBe(3);
  });
});

describe('bench budgets', () => {
  test.each<
    [what: string, value: number, goal: Goal | null, known: number | null, verdict: string, meetsGoal: boolean | null]
  >([
    ['less is better, as before', 1.4, atMost(1.6), 1.4, 'ok', true],
    ['less is better, almost at the edge of the budget', 2.09, atMost(1.6), 1.4, 'ok', false],
    ['less is better, beyond it', 2.2, atMost(1.6), 1.4, 'worse', false],
    ['less is better, much better', 0.1, atMost(1.6), 1.4, 'ok', true],
    ['more is better, as before', 150, atLeast(100), 150, 'ok', true],
    ['more is better, almost at the edge', 100.1, atLeast(100), 150, 'ok', true],
    ['more is better, below it', 99, atLeast(100), 150, 'worse', false],
    ['more is better, much better', 900, atLeast(100), 150, 'ok', true],
    ['no goal, as before', 1.4, null, 1.4, 'ok', null],
    ['no goal, beyond the budget', 2.2, null, 1.4, 'worse', null],
    ['not in the baseline', 5, atMost(1), null, 'new', false],
    ['nothing was measured', NaN, atMost(1), 1, 'worse', false],
  ])('bench: %s → its verdict', (_, value, goal, known, verdict, meetsGoal) => {
    const [judged] = judge(
      [outcome('x', [['x.r', value, goal]])],
      known === null ? null : baselineOf({ 'x.r': known }),
    );
    expect(judged).toMatchObject({ verdict, meetsGoal });
  });

  test(
    'bench: a ratio of the baseline that its bench no longer gives → gone; of a bench that did not ' +
      'run or skipped → nothing',
    () => {
      const baseline = baselineOf({ 'x.a': 1, 'x.b': 1, 'y.a': 1 });
      expect(
        judge([outcome('x', [['x.a', 1, atMost(1)]])], baseline).map(({ id, verdict }) => `${id} ${verdict}`),
      ).toEqual(['x.a ok', 'x.b gone']);
      expect(judge([outcome('x', [['x.a', 1, atMost(1)]], { skipped: ['no etcd'] })], baseline)).toHaveLength(1);
    },
  );

  test(
    'bench: a ratio that only the full form measures → not missed by the short one, and kept when ' + 'that is written',
    () => {
      const baseline = { ...baselineOf({ 'x.a': 1, 'x.b': 1 }) };
      baseline.ratios['x.b']!.fullOnly = true;
      const short = [outcome('x', [['x.a', 1, atMost(1)]])];
      expect(judge(short, baseline).map(({ id, verdict }) => `${id} ${verdict}`)).toEqual(['x.a ok']);
      expect(Object.keys(renew(baseline, short, 'here', 'now').ratios)).toEqual(['x.a', 'x.b']);
    },
  );

  test.each<[string, Outcome[], Baseline | null, number]>([
    ['all within', [outcome('x', [['x.a', 1, atMost(9)]])], baselineOf({ 'x.a': 1 }), 0],
    ['one worse', [outcome('x', [['x.a', 3, atMost(9)]])], baselineOf({ 'x.a': 1 }), 1],
    ['goal missed but as before', [outcome('x', [['x.a', 3, atMost(1)]])], baselineOf({ 'x.a': 3 }), 0],
    ['a bench broke', [outcome('x', [], { failure: 'boom' })], baselineOf({ 'x.a': 1 }), 70],
    ['no baseline at all', [outcome('x', [['x.a', 3, atMost(1)]])], null, 0],
  ])('bench: %s → the exit code', (_, outcomes, baseline, exit) => {
    expect(exitOf(outcomes, judge(outcomes, baseline))).toBe(exit);
  });

  test('bench: a new baseline → the ratios of the benches that ran to their end, the others kept', () => {
    const renewed = renew(
      baselineOf({ 'x.old': 1, 'y.a': 2, 'z.a': 3 }),
      [outcome('x', [['x.new', 1.23456, atMost(2)]]), outcome('z', [], { failure: 'boom' })],
      'here',
      'now',
    );
    expect(Object.keys(renewed.ratios)).toEqual(['x.new', 'y.a', 'z.a']);
    expect(renewed.ratios['x.new']).toEqual({ value: 1.23, tolerance: 0.5, goal: '≤ 2' });
    expect(meets(2, atMost(2)) && meets(2, atLeast(2))).toBe(true);
  });
});

describe('bench report', () => {
  test.each([
    [0.0123, '0.012'],
    [1.234, '1.23'],
    [12.34, '12.3'],
    [123.4, '123'],
    [12345.6, '12,346'],
    [NaN, '?'],
  ])('bench: %d → %s', (value, text) => {
    expect(digits(value)).toBe(text);
  });

  test('bench: a report → every ratio with its goal, what was skipped and what broke', () => {
    const outcomes = [
      outcome('x', [['x.a', 3, atMost(1)]], { skipped: ['no etcd here'] }),
      outcome('y', [], { failure: 'boom\nstack' }),
    ];
    const page = markdownOf(outcomes, { node: 'v1' });
    for (const part of [
      '| x.a: x.a | 3.00 | 3.00 … 3.00 | ≤ 1 | MISSED |',
      'Not measured: no etcd here',
      'The bench broke: boom',
      '| node | v1 |',
    ])
      expect(page).toContain(part);
    const text = summaryText(outcomes, judge(outcomes, baselineOf({ 'x.a': 1 })));
    for (const part of ['worse', 'skipped  x: no etcd here', 'BROKEN   y: boom']) expect(text).toContain(part);
  });
});
