import { Args } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { configPath, updateConfig } from '../../cli/config/file.js';
import { contextNotFound } from '../../cli/config/config-errors.js';

export default class ContextRm extends SeqCommand {
  static override summary = 'Remove a context from the config file';
  static override args = { name: Args.string({ required: true, description: 'context' }) };
  protected readonly kind = 'context.rm';

  protected async perform(): Promise<Result> {
    const { args } = await this.parse(ContextRm);
    const path = configPath();
    let wasCurrent = false;
    await updateConfig(path, (config) => {
      const { [args.name]: removed, ...contexts } = config.contexts;
      if (!removed) throw contextNotFound(args.name, config, path);
      const { current, ...rest } = config;
      wasCurrent = current === args.name;
      return { ...rest, ...(wasCurrent || current === undefined ? {} : { current }), contexts };
    });
    return {
      data: { removed: args.name, wasCurrent, path },
      facts: [['removed', args.name]],
      next: wasCurrent ? ['seq context use NAME'] : [],
    };
  }
}
