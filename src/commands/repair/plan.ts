import { READ_FLAGS } from '../../cli/support/flags.js';
import { planResult } from '../../cli/present/stream/repair.js';
import type { Result } from '../../cli/present/result.js';
import { REPAIR_FLAGS, RepairCommand } from '../../cli/command/repair-command.js';
import { commandLine } from '../../cli/support/confirm.js';
import { plannedRepair } from '../../core/repair/repair.js';

export default class RepairPlan extends RepairCommand {
  static override summary =
    'What is under-replicated, pending, orphaned, missing or divergent, what each step would write, ' +
    'and what cannot be decided';
  static override description =
    "Reads every node's stream, hashes included, and changes nothing. The digest stands for the " +
    'evidence as well as for the steps: `repair apply --confirm DIGEST` refuses when either is ' +
    'another one.';
  static override examples = [
    '<%= config.bin %> repair plan -c lab',
    '<%= config.bin %> repair plan --choose-block 9f3c21aa',
    '<%= config.bin %> repair plan -o json',
  ];
  static override flags = { ...READ_FLAGS, ...REPAIR_FLAGS };
  protected readonly kind = 'repair.plan';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(RepairPlan);
    const cluster = await this.cluster();
    this.step('reading what every node holds');
    const options = this.evidenceOptions(cluster, flags);
    const { plan, evidence } = await plannedRepair(options);
    options.endProgress();
    const result = planResult(plan, options.target, commandLine('repair:apply', this.argv));
    return { ...result, meta: { nodesAnswered: evidence.view.answered } };
  }
}
