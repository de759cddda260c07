// Computes results from samples: quantiles, one line per side, and the ratio of two sides that were measured in
// interleaved rounds. The ratio is the median over rounds of (B's quantile ÷ A's quantile *of the same round*). So a
// disturbance of the machine that lasts a while disturbs both sides.
import type { Row } from './words.js';

/** Linear between neighbours. NaN without samples. */
export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * Math.min(1, Math.max(0, q));
  const low = sorted[Math.floor(place)]!;
  const high = sorted[Math.ceil(place)]!;
  return low + (high - low) * (place - Math.floor(place));
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

export interface Spread {
  value: number;
  /** Tenth and ninetieth percentile over rounds. */
  low: number;
  high: number;
}

export function spread(values: readonly number[]): Spread {
  return { value: median(values), low: quantile(values, 0.1), high: quantile(values, 0.9) };
}

/**
 * One side's samples, one list per round. `seconds` is the time of all rounds together, for the throughput of
 * sequential or parallel work.
 */
export function rowOf(side: string, rounds: readonly (readonly number[])[], seconds: number, count?: number): Row {
  const all = rounds.flat();
  const { low, high } = spread(rounds.map((round) => median(round)));
  return {
    side,
    n: all.length,
    p50: median(all),
    p95: quantile(all, 0.95),
    p99: quantile(all, 0.99),
    low,
    high,
    perSecond: seconds > 0 ? (count ?? all.length) / seconds : null,
  };
}

/** B ÷ A at one quantile, round by round. */
export function ratioOfRounds(a: readonly (readonly number[])[], b: readonly (readonly number[])[], q: number): Spread {
  return spread(a.map((round, at) => quantile(b[at] ?? [], q) / quantile(round, q)));
}

/**
 * One round alone says little about the slow end. So the value is computed over all rounds together; the spread is
 * still per round.
 */
export function ratioOfTails(a: readonly (readonly number[])[], b: readonly (readonly number[])[], q: number): Spread {
  const { low, high } = ratioOfRounds(a, b, q);
  return { value: quantile(b.flat(), q) / quantile(a.flat(), q), low, high };
}
