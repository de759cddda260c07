import { Flags } from '@oclif/core';
import { ChangeCommand } from '../../cli/command/change-command.js';
import { fleetOf, laneNames, refuseLaneFlag } from '../../cli/compose/lanes.js';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { addedResult } from '../../cli/present/cluster/lanes.js';
import type { Result } from '../../cli/present/result.js';
import { addLanes } from '../../core/fleet/add-lanes.js';
import { DEFAULT_AGREED } from '../../core/protocol/configuration.js';

export default class LaneAdd extends ChangeCommand {
  static override summary = 'Add lanes to the cluster: chains of their own on the same servers';
  static override description = [
    'Makes each lane on all nodes, then lists it on a quorum of them. A lane begins with the agreed settings of ' +
      'the cluster. One that was made before by the same cluster is listed as it is. Any number in one go; broken ' +
      'off, the same command goes on.',
    'A name is used once: one that seq lane rm has removed is refused.',
    '--list-was-lost goes on where fewer than a quorum of nodes remember the list of lanes (LANES_FORGOTTEN): what ' +
      'the nodes still list counts from then on, with the lanes that are named. Name none that was removed.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> lane add tile-1 tile-2 tile-3',
    '<%= config.bin %> lane add -c prod --from-file lanes.txt',
  ];
  static override strict = false;
  static override deadline = false;
  static override flags = {
    'dry-run': ACT_FLAGS['dry-run'],
    reason: ACT_FLAGS.reason,
    'from-file': Flags.string({ helpValue: 'FILE', description: 'one name a line (- for stdin); # begins a comment' }),
    'list-was-lost': Flags.boolean({
      helpGroup: 'CHANGE',
      description: 'go on with what the nodes still list, where too few remember the list',
    }),
  };
  protected readonly kind = 'lane.add';

  protected async perform(): Promise<Result> {
    const { flags, argv } = await this.parse(LaneAdd);
    refuseLaneFlag(flags);
    const names = laneNames(argv as string[], flags['from-file']);
    await this.surroundings();
    const cluster = await this.cluster({ lane: '' });
    const { target, ...fleet } = await fleetOf(cluster);
    const { random, reason, operator, dryRun, changing, step } = this.changeOptions(flags, cluster);
    const command = this.asGiven;
    // Each lane has a producer of its own: its first leader decides it.
    const settings = { ...(cluster.configuration?.settings ?? DEFAULT_AGREED), producer: '' };
    const done = await addLanes({
      ...fleet,
      names,
      settings,
      random,
      reason,
      operator,
      dryRun,
      listWasLost: Boolean(flags['list-was-lost']),
      changing,
      step,
      command,
    });
    return addedResult(done, dryRun, { command, target });
  }
}
