import { ACT_FLAGS } from '../../cli/support/flags.js';
import type { Result } from '../../cli/present/result.js';
import { REPAIR_FLAGS, RepairCommand } from '../../cli/command/repair-command.js';

export default class RepairApply extends RepairCommand {
  static override summary = 'Carry out a repair plan by its digest, and read every node again';
  static override description = [
    'The plan is made anew, and refused (76) when it is not the one that was confirmed. With a ' +
      "leader the leader's term carries it out (--timeout, 60s); without one this command promotes " +
      'itself for it.',
    'Broken off anywhere (Ctrl-C, kill -9, a lost node), `seq repair plan` shows what is left and ' +
      'the next run finishes it. Where two blocks of one epoch stand against each other, ' +
      "--choose-block names the one that stays; the other is kept in the node's orphans.",
  ].join('\n');
  static override examples = [
    '<%= config.bin %> repair apply --confirm 1a2b3c4d',
    '<%= config.bin %> repair apply --choose-block 9f3c21aa --confirm 1a2b3c4d --reason "r3 was edited by hand"',
  ];
  static override ownsTimeout = true;
  static override flags = { ...ACT_FLAGS, ...REPAIR_FLAGS };
  protected readonly kind = 'repair.apply';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(RepairApply);
    return this.repair(flags);
  }
}
