import { ChangeCommand } from '../../cli/command/change-command.js';
import { fleetOf, laneNames, refuseLaneFlag } from '../../cli/compose/lanes.js';
import { asDuration } from '../../cli/config/settings.js';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { removedResult, removeEffect, removeText } from '../../cli/present/cluster/lanes.js';
import type { Result } from '../../cli/present/result.js';
import { removeLanes } from '../../core/fleet/remove-lanes.js';

export default class LaneRm extends ChangeCommand {
  static override summary = 'Remove lanes from the cluster, with their blocks on the nodes';
  static override description = [
    'Closes the lanes, waits until no sequencer announces itself in them (at most --timeout, 30s), retires them ' +
      'on the nodes so that nobody can lead them any more, and deletes what the nodes hold of them. Broken off, ' +
      'the same command goes on.',
    'The blocks on the nodes are gone afterwards: seq stream export keeps them in a file. The stores of ' +
      'sequencers are not touched. A name cannot be used again.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> lane rm tile-7 --dry-run',
    '<%= config.bin %> lane rm tile-7 tile-8 --confirm 1a2b3c4d --reason "season is over"',
  ];
  static override strict = false;
  static override ownsTimeout = true;
  static override flags = {
    'dry-run': ACT_FLAGS['dry-run'],
    confirm: ACT_FLAGS.confirm,
    reason: ACT_FLAGS.reason,
  };
  protected readonly kind = 'lane.rm';

  protected async perform(): Promise<Result> {
    const { flags, argv } = await this.parse(LaneRm);
    refuseLaneFlag(flags);
    const names = laneNames(argv as string[], undefined);
    const timeoutMs = (await this.setting('timeout', asDuration, 30_000)).value;
    await this.surroundings();
    const cluster = await this.cluster({ lane: '' });
    const { target, ...fleet } = await fleetOf(cluster);
    const { random, reason, operator, dryRun, signal, changing, step } = this.changeOptions(flags, cluster);
    const command = this.asGiven;
    const done = await removeLanes({
      ...fleet,
      ...{ names, random, reason, operator, dryRun, signal, changing, step, command, timeoutMs },
      confirm: (plan) =>
        this.confirmed(
          { level: 'decides-data', what: removeText(plan), effect: removeEffect(plan), digest: plan.digest },
          flags,
        ),
    });
    return removedResult(done, { command, target });
  }
}
