import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { commandTree, completionScript } from '../../cli/start/completion.js';

export default class CompletionBash extends SeqCommand {
  static override summary = 'Print the completion script for bash';
  static override needsConfig = false;
  protected readonly kind = 'completion';

  protected async perform(): Promise<Result> {
    await this.parse(CompletionBash);
    const script = completionScript('bash', commandTree(this.config.commands));
    return { data: { shell: 'bash', script }, text: script, asIs: true };
  }
}
