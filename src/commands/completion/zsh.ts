import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { commandTree, completionScript } from '../../cli/start/completion.js';

export default class CompletionZsh extends SeqCommand {
  static override summary = 'Print the completion script for zsh';
  static override needsConfig = false;
  protected readonly kind = 'completion';

  protected async perform(): Promise<Result> {
    await this.parse(CompletionZsh);
    const script = completionScript('zsh', commandTree(this.config.commands));
    return { data: { shell: 'zsh', script }, text: script, asIs: true };
  }
}
