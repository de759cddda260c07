import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { ID_KINDS, idsFor } from '../../cli/start/completion-ids.js';

export default class CompletionIds extends SeqCommand {
  static override summary = 'Print the ids that completion scripts offer';
  static override hidden = true;
  static override needsConfig = false;
  static override args = { kind: Args.string({ required: true, options: [...ID_KINDS] }) };
  protected readonly kind = 'completion.ids';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(CompletionIds);
    // A shell that completes must never show an error. When nothing is known there are no suggestions.
    const ids = await idsFor(args.kind as (typeof ID_KINDS)[number], await this.surroundings(), () =>
      this.cluster(),
    ).catch(() => []);
    return { data: { ids }, items: ids, text: ids.join('\n'), asIs: true };
  }
}
