import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { fleetOf, listedLanes, refuseLaneFlag } from '../../cli/compose/lanes.js';
import { WATCH_FLAGS } from '../../cli/support/flags.js';
import { lanesResult, type LaneOrder } from '../../cli/present/cluster/lanes.js';
import type { Result } from '../../cli/present/result.js';
import { lanePattern } from '../../core/fleet/pattern.js';

export default class LaneLs extends SeqCommand {
  static override summary = 'List the lanes of the cluster: state, leader, epoch, height, verdict';
  static override description =
    'Every open lane is judged as seq status judges it. The default lane is not in the list. Removed lanes are not ' +
    'shown.';
  static override examples = [
    '<%= config.bin %> lane ls',
    "<%= config.bin %> lane ls -c prod --lanes 'tile-*' --sort trouble",
  ];
  static override flags = {
    ...WATCH_FLAGS,
    lanes: Flags.string({
      helpValue: 'PATTERN[,PATTERN]',
      description: 'only lanes that fit (* is any text, ? one character)',
    }),
    sort: Flags.string({ helpValue: 'name|trouble', options: ['name', 'trouble'], description: 'order (name)' }),
  };
  protected readonly kind = 'lane.ls';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(LaneLs);
    refuseLaneFlag(flags);
    if (flags.lanes !== undefined) lanePattern(flags.lanes);
    await this.surroundings();
    const { target, ...fleet } = await fleetOf(await this.cluster({ lane: '' }));
    this.step('asking every node about its lanes');
    return lanesResult(await listedLanes(fleet, flags.lanes), (flags.sort ?? 'name') as LaneOrder, target);
  }
}
