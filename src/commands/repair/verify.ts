import { READ_FLAGS } from '../../cli/support/flags.js';
import { provenResult } from '../../cli/present/stream/repair.js';
import type { Result } from '../../cli/present/result.js';
import { REPAIR_FLAGS, RepairCommand } from '../../cli/command/repair-command.js';
import { plannedRepair } from '../../core/repair/repair.js';
import { verifyStreams } from '../../core/stream/verify.js';
import { CALLER_FLAGS } from '../../cli/compose/caller.js';

export default class RepairVerify extends RepairCommand {
  static override summary =
    'Prove that nothing is left to repair: every node in order, every stream sound, all of them the ' +
    'same; exit 1 otherwise';
  static override description = 'A node that did not answer is not proven, so the answer is no. Changes nothing.';
  static override examples = [
    '<%= config.bin %> repair verify -c lab',
    '<%= config.bin %> repair verify -q && echo sound',
  ];
  static override flags = {
    ...READ_FLAGS,
    peer: REPAIR_FLAGS.peer,
    store: REPAIR_FLAGS.store,
    ...CALLER_FLAGS,
  };
  protected readonly kind = 'repair.verify';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(RepairVerify);
    const cluster = await this.cluster();
    const options = this.evidenceOptions(cluster, flags);
    this.step('reading what every node holds');
    const { plan, evidence } = await plannedRepair(options);
    this.step('proving every stream');
    const verified = await verifyStreams(options);
    options.endProgress();
    const [first] = verified.violations;
    const at = first?.height == null ? '' : ` at height ${first.height}`;
    const result = provenResult(
      plan,
      {
        total: verified.total,
        first: first === undefined ? '' : `${first.node || 'between nodes'}${at}: ${first.witness}`,
      },
      options.target,
    );
    return { ...result, meta: { nodesAnswered: evidence.view.answered } };
  }
}
