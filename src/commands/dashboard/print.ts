import { Flags } from '@oclif/core';
import { SeqCommand } from '../../cli/command/base-command.js';
import { dashboard } from '../../cli/deploy/dashboard.js';
import type { Result } from '../../cli/present/result.js';

export default class DashboardPrint extends SeqCommand {
  static override summary = 'Print a Grafana dashboard over the metrics of sequencers';
  static override description =
    'Import the JSON in Grafana (Dashboards, New, Import), or give its file to a provisioner.';
  static override examples = ['<%= config.bin %> dashboard print > seq-dashboard.json'];
  static override needsConfig = false;
  static override flags = {
    job: Flags.string({ default: 'seq', helpValue: 'NAME', description: 'job that scrapes the sequencers' }),
  };
  protected readonly kind = 'dashboard.print';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(DashboardPrint);
    const made = dashboard(flags.job);
    return { data: { dashboard: made }, text: JSON.stringify(made, null, 2), asIs: true };
  }
}
