import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { resolveName } from '../../cli/compose/lab.js';
import { actResult } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labUnpause } from '../../lab/act.js';
import { labDirectory } from '../../lab/state.js';

export default class LabUnpause extends SeqCommand {
  static override summary = 'Let a paused process of the lab go on (SIGCONT)';
  static override args = { name: Args.string({ required: true, description: 'r1, seq-a, … or leader' }) };
  static override deadline = false;
  protected readonly kind = 'lab.unpause';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(LabUnpause);
    const name = await resolveName(labDirectory(), args.name, this.signal);
    this.step(`letting ${name} go on`);
    return actResult('unpaused', 'running already', await labUnpause(labDirectory(), name), ['seq status -c lab']);
  }
}
