import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { usageError } from '../../cli/support/failure.js';
import { FUEL_FLAGS, heightFlag, READ_FLAGS, positiveFlag, RANGE_FLAGS } from '../../cli/support/flags.js';
import type { FuelRow } from '../../core/dialect-fuel/matrix.js';
import type { FuelCluster } from '../../cli/compose/fuel-nodes.js';
import { MatrixWriter } from '../../cli/stream/matrix-writer.js';
import { matrixCells, matrixColumns, matrixResult, rowData, rowLine } from '../../cli/present/stream/stream-matrix.js';
import type { Result } from '../../cli/present/result.js';
import { askOptions } from '../../cli/compose/target.js';
import { strayText } from '../../core/stream/strays.js';
import { MatrixSummary, openMatrix, type MatrixRow } from '../../core/stream/matrix.js';

export default class StreamInspect extends SeqCommand {
  static override summary = 'Show which block every node holds at every height, newest first, and what that adds up to';
  static override description = [
    'The same letter in a row is the same block. Classes: committed, pending, undetermined, orphan, ' +
      'conflict, damaged, missing, trimmed (docs/PROTOCOL.md section 9).',
    '--on shows the columns of some nodes alone; what a height is, is still judged over all of them.',
    'Any range is read a piece at a time; plain, csv and ndjson are written as they come, a table ' +
      'and JSON hold up to 100,000 heights.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> stream inspect -c lab',
    '<%= config.bin %> stream inspect --height 1042 --data',
    '<%= config.bin %> stream inspect --from 1 --limit 1000000 --differing -o ndjson',
  ];
  static override readsFuel = true;
  static override flags = {
    ...READ_FLAGS,
    ...FUEL_FLAGS,
    ...RANGE_FLAGS,
    height: heightFlag({ exclusive: ['from', 'to'], description: 'this height alone' }),
    limit: positiveFlag({ description: 'heights at most, from the top (20; all of --from … --to)' }),
    differing: Flags.boolean({ description: 'only heights at which not all nodes are the same' }),
    data: Flags.boolean({ description: 'the items in the blocks' }),
  };
  protected kind = 'stream.inspect';

  protected async perform(): Promise<Result | null> {
    const { flags } = await this.parse(StreamInspect);
    const [from, to] = flags.height === undefined ? [flags.from, flags.to] : [flags.height, flags.height];
    if (from !== undefined && to !== undefined && to < from)
      throw usageError(`--to ${to} is below --from ${from}`, ['give the lower height as --from']);
    const fuel = await this.fuel();
    const limit = flags.limit ?? (from === undefined ? 20 : Number.MAX_SAFE_INTEGER);
    if (fuel !== null) {
      if (flags.data) throw usageError('--data: the payload of this dialect is not decoded', ['leave --data out']);
      return this.performFuel(fuel, { from, to, limit }, Boolean(flags.differing));
    }
    const cluster = await this.cluster();
    const options = askOptions(cluster);
    const { target } = options;
    const only = new Set(cluster.asked.map((node) => node.id));
    this.step('reading the streams of every node');
    const matrix = await openMatrix(
      {
        ...options,
        signal: this.signal,
        ...(cluster.settings.on === null ? {} : { only }),
      },
      {
        ...(from === undefined ? {} : { from }),
        ...(to === undefined ? {} : { to }),
        limit,
        keepData: Boolean(flags.data),
      },
    );
    const summary = new MatrixSummary();
    const now = cluster.clock.wall();
    const { strays } = matrix;
    const format = await this.format();
    const writer = new MatrixWriter<MatrixRow>({
      format,
      fields: flags.fields ?? [],
      quiet: Boolean(flags.quiet),
      write: (text) => this.write(text),
      columns: matrixColumns([...only], Boolean(flags.data)).map((column) => column.key),
      cells: (row) => matrixCells(row, now),
      data: (row) => rowData(row, now),
      line: (row) => rowLine(row, now),
      heights: matrix.range === null ? 0 : matrix.range.to - matrix.range.from + 1,
    });
    const progress = this.longReading('read');
    const rows: MatrixRow[] = [];
    for await (const piece of matrix.pieces) {
      for (const row of piece) {
        summary.add(row);
        if (flags.differing && row.same) continue;
        if (!writer.streams) rows.push(writer.checked(row));
        else {
          const full = writer.take(row);
          if (full !== undefined) await full;
        }
      }
      progress.at(summary.rows, writer.heights);
    }
    progress.end();
    this.signal.throwIfAborted();
    await writer.flush();
    // Where every line is a height there is no place for other entries.
    if (writer.streams || format === 'ndjson' || format === 'csv')
      for (const text of [...strays.found.map(strayText), ...strays.untold]) this.note(`warning: ${text}`);
    return writer.streams
      ? null
      : matrixResult(matrix, rows, summary, now, {
          withData: Boolean(flags.data),
          target,
          only,
          asText: !['json', 'ndjson', 'yaml'].includes(format),
          runs: format === 'table',
        });
  }

  private async performFuel(
    cluster: FuelCluster,
    wish: { from?: number | undefined; to?: number | undefined; limit: number },
    differing: boolean,
  ): Promise<Result | null> {
    this.kind = 'fuel.inspect';
    const [{ FuelSummary, openFuelMatrix }, { fuelCells, fuelColumns, fuelMatrixResult, fuelRowData }] =
      await Promise.all([import('../../core/dialect-fuel/matrix.js'), import('../../cli/present/stream/fuel.js')]);
    const { flags } = await this.parse(StreamInspect);
    this.step('reading the streams of every node');
    const reading = this.longReading('read');
    const matrix = await openFuelMatrix({ ...cluster, signal: this.signal }, { ...wish, progress: reading.at });
    reading.end();
    const summary = new FuelSummary();
    const now = cluster.clock.wall();
    const ids = cluster.settings.on ?? matrix.nodes.map((node) => node.id);
    const writer = new MatrixWriter<FuelRow>({
      format: await this.format(),
      fields: flags.fields ?? [],
      quiet: Boolean(flags.quiet),
      write: (text) => this.write(text),
      heights: matrix.heights,
      columns: fuelColumns(ids).map((column) => column.key),
      cells: (row) => fuelCells(row, now),
      data: (row) => fuelRowData(row, now),
    });
    const rows: FuelRow[] = [];
    for await (const row of matrix.rows) {
      summary.add(row);
      if (differing && row.same) continue;
      if (writer.streams) await writer.take(row);
      else rows.push(writer.checked(row));
    }
    this.signal.throwIfAborted();
    await writer.flush();
    return writer.streams ? null : fuelMatrixResult({ matrix, rows, summary }, cluster, { now, ids });
  }
}
