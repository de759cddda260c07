// Bounded histories: a watch that runs for weeks keeps only what fits on a screen. Pure.

const SERIES_LENGTH = 240;

/** `values` with one more value. The oldest is dropped beyond the bound. */
export function push<T>(values: readonly T[], value: T, limit = SERIES_LENGTH): T[] {
  return values.length < limit ? [...values, value] : [...values.slice(values.length - limit + 1), value];
}

/** null when there are no values. */
export function percentile(values: readonly number[], part: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(part * sorted.length) - 1)] ?? null;
}

export interface Sample {
  at: number;
  value: number;
}

/** Change per second over the samples of the last `windowMs`. Null when there are too few. */
export function slope(samples: readonly Sample[], windowMs: number): number | null {
  const last = samples.at(-1);
  if (last === undefined) return null;
  const first = samples.find((sample) => last.at - sample.at <= windowMs);
  if (first === undefined || last.at - first.at < 200) return null;
  return ((last.value - first.value) * 1000) / (last.at - first.at);
}
