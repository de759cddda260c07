// What `seq alerts print` and `seq dashboard print` say, held against Prometheus' own tools, against the metrics that a
// sequencer really exports, and against the pages of docs/RUNBOOKS.md. Whether real troubles raise the alerts:
// test/long/alerts.test.ts.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { allCodes } from '../../src/cli/codes/codes.js';
import { FINDING_ALERTS, OTHER_ALERTS } from '../../src/cli/deploy/alert-table.js';
import { alertRules, anchorOf, type AlertRule } from '../../src/cli/deploy/alerts.js';
import { dashboard } from '../../src/cli/deploy/dashboard.js';
import type { ClusterReading } from '../../src/core/serve/cluster-metrics.js';
import { startHttpServer } from '../../src/core/serve/server.js';
import { lineProblem } from '../support/command-lines.js';
import { FakeSequencer } from '../support/fake-sequencer.js';
import { newHome, root, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const rules = alertRules({ job: 'seq', runbooks: 'RUNBOOKS.md', target: '-c prod' }, allCodes());
const rulesFile = join(home, 'rules.yml');
writeFileSync(rulesFile, stringify({ groups: [{ name: 'seq', rules }] }));

function promtool(...args: string[]): { status: number | null; said: string } {
  const { status, stdout, stderr, error } = spawnSync('promtool', args, { encoding: 'utf8', cwd: home });
  if (error) throw new Error('promtool is not on PATH: apt-get install prometheus', { cause: error });
  return { status, said: `${stdout}${stderr}` };
}

const reading: ClusterReading = {
  verdict: 'WARN',
  findings: [
    { code: 'NODE_DOWN', verdict: 'WARN' },
    { code: 'CLOCK_OFF', verdict: 'WARN' },
  ],
  nodes: [
    {
      id: 'r1',
      latencyMs: 2,
      lagBlocks: 0,
      epoch: 7,
      admitted: true,
      lostConnections: 3,
      clockAheadMs: -4,
      usedMemoryBytes: 1000,
      maxMemoryBytes: 2000,
    },
    {
      id: 'r2',
      latencyMs: null,
      lagBlocks: null,
      epoch: null,
      admitted: false,
      lostConnections: 0,
      clockAheadMs: null,
      usedMemoryBytes: null,
      maxMemoryBytes: null,
    },
  ],
  quorum: 2,
  margin: 0,
  configuration: { epoch: 7, turn: 1 },
  clockAheadMs: 30,
  storeFreeBytes: 5000,
};

async function scrape(readCluster: () => Promise<ClusterReading>): Promise<string> {
  const server = await startHttpServer({
    api: new FakeSequencer(),
    listen: { host: '127.0.0.1', port: 0 },
    maxBlockBytes: 1024,
    metrics: { version: '1.2.3', readCluster },
  });
  try {
    return await (await fetch(`${server.url}/metrics`)).text();
  } finally {
    await server.close();
  }
}

/** Every metric that an expression names. */
const named = (expr: string) => [...new Set(expr.match(/\bseq_[a-z_]+\b/g) ?? [])];

describe('metrics', () => {
  test('metrics: what the nodes answered stands there; what they did not answer has no sample', async () => {
    const text = await scrape(async () => reading);
    const own = 'cluster="test.1"';
    for (const line of [
      `seq_verdict{verdict="WARN",${own}} 1`,
      `seq_verdict{verdict="OK",${own}} 0`,
      `seq_finding{code="NODE_DOWN",verdict="WARN",${own}} 1`,
      `seq_finding{code="CLOCK_OFF",verdict="WARN",${own}} 1`,
      `seq_node_up{node="r1",${own}} 1`,
      `seq_node_up{node="r2",${own}} 0`,
      `seq_node_latency_seconds{node="r1",${own}} 0.002`,
      `seq_node_reconnects_total{node="r1",${own}} 3`,
      `seq_node_clock_difference_seconds{node="r1",${own}} -0.004`,
      `seq_clock_difference_seconds{${own}} 0.03`,
      `seq_configuration_version{part="epoch",${own}} 7`,
      `seq_reading_failed{${own}} 0`,
      `seq_build_info{version="1.2.3",node_version="${process.version}",${own}} 1`,
    ])
      expect(text.split('\n')).toContain(line);
    expect(text).not.toMatch(/^seq_node_(latency_seconds|lag_blocks|epoch)\{node="r2"/m);
  });

  test('metrics: the nodes cannot be read → the scrape says so, and no old figure stays', async () => {
    const text = await scrape(() => Promise.reject(new Error('no')));
    expect(text).toContain('seq_reading_failed{cluster="test.1"} 1');
    expect(text).not.toMatch(/^seq_(finding|verdict|node_up|margin|quorum)\b/m);
  });

  test('metrics: docs/MONITORING.md explains each, and no other', async () => {
    const exported = [...(await scrape(async () => reading)).matchAll(/^# HELP (\S+)/gm)].map(([, name]) => name);
    const page = readFileSync(join(root, 'docs/MONITORING.md'), 'utf8').split('\n## Metrics')[1] ?? '';
    const explained = [...page.matchAll(/^\| (`seq_.+?) \|/gm)].flatMap(([, cell]) => named(cell ?? ''));
    expect(explained.sort()).toEqual(exported.sort());
  });

  test('metrics: names keep the conventions of Prometheus', async () => {
    const file = join(home, 'metrics.txt');
    writeFileSync(file, await scrape(async () => reading));
    const checked = spawnSync('promtool', ['check', 'metrics'], { input: readFileSync(file), encoding: 'utf8' });
    expect([checked.status, checked.stdout, checked.stderr]).toEqual([0, '', '']);
  });
});

describe('alerts', () => {
  test('alerts: promtool accepts the rules', () => {
    const { status, said } = promtool('check', 'rules', rulesFile);
    expect(status, said).toBe(0);
    expect(said).toContain(`${rules.length} rules found`);
  });

  test('alerts: each has a summary, a command that the program takes, a code that is explained, and a page', () => {
    const headings = [...readFileSync(join(root, 'docs/RUNBOOKS.md'), 'utf8').matchAll(/^## (.+)$/gm)].map((match) =>
      anchorOf(match[1] as string),
    );
    for (const { alert, labels, annotations } of rules) {
      expect(annotations.summary, alert).toMatch(/^[A-Z{].*\.$/);
      expect(lineProblem(annotations.next.replace('{{ $labels.code }}', 'OOM')), alert).toBeNull();
      if (labels.code !== undefined) expect(allCodes().has(labels.code), alert).toBe(true);
      const page = annotations.runbook_url?.replace('RUNBOOKS.md#', '');
      if (page !== undefined) expect(headings, alert).toContain(page);
    }
  });

  test('alerts: the context is not there → 66; without one, without a configuration → printed', async () => {
    const refused = await runSeq(newHome(), ['alerts', 'print', '-c', 'nope', '-o', 'json']);
    expect([refused.code, JSON.parse(refused.stdout)]).toMatchObject([66, { error: { code: 'CONTEXT_NOT_FOUND' } }]);
    const printed = await runSeq(newHome(), ['alerts', 'print']);
    expect([printed.code, printed.stdout]).toEqual([0, expect.stringMatching(/^groups:/)]);
  });

  test('alerts: each name and severity is given once', () => {
    const names = rules.map(({ alert, labels }) => `${alert} ${labels.severity}`);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  test('alerts and dashboard: each metric that they name is one that a sequencer exports', async () => {
    const exported = new Set(
      [...(await scrape(async () => reading)).matchAll(/^# HELP (\S+)/gm)].map(([, one]) => one),
    );
    const panels = JSON.stringify(dashboard('seq'));
    const used = [...rules.map(({ expr }) => expr), panels].flatMap(named);
    const unknown = used.filter((name) => !exported.has(name.replace(/_(bucket|sum|count)$/, '')));
    // seq check … -o prometheus says this one.
    expect([...new Set(unknown)]).toEqual(['seq_check_status']);
    expect(new Set(used).size).toBeGreaterThan(25);
  });
});

/** Scrapes and evaluations every 15 s, as Prometheus does unless it is told otherwise. */
interface RuleTest {
  /** Series from the first minute on: quiet for 4 scrapes, trouble for 4, quiet again. */
  series: [series: string, quiet: string, trouble: string][];
  alert: string;
}

const OWN = 'job="seq",instance="a",cluster="c.1"';
/** `_` is a scrape that does not have the series. Behind a value, Prometheus marks it as stale. */
const missing = (count: number, first: boolean) => (first ? `_x${count}` : `stale _x${count - 1}`);
/** `3x4` is a value and four more of it; `_x4` is four times nothing. */
const values = (quiet: string, trouble: string) => [
  quiet === '_' ? missing(4, true) : `${quiet}x3`,
  trouble === '_' ? missing(4, false) : `${trouble}x3`,
  quiet === '_' ? missing(8, false) : `${quiet}x7`,
];

function ruleTest({ series, alert }: RuleTest, rule: AlertRule) {
  const troubleAt = 4 * 15;
  const quietAt = 8 * 15;
  const labelled = (at: number, firing: boolean) => ({ eval_time: `${at}s`, alertname: alert, firing });
  return {
    interval: '15s',
    input_series: series.map(([name, quiet, trouble]) => ({ series: name, values: values(quiet, trouble).join(' ') })),
    checks: [labelled(troubleAt - 15, false), labelled(troubleAt + 45, true), labelled(quietAt + 45, false)],
    rule,
  };
}

describe('alerts in virtual time', () => {
  const findings: RuleTest[] = Object.entries(FINDING_ALERTS).map(([code, { severity }]) => ({
    alert: rules.find(({ labels }) => labels.code === code)?.alert ?? '',
    series: [[`seq_finding{${OWN},code="${code}",verdict="${severity === 'warning' ? 'WARN' : 'CRIT'}"}`, '_', '1']],
  }));
  const level: RuleTest[] = [
    { alert: 'SeqUnknown', series: [[`seq_reading_failed{${OWN}}`, '0', '1']] },
    { alert: 'SeqUnknown', series: [[`seq_reading_failed{${OWN}}`, '0', '_']] },
    { alert: 'SeqSequencerDown', series: [['up{job="seq",instance="a"}', '1', '0']] },
    { alert: 'SeqStreamDamaged', series: [['seq_check_status{cluster="c.1",check="stream"}', '0', '1']] },
    {
      alert: 'SeqInboxFull',
      series: [
        [`seq_inbox_bytes{${OWN}}`, '10', '90'],
        [`seq_inbox_limit_bytes{${OWN}}`, '100', '100'],
      ],
    },
    {
      alert: 'SeqMemoryFull',
      series: [
        [`seq_node_memory_used_bytes{${OWN},node="r1"}`, '10', '95'],
        [`seq_node_memory_limit_bytes{${OWN},node="r1"}`, '100', '100'],
      ],
    },
    { alert: 'SeqStoreDiskFull', series: [[`seq_store_free_bytes{${OWN}}`, '9e9', '1e6']] },
  ];

  test('alerts: each finding and each level → quiet before, fires within 60 s, quiet again within 60 s', () => {
    const cases = [...findings, ...level];
    const file = join(home, 'tests.yml');
    writeFileSync(
      file,
      stringify({
        rule_files: [rulesFile],
        evaluation_interval: '15s',
        tests: cases.map((one) => {
          const rule = rules.find(({ alert }) => alert === one.alert);
          if (rule === undefined) throw new Error(`there is no alert ${one.alert}`);
          const { interval, input_series, checks } = ruleTest(one, rule);
          return {
            interval,
            input_series,
            // The number of alerts of that name that fire. So no label has to be repeated here.
            promql_expr_test: checks.map(({ eval_time, alertname, firing }) => ({
              eval_time,
              expr: `count(ALERTS{alertname="${alertname}",alertstate="firing"}) or vector(0)`,
              exp_samples: [{ labels: '{}', value: firing ? 1 : 0 }],
            })),
          };
        }),
      }),
    );
    const { status, said } = promtool('test', 'rules', file);
    expect(status, said).toBe(0);
  });

  /** It happened 105 s after the start. */
  const stamp = (metric: string, code: string): [string, string] => [`${metric}{${OWN},code="${code}"}`, '_x7 105x40'];
  const alarm = (code: string) => [stamp('seq_alarm_timestamp_seconds', code)];
  const steps: [what: string, alert: string, series: [string, string][], firesAt: number, quietAt: number][] = [
    ['an alarm', 'SeqAlarm', alarm('CHAIN_MISMATCH'), 135, 420],
    ['out of memory', 'SeqOutOfMemory', alarm('OOM'), 135, 420],
    ['a damaged entry', 'SeqDamagedEntry', alarm('DAMAGED_ENTRY'), 135, 420],
    ['a producer that fails', 'SeqTermEnded', [stamp('seq_stepdown_timestamp_seconds', 'PRODUCER_FAILED')], 135, 420],
    ['three promotions', 'SeqFlapping', [[`seq_elections_total{${OWN},result="won"}`, '0x3 1 2 3x80']], 120, 1500],
  ];
  test.each(steps)('alerts: %s → %s', (_what, alert, series, firesAt, quietAt) => {
    const file = join(home, `${alert}.yml`);
    const count = `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`;
    writeFileSync(
      file,
      stringify({
        rule_files: [rulesFile],
        evaluation_interval: '15s',
        tests: [
          {
            interval: '15s',
            input_series: series.map(([name, text]) => ({ series: name, values: text })),
            promql_expr_test: [
              { eval_time: '30s', expr: count, exp_samples: [{ labels: '{}', value: 0 }] },
              { eval_time: `${firesAt}s`, expr: count, exp_samples: [{ labels: '{}', value: 1 }] },
              { eval_time: `${quietAt}s`, expr: count, exp_samples: [{ labels: '{}', value: 0 }] },
            ],
          },
        ],
      }),
    );
    const { status, said } = promtool('test', 'rules', file);
    expect(status, said).toBe(0);
  });

  const calm: [what: string, series: [string, string][]][] = [
    ['a stop for maintenance', [stamp('seq_stepdown_timestamp_seconds', 'SIGTERM')]],
    ['one change of leadership', [[`seq_elections_total{${OWN},result="won"}`, '0x3 1x40']]],
    ['a takeover that one scrape saw', [[`seq_finding{${OWN},code="NO_LEADER",verdict="CRIT"}`, '_x7 1 stale _x40']]],
    // Whoever begins to watch later is not told of it.
    ['an alarm of long ago', [[`seq_alarm_timestamp_seconds{${OWN},code="OOM"}`, '-400x40']]],
  ];
  test.each(calm)('alerts: %s → none', (what, series) => {
    const file = join(home, 'calm.yml');
    const healthy: [string, string][] = [
      [`seq_reading_failed{${OWN}}`, '0x50'],
      ['up{job="seq",instance="a"}', '1x50'],
    ];
    writeFileSync(
      file,
      stringify({
        rule_files: [rulesFile],
        evaluation_interval: '15s',
        tests: [
          {
            interval: '15s',
            input_series: [...healthy, ...series].map(([name, text]) => ({ series: name, values: text })),
            promql_expr_test: [
              {
                eval_time: '10m',
                expr: 'count(count_over_time(ALERTS{alertstate="firing"}[10m])) or vector(0)',
                exp_samples: [{ labels: '{}', value: 0 }],
              },
            ],
          },
        ],
      }),
    );
    const { status, said } = promtool('test', 'rules', file);
    expect(status, `${what}: ${said}`).toBe(0);
  });

  test('alerts: every alert is proven here', () => {
    const proven = new Set([...findings, ...level].map(({ alert }) => alert).concat(steps.map(([, alert]) => alert)));
    expect(rules.map(({ alert }) => alert).filter((alert) => !proven.has(alert))).toEqual([]);
    expect(OTHER_ALERTS.length).toBeGreaterThan(5);
  });
});
