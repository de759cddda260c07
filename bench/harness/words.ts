// What a bench hands to the harness. Ratios are what runs on different machines have in common: only they are held
// against the baseline. Figures are absolute, with the goal where there is one; they are shown, and judged by a
// person.

export type Unit = 'ms' | 'MB/s' | 'MB' | '%' | 'items/s' | '1/s' | 'µs' | 's' | 'KB' | '×';

/** One side of a comparison, in the unit of its table. */
export interface Row {
  side: string;
  n: number;
  p50: number;
  p95: number;
  p99: number;
  /** Spread of the rounds' medians: tenth and ninetieth percentile. */
  low: number;
  high: number;
  perSecond: number | null;
}

export interface Table {
  title: string;
  unit: Unit;
  rows: Row[];
}

export interface Goal {
  op: '<=' | '>=';
  value: number;
}

export interface Ratio {
  /** Unique over all benches and the same in the short and the full form: the key in bench/baseline.json. */
  id: string;
  what: string;
  value: number;
  low: number;
  high: number;
  /** null: none; the baseline holds that it does not grow. */
  goal: Goal | null;
  /** How much worse than the baseline it may be (0.35 = a third) before the check calls it worse. */
  tolerance: number;
  /** The short form does not measure it, and misses nothing by that. */
  fullOnly?: boolean;
}

export interface Figure {
  what: string;
  value: number;
  unit: Unit;
  goal: Goal | null;
}

export interface Outcome {
  name: string;
  title: string;
  form: 'short' | 'full';
  /** ISO date, and how busy the machine was: figures taken at a load above the number of cores mean little. */
  at: string;
  seconds: number;
  loadBefore: number;
  loadAfter: number;
  tables: Table[];
  ratios: Ratio[];
  figures: Figure[];
  /** What could not be measured here, and why. */
  skipped: string[];
  notes: string[];
  /** The bench itself broke: what it said. What it had measured until then stands. */
  failure: string | null;
}

/**
 * What a bench measures with. Reports as it goes, so that a bench that breaks half-way has not measured for nothing.
 */
export interface Measuring {
  readonly short: boolean;
  /** `full` or `short`, by the form. */
  pick<T>(full: T, short: T): T;
  /** Whether a case of this name is wanted (`--only TEXT`). */
  wants(name: string): boolean;
  say(text: string): void;
  table(table: Table): void;
  ratio(ratio: Omit<Ratio, 'tolerance'> & { tolerance?: number }): void;
  figure(figure: Omit<Figure, 'goal'> & { goal?: Goal }): void;
  skip(why: string): void;
  note(text: string): void;
}

export interface Bench {
  title: string;
  /** Seconds the short form may take before it is ended. */
  limitS: number;
  /** The same of the full form; ten times `limitS` where it does not say. */
  fullLimitS?: number;
  run(measuring: Measuring): Promise<void>;
}

export const atMost = (value: number): Goal => ({ op: '<=', value });
export const atLeast = (value: number): Goal => ({ op: '>=', value });
