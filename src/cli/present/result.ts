// What a command returns for display: data for machines, and verdict, facts, rows and next commands for people. Pure
// values, no printing.
import type { ExitCode } from '../../core/errors.js';

export type Verdict = 'OK' | 'WARN' | 'CRIT' | 'UNKNOWN';
export type Cell = string | number | bigint | boolean | null | undefined;

export interface Column {
  /** Name for --fields and csv. The heading is this name in upper case, unless `label` is given. */
  key: string;
  label?: string;
  /** Shown in `-o wide`, plain and csv, but not in a table. */
  wide?: boolean;
  align?: 'left' | 'right';
  /** Left out of a table that is too wide for the terminal otherwise: the column with the lowest number first. */
  spare?: number;
  /** Words, no name: a word may be broken where there is no room. */
  prose?: boolean;
}

export interface Table {
  title?: string;
  columns: Column[];
  rows: Record<string, Cell>[];
  /** Rows in a sequence that differ in this column alone are one row for people: the newest comes first. */
  runs?: string;
}

export interface Result {
  /**
   * JSON `data`. Numbers named height, epoch, floor or head (also …Height, epochFrom, epochTo etc.) and every bigint
   * become strings.
   */
  data: unknown;
  /** First line. */
  verdict?: { verdict: Verdict; reason: string; reasonCode: string };
  /** `name: value` lines below the verdict. */
  facts?: [name: string, value: Cell][];
  /** The first table is the main one: csv prints only that one, and --fields picks its columns. */
  tables?: Table[];
  /** Free text after the tables (help-like output, explanations). */
  text?: string;
  /** The text is not prose (a script, a log, a screen): its lines are never broken. */
  asIs?: boolean;
  /** Exact commands, shown last. */
  next?: string[];
  /** They go to stderr for people and into the envelope for machines. */
  warnings?: string[];
  /** What `-o ndjson` prints, one line each. Without it, ndjson is the envelope on one line. */
  items?: unknown[];
  /** Finished output for formats that only this command has (nagios, prometheus), or that it formats itself. */
  texts?: Partial<Record<string, string>>;
  meta?: Partial<Pick<Meta, 'nodesAsked' | 'nodesAnswered' | 'quorum'>>;
  /** Default 0. A "no" of a command that judges is an exit code, not an error. */
  exit?: ExitCode;
}

export interface Meta {
  context: string | null;
  /** ISO time at which the answer was complete. */
  at: string;
  durationMs: number;
  nodesAsked: number;
  nodesAnswered: number;
  quorum: number;
}

export interface ErrorBody {
  code: string;
  exit: number;
  message: string;
  why: string;
  changed: 'nothing' | 'some' | 'unknown';
  changedNodes: string[];
  next: string[];
  retryable: boolean;
}

/** The JSON document, on success and on failure. `ok` is false exactly when `error` is not null. */
export interface Envelope {
  apiVersion: 'seq/v1';
  kind: string;
  ok: boolean;
  data: unknown;
  warnings: string[];
  error: ErrorBody | null;
  meta: Meta;
}
