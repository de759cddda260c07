import { Flags } from '@oclif/core';
import { ChangeCommand } from '../../cli/command/change-command.js';
import { ACT_FLAGS, epochFlag } from '../../cli/support/flags.js';
import { healEffect, healResult } from '../../cli/present/cluster/epoch.js';
import type { Result } from '../../cli/present/result.js';
import { healEpochs } from '../../core/operate/epoch.js';

export default class EpochHeal extends ChangeCommand {
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
    const command = this.asGiven;
    const done = await healEpochs({
      ...this.changeOptions(flags, cluster),
      limitMs: cluster.nodeTimeoutMs,
      ...(flags.to === undefined ? {} : { to: flags.to }),
      mayDepose: Boolean(flags['depose-leader']),
      confirm: (plan) =>
        this.confirmed(
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
          flags,
        ),
    });
    return healResult(done, Boolean(flags['dry-run']), command);
  }
}
