import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { configPath, updateConfig } from '../../cli/config/file.js';
import { contextNotFound } from '../../cli/config/config-errors.js';

export default class ContextUse extends SeqCommand {
  static override summary = 'Choose the context that commands use when none is named';
  static override args = { name: Args.string({ required: true, description: 'context' }) };
  protected readonly kind = 'context.use';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(ContextUse);
    const path = configPath();
    let before: string | undefined;
    await updateConfig(path, (config) => {
      if (!config.contexts[args.name]) throw contextNotFound(args.name, config, path);
      before = config.current;
      return { ...config, current: args.name };
    });
    return {
      data: { current: args.name, before: before ?? null, path },
      facts: [['current', args.name]],
      next: ['seq status'],
    };
  }
}
