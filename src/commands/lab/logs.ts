import { Args, Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { countFlag } from '../../cli/support/flags.js';
import type { Result } from '../../cli/present/result.js';
import { find } from '../../lab/act.js';
import { pathsOf } from '../../lab/plan.js';
import { followLog, lastLines, logEnd } from '../../lab/processes.js';
import { labDirectory, openState } from '../../lab/state.js';

export default class LabLogs extends SeqCommand {
  static override summary = 'Show what a process of the lab has logged';
  static override examples = ['<%= config.bin %> lab logs seq-a', '<%= config.bin %> lab logs r1 --lines 5 --follow'];
  static override args = { name: Args.string({ required: true, description: 'r1, seq-a, …' }) };
  static override flags = {
    follow: Flags.boolean({ char: 'f', description: 'go on with what comes' }),
    lines: countFlag({ description: 'how many of the last lines (50)' }),
  };
  static override deadline = false;
  protected readonly kind = 'lab.logs';

  protected async perform(): Promise<Result | null> {
    const { args, flags } = await this.parse(LabLogs);
    const directory = labDirectory();
    const file = pathsOf(directory, find(openState(directory), args.name).name).log;
    const end = logEnd(file);
    const lines = lastLines(file, flags.lines ?? 50);
    const format = await this.format();
    if (!flags.follow && !['table', 'wide', 'plain'].includes(format))
      return { data: { name: args.name, file, lines }, items: lines, text: lines.join('\n'), asIs: true };
    await this.write(lines.map((line) => `${line}\n`).join(''));
    if (flags.follow) await followLog(file, end, (text) => this.write(text), this.signal);
    return null;
  }
}
