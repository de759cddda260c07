import { configPath } from '../../cli/config/file.js';
import { SeqCommand } from '../../cli/command/base-command.js';
import type { Result } from '../../cli/present/result.js';

export default class ContextLs extends SeqCommand {
  static override summary = 'List the contexts of the config file';
  static override needsConfig = false;
  protected readonly kind = 'context.ls';

  protected async perform(): Promise<Result> {
    await this.parse(ContextLs);
    const { sources } = await this.surroundings();
    const rows = Object.entries(sources.config?.contexts ?? {}).map(([name, entry]) => ({
      name,
      current: name === sources.config?.current,
      nodes: entry.nodes.length,
      lane: entry.lane ?? '',
      cluster: entry.cluster ?? '',
      urls: entry.nodes.map((node) => node.url).join(' '),
    }));
    return {
      data: {
        path: configPath(),
        current: sources.config?.current ?? null,
        contexts: rows.map((row) => ({ ...row, urls: row.urls.split(' ') })),
      },
      items: rows,
      tables: [
        {
          columns: [
            { key: 'name' },
            { key: 'current' },
            { key: 'nodes', align: 'right' },
            { key: 'lane' },
            { key: 'cluster' },
            { key: 'urls', wide: true },
          ],
          rows: rows.map((row) => ({ ...row, current: row.current ? '*' : '' })),
        },
      ],
      next: rows.length === 0 ? ['seq lab up', 'seq context set NAME --node URL --node URL --node URL'] : [],
    };
  }
}
