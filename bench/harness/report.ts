// Turns outcomes into text for a terminal, and into the results part of docs/BENCHMARKS.md.
import { goalText, meets, type Judgement } from './budget.js';
import type { Machine } from './machine.js';
import type { Figure, Outcome, Ratio, Row, Table } from './words.js';

/** Three significant digits. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return '?';
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

const met = (value: number, goal: Ratio['goal'] | null): string =>
  goal === null ? '' : meets(value, goal) ? 'met' : 'MISSED';

function tableCells({ unit }: Table, rows: readonly Row[]): string[][] {
  return [
    [`${unit}`, 'n', 'p50', 'p95', 'p99', 'p50 of rounds (10 % … 90 %)', 'per second'],
    ...rows.map((row) => [
      row.side,
      String(row.n),
      digits(row.p50),
      digits(row.p95),
      digits(row.p99),
      `${digits(row.low)} … ${digits(row.high)}`,
      row.perSecond === null ? '' : digits(row.perSecond),
    ]),
  ];
}

function ratioCells(ratios: readonly Ratio[], judgements: readonly Judgement[] | null): string[][] {
  const of = (id: string): Judgement | undefined => judgements?.find((one) => one.id === id);
  return [
    ['ratio', 'measured', '10 % … 90 %', 'goal', '', ...(judgements === null ? [] : ['budget', ''])],
    ...ratios.map((ratio) => {
      const judged = of(ratio.id);
      return [
        `${ratio.id}: ${ratio.what}`,
        digits(ratio.value),
        `${digits(ratio.low)} … ${digits(ratio.high)}`,
        goalText(ratio.goal),
        met(ratio.value, ratio.goal),
        ...(judgements === null ? [] : [judged?.limit == null ? '' : digits(judged.limit), judged?.verdict ?? '']),
      ];
    }),
  ];
}

const figureCells = (figures: readonly Figure[]): string[][] => [
  ['figure', 'measured', 'goal', ''],
  ...figures.map(({ what, value, unit, goal }) => [what, `${digits(value)} ${unit}`, goalText(goal), met(value, goal)]),
];

function aligned(cells: string[][]): string {
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  return cells
    .map((row) =>
      row
        .map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function tableText(table: Table): string {
  return `${table.title}\n${aligned(tableCells(table, table.rows))}\n`;
}

export function summaryText(outcomes: readonly Outcome[], judgements: readonly Judgement[] | null): string {
  const parts: string[] = [];
  const ratios = outcomes.flatMap((outcome) => outcome.ratios);
  const figures = outcomes.flatMap((outcome) => outcome.figures);
  if (ratios.length > 0) parts.push(aligned(ratioCells(ratios, judgements)));
  for (const judged of judgements ?? [])
    if (judged.verdict === 'gone') parts.push(`gone     ${judged.id}: in the baseline, not measured any more`);
  if (figures.length > 0) parts.push(aligned(figureCells(figures)));
  for (const { name, skipped, failure } of outcomes) {
    for (const why of skipped) parts.push(`skipped  ${name}: ${why}`);
    if (failure !== null) parts.push(`BROKEN   ${name}: ${failure}`);
  }
  return `${parts.join('\n\n')}\n`;
}

const markdown = (cells: string[][]): string => {
  const line = (row: string[]): string => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(cells[0]!),
    `|${cells[0]!.map((_, at) => (at === 0 ? '---|' : '--:|')).join('')}`,
    ...cells.slice(1).map(line),
  ].join('\n');
};

/** Everything below the marker of docs/BENCHMARKS.md. */
export function markdownOf(outcomes: readonly Outcome[], machine: Machine): string {
  const parts = [
    '## Machine',
    '',
    markdown([['', ''], ...Object.entries(machine).map(([name, value]) => [name, value])]),
    '',
    '## Against the goals',
    '',
  ];
  const ratios = outcomes.flatMap((outcome) => outcome.ratios);
  if (ratios.length > 0) parts.push(markdown(ratioCells(ratios, null)), '');
  const figures = outcomes.flatMap((outcome) => outcome.figures);
  if (figures.length > 0) parts.push(markdown(figureCells(figures)), '');
  for (const outcome of outcomes) {
    const { name, title, form, at, seconds, loadBefore, loadAfter } = outcome;
    parts.push(
      `## ${name}: ${title}`,
      '',
      `${form} form, ${at.slice(0, 16).replace('T', ' ')} UTC, ${Math.round(seconds)} s, load ` +
        `${loadBefore.toFixed(1)} before and ${loadAfter.toFixed(1)} after.`,
      '',
    );
    for (const table of outcome.tables)
      parts.push(`**${table.title}**`, '', markdown(tableCells(table, table.rows)), '');
    for (const note of outcome.notes) parts.push(`- ${note}`);
    for (const why of outcome.skipped) parts.push(`- Not measured: ${why}`);
    if (outcome.failure !== null) parts.push(`- The bench broke: ${outcome.failure.split('\n')[0]}`);
    if (outcome.notes.length + outcome.skipped.length > 0 || outcome.failure !== null) parts.push('');
  }
  return `${parts.join('\n').trimEnd()}\n`;
}
