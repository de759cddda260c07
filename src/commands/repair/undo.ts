import { Flags } from '@oclif/core';
import { ACT_FLAGS } from '../../cli/support/flags.js';
import { undoneResult } from '../../cli/present/stream/repair.js';
import type { Result } from '../../cli/present/result.js';
import { REPAIR_FLAGS, RepairCommand } from '../../cli/command/repair-command.js';
import { undoRepair } from '../../core/repair/undo.js';
import { CALLER_FLAGS } from '../../cli/compose/caller.js';

export default class RepairUndo extends RepairCommand {
  static override summary = 'Take back what the last repair decided, as long as nothing stands on it';
  static override description = [
    'Committed blocks that a repair filled in are never taken away again. Where it settled a head ' +
      "against another block, that block is in the nodes' orphans and can take its place again: only " +
      'while nobody leads, every node answers and ends there, and no store holds what was settled.',
    'All sequencers that announce themselves are asked. A store that does not answer stops it: start that sequencer, ' +
      'or name the store by --without-store. A stopped sequencer announces nothing: name its store by --store.',
    'It sets a committed block aside, so it needs --replace-committed as well as the digest.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> repair undo --dry-run',
    '<%= config.bin %> repair undo --replace-committed --confirm 1a2b3c4d',
  ];
  static override ownsTimeout = true;
  static override flags = {
    ...ACT_FLAGS,
    peer: REPAIR_FLAGS.peer,
    store: REPAIR_FLAGS.store,
    ...CALLER_FLAGS,
    'without-store': REPAIR_FLAGS['without-store'],
    'replace-committed': Flags.boolean({
      helpGroup: 'CHANGE',
      description: 'although the block that was settled is committed',
    }),
  };
  protected readonly kind = 'repair.undo';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(RepairUndo);
    const { options, command } = await this.applyOptions(flags, {
      rule: 'what is committed stays committed',
      flag: 'replace-committed',
      given: Boolean(flags['replace-committed']),
    });
    const undone = await undoRepair(options);
    return {
      ...undoneResult(undone, options.dryRun, options.target, command),
      meta: { nodesAnswered: options.nodes.length },
    };
  }
}
