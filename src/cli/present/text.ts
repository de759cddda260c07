// Result → text for people (table, wide) and for pipes (plain, csv). Order: verdict, facts, rows, text, next. Pure. A
// table fits the terminal; plain is tab-separated, untruncated and without colour.
import type { table as DrawTable } from 'table';
import type { Cell, Column, Result, Table } from './result.js';
import type { Wrap } from './wrap.js';

export interface TextStyle {
  format: 'table' | 'wide' | 'plain' | 'csv';
  /**
   * Terminal width. A table that is wider has its dates shortened, and then its columns of words broken, the last one
   * first. If that is not enough, each cell gets a `name: value` line.
   */
  width: number;
  /** Lines of the terminal. If the answer has more, the verdict is repeated at the end. */
  height?: number | undefined;
  colour: boolean;
  /** Only the answer: rows, or facts where there are no rows. */
  quiet: boolean;
  fields: string[];
  /**
   * The function that draws tables. Loading it costs a pipe more than everything else, so it is given only for table
   * and wide.
   */
  drawTable?: typeof DrawTable;
  /** Breaks prose at words when a person reads it. Without it lines stay whole. */
  wrap?: Wrap;
}

export const whole: Wrap = (prefix, text) => [prefix + text];

/** Every line of a text, with its own indentation. */
export function prose(text: string, wrap: Wrap): string[] {
  return text.split('\n').flatMap((line) => {
    const indent = /^ *(?:- )?/.exec(line)?.[0] ?? '';
    return wrap(indent, line.slice(indent.length));
  });
}

/** `table` and `wide` cut a table with more rows than this (plain and json have all rows). */
const MOST_ROWS = 1000;
const COLOURS = { OK: 32, WARN: 33, CRIT: 31, UNKNOWN: 35 } as const;

export function paint(text: string, code: number, colour: boolean): string {
  return colour ? `\u001b[${code}m${text}\u001b[0m` : text;
}

function show(cell: Cell): string {
  if (cell === null || cell === undefined || cell === '') return '-';
  return String(cell);
}

/** Tabs and line ends inside a value would break the columns. */
function flat(cell: Cell): string {
  return (cell === null || cell === undefined ? '' : String(cell))
    .replace(/\t/g, '\\t')
    .replace(/\r/g, '\\r')
    .replace(/\n/g, '\\n');
}

function quoted(cell: Cell): string {
  const text = cell === null || cell === undefined ? '' : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function heading(column: Column): string {
  return column.label ?? column.key.toUpperCase();
}

function chosen(table: Table, style: TextStyle): Column[] {
  if (style.fields.length > 0)
    return style.fields.flatMap((name) =>
      table.columns.filter((column) => column.key === name).map(({ spare: _, ...column }) => column),
    );
  return style.format === 'table' ? table.columns.filter((column) => !column.wide) : table.columns;
}

function drawn(table: Table, style: TextStyle): string[] {
  const { wrap = whole } = style;
  const wanted = chosen(table, style);
  const all =
    style.format === 'table' && table.runs !== undefined ? inRuns(table.rows, wanted, table.runs) : table.rows;
  const rows = all.slice(0, MOST_ROWS);
  const full = [
    wanted.map(heading),
    ...rows.map((row) => wanted.map((column) => show(row[column.key]).replace(/[\u0000-\u001f\u007f]/g, ' '))),
  ];
  const lines = table.title && !style.quiet ? [table.title] : [];
  const narrow = style.format === 'table' && style.width < widthOf(full);
  const { columns, cells, widths } = narrow
    ? fitted(
        wanted,
        full.map((row) => row.map(shortDate)),
        style.width,
      )
    : { columns: wanted, cells: full, widths: [] };
  if (widths === null) {
    const widest = Math.max(...columns.map((column) => heading(column).length));
    for (const row of cells.slice(1)) {
      lines.push(...columns.flatMap((column, at) => wrap(`${heading(column).padEnd(widest)}  `, row[at] ?? '')), '');
    }
    if (lines.at(-1) === '') lines.pop();
  } else {
    const text = style.drawTable!(cells, {
      border: Object.fromEntries(
        [
          'topBody',
          'topJoin',
          'topLeft',
          'topRight',
          'bottomBody',
          'bottomJoin',
          'bottomLeft',
          'bottomRight',
          'bodyLeft',
          'bodyRight',
          'bodyJoin',
          'joinBody',
          'joinLeft',
          'joinRight',
          'joinJoin',
        ].map((name) => [name, '']),
      ),
      columnDefault: { paddingLeft: 0, paddingRight: 2, wrapWord: false },
      columns: columns.map((column, at) => ({
        alignment: column.align ?? 'left',
        ...(widths[at] === undefined ? {} : { width: widths[at], wrapWord: true }),
      })),
      drawHorizontalLine: () => false,
    });
    lines.push(
      ...text
        .split('\n')
        .map((line) => line.trimEnd())
        .filter((line) => line !== ''),
    );
  }
  const spared = wanted.filter((column) => !columns.includes(column)).map(heading);
  if (spared.length > 0) lines.push(...wrap('', `without ${spared.join(', ')} (-o wide shows all columns)`));
  if (all.length > rows.length) lines.push(`… ${all.length - rows.length} more rows (-o plain or -o json shows all)`);
  return lines;
}

/** Room for a column that is broken at words. */
const LEAST_LAST = 12;
/** Between two columns. */
const GAP = 2;

function widthsOf(cells: readonly string[][]): number[] {
  return (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length)));
}

function widthOf(cells: readonly string[][]): number {
  return sum(widthsOf(cells));
}

function sum(widths: readonly number[]): number {
  return widths.reduce((all, width) => all + width + GAP, -GAP);
}

/** A cell that begins with a time has its dates shortened: `2026-11-29 03:36:02.316` → `11-29 03:36:02`. */
function shortDate(cell: string): string {
  return /^(?:[≤≥] )?\d{4}-\d\d-\d\d[ T]/.test(cell)
    ? cell.replace(/\d{4}-(\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?Z?/g, '$1 $2')
    : cell;
}

interface Fitted {
  columns: Column[];
  cells: string[][];
  /** Null: no table fits. */
  widths: (number | undefined)[] | null;
}

/** Breaks columns at words. Where that is not enough, it leaves out the columns that can be spared. */
function fitted(columns: Column[], cells: string[][], width: number): Fitted {
  const kept: Fitted = { columns, cells, widths: narrowed(columns, cells, width) };
  while (kept.widths === null) {
    const spares = kept.columns.flatMap(({ spare }) => spare ?? []);
    const at = kept.columns.findIndex(({ spare }) => spare === Math.min(...spares));
    if (at < 0) return { columns, cells, widths: null };
    kept.columns = kept.columns.toSpliced(at, 1);
    kept.cells = kept.cells.map((row) => row.toSpliced(at, 1));
    kept.widths = narrowed(kept.columns, kept.cells, width);
  }
  return kept;
}

/**
 * The widths of the columns that are broken at words, so that the table fits. One long word in a cell must not turn a
 * table into records. Null: there is no room for that.
 */
function narrowed(
  columns: readonly Column[],
  cells: readonly string[][],
  width: number,
): (number | undefined)[] | null {
  const widths = widthsOf(cells);
  const broken: (number | undefined)[] = columns.map(() => undefined);
  for (let at = columns.length - 1; at >= 0 && sum(widths) > width; at -= 1) {
    if (columns[at]?.align === 'right' || columns.length === 1) continue;
    const words = cells.flatMap((row) => (row[at] ?? '').split(' ').map((word) => word.length));
    // Prose, as the last column is, may break a word as well. In others a broken word would be another name.
    const prose = at === columns.length - 1 || columns[at]?.prose === true;
    const least = prose ? LEAST_LAST : Math.max(...words);
    const was = widths[at] ?? 0;
    const now = Math.max(Math.min(was, least), was - (sum(widths) - width));
    if (now < was) [widths[at], broken[at]] = [now, now];
  }
  return sum(widths) > width ? null : broken;
}

/** Neighbours that differ in `key` alone as one row, with the oldest and the newest value and how many there are. */
function inRuns(rows: Table['rows'], columns: readonly Column[], key: string): Table['rows'] {
  const others = columns.filter((column) => column.key !== key);
  const runs: Table['rows'][] = [];
  for (const row of rows) {
    const first = runs.at(-1)?.[0];
    if (first !== undefined && others.every((column) => first[column.key] === row[column.key])) runs.at(-1)?.push(row);
    else runs.push([row]);
  }
  return runs.map((run) => {
    const [newest, oldest] = [run[0] ?? {}, run.at(-1) ?? {}];
    return run.length === 1
      ? newest
      : { ...newest, [key]: `${show(oldest[key])} to ${show(newest[key])} (x${run.length})` };
  });
}

function people(result: Result, style: TextStyle): string[] {
  const { wrap = whole } = style;
  const lines: string[] = [];
  const only = style.fields.length > 0 || style.quiet;
  if (result.verdict && !only) {
    lines.push(...verdictLines(result.verdict, style));
  }
  const main = result.tables?.[0];
  const facts = (result.facts ?? []).filter(
    ([name]) => style.fields.length === 0 || (!main && style.fields.includes(name)),
  );
  if (facts.length > 0 && !(only && main)) {
    const widest = Math.max(...facts.map(([name]) => name.length));
    lines.push(...facts.flatMap(([name, value]) => wrap(`${`${name}:`.padEnd(widest + 1)} `, show(value))));
  }
  for (const table of only ? (result.tables ?? []).slice(0, 1) : (result.tables ?? [])) {
    if (table.rows.length === 0 && table !== main) continue;
    if (lines.length > 0) lines.push('');
    lines.push(...drawn(table, style));
  }
  if (result.text)
    lines.push(...(lines.length > 0 ? [''] : []), ...prose(result.text.trimEnd(), result.asIs ? whole : wrap));
  if (result.next && result.next.length > 0 && !only) {
    if (lines.length > 0) lines.push('');
    lines.push(...result.next.flatMap((command) => wrap('next: ', command)));
  }
  const { height } = style;
  if (result.verdict && !only && height !== undefined && rowsOf(lines, style.width) >= height) {
    const again = verdictLines(result.verdict, style);
    // The prompt takes a line of its own.
    if (again.length + 1 < height) lines.push('', ...again);
  }
  return lines;
}

function verdictLines({ verdict, reason }: NonNullable<Result['verdict']>, style: TextStyle): string[] {
  return (style.wrap ?? whole)(`${paint(verdict, COLOURS[verdict], style.colour)}  `, reason);
}

/** Lines on the terminal, which folds what is too long. */
function rowsOf(lines: readonly string[], width: number): number {
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / width)), 0);
}

function plain(result: Result, style: TextStyle): string[] {
  const lines: string[] = [];
  const only = style.fields.length > 0 || style.quiet;
  if (result.verdict && !only)
    lines.push(['verdict', result.verdict.verdict, result.verdict.reasonCode, flat(result.verdict.reason)].join('\t'));
  const main = result.tables?.[0];
  for (const [name, value] of result.facts ?? []) {
    if (only && (main || (style.fields.length > 0 && !style.fields.includes(name)))) continue;
    lines.push(`${name}\t${flat(value)}`);
  }
  for (const table of only ? (result.tables ?? []).slice(0, 1) : (result.tables ?? [])) {
    if (table.rows.length === 0 && table !== main) continue;
    const columns = chosen(table, style);
    if (!style.quiet) lines.push(columns.map(heading).join('\t'));
    lines.push(...table.rows.map((row) => columns.map((column) => flat(row[column.key])).join('\t')));
  }
  if (result.text) lines.push(result.text.trimEnd());
  if (!only) lines.push(...(result.next ?? []).map((command) => `next\t${command}`));
  return lines;
}

function csv(result: Result, style: TextStyle): string[] {
  const main = result.tables?.[0];
  if (main) {
    const columns = chosen(main, style);
    return [
      ...(style.quiet ? [] : [columns.map((column) => quoted(column.key)).join(',')]),
      ...main.rows.map((row) => columns.map((column) => quoted(row[column.key])).join(',')),
    ];
  }
  const facts = (result.facts ?? []).filter(([name]) => style.fields.length === 0 || style.fields.includes(name));
  return ['name,value', ...facts.map(([name, value]) => `${quoted(name)},${quoted(value)}`)];
}

/** The names --fields may pick in this result's text forms. */
export function textFields(result: Result): string[] {
  return result.tables?.[0]?.columns.map((column) => column.key) ?? (result.facts ?? []).map(([name]) => name);
}

export function renderText(result: Result, style: TextStyle): string {
  const lines =
    style.format === 'csv'
      ? csv(result, style)
      : style.format === 'plain'
        ? plain(result, style)
        : people(result, style);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

/** `2026-01-31 12:34:56.789`, UTC. '' for a time that no clock shows. */
export function isoTime(ms: number): string {
  return Number.isFinite(ms) && ms > 0 && ms < 8.64e15
    ? new Date(ms).toISOString().replace('T', ' ').replace('Z', '')
    : '';
}
