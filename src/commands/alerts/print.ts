import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { allCodes } from '../../cli/codes/codes.js';
import { alertRules } from '../../cli/deploy/alerts.js';
import type { Result } from '../../cli/present/result.js';

export default class AlertsPrint extends SeqCommand {
  static override summary = 'Print Prometheus rules: an alert for each code, with its runbook and its next command';
  static override description = [
    'The rules read the metrics of sequencers that run with --http, and what `seq check stream -o prometheus` says.',
    'Commands in the rules name the context in use.',
  ].join('\n');
  static override examples = [
    '<%= config.bin %> alerts print -c prod > /etc/prometheus/seq-alerts.yml',
    '<%= config.bin %> alerts print --job sequencers --runbooks https://wiki.example.com/seq/RUNBOOKS.md',
  ];
  static override flags = {
    job: Flags.string({ default: 'seq', helpValue: 'NAME', description: 'job that scrapes the sequencers' }),
    runbooks: Flags.string({
      default: 'RUNBOOKS.md',
      helpValue: 'URL',
      description: 'address of the runbooks (docs/RUNBOOKS.md of the package)',
    }),
  };
  protected readonly kind = 'alerts.print';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(AlertsPrint);
    const { sources } = await this.surroundings();
    const context = sources.context?.name;
    const rules = alertRules(
      { job: flags.job, runbooks: flags.runbooks, target: context === undefined ? '' : `-c ${context}` },
      allCodes(),
    );
    const groups = [{ name: 'seq', rules }];
    const { stringify } = await import('../../cli/config/yaml.js');
    return { data: { groups }, items: rules, text: stringify({ groups }, { lineWidth: 0 }), asIs: true };
  }
}
