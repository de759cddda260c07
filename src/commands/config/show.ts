import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';
import { effectiveSettings } from '../../cli/cluster/effective-settings.js';

export default class ConfigShow extends SeqCommand {
  static override summary = 'Show the settings in effect, and with --origin where each comes from';
  static override flags = { origin: Flags.boolean({ description: 'say where each setting comes from' }) };
  protected readonly kind = 'config.show';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(ConfigShow);
    const around = await this.surroundings();
    const { settings, nodes } = effectiveSettings(around);
    const columns = [
      { key: 'name' },
      { key: 'value' },
      { key: 'origin', wide: !flags.origin },
      { key: 'from', wide: !flags.origin },
    ];
    return {
      data: { path: around.sources.configPath, context: around.sources.context?.name ?? null, settings, nodes },
      items: settings,
      facts: [
        ['config file', around.sources.configPath],
        ['context', around.sources.context?.name ?? null],
      ],
      tables: [
        {
          columns,
          rows: settings.map(({ name, value, origin, from }) => ({
            name,
            value: Array.isArray(value) ? value.join(',') : value,
            origin,
            from,
          })),
        },
        {
          title: 'nodes',
          columns: [{ key: 'id' }, { key: 'url' }, { key: 'username' }, { key: 'password' }, { key: 'tls' }],
          rows: nodes,
        },
      ],
    };
  }
}
