import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { commandLine } from '../../cli/support/confirm.js';
import { durationFlag, positiveFlag } from '../../cli/support/flags.js';
import { LAB_CONTEXT, labOutside } from '../../cli/compose/lab.js';
import { operatorOf } from '../../cli/support/operator.js';
import { nextForLab, processTable } from '../../cli/present/lab.js';
import type { Result } from '../../cli/present/result.js';
import { EXIT } from '../../core/errors.js';
import type { LabSettings } from '../../lab/plan.js';
import { attachSelf } from '../../lab/self.js';
import { labDirectory } from '../../lab/state.js';
import { labUp } from '../../lab/up.js';

export default class LabUp extends SeqCommand {
  static override summary = 'Start a real cluster on this machine: Redis servers, sequencers, a context named lab';
  static override description = [
    'Returns after the first commit. Run again, it starts only what never started: what was killed stays dead. ' +
      'Sequencers that ended because their cluster was recovered come back with the new generation.',
    'A lab that was taken down with --keep comes back with its data as after a power cut: its ' +
      'servers are started, what nodes and stores hold is shown, and one confirmed recovery goes on ' +
      'with it. In a script --yes is enough where nothing can be lost; otherwise --confirm and ' +
      '--accept-possible-loss are needed. Not confirmed, its Redis servers stay up for inspection.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> lab up',
    '<%= config.bin %> lab up --yes',
    '<%= config.bin %> lab up --nodes 5 --sequencers 3 --ttl 1s --block-time 200ms --eager',
  ];
  static override flags = {
    nodes: positiveFlag({ description: 'Redis servers r1 … rN (3)' }),
    sequencers: positiveFlag({ description: 'sequencers seq-a, seq-b, … (2)' }),
    persist: Flags.string({
      helpValue: 'none|everysec|always',
      options: ['none', 'everysec', 'always'],
      description: 'what the Redis servers write to disk (none)',
    }),
    ttl: durationFlag({ description: 'lease (3s)' }),
    'block-time': durationFlag({ description: 'cadence of blocks (1s)' }),
    eager: Flags.boolean({ allowNo: true, description: 'blocks at once when there is work' }),
    watch: Flags.boolean({ description: 'watch the cluster afterwards (seq watch)' }),
    tui: Flags.boolean({ description: 'same as --watch' }),
    yes: Flags.boolean({
      char: 'y',
      helpGroup: 'KEPT LAB',
      description: 'recover without asking, if nothing can be lost',
    }),
    confirm: Flags.string({
      helpGroup: 'KEPT LAB',
      helpValue: 'DIGEST',
      description: 'recover by the plan of this digest',
    }),
    'accept-possible-loss': Flags.boolean({
      helpGroup: 'KEPT LAB',
      description: 'recover although the evidence does not rule out that an acknowledged block is lost',
    }),
    reason: Flags.string({ helpGroup: 'KEPT LAB', helpValue: 'TEXT', description: 'why, for the audit record' }),
  };
  static override deadline = false;
  static override graceMs = 3000;
  protected readonly kind = 'lab.up';

  protected async perform(): Promise<Result | null> {
    const { flags } = await this.parse(LabUp);
    const directory = labDirectory();
    this.step('bringing the lab up');
    this.changing('some');
    const outside = labOutside(directory, {
      yes: Boolean(flags.yes),
      confirm: flags.confirm,
      acceptLoss: Boolean(flags['accept-possible-loss']),
      reason: flags.reason ?? 'seq lab up',
      mayAsk: this.mayAsk,
      command: commandLine(
        this.id ?? '',
        this.argv.filter((arg) => !/^(-y|--yes)$/.test(arg)),
      ),
      say: (text) => this.note(text),
      operator: operatorOf(this.id ?? '', this.argv),
      changing: () => this.changing(),
      step: (doing) => this.step(doing),
      changed: (nodes) => this.changing('some', nodes),
    });
    const { processes, started, settings, recovered } = await labUp({
      directory,
      wanted: wantedOf(flags),
      outside,
      report: (line) => this.note(line),
      signal: this.signal,
    });
    const result = {
      data: { directory, context: LAB_CONTEXT, settings, started, recovered, processes },
      warnings: recovered?.warnings ?? [],
      text:
        recovered !== null
          ? `the lab is up again, in ${directory}: cluster ${recovered.cluster} goes on above height ${recovered.head}`
          : started.length > 0
            ? `the lab is up, in ${directory}`
            : `the lab is there already, in ${directory}; nothing was started`,
      tables: [processTable(processes)],
      next: [
        ...nextForLab(processes),
        `seq status -c ${LAB_CONTEXT}`,
        'seq lab demo',
        'seq lab kill leader',
        'seq lab down',
      ],
    };
    if (!flags.watch && !flags.tui) return result;
    process.exitCode = (await attachSelf(['watch', '-c', LAB_CONTEXT])) ?? EXIT.bug;
    return null;
  }
}

function wantedOf(flags: Record<string, unknown>): Partial<LabSettings> {
  const names = {
    nodes: 'nodes',
    sequencers: 'sequencers',
    persist: 'persist',
    ttl: 'ttlMs',
    'block-time': 'blockTimeMs',
    eager: 'eager',
  };
  return Object.fromEntries(
    Object.entries(names).flatMap(([flag, setting]) => (flags[flag] === undefined ? [] : [[setting, flags[flag]]])),
  );
}
