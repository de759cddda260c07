import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { resolveName } from '../../cli/compose/lab.js';
import { actResult } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labPause } from '../../lab/act.js';
import { labDirectory } from '../../lab/state.js';

export default class LabPause extends SeqCommand {
  static override summary = 'Stop a process of the lab where it stands (SIGSTOP): connected and silent';
  static override examples = ['<%= config.bin %> lab pause leader', '<%= config.bin %> lab pause r1'];
  static override args = { name: Args.string({ required: true, description: 'r1, seq-a, … or leader' }) };
  static override deadline = false;
  protected readonly kind = 'lab.pause';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(LabPause);
    const name = await resolveName(labDirectory(), args.name, this.signal);
    this.step(`pausing ${name}`);
    return actResult('paused', 'paused already', await labPause(labDirectory(), name), [
      `seq lab unpause ${name}`,
      'seq status -c lab',
    ]);
  }
}
