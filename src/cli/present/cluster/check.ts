// Checks → Result, a Nagios line, Prometheus text. Pure. The names in `data` are a contract (schemas/check.json).
import { worstOf } from '../../../core/report/check.js';
import type { CheckAnswer, Metric } from '../../../core/view/check-answer.js';
import type { ClusterView, Verdict } from '../../../core/view/cluster-view.js';
import { EXIT } from '../../../core/errors.js';
import type { Result } from '../result.js';

const CHECK_EXIT = { OK: EXIT.ok, WARN: EXIT.no, CRIT: EXIT.critical, UNKNOWN: EXIT.unknown } as const;
const NAGIOS: Record<Verdict, string> = { OK: 'OK', WARN: 'WARNING', CRIT: 'CRITICAL', UNKNOWN: 'UNKNOWN' };

export function checkResult(
  name: string,
  view: Pick<ClusterView, 'cluster' | 'configured' | 'answered' | 'quorum'> & { reasonCode?: string },
  answers: readonly CheckAnswer[],
): Result {
  const worst = worstOf(answers, view.reasonCode);
  const { verdict, reason, reasonCode } = worst;
  const next = [...new Set(answers.flatMap((answer) => (answer.verdict === 'OK' ? [] : answer.next)))];
  return {
    data: {
      cluster: view.cluster,
      check: name,
      result: verdict === 'OK' ? 'ok' : verdict.toLowerCase(),
      exit: CHECK_EXIT[verdict],
      checks: answers,
      next,
    },
    verdict: { verdict, reason, reasonCode },
    next,
    exit: CHECK_EXIT[verdict],
    items: [...answers],
    tables:
      answers.length === 1
        ? []
        : [
            {
              columns: [{ key: 'check' }, { key: 'verdict' }, { key: 'code' }, { key: 'reason' }],
              rows: answers.map((a) => ({ check: a.check, verdict: a.verdict, code: a.reasonCode, reason: a.reason })),
            },
          ],
    texts: { nagios: nagiosText(name, answers, worst), prometheus: prometheusText(view.cluster, answers) },
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

/** `SEQ LEADER OK - seq-a leads under epoch 3 | epoch=3;;;0`; for several checks, one line each below. */
export function nagiosText(name: string, answers: readonly CheckAnswer[], worst = worstOf(answers)): string {
  const perf = answers
    .flatMap((answer) => answer.metrics.map((m) => perfdata(answers.length > 1 ? `${answer.check}_` : '', m)))
    .join(' ');
  const lines = answers.length === 1 ? [] : answers.map((a) => `${a.check} ${NAGIOS[a.verdict]}: ${line(a.reason)}`);
  return (
    [
      `SEQ ${name.toUpperCase()} ${NAGIOS[worst.verdict]} - ${line(worst.reason)}${perf === '' ? '' : ` | ${perf}`}`,
      ...lines,
    ].join('\n') + '\n'
  );
}

export function nagiosFailure(name: string, message: string): string {
  return `SEQ ${name.toUpperCase()} UNKNOWN - ${line(message)}\n`;
}

export function prometheusText(cluster: string, answers: readonly CheckAnswer[]): string {
  const lines = ['# HELP seq_check_status 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN', '# TYPE seq_check_status gauge'];
  for (const answer of answers)
    lines.push(`seq_check_status{cluster="${label(cluster)}",check="${answer.check}"} ${CHECK_EXIT[answer.verdict]}`);
  const byName = new Map<string, string[]>();
  for (const { check, metrics } of answers) {
    for (const m of metrics) {
      const name = `seq_check_${check}_${m.name}${m.unit === 'ms' ? '_seconds' : ''}`;
      const labels = `cluster="${label(cluster)}"${m.of === '' ? '' : `,id="${label(m.of)}"`}`;
      byName.set(name, [
        ...(byName.get(name) ?? []),
        `${name}{${labels}} ${m.unit === 'ms' ? m.value / 1000 : m.value}`,
      ]);
    }
  }
  for (const [name, samples] of byName) lines.push(`# TYPE ${name} gauge`, ...samples);
  return `${lines.join('\n')}\n`;
}

/** A threshold on a margin is a lower bound: `1:` means "alert below 1". */
function perfdata(prefix: string, m: Metric): string {
  const name = `${prefix}${m.name}${m.of === '' ? '' : `_${m.of}`}`.replace(/['=\s]/g, '_');
  const bound = (limit: number | null): string =>
    limit === null ? '' : m.name === 'margin' ? `${limit}:` : String(limit - 1);
  return `'${name}'=${m.value}${m.unit};${bound(m.warn)};${bound(m.crit)}${m.name === 'margin' ? '' : ';0'}`;
}

/** A bar would start the perfdata, and a line end would start the long text. */
function line(text: string): string {
  return text.replaceAll('|', '/').replace(/[\r\n]+/g, ' ');
}

function label(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
