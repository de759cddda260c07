import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/base-command.js';
import { durationFlag, positiveFlag } from '../cli/flags.js';
import { usageError } from '../cli/failure.js';
import { asDuration } from '../cli/settings.js';
import type { Result } from '../cli/present/result.js';
import { startCommandOf, targetFlags } from '../cli/target.js';
import { systemClock } from '../core/engine/system.js';

export default class Watch extends SeqCommand {
  static override summary = 'The cluster on one screen, live: is it writing, who leads, how many nodes may be lost, what to do next';
  static override description = [
    'Says what `seq status` says, again and again, from the same reading of the nodes. No key changes the cluster; y copies the command that would.',
    'Without a terminal on stdin and stdout it is `seq status --watch -o ndjson`. --once prints one frame as text.',
  ].join('\n');
  static override examples = ['<%= config.bin %> watch -c lab', '<%= config.bin %> watch --interval 250ms', '<%= config.bin %> watch --once'];
  static override deadline = false;
  // Long enough to give the terminal back and to say the last words.
  static override graceMs = 1500;
  static override flags = {
    once: Flags.boolean({ helpGroup: 'WATCH', description: 'print one frame as text and end' }),
    interval: durationFlag({ helpGroup: 'WATCH', description: 'pause between two looks (1s; 250ms to 60s)' }),
    count: positiveFlag({ helpGroup: 'WATCH', description: 'end after N looks' }),
  };
  protected readonly kind = 'status';

  protected async perform(): Promise<Result | null> {
    const { flags } = await this.parse(Watch);
    const interval = await this.setting('interval', asDuration, 1000);
    if (interval.value < 250 || interval.value > 60_000) throw usageError(`--interval ${interval.value} ms is outside 250ms to 60s`, ['--interval 1s']);
    const terminal = Boolean(process.stdin.isTTY && process.stdout.isTTY) && process.env['TERM'] !== 'dumb';
    const asData = flags.output !== undefined || flags.json;
    if (asData || (!flags.once && !terminal)) {
      await this.asStatus(flags, Boolean(process.stdout.isTTY) && !asData);
      return null;
    }
    const cluster = await this.cluster();
    const { themeOf } = await import('../tui/theme.js');
    const common = {
      title: cluster.settings.context ?? (cluster.identity.cluster || 'nodes'), nodes: cluster.nodes, limitMs: cluster.nodeTimeoutMs, clock: systemClock, theme: themeOf(process.env, this.colour),
      summarize: { expectedCluster: cluster.settings.cluster, target: targetFlags(cluster.settings, cluster.nodes), startCommand: startCommandOf(cluster.settings) },
    };
    if (flags.once) {
      const { watchOnce } = await import('../tui/once.js');
      const columns = process.stdout.columns ?? (Number(process.env['COLUMNS']) || 100);
      const rows = process.stdout.rows ?? (Number(process.env['LINES']) || 30);
      await this.write((await watchOnce({ ...common, size: { columns, rows } })).text);
      return null;
    }
    return null;
  }

  /** The same answers as lines: `seq status --watch`. */
  private async asStatus(flags: { once: boolean; interval?: number; count?: number; output?: string; json: boolean }, person: boolean): Promise<void> {
    const { default: Status } = await import('./status.js');
    const kept: string[] = [];
    for (let at = 0; at < this.argv.length; at += 1) {
      const word = this.argv[at] ?? '';
      if (word === '--once') continue;
      if (word === '--interval' || word === '--count') at += 1;
      else if (!/^--(interval|count)=/.test(word)) kept.push(word);
    }
    const watch = flags.once ? [] : ['--watch', ...(flags.interval === undefined ? [] : ['--interval', `${flags.interval}ms`]), ...(flags.count === undefined ? [] : ['--count', String(flags.count)])];
    await Status.run([...kept, ...watch, ...(flags.output !== undefined || flags.json || person ? [] : ['-o', 'ndjson'])], this.config);
  }
}
