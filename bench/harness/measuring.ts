// Collects the results of a bench, reports them as they arrive, and keeps them on disk for the parent. A bench that is
// ended half-way keeps its results up to then.
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { digits, tableText } from './report.js';
import { goalText } from './budget.js';
import type { Measuring, Outcome } from './words.js';

const TOLERANCE = 0.35;

export class Collector implements Measuring {
  readonly outcome: Outcome;
  private readonly startedAt = performance.now();

  constructor(
    name: string,
    title: string,
    readonly short: boolean,
    private readonly only: string | null,
    private readonly file: string,
  ) {
    this.outcome = {
      name,
      title,
      form: short ? 'short' : 'full',
      at: new Date().toISOString(),
      seconds: 0,
      loadBefore: loadavg()[0]!,
      loadAfter: 0,
      tables: [],
      ratios: [],
      figures: [],
      skipped: [],
      notes: [],
      failure: null,
    };
  }

  pick<T>(full: T, short: T): T {
    return this.short ? short : full;
  }

  wants(name: string): boolean {
    return this.only === null || name.includes(this.only);
  }

  say(text: string): void {
    process.stderr.write(`  ${text}\n`);
  }

  table(table: Outcome['tables'][number]): void {
    this.outcome.tables.push(table);
    process.stderr.write(`\n${tableText(table)}`);
    this.keep();
  }

  ratio(ratio: Parameters<Measuring['ratio']>[0]): void {
    const { name } = this.outcome;
    if (!ratio.id.startsWith(`${name}.`)) throw new Error(`ratio ${ratio.id}: the id must start with '${name}.'`);
    this.outcome.ratios.push({ tolerance: TOLERANCE, ...ratio });
    this.say(
      `→ ${ratio.what}: ${digits(ratio.value)} (${digits(ratio.low)} … ` +
        `${digits(ratio.high)})${ratio.goal === null ? '' : `, goal ${goalText(ratio.goal)}`}`,
    );
    this.keep();
  }

  figure(figure: Parameters<Measuring['figure']>[0]): void {
    this.outcome.figures.push({ goal: null, ...figure });
    const goal = figure.goal ? `, goal ${goalText(figure.goal)}` : '';
    this.say(`→ ${figure.what}: ${digits(figure.value)} ${figure.unit}${goal}`);
    this.keep();
  }

  skip(why: string): void {
    this.outcome.skipped.push(why);
    this.say(`skipped: ${why}`);
    this.keep();
  }

  note(text: string): void {
    this.outcome.notes.push(text);
    this.keep();
  }

  end(failure: string | null): void {
    this.outcome.failure = failure;
    this.keep();
  }

  private keep(): void {
    this.outcome.seconds = (performance.now() - this.startedAt) / 1000;
    this.outcome.loadAfter = loadavg()[0]!;
    writeFileSync(this.file, JSON.stringify(this.outcome));
  }
}
