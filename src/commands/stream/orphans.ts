import { SeqCommand } from '../../cli/command/base-command.js';
import { READ_FLAGS, positiveFlag } from '../../cli/support/flags.js';
import { orphansResult } from '../../cli/present/stream/orphans.js';
import type { Result } from '../../cli/present/result.js';
import { readOrphans } from '../../core/stream/orphans.js';

export default class StreamOrphans extends SeqCommand {
  static override summary =
    'List what every node keeps as evidence: entries that another block took the place of, and ' +
    'streams that were set aside';
  static override description =
    'A node keeps the newest 100 superseded entries, at most 32 MiB, and for a day the stream that ' +
    'was set aside when it was last admitted again. --on narrows it to some nodes.';
  static override examples = [
    '<%= config.bin %> stream orphans -c lab',
    '<%= config.bin %> stream orphans --on r2 -o json',
  ];
  static override flags = {
    ...READ_FLAGS,
    limit: positiveFlag({ default: 100, description: 'entries a node at most, newest first' }),
  };
  protected readonly kind = 'stream.orphans';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(StreamOrphans);
    const cluster = await this.cluster();
    this.step('reading the orphans of every node');
    const read = await readOrphans({
      nodes: cluster.asked,
      limitMs: cluster.nodeTimeoutMs,
      clock: cluster.clock,
      limit: flags.limit,
    });
    return orphansResult(read, cluster.clock.wall());
  }
}
