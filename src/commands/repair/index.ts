import { ACT_FLAGS } from '../../cli/support/flags.js';
import type { Result } from '../../cli/present/result.js';
import { REPAIR_FLAGS, RepairCommand } from '../../cli/command/repair-command.js';

export default class Repair extends RepairCommand {
  static override summary = 'Find out what the nodes lack or hold wrongly, show the plan, ask, repair it, and prove it';
  static override description = [
    'Walks through all of `repair plan`, `repair apply` and `repair verify`. On a terminal it asks ' +
      "for the first 8 digits of the plan's digest; a script gives them with --confirm.",
    'With a leader its own term does the work; without one this command promotes itself for the ' +
      'repair, writes, and releases. Nothing else ever writes a block.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> repair -c lab',
    '<%= config.bin %> repair --dry-run',
    '<%= config.bin %> repair --confirm 1a2b3c4d --reason "r2 was cut off"',
  ];
  static override ownsTimeout = true;
  static override flags = { ...ACT_FLAGS, ...REPAIR_FLAGS };
  protected readonly kind = 'repair';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Repair);
    return this.repair(flags);
  }
}
