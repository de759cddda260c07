// A Grafana dashboard over the metrics of sequencers. From top to bottom it answers: does the cluster write, how fast,
// how do the nodes stand, what did leaders do, and what does each process need.

interface Panel {
  title: string;
  kind: 'stat' | 'timeseries' | 'state-timeline';
  unit?: string;
  /** `SEL` stands for the labels that select job, cluster and lane. */
  queries: [legend: string, expr: string][];
}

const RATE = '[$__rate_interval]';
const quantile = (share: number, name: string, by: string) =>
  `histogram_quantile(${share}, sum by (${by}) (rate(${name}_bucket{SEL}${RATE})))`;

const ROWS: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    'Does it write?',
    [
      { title: 'Verdict', kind: 'stat', queries: [['{{verdict}}', 'max by (verdict) (seq_verdict{SEL}) == 1']] },
      { title: 'Findings', kind: 'stat', queries: [['{{code}}', 'max by (code) (seq_finding{SEL})']] },
      { title: 'Nodes that may still fail', kind: 'stat', queries: [['margin', 'min(seq_margin{SEL})']] },
      { title: 'Who leads', kind: 'state-timeline', queries: [['{{instance}}', 'seq_role{SEL,role="leader"}']] },
    ],
  ],
  [
    'How fast?',
    [
      {
        title: 'Committed items',
        kind: 'timeseries',
        unit: 'ops',
        queries: [['items', `max(rate(seq_committed_items_total{SEL}${RATE}))`]],
      },
      {
        title: 'Time to commit a block',
        kind: 'timeseries',
        unit: 's',
        queries: [
          ['median', quantile(0.5, 'seq_commit_seconds', 'le')],
          ['99 of 100', quantile(0.99, 'seq_commit_seconds', 'le')],
        ],
      },
      {
        title: 'Time to sync the store',
        kind: 'timeseries',
        unit: 's',
        queries: [['{{instance}} 99 of 100', quantile(0.99, 'seq_store_sync_seconds', 'le, instance')]],
      },
      {
        title: 'Items that wait for a block',
        kind: 'timeseries',
        queries: [['{{instance}}', 'seq_inbox_items{SEL}']],
      },
    ],
  ],
  [
    'Nodes',
    [
      { title: 'Answers', kind: 'state-timeline', queries: [['{{node}}', 'max by (node) (seq_node_up{SEL})']] },
      {
        title: 'Latency',
        kind: 'timeseries',
        unit: 's',
        queries: [['{{node}} from {{instance}}', 'seq_node_latency_seconds{SEL}']],
      },
      { title: 'Lag', kind: 'timeseries', queries: [['{{node}}', 'max by (node) (seq_node_lag_blocks{SEL})']] },
      {
        title: 'Connections lost',
        kind: 'timeseries',
        queries: [['{{node}} from {{instance}}', `increase(seq_node_reconnects_total{SEL}${RATE})`]],
      },
      {
        title: 'Memory used',
        kind: 'timeseries',
        unit: 'bytes',
        queries: [
          ['{{node}}', 'max by (node) (seq_node_memory_used_bytes{SEL})'],
          ['{{node}} limit', 'max by (node) (seq_node_memory_limit_bytes{SEL})'],
        ],
      },
      {
        title: 'Clocks, ahead of the median',
        kind: 'timeseries',
        unit: 's',
        queries: [
          ['{{node}}', 'max by (node) (seq_node_clock_difference_seconds{SEL})'],
          ['{{instance}}', 'seq_clock_difference_seconds{SEL}'],
        ],
      },
    ],
  ],
  [
    'Leadership',
    [
      {
        title: 'Promotions',
        kind: 'timeseries',
        queries: [['{{result}} by {{instance}}', `increase(seq_elections_total{SEL}${RATE})`]],
      },
      {
        title: 'Phases of a takeover',
        kind: 'timeseries',
        unit: 's',
        queries: [
          [
            '{{phase}} on {{instance}}',
            `rate(seq_takeover_seconds_sum{SEL}${RATE}) / rate(seq_takeover_seconds_count{SEL}${RATE})`,
          ],
        ],
      },
      { title: 'Lease left', kind: 'timeseries', unit: 's', queries: [['{{instance}}', 'seq_lease_seconds{SEL}']] },
      {
        title: 'Ends of terms',
        kind: 'timeseries',
        queries: [['{{code}} on {{instance}}', `increase(seq_stepdowns_total{SEL}${RATE})`]],
      },
    ],
  ],
  [
    'Processes',
    [
      {
        title: 'HTTP requests',
        kind: 'timeseries',
        unit: 'reqps',
        queries: [['{{route}} {{status}}', `sum by (route, status) (rate(seq_http_requests_total{SEL}${RATE}))`]],
      },
      {
        title: 'HTTP, 99 of 100 answers within',
        kind: 'timeseries',
        unit: 's',
        queries: [['{{route}}', quantile(0.99, 'seq_http_request_seconds', 'le, route')]],
      },
      {
        title: 'Memory',
        kind: 'timeseries',
        unit: 'bytes',
        queries: [['{{instance}}', 'seq_resident_memory_bytes{SEL}']],
      },
      {
        title: 'Space for the store',
        kind: 'timeseries',
        unit: 'bytes',
        queries: [['{{instance}}', 'seq_store_free_bytes{SEL}']],
      },
      {
        title: 'Height',
        kind: 'timeseries',
        queries: [
          ['committed', 'max(seq_committed_height{SEL})'],
          ['store of {{instance}}', 'seq_store_height{SEL}'],
        ],
      },
      {
        title: 'Versions',
        kind: 'stat',
        queries: [['{{version}}', 'count by (version) (seq_build_info{SEL})']],
      },
    ],
  ],
];

const COLUMNS = 24;
const HEIGHT = 7;

export function dashboard(job: string): object {
  const selected = `job="${job}",cluster=~"$cluster",lane=~"$lane"`;
  let id = 0;
  let y = 0;
  const panels = ROWS.flatMap(([title, row]) => {
    const top = {
      type: 'row',
      id: ++id,
      title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y: y++, w: COLUMNS, h: 1 },
    };
    const perLine = row.length % 3 === 0 ? 3 : 4;
    const w = COLUMNS / perLine;
    const made = row.map((panel, at) => ({
      type: panel.kind,
      id: ++id,
      title: panel.title,
      datasource: { type: 'prometheus', uid: '${datasource}' },
      gridPos: { x: (at % perLine) * w, y: y + Math.floor(at / perLine) * HEIGHT, w, h: HEIGHT },
      fieldConfig: { defaults: panel.unit === undefined ? {} : { unit: panel.unit }, overrides: [] },
      ...(panel.kind === 'stat' ? { options: { textMode: 'name', reduceOptions: { calcs: ['lastNotNull'] } } } : {}),
      targets: panel.queries.map(([legend, expr], index) => ({
        refId: String.fromCharCode(65 + index),
        expr: expr.replaceAll('SEL', selected),
        legendFormat: legend,
      })),
    }));
    y += Math.ceil(row.length / perLine) * HEIGHT;
    return [top, ...made];
  });
  return {
    uid: 'seq',
    title: 'seq',
    schemaVersion: 39,
    tags: ['seq'],
    time: { from: 'now-1h', to: 'now' },
    refresh: '15s',
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus' },
        variable('cluster', `label_values(seq_info{job="${job}"}, cluster)`, '.+'),
        // A cluster without lanes has no such label.
        variable('lane', `label_values(seq_info{job="${job}"}, lane)`, '.*'),
      ],
    },
    panels,
  };
}

function variable(name: string, query: string, allValue: string): object {
  return {
    name,
    type: 'query',
    query,
    datasource: { type: 'prometheus', uid: '${datasource}' },
    includeAll: true,
    multi: true,
    allValue,
    current: { text: 'All', value: '$__all' },
    refresh: 2,
  };
}
