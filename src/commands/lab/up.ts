import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/base-command.js';
import { durationFlag, positiveFlag } from '../../cli/flags.js';
import { LAB_CONTEXT, labOutside } from '../../cli/lab-outside.js';
import { nextForProcesses, processTable } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { EXIT } from '../../core/errors.js';
import type { LabSettings } from '../../lab/plan.js';
import { attachSelf } from '../../lab/self.js';
import { labDirectory } from '../../lab/state.js';
import { labUp } from '../../lab/up.js';

export default class LabUp extends SeqCommand {
  static override summary = 'Start a real cluster on this machine: Redis servers, sequencers, a context named lab';
  static override description = 'Returns after the first commit. Run again, it starts only what never started: what was killed stays dead.';
  static override examples = ['<%= config.bin %> lab up', '<%= config.bin %> lab up --nodes 5 --sequencers 3 --ttl 1s --block-time 200ms --eager'];
  static override flags = {
    nodes: positiveFlag({ description: 'Redis servers r1 … rN (3)' }),
    sequencers: positiveFlag({ description: 'sequencers seq-a, seq-b, … (2)' }),
    persist: Flags.string({ options: ['none', 'everysec', 'always'], description: 'what the Redis servers write to disk (none)' }),
    ttl: durationFlag({ description: 'lease (3s)' }),
    'block-time': durationFlag({ description: 'cadence of blocks (1s)' }),
    eager: Flags.boolean({ allowNo: true, description: 'blocks at once when there is work' }),
    watch: Flags.boolean({ description: 'watch the cluster afterwards (seq watch)' }),
    tui: Flags.boolean({ description: 'same as --watch' }),
  };
  static override deadline = false;
  static override graceMs = 3000;
  protected readonly kind = 'lab.up';

  protected async perform(): Promise<Result | null> {
    const { flags } = await this.parse(LabUp);
    const directory = labDirectory();
    this.step('bringing the lab up');
    this.changing('some');
    const { processes, started, settings } = await labUp({
      directory, wanted: wantedOf(flags), outside: labOutside(directory), report: (line) => this.note(line), signal: this.signal,
    });
    const result = {
      data: { directory, context: LAB_CONTEXT, settings, started, processes },
      text: started.length > 0 ? `the lab is up, in ${directory}` : `the lab is there already, in ${directory}; nothing was started`,
      tables: [processTable(processes)],
      next: [...nextForProcesses(processes), `seq status -c ${LAB_CONTEXT}`, 'seq lab demo', 'seq lab kill leader', 'seq lab down'],
    };
    if (!flags.watch && !flags.tui) return result;
    process.exitCode = (await attachSelf(['watch', '-c', LAB_CONTEXT])) ?? EXIT.bug;
    return null;
  }
}

function wantedOf(flags: Record<string, unknown>): Partial<LabSettings> {
  const names = { nodes: 'nodes', sequencers: 'sequencers', persist: 'persist', ttl: 'ttlMs', 'block-time': 'blockTimeMs', eager: 'eager' };
  return Object.fromEntries(Object.entries(names).flatMap(([flag, setting]) => (flags[flag] === undefined ? [] : [[setting, flags[flag]]])));
}
