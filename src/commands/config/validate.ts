import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { configPath, readConfig } from '../../cli/config/file.js';
import { surroundings } from '../../cli/cluster/settings.js';

export default class ConfigValidate extends SeqCommand {
  static override summary = 'Check the config file and every context in it';
  static override needsConfig = false;
  protected readonly kind = 'config.validate';

  protected async perform(): Promise<Result> {
    await this.parse(ConfigValidate);
    const path = configPath();
    this.step(`reading ${path}`);
    const config = await readConfig(path);
    const contexts = Object.keys(config?.contexts ?? {});
    for (const context of contexts) {
      this.step(`checking context ${context}`);
      (await surroundings({ context }, process.env)).clusterSettings();
    }
    const reason =
      config === null
        ? `there is no config file at ${path}: defaults apply`
        : `${path} is well-formed, ${contexts.length} context${contexts.length === 1 ? '' : 's'}`;
    return {
      data: { path, exists: config !== null, valid: true, contexts },
      verdict: { verdict: 'OK', reason, reasonCode: 'OK' },
    };
  }
}
