// Prometheus rules made from the codes of the program. Each rule has the code, a severity, a plain summary, the page of
// docs/RUNBOOKS.md and the command to begin with. A rule waits 15 s (critical) or 30 s (warning), so that a takeover
// raises none; at the usual 15 s between scrapes it fires within a minute.
import type { Explained } from '../codes/codes.js';
import { FINDING_ALERTS, OTHER_ALERTS, type FindingAlert, type Severity } from './alert-table.js';

export interface AlertOptions {
  /** The name of the job that scrapes the sequencers. */
  job: string;
  /** Address of the runbooks, without `#`. */
  runbooks: string;
  /** Flags that name the cluster in a command, e.g. `-c prod`. */
  target: string;
}

export interface AlertRule {
  alert: string;
  expr: string;
  for: string;
  labels: { severity: Severity; code?: string };
  annotations: { summary: string; runbook_url?: string; next: string };
}

const WAIT: Record<Severity, string> = { critical: '15s', warning: '30s' };
/** In the order in which they are tried on a finding that is CRIT or WARN. */
const EITHER = [
  ['critical', 'verdict!="WARN"'],
  ['warning', 'verdict="WARN"'],
] as const;

export function alertRules(options: AlertOptions, codes: ReadonlyMap<string, Explained>): AlertRule[] {
  const job = `job="${options.job}"`;
  const meaning = (code: string) => codes.get(code)?.meaning ?? code;
  const annotations = (summary: string, page: string | null, next: string) => ({
    summary,
    ...(page === null ? {} : { runbook_url: `${options.runbooks}#${anchorOf(page)}` }),
    next: withTarget(next, options.target),
  });
  const findings = Object.entries(FINDING_ALERTS as Record<string, FindingAlert>).flatMap(([code, alert]) => {
    const ways = alert.severity === 'either' ? EITHER : ([[alert.severity, '']] as const);
    return ways.map(([severity, verdict]): AlertRule => {
      const labels = [job, `code="${code}"`, ...(verdict === '' ? [] : [verdict])].join(',');
      return {
        alert: `Seq${nameOf(code)}`,
        expr: `max by (cluster, lane) (seq_finding{${labels}}) == 1`,
        for: WAIT[severity],
        labels: { severity, code },
        annotations: annotations(meaning(code), alert.page, alert.next),
      };
    });
  });
  const others = OTHER_ALERTS.map((alert): AlertRule => ({
    alert: `Seq${alert.name}`,
    expr: alert.expr.replaceAll('JOB', job),
    for: alert.for,
    labels: { severity: alert.severity, ...(alert.code === '' ? {} : { code: alert.code }) },
    annotations: annotations(alert.summary ?? meaning(alert.code), alert.page, alert.next),
  }));
  return [...findings, ...others];
}

/** NO_LEADER → NoLeader. */
function nameOf(code: string): string {
  return code
    .toLowerCase()
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

/** The anchor that renderers of Markdown give a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, '')
    .replaceAll(' ', '-');
}

/** `seq explain` and `seq config show` ask no cluster. */
function withTarget(command: string, target: string): string {
  return target === '' || command.startsWith('seq explain') ? command : `${command} ${target}`;
}
