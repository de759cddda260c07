import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { commandLine, confirmChange } from '../../cli/support/confirm.js';
import { expectationOf } from '../../cli/support/expectation.js';
import { ACT_FLAGS, epochFlag } from '../../cli/support/flags.js';
import { operatorOf } from '../../cli/support/operator.js';
import { healEffect, healResult } from '../../cli/present/cluster/epoch.js';
import type { Result } from '../../cli/present/result.js';
import { targetFlags } from '../../cli/compose/target.js';
import { healEpochs } from '../../core/operate/epoch.js';
import { systemClock } from '../../core/nodes/system-clock.js';

export default class EpochHeal extends SeqCommand {
  static override summary = "Raise nodes whose epoch lags to the leader's (or, without a leader, to the highest)";
  static override description =
    "An epoch is never lowered. --to goes beyond that; above a leader's epoch it takes leadership " +
    'away, which needs --depose-leader as well.';
  static override examples = [
    '<%= config.bin %> epoch heal --dry-run',
    '<%= config.bin %> epoch heal --confirm 1a2b3c4d',
    '<%= config.bin %> epoch heal --to 100 --depose-leader --dry-run',
  ];
  static override deadline = false;
  static override flags = {
    ...ACT_FLAGS,
    to: epochFlag({ description: 'raise to this epoch' }),
    'depose-leader': Flags.boolean({ description: 'even above the epoch of a leader in office' }),
  };
  protected readonly kind = 'epoch.heal';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(EpochHeal);
    const cluster = await this.cluster();
    const command = commandLine(this.id ?? '', this.argv);
    const done = await healEpochs({
      nodes: cluster.nodes,
      limitMs: cluster.nodeTimeoutMs,
      clock: systemClock,
      target: targetFlags(cluster.settings, cluster.nodes),
      expectedCluster: cluster.identity.cluster,
      ...(flags.to === undefined ? {} : { to: flags.to }),
      mayDepose: Boolean(flags['depose-leader']),
      reason: flags.reason ?? '',
      operator: operatorOf(this.id ?? '', this.argv),
      dryRun: Boolean(flags['dry-run']),
      expect: expectationOf(flags),
      changing: (state, nodes) => this.changing(state, nodes),
      step: (doing) => this.step(doing),
      confirm: (plan) =>
        confirmChange(
          {
            level: 'decides-data',
            what: `raise the epoch of ${plan.steps.map((s) => s.node).join(', ')} to ${plan.value}`,
            effect: healEffect(plan),
            digest: plan.digest,
            ...(plan.deposes
              ? {
                  against: {
                    rule: `it is above the epoch of ${plan.leader?.id ?? 'the holder of the lock'}`,
                    flag: 'depose-leader',
                    given: Boolean(flags['depose-leader']),
                  },
                }
              : {}),
          },
          {
            yes: Boolean(flags.yes),
            confirm: flags.confirm,
            mayAsk: this.mayAsk,
            command,
            signal: this.signal,
            say: (text) => this.note(text),
          },
        ),
    });
    return healResult(done, Boolean(flags['dry-run']), command);
  }
}
