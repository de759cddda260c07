// What a bench passes to the harness. Ratios can be compared between machines, so only ratios are compared with the
// baseline. Figures are absolute, with the goal where there is one. They are shown, and a person judges them.

export type Unit = 'ms' | 'MB/s' | 'MB' | '%' | 'items/s' | '1/s' | 'µs' | 's' | 'KB' | '×';

/** One side of a comparison, in the unit of its table. */
export interface Row {
  side: string;
  n: number;
  p50: number;
  p95: number;
  p99: number;
  /** Spread of the medians of the rounds: tenth and ninetieth percentile. */
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
  /** The key in bench/baseline.json. It is unique over all benches, and the same in the short and the full form. */
  id: string;
  what: string;
  value: number;
  low: number;
  high: number;
  /** Null: no goal. The baseline then only checks that the ratio does not grow. */
  goal: Goal | null;
  /** How much worse than the baseline the ratio may be (0.35 = a third) before the check fails. */
  tolerance: number;
  /** The short form does not measure this ratio, and does not report it as missing. */
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
  /** ISO date, and the load of the machine. Figures taken at a load above the number of cores mean little. */
  at: string;
  seconds: number;
  loadBefore: number;
  loadAfter: number;
  tables: Table[];
  ratios: Ratio[];
  figures: Figure[];
  /** What could not be measured here, with the reason. */
  skipped: string[];
  notes: string[];
  /** The error text, when the bench itself failed. Results from before the failure stay valid. */
  failure: string | null;
}

/**
 * The tools of a bench. A bench reports each result at once, so that a failure half-way does not lose the earlier ones.
 */
export interface Measuring {
  readonly short: boolean;
  /** `full` or `short`, depending on the form. */
  pick<T>(full: T, short: T): T;
  /** True when a case of this name is wanted (`--only TEXT`). */
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
  /** Seconds that the short form may take before it is ended. */
  limitS: number;
  /** The same limit for the full form. The default is ten times `limitS`. */
  fullLimitS?: number;
  run(measuring: Measuring): Promise<void>;
}

export const atMost = (value: number): Goal => ({ op: '<=', value });
export const atLeast = (value: number): Goal => ({ op: '>=', value });
