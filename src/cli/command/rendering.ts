// How is a result or a failure shown? As text for people, or as one document (JSON, YAML) with its envelope. Text and
// tables are loaded only when they are needed.
import type { SeqError } from '../../core/errors.js';
import { envelope } from '../present/envelope.js';
import { renderError } from '../present/error-text.js';
import { pickFields } from '../present/fields.js';
import type { Meta, Result } from '../present/result.js';
import { whole } from '../present/text.js';
import { usageError } from '../support/failure.js';
import type { OutputFormat } from '../support/flags.js';
import { ReaderGone, writeErr, writeOut } from '../support/output.js';
import type { MachineFormat } from './asked-format.js';

/** Breaks lines at words where the output is a terminal. */
export interface Wraps {
  stdout: typeof whole;
  stderr: typeof whole;
}

export interface Showing {
  kind: string;
  meta: Meta;
  /** Warnings of the command. Those of the result follow them. */
  warnings: readonly string[];
  fields: string[];
  /** The command may have changed something: it is too late to refuse an unknown field. */
  mayChange: boolean;
  /** One of many answers (`--watch`): several documents are written one after another. */
  watched: boolean;
  colour: boolean;
  quiet: boolean;
  wraps: Wraps;
}

export async function showResult(result: Result, format: OutputFormat, showing: Showing): Promise<void> {
  const own = result.texts?.[format];
  if (own !== undefined) await writeOut(own);
  else if (format === 'json' || format === 'yaml' || format === 'ndjson') await showData(result, format, showing);
  else await showText(result, format as 'table' | 'wide' | 'plain' | 'csv', showing);
}

/** `format` null: as text on stderr. `result`: what is known in spite of the failure. */
export async function showFailure(
  error: SeqError,
  format: MachineFormat | null,
  showing: Showing,
  result: Result | null = null,
): Promise<void> {
  if (format === null) {
    writeErr(renderError(error, showing.colour, showing.wraps.stderr));
    return;
  }
  try {
    await writeDocument(failureDocument(error, showing, result), format, showing.watched);
  } catch (failure) {
    if (!(failure instanceof ReaderGone)) writeErr(renderError(error, false, showing.wraps.stderr));
  }
}

export function failureDocument(error: SeqError, { kind, meta, warnings }: Showing, result: Result | null = null) {
  return envelope(kind, meta, { error, warnings: [...warnings], ...(result === null ? {} : { result }) });
}

async function showText(
  result: Result,
  format: 'table' | 'wide' | 'plain' | 'csv',
  { fields, mayChange, warnings, wraps, colour, quiet }: Showing,
): Promise<void> {
  const { renderText, textFields } = await import('../present/text.js');
  const known = textFields(result);
  refuseFields(
    fields.filter((field) => !known.includes(field)),
    known,
    mayChange,
  );
  writeWarnings(result, { warnings, wraps });
  const withTables = format === 'table' || format === 'wide';
  await writeOut(
    renderText(result, {
      format,
      fields,
      colour,
      quiet,
      width: process.stdout.columns ?? (Number(process.env['COLUMNS']) || 80),
      height: process.stdout.isTTY ? process.stdout.rows : undefined,
      wrap: wraps.stdout,
      ...(withTables ? { drawTable: (await import('../present/draw-table.js')).drawTable } : {}),
    }),
  );
}

function writeWarnings(result: Result, { warnings, wraps }: Pick<Showing, 'warnings' | 'wraps'>): void {
  for (const warning of [...warnings, ...(result.warnings ?? [])])
    writeErr(`${wraps.stderr('warning: ', warning).join('\n')}\n`);
}

async function showData(result: Result, format: MachineFormat, showing: Showing): Promise<void> {
  const { kind, meta, warnings, fields, mayChange, watched } = showing;
  const document = envelope(kind, meta, { result, warnings: [...warnings] });
  if (fields.length > 0) {
    const { data, unknown } = pickFields(document.data, fields);
    const isObject = document.data !== null && typeof document.data === 'object';
    refuseFields(unknown, isObject ? Object.keys(document.data as object) : [], mayChange);
    document.data = data;
  }
  if (format === 'ndjson' && result.items) {
    // Each line of stdout is one item. What else there is to say goes where a table says it.
    writeWarnings(result, showing);
    const { wire } = await import('../present/envelope.js');
    const kept =
      fields.length > 0
        ? result.items.map((item) => pickFields(wire(item), fields).data)
        : result.items.map((item) => wire(item));
    await writeOut(kept.map((item) => `${JSON.stringify(item)}\n`).join(''));
  } else {
    await writeDocument(document, format, watched);
  }
}

/** When there are many JSON documents, each is one line, so that a reader can separate them. */
async function writeDocument(document: unknown, format: MachineFormat, watched: boolean): Promise<void> {
  if (format === 'yaml') {
    const { stringify } = await import('../config/yaml.js');
    await writeOut(`${watched ? '---\n' : ''}${stringify(document, { lineWidth: 0 })}`);
  } else {
    const indent = format === 'json' && !watched ? 2 : undefined;
    await writeOut(`${JSON.stringify(document, null, indent)}\n`);
  }
}

/** After a change it is too late to refuse. Then an unknown field is a warning. */
function refuseFields(unknown: string[], known: string[], mayChange: boolean): void {
  if (unknown.length === 0) return;
  const message = `--fields: there is no field ${unknown.join(', ')}`;
  if (mayChange) writeErr(`warning: ${message}\n`);
  else throw usageError(message, [`choose from: ${known.join(', ')}`]);
}
