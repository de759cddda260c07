// Compares ratios with bench/baseline.json. The budget of a ratio is its value when the baseline was written, plus its
// tolerance. The check finds what got worse, whether or not the goal was ever met. Goals are shown beside it and decide
// nothing.
import type { Goal, Outcome, Ratio } from './words.js';

export interface Baseline {
  /** The machine on which the baseline was written. Ratios can be compared between machines well, but not perfectly. */
  machine: string;
  at: string;
  ratios: Record<string, { value: number; tolerance: number; goal: string; fullOnly?: true }>;
}

export type Verdict = 'ok' | 'worse' | 'new' | 'gone';

export interface Judgement {
  id: string;
  verdict: Verdict;
  value: number | null;
  /** The worst value that is still within the budget. */
  limit: number | null;
  meetsGoal: boolean | null;
}

export function meets(value: number, goal: Goal): boolean {
  return goal.op === '<=' ? value <= goal.value : value >= goal.value;
}

export const goalText = (goal: Goal | null): string =>
  goal === null ? '' : `${goal.op === '<=' ? '≤' : '≥'} ${goal.value.toLocaleString('en-US')}`;

function limitOf(value: number, tolerance: number, op: Goal['op']): number {
  return op === '<=' ? value * (1 + tolerance) : value / (1 + tolerance);
}

/**
 * One judgement for each measured ratio. Then one for each ratio of the baseline that a completed bench no longer
 * reports.
 */
export function judge(outcomes: readonly Outcome[], baseline: Baseline | null): Judgement[] {
  const measured = outcomes.flatMap((outcome) => outcome.ratios);
  const judged = measured.map((ratio): Judgement => {
    const known = baseline?.ratios[ratio.id];
    const meetsGoal = ratio.goal === null ? null : Number.isFinite(ratio.value) && meets(ratio.value, ratio.goal);
    // A ratio that is no number is a failure, not a good value.
    if (!Number.isFinite(ratio.value))
      return { id: ratio.id, verdict: 'worse', value: ratio.value, limit: null, meetsGoal };
    if (known === undefined) return { id: ratio.id, verdict: 'new', value: ratio.value, limit: null, meetsGoal };
    const op = ratio.goal?.op ?? '<=';
    const limit = limitOf(known.value, known.tolerance, op);
    return {
      id: ratio.id,
      verdict: meets(ratio.value, { op, value: limit }) ? 'ok' : 'worse',
      value: ratio.value,
      limit,
      meetsGoal,
    };
  });
  const names = outcomes
    .filter(({ failure, skipped }) => failure === null && skipped.length === 0)
    .map(({ name }) => `${name}.`);
  const gone = Object.entries(baseline?.ratios ?? {}).filter(
    ([id, { fullOnly }]) =>
      !fullOnly && names.some((name) => id.startsWith(name)) && !measured.some((ratio) => ratio.id === id),
  );
  return [
    ...judged,
    ...gone.map(([id]): Judgement => ({ id, verdict: 'gone', value: null, limit: null, meetsGoal: null })),
  ];
}

/** 0: nothing is worse. 1: something is worse, or a ratio is missing. 70: a bench failed, so the result is unknown. */
export function exitOf(outcomes: readonly Outcome[], judgements: readonly Judgement[]): 0 | 1 | 70 {
  if (outcomes.some(({ failure }) => failure !== null)) return 70;
  return judgements.some(({ verdict }) => verdict === 'worse' || verdict === 'gone') ? 1 : 0;
}

/** Returns the baseline with these outcomes' ratios in place of the old ratios of the same benches. */
export function renew(baseline: Baseline | null, outcomes: readonly Outcome[], machine: string, at: string): Baseline {
  const whole = outcomes.filter(({ failure }) => failure === null);
  const kept = Object.entries(baseline?.ratios ?? {}).filter(
    ([id, { fullOnly }]) =>
      fullOnly || !whole.some(({ name, skipped }) => id.startsWith(`${name}.`) && skipped.length === 0),
  );
  const fresh = whole
    .flatMap(({ ratios }) => ratios)
    .filter(({ value }) => Number.isFinite(value))
    .map(
      (ratio: Ratio) =>
        [
          ratio.id,
          {
            value: Number(ratio.value.toPrecision(3)),
            tolerance: ratio.tolerance,
            goal: goalText(ratio.goal),
            ...(ratio.fullOnly ? { fullOnly: true as const } : {}),
          },
        ] as const,
    );
  return {
    machine,
    at,
    ratios: Object.fromEntries([...new Map([...kept, ...fresh])].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}
