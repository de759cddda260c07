import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { removeLabContext } from '../../cli/compose/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labDown } from '../../lab/down.js';
import { labDirectory } from '../../lab/state.js';

export default class LabDown extends SeqCommand {
  static override summary = 'Stop the lab and remove it, or keep it for the next lab up';
  static override examples = ['<%= config.bin %> lab down', '<%= config.bin %> lab down --keep'];
  static override flags = {
    keep: Flags.boolean({ description: 'keep data and logs: the next seq lab up goes on with them' }),
  };
  static override deadline = false;
  static override graceMs = 12_000;
  protected readonly kind = 'lab.down';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(LabDown);
    this.step('taking the lab down');
    this.changing('some');
    const { stopped, kept, nodes } = await labDown(labDirectory(), {
      keep: flags.keep,
      report: (line) => this.note(line),
    });
    const contextRemoved = await removeLabContext(nodes);
    return {
      data: { stopped, kept, contextRemoved },
      text:
        `the lab is down: ${stopped.length} processes stopped, ` +
        `${kept === null ? 'everything removed' : `data and logs are kept in ${kept}`}`,
      next: kept === null ? ['seq lab up'] : ['seq lab up', 'seq lab down'],
    };
  }
}
