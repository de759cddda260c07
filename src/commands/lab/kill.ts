import { constants } from 'node:os';
import { Args, Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { usageError } from '../../cli/support/failure.js';
import { resolveName } from '../../cli/compose/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labKill } from '../../lab/act.js';
import { labDirectory } from '../../lab/state.js';

export default class LabKill extends SeqCommand {
  static override summary = 'Kill a process of the lab (SIGKILL), or send it another signal';
  static override examples = [
    '<%= config.bin %> lab kill leader',
    '<%= config.bin %> lab kill r2',
    '<%= config.bin %> lab kill seq-a --signal SIGTERM',
  ];
  static override args = { name: Args.string({ required: true, description: 'r1, seq-a, … or leader' }) };
  static override flags = {
    signal: Flags.string({ helpValue: 'SIGNAL', description: 'SIGKILL unless told otherwise' }),
  };
  static override deadline = false;
  static override graceMs = 500;
  protected readonly kind = 'lab.kill';

  protected async perform(): Promise<Result> {
    const { args, flags } = await this.parse(LabKill);
    const signal = signalOf(flags.signal ?? 'SIGKILL');
    const name = await resolveName(labDirectory(), args.name, this.signal);
    this.step(`sending ${signal} to ${name}`);
    const act = await labKill(labDirectory(), name, signal);
    const next = ['seq status -c lab', ...(act.state === 'dead' ? [`seq lab start ${name}`] : [])];
    return {
      data: { ...act, signal },
      text: `sent ${signal} to ${name} (pid ${act.pid}): it is ${act.state} now`,
      next,
    };
  }
}

function signalOf(text: string): NodeJS.Signals {
  const name = /^SIG/i.test(text) ? text.toUpperCase() : `SIG${text.toUpperCase()}`;
  if (name in constants.signals) return name as NodeJS.Signals;
  throw usageError(`--signal: '${text}' is not a signal of this system`, ['--signal SIGTERM']);
}
