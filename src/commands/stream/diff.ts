import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { usageError } from '../../cli/support/failure.js';
import { FUEL_FLAGS, READ_FLAGS, positiveFlag, RANGE_FLAGS } from '../../cli/support/flags.js';
import { diffResult } from '../../cli/present/stream/stream-matrix.js';
import type { Result } from '../../cli/present/result.js';
import { askOptions } from '../../cli/compose/target.js';
import { diffStreams } from '../../core/stream/matrix-diff.js';
import { EXIT } from '../../core/errors.js';

export default class StreamDiff extends SeqCommand {
  static override summary = 'Compare one node with the committed chain, or two nodes with each other';
  static override description =
    '--on names one node or two. What differs is read twice, so that a block on its way is no ' +
    'difference. What one of them has trimmed is not compared. Entries outside a record are named.';
  static override examples = [
    '<%= config.bin %> stream diff --on r2',
    '<%= config.bin %> stream diff --on r1,r3 --exit-code',
  ];
  static override deadline = false;
  static override readsFuel = true;
  static override flags = {
    ...READ_FLAGS,
    ...FUEL_FLAGS,
    ...RANGE_FLAGS,
    limit: positiveFlag({ default: 1000, description: 'differences listed at most' }),
    'exit-code': Flags.boolean({ description: 'exit 1 when they differ' }),
  };
  protected kind = 'stream.diff';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(StreamDiff);
    const on = flags.on ?? [];
    if (on.length < 1 || on.length > 2)
      throw usageError(`--on names ${on.length} nodes`, [
        '--on ID (against the committed chain)',
        '--on ID,ID (against each other)',
      ]);
    if (on[0] === on[1]) throw usageError(`--on names ${on[0]} twice`, ['--on ID,ID with two nodes']);
    const fuel = await this.fuel();
    if (fuel !== null) {
      this.kind = 'fuel.diff';
      const [{ diffFuel }, { fuelDiffResult }] = await Promise.all([
        import('../../core/dialect-fuel/diff.js'),
        import('../../cli/present/stream/fuel.js'),
      ]);
      this.step(`comparing ${on.join(' and ')}`);
      const reading = this.longReading('read');
      const found = await diffFuel({ ...fuel, signal: this.signal }, on, flags.limit, {
        from: flags.from,
        to: flags.to,
        progress: reading.at,
      });
      reading.end();
      const told = fuelDiffResult(found, on, fuel);
      return flags['exit-code'] && found.total > 0 ? { ...told, exit: EXIT.no } : told;
    }
    const cluster = await this.cluster();
    const options = askOptions(cluster);
    const { target } = options;
    this.step(`comparing ${on.join(' and ')}`);
    const progress = this.longReading('compared');
    const diff = await diffStreams({
      ...options,
      signal: this.signal,
      progress: progress.at,
      on,
      limit: flags.limit,
      ...(flags.from === undefined ? {} : { from: flags.from }),
      ...(flags.to === undefined ? {} : { to: flags.to }),
    });
    progress.end();
    const result = diffResult(diff, on, target);
    return flags['exit-code'] && (diff.total > 0 || diff.strays.found.length > 0)
      ? { ...result, exit: EXIT.no }
      : result;
  }
}
