import { SeqCommand } from '../../cli/command/base-command.js';
import { READ_FLAGS } from '../../cli/support/flags.js';
import { epochResult } from '../../cli/present/cluster/epoch.js';
import type { Result } from '../../cli/present/result.js';
import { askOptions } from '../../cli/compose/target.js';
import { readEpochs } from '../../core/operate/epoch.js';

export default class EpochShow extends SeqCommand {
  static override summary = "Show the fencing epoch of every node, who claimed it, and how it stands to the leader's";
  static override examples = [
    '<%= config.bin %> epoch show -c lab',
    '<%= config.bin %> epoch show -o json --fields nodes.id,nodes.epoch',
  ];
  static override flags = { ...READ_FLAGS };
  protected readonly kind = 'epoch.show';

  protected async perform(): Promise<Result> {
    await this.parse(EpochShow);
    const cluster = await this.cluster();
    this.step('reading the epoch of every node');
    const options = askOptions(cluster);
    return epochResult(await readEpochs(options), options.target);
  }
}
