import { SeqCommand } from '../cli/command/base-command.js';
import { secretsOf } from '../cli/support/operator.js';
import { READ_FLAGS, positiveFlag } from '../cli/support/flags.js';
import { historyResult } from '../cli/present/cluster/history.js';
import type { Result } from '../cli/present/result.js';
import { askOptions } from '../cli/compose/target.js';
import { readHistory } from '../core/report/history.js';
import { cleaner } from '../core/log/redact.js';

export default class HistoryCommand extends SeqCommand {
  static override summary =
    'Show who led when: epoch, heights, duration, gap before it, why it ended; and what operators changed';
  static override description =
    'Terms come from the blocks that the nodes retain, changes from their audit records. What ' +
    'nobody recorded is said to be so.';
  static override examples = ['<%= config.bin %> history -c lab', '<%= config.bin %> history --limit 5 -o json'];
  static override deadline = false;
  static override flags = {
    ...READ_FLAGS,
    limit: positiveFlag({ default: 20, description: 'terms and changes at most, newest first' }),
  };
  protected readonly kind = 'history';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(HistoryCommand);
    const cluster = await this.cluster();
    this.step('reading the retained blocks and the audit records');
    const progress = this.longReading('read');
    const history = await readHistory({
      ...askOptions(cluster),
      strangers: cluster.strangers.map(({ port }) => port),
      signal: this.signal,
      limit: flags.limit,
      progress: progress.at,
      clean: cleaner(secretsOf(cluster)),
    });
    progress.end();
    return historyResult(history);
  }
}
