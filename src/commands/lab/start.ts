import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { actResult } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labStart } from '../../lab/act.js';
import { labDirectory } from '../../lab/state.js';

export default class LabStart extends SeqCommand {
  static override summary = 'Start a dead process of the lab, with its data and under its name and port';
  static override examples = ['<%= config.bin %> lab start seq-a'];
  static override args = { name: Args.string({ required: true, description: 'r1, seq-a, …' }) };
  static override deadline = false;
  static override graceMs = 3000;
  protected readonly kind = 'lab.start';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(LabStart);
    this.step(`starting ${args.name}`);
    return actResult('started', 'running already', await labStart(labDirectory(), args.name, this.signal), [
      'seq status -c lab',
    ]);
  }
}
