import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { fleetOf, listedLanes, refuseLaneFlag } from '../cli/compose/lanes.js';
import type { FuelCluster } from '../cli/compose/fuel-nodes.js';
import { FUEL_FLAGS, READ_FLAGS } from '../cli/support/flags.js';
import { statusResult } from '../cli/present/cluster/cluster-view.js';
import { lanesResult } from '../cli/present/cluster/lanes.js';
import type { Result } from '../cli/present/result.js';
import { everyNamed, startCommands, targetFlags } from '../cli/compose/target.js';
import { lanePattern } from '../core/fleet/pattern.js';
import { inspectCluster } from '../core/view/inspect.js';
import { refuseNoAnswer } from '../core/view/no-answer.js';

export default class Status extends SeqCommand {
  static override summary = 'Show who leads, what is committed, how many nodes may still be lost, and what to do next';
  static override description = [
    'Asks every node once, in parallel; one that does not answer is a row, and costs --node-timeout at most.',
    '--on shows the rows of some nodes alone; the verdict is that of the whole cluster.',
    '--lanes judges many lanes: one verdict for all of them, and a row for each, the worst first.',
    'Exits 0 whenever there is something to report, however bad: without a quorum the verdict is ' +
      'CRIT. Only when not one node answered, or nothing could be asked, it exits 69.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> status -c lab',
    '<%= config.bin %> status --watch --interval 500ms',
    '<%= config.bin %> status -o json --fields verdict,leader.id',
  ];
  static override readsFuel = true;
  static override flags = {
    ...READ_FLAGS,
    ...FUEL_FLAGS,
    lanes: Flags.string({
      helpValue: 'PATTERN[,PATTERN]',
      description: 'many lanes, as seq lane ls --sort trouble (* is any text, ? one character)',
    }),
  };
  protected kind = 'status';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Status);
    if (flags.lanes !== undefined) return this.performLanes(flags.lanes, flags);
    const fuel = await this.fuel();
    if (fuel !== null) return this.performFuel(fuel);
    const cluster = await this.cluster();
    this.step('asking every node');
    const view = await inspectCluster({
      nodes: everyNamed(cluster),
      limitMs: cluster.nodeTimeoutMs,
      clock: cluster.clock,
      known: cluster.views,
      twice: true,
      expectedCluster: cluster.settings.cluster,
      target: targetFlags(cluster.settings, cluster.nodes),
      ...startCommands(cluster.settings),
    });
    const shown = cluster.settings.on === null ? undefined : new Set(cluster.settings.on);
    const result = statusResult(view, shown);
    // No node answered: the rows still say why, but there is no state to report.
    if (view.answered === 0) await this.presentBeforeFailure(result).then(() => refuseNoAnswer(view));
    return result;
  }

  private async performLanes(pattern: string, flags: { lane?: string | undefined }): Promise<Result> {
    this.kind = 'lane.ls';
    refuseLaneFlag(flags);
    lanePattern(pattern);
    await this.surroundings();
    const { target, ...fleet } = await fleetOf(await this.cluster({ lane: '' }));
    this.step('asking every node about its lanes');
    return lanesResult(await listedLanes(fleet, pattern), 'trouble', target);
  }

  private async performFuel(cluster: FuelCluster): Promise<Result> {
    this.kind = 'fuel.status';
    const [{ refuseFuelSilence, viewFuel }, { fuelStatusResult }] = await Promise.all([
      import('../core/dialect-fuel/probe.js'),
      import('../cli/present/stream/fuel.js'),
    ]);
    this.step('asking every node');
    const { view, probes } = await viewFuel({ ...cluster, signal: this.signal });
    const result = fuelStatusResult(view, cluster.budget, cluster.settings.on);
    if (view.answered === 0) await this.presentBeforeFailure(result).then(() => refuseFuelSilence(probes, cluster));
    return result;
  }
}
