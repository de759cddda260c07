// Result → text for people (table, wide) and for pipes (plain, csv). Order: verdict, facts, rows, text, next. Pure. A
// table fits the terminal; plain is tab-separated, untruncated and without colour.
import type { table as DrawTable } from 'table';
import type { Cell, Column, Result, Table } from './result.js';
import type { Wrap } from './wrap.js';

export interface TextStyle {
  format: 'table' | 'wide' | 'plain' | 'csv';
  /**
   * Terminal width. A table that is wider has its dates shortened and its last column broken at words. If that is not
   * enough, each cell gets a `name: value` line.
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
    return style.fields.flatMap((name) => table.columns.filter((column) => column.key === name));
  return style.format === 'table' ? table.columns.filter((column) => !column.wide) : table.columns;
}

function drawn(table: Table, style: TextStyle): string[] {
  const { wrap = whole } = style;
  const columns = chosen(table, style);
  const rows = table.rows.slice(0, MOST_ROWS);
  const cells = [
    columns.map(heading),
    ...rows.map((row) => columns.map((column) => show(row[column.key]).replace(/[\u0000-\u001f\u007f]/g, ' '))),
  ];
  const lines = table.title && !style.quiet ? [table.title] : [];
  const narrow = style.format === 'table' && style.width < widthOf(cells);
  if (narrow) for (const row of cells) row.splice(0, Infinity, ...row.map(shortDate));
  const last = narrow && style.width < widthOf(cells) ? lastColumn(columns, cells, style.width) : undefined;
  if (last === null) {
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
        ...(last !== undefined && at === columns.length - 1 ? { width: last, wrapWord: true } : {}),
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
  if (table.rows.length > rows.length)
    lines.push(`… ${table.rows.length - rows.length} more rows (-o plain or -o json shows all)`);
  return lines;
}

/** Room for a column that is broken at words. */
const LEAST_LAST = 18;
/** Between two columns. */
const GAP = 2;

function widthOf(cells: readonly string[][]): number {
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => (row[at] ?? '').length)));
  return widths.reduce((sum, width) => sum + width + GAP, -GAP);
}

/** A time of day within the last column's reach: `2026-11-29 03:36:02.316` → `11-29 03:36:02`. */
function shortDate(cell: string): string {
  return cell.replace(/^\d{4}-(\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?Z?$/, '$1 $2');
}

/** How wide the last column may be. Null: it is too narrow for words, or it is no text. */
function lastColumn(columns: readonly Column[], cells: readonly string[][], width: number): number | null {
  const room = width - widthOf(cells.map((row) => row.slice(0, -1))) - GAP;
  return columns.length > 1 && columns.at(-1)?.align !== 'right' && room >= LEAST_LAST ? room : null;
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
