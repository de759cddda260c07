import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { commandTree, completionScript } from '../../cli/start/completion.js';

export default class CompletionFish extends SeqCommand {
  static override summary = 'Print the completion script for fish';
  static override needsConfig = false;
  protected readonly kind = 'completion';

  protected async perform(): Promise<Result> {
    await this.parse(CompletionFish);
    const script = completionScript('fish', commandTree(this.config.commands));
    return { data: { shell: 'fish', script }, text: script, asIs: true };
  }
}
