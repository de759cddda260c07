import { SeqCommand } from '../../cli/command/base-command.js';
import { WATCH_FLAGS } from '../../cli/support/flags.js';
import { LAB_CONTEXT } from '../../cli/compose/lab.js';
import { nextForLab, processTable } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { labDirectory, readState } from '../../lab/state.js';
import { rowsOf } from '../../lab/status.js';

export default class LabStatus extends SeqCommand {
  static override summary = 'Show the processes of the lab';
  static override flags = { ...WATCH_FLAGS };
  static override deadline = false;
  protected readonly kind = 'lab.status';

  protected async perform(): Promise<Result> {
    const directory = labDirectory();
    const state = readState(directory);
    if (state === null)
      return {
        data: { up: false, kept: false, directory, settings: null, processes: [] },
        text: `there is no lab in ${directory}`,
        next: ['seq lab up'],
      };
    const processes = rowsOf(state);
    const kept = state.kept === true;
    const up = state.phase === 'committed' && !kept;
    return {
      ...(kept ? { text: 'this lab was taken down and kept; seq lab up goes on with it' } : {}),
      data: { up, kept, directory, settings: state.settings, processes },
      tables: [processTable(processes)],
      items: processes,
      next: up ? [...nextForLab(processes), `seq status -c ${LAB_CONTEXT}`] : ['seq lab up', 'seq lab down'],
    };
  }
}
