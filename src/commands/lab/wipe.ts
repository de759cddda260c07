import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { actResult } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labWipe } from '../../lab/act.js';
import { labDirectory } from '../../lab/state.js';

export default class LabWipe extends SeqCommand {
  static override summary = 'Kill a node of the lab, delete its data and start it empty';
  static override examples = ['<%= config.bin %> lab wipe r3'];
  static override args = { node: Args.string({ required: true, description: 'r1, r2, …' }) };
  static override deadline = false;
  static override graceMs = 3000;
  protected readonly kind = 'lab.wipe';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(LabWipe);
    this.step(`wiping ${args.node}`);
    return actResult('wiped and started', '', await labWipe(labDirectory(), args.node, this.signal), [
      'seq status -c lab',
    ]);
  }
}
