// Writes the rows of a long matrix as lines, as they arrive. Short matrices, tables and JSON are one answer. This class
// decides which, and keeps memory bounded.
import { EXIT, SeqError } from '../../core/errors.js';
import type { OutputFormat } from '../support/flags.js';
import { usageError } from '../support/failure.js';
import { wire } from '../present/envelope.js';
import { pickFields } from '../present/fields.js';
import type { Cell } from '../present/result.js';

/** Above this many heights, lines are written as they arrive. */
const STREAM_ABOVE = 5000;
const MOST_ROWS = 100_000;
const PIECE = 64 * 1024;

export interface MatrixWriterOptions<Row> {
  format: OutputFormat;
  fields: string[];
  quiet: boolean;
  /** Names of all columns. */
  columns: readonly string[];
  cells: (row: Row) => Record<string, Cell>;
  data: (row: Row) => Record<string, unknown>;
  /** The output line of a row, made directly. Equal to the line that `data` gives. */
  line?: (row: Row) => string;
  heights: number;
  write: (text: string) => Promise<void>;
}

export class MatrixWriter<Row> {
  readonly streams: boolean;
  readonly heights: number;
  private text = '';
  private held = 0;
  private readonly keys: string[];

  constructor(private readonly options: MatrixWriterOptions<Row>) {
    const { format, heights, fields, quiet } = options;
    this.heights = heights;
    this.streams = heights > STREAM_ABOVE && (format === 'ndjson' || format === 'plain' || format === 'csv');
    const all = options.columns;
    this.keys = fields.length > 0 ? fields : [...all];
    if (!this.streams || format === 'ndjson') return;
    const unknown = fields.filter((field) => !all.includes(field));
    if (unknown.length > 0)
      throw usageError(`--fields: there is no field ${unknown.join(', ')}`, [`choose from: ${all.join(', ')}`]);
    if (quiet) return;
    const header = format === 'csv' ? this.keys.join(',') : this.keys.map((key) => key.toUpperCase()).join('\t');
    this.text = `${header}\n`;
  }

  /** Returns a promise when the caller must wait. */
  take(row: Row): Promise<void> | undefined {
    const { format, fields, line } = this.options;
    if (format === 'ndjson' && fields.length === 0 && line !== undefined) {
      this.text += `${line(row)}\n`;
    } else if (format === 'ndjson') {
      const data = wire(this.options.data(row));
      this.text += `${JSON.stringify(fields.length > 0 ? pickFields(data, fields).data : data)}\n`;
    } else {
      const cells = this.options.cells(row);
      const values = this.keys.map((key) => String(cells[key] ?? ''));
      this.text +=
        format === 'csv'
          ? `${values.map((v) => (/[",\r\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v)).join(',')}\n`
          : `${values.map((v) => v.replace(/[\t\r\n]/g, ' ')).join('\t')}\n`;
    }
    return this.text.length >= PIECE ? this.flush() : undefined;
  }

  /** A row that is kept in memory. Throws before the rows would fill the memory. */
  checked(row: Row): Row {
    this.held += 1;
    if (this.held <= MOST_ROWS) return row;
    throw new SeqError({
      code: 'DOCUMENT_TOO_LARGE',
      exit: EXIT.usage,
      message: `-o ${this.options.format} is one answer, and this one passes ${MOST_ROWS} heights`,
      why: 'it would have to be held in memory whole',
      changed: 'nothing',
      next: ['-o ndjson streams', '--differing', 'narrow it with --from, --to or --limit'],
    });
  }

  async flush(): Promise<void> {
    const { text } = this;
    this.text = '';
    if (text !== '') await this.options.write(text);
  }
}
