// Writes a stream of blocks or items in one of the formats, in pieces of bounded size, and waits for a slow reader.
// json and yaml are one document and therefore bounded. All other formats can run for ever in constant memory.
import { EXIT, SeqError } from '../../core/errors.js';
import type { CommittedBlock } from '../../core/ports.js';
import type { OutputFormat } from '../support/flags.js';
import { pickFields } from '../present/fields.js';
import {
  BLOCK_COLUMNS,
  blockCells,
  blockData,
  ITEM_COLUMNS,
  itemData,
  itemLine,
  itemsOf,
  itemText,
  type ShownItem,
} from '../present/stream/tail-lines.js';
import type { Column } from '../present/result.js';

const PIECE = 64 * 1024;
const MOST_DOCUMENT_BYTES = 64 * 1024 * 1024;

export interface TailWriterOptions {
  write: (text: string | Uint8Array) => Promise<void>;
  format: OutputFormat;
  items: boolean;
  raw: boolean;
  fields: string[];
  quiet: boolean;
  /** Lines at most. */
  limit: number;
}

export class TailWriter {
  /** Lines (blocks or items) so far. */
  count = 0;
  /** What a document will hold; empty for streams. */
  readonly collected: unknown[] = [];
  private collectedBytes = 0;
  private text = '';
  private pieces: Buffer[] = [];
  private pieceBytes = 0;
  private readonly document: boolean;
  private readonly columns: Column[];

  constructor(private readonly options: TailWriterOptions) {
    const { format, items, raw, fields, quiet } = options;
    this.document = !raw && (format === 'json' || format === 'yaml');
    const all = items ? ITEM_COLUMNS : BLOCK_COLUMNS;
    this.columns =
      fields.length > 0
        ? all.filter((c) => fields.includes(c.key))
        : format === 'wide' || format === 'plain' || format === 'csv'
          ? all
          : all.filter((c) => !c.wide);
    if (raw || quiet) return;
    if (format === 'table' || format === 'wide')
      this.text = `${this.columns.map((c) => c.key.toUpperCase()).join('  ')}\n`;
    if (format === 'csv') this.text = `${this.columns.map((c) => c.key).join(',')}\n`;
  }

  get full(): boolean {
    return this.count >= this.options.limit;
  }

  async take(block: CommittedBlock): Promise<void> {
    if (this.options.items || this.options.raw) {
      for (const item of itemsOf(block)) {
        if (this.full) return;
        this.count += 1;
        this.takeItem(block.height, item);
        if (this.text.length >= PIECE || this.pieceBytes >= PIECE) await this.flush();
      }
    } else if (!this.full) {
      this.count += 1;
      this.takeBlock(block);
      if (this.text.length >= PIECE) await this.flush();
    }
  }

  async flush(): Promise<void> {
    if (this.text !== '') {
      const text = this.text;
      this.text = '';
      await this.options.write(text);
    }
    if (this.pieceBytes > 0) {
      const pieces = Buffer.concat(this.pieces);
      this.pieces = [];
      this.pieceBytes = 0;
      await this.options.write(pieces);
    }
  }

  private takeItem(height: number, item: ShownItem): void {
    const { raw, format, fields } = this.options;
    if (raw) {
      this.pieces.push(item.bytes, NEWLINE);
      this.pieceBytes += item.bytes.length + 1;
    } else if (this.document) this.collect(itemData(height, item), item.bytes.length);
    else if (format === 'ndjson') this.text += this.json(itemData(height, item));
    else if (format === 'plain' && fields.length === 0) this.text += itemLine(height, item);
    else this.text += this.row({ height, index: item.index, item: itemText(item.bytes) });
  }

  private takeBlock(block: CommittedBlock): void {
    if (this.document) this.collect(blockData(block), block.data.length);
    else if (this.options.format === 'ndjson') this.text += this.json(blockData(block));
    else this.text += this.row(blockCells(block));
  }

  private row(cells: Record<string, string | number>): string {
    const values = this.columns.map((c) => String(cells[c.key]));
    if (this.options.format === 'csv')
      return `${values.map((v) => (/[",\r\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v)).join(',')}\n`;
    if (this.options.format === 'plain') return `${values.join('\t')}\n`;
    return `${values.map((v, at) => v.padEnd((this.columns[at] as Column).key.length)).join('  ')}\n`;
  }

  private json(data: Record<string, unknown>): string {
    const { fields } = this.options;
    return `${JSON.stringify(fields.length > 0 ? pickFields(data, fields).data : data)}\n`;
  }

  private collect(data: unknown, bytes: number): void {
    this.collectedBytes += bytes + 300;
    if (this.collectedBytes > MOST_DOCUMENT_BYTES) {
      throw new SeqError({
        code: 'DOCUMENT_TOO_LARGE',
        exit: EXIT.usage,
        message:
          `-o ${this.options.format} is one document, and this one passes ` +
          `${MOST_DOCUMENT_BYTES / 1024 / 1024} MiB`,
        why: 'it would have to be held in memory whole',
        changed: 'nothing',
        next: ['-o ndjson streams', 'narrow it with --from, --to or --limit'],
      });
    }
    this.collected.push(data);
  }
}

const NEWLINE = Buffer.from('\n');
