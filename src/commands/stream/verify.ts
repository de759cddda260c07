import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { FUEL_FLAGS, READ_FLAGS, RANGE_FLAGS } from '../../cli/support/flags.js';
import type { FuelCluster } from '../../cli/compose/fuel-nodes.js';
import { verifyResult } from '../../cli/present/stream/stream-matrix.js';
import type { Result } from '../../cli/present/result.js';
import { askOptions } from '../../cli/compose/target.js';
import { verifyStreams } from '../../core/stream/verify.js';
import { EXIT } from '../../core/errors.js';

export default class StreamVerify extends SeqCommand {
  static override summary =
    "Prove every node's stream: hashes, parent links, contiguity, epochs, times, admission; and that " +
    'no two nodes contradict each other';
  static override description =
    'Every violation comes with its witness. A node that did not answer is not verified, and that is ' +
    'said. --on verifies some nodes alone. Exits 1 when there is a violation, 69 when too few nodes could be ' +
    'read. Changes nothing.';
  static override examples = [
    '<%= config.bin %> stream verify -c lab',
    '<%= config.bin %> stream verify -q && echo sound',
  ];
  static override deadline = false;
  static override readsFuel = true;
  static override flags = {
    ...READ_FLAGS,
    ...FUEL_FLAGS,
    ...RANGE_FLAGS,
    'exit-code': Flags.boolean({
      description: 'always so: exit 1 when there is a violation, 69 when too few nodes could be read',
    }),
  };
  protected kind = 'stream.verify';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(StreamVerify);
    const fuel = await this.fuel();
    if (fuel !== null) return this.performFuel(fuel);
    const cluster = await this.cluster();
    const options = askOptions(cluster);
    const { target } = options;
    const only = cluster.settings.on === null ? {} : { only: new Set(cluster.asked.map((node) => node.id)) };
    this.step('reading and proving the streams of every node');
    const progress = this.longReading('verified');
    const verified = await verifyStreams({
      ...options,
      signal: this.signal,
      progress: progress.at,
      ...only,
      ...(flags.from === undefined ? {} : { from: flags.from }),
      ...(flags.to === undefined ? {} : { to: flags.to }),
    });
    progress.end();
    const result = verifyResult(verified, target);
    const exit = verified.total > 0 ? EXIT.no : result.verdict?.verdict === 'UNKNOWN' ? EXIT.noQuorum : EXIT.ok;
    return { ...result, exit };
  }

  private async performFuel(cluster: FuelCluster): Promise<Result> {
    this.kind = 'fuel.verify';
    const [{ verifyFuel }, { fuelVerifyResult }] = await Promise.all([
      import('../../core/dialect-fuel/verify.js'),
      import('../../cli/present/stream/fuel.js'),
    ]);
    const { flags } = await this.parse(StreamVerify);
    this.step('reading the streams of every node');
    const progress = this.longReading('read');
    const verified = await verifyFuel(
      { ...cluster, signal: this.signal },
      { from: flags.from, to: flags.to, progress: progress.at },
    );
    progress.end();
    const result = fuelVerifyResult(verified, cluster);
    const exit = verified.total > 0 ? EXIT.no : result.verdict?.verdict === 'UNKNOWN' ? EXIT.noQuorum : EXIT.ok;
    return { ...result, exit };
  }
}
