// A measurement → Result. Pure. The names in `data` are a contract (schemas/bench.json).
import { EXIT } from '../../core/errors.js';
import type { BenchReport, Timing } from '../../core/bench/bench.js';
import type { Result } from './result.js';

const ms = (value: number): string => value.toFixed(value < 10 ? 2 : 1);
const cells = ({ n, p50, p95, p99, max }: Timing) => ({ n, p50: ms(p50), p95: ms(p95), p99: ms(p99), max: ms(max) });
const COLUMNS = [
  { key: 'what' },
  { key: 'n', align: 'right' as const },
  ...['p50', 'p95', 'p99', 'max'].map((key) => ({ key, label: `${key.toUpperCase()} MS`, align: 'right' as const })),
  { key: 'note' },
];

export interface BenchAsked {
  durationMs: number;
  rate: number;
  blockBytes: number;
  retainBlocks: number;
}

export function benchEffect(asked: BenchAsked, lane: string, nodes: number): string[] {
  const { durationMs, rate, blockBytes, retainBlocks } = asked;
  return [
    `${nodes} servers get lane ${lane} for ${durationMs / 1000} s: one write at a time, at most ` +
      `${rate} a second of ${blockBytes} bytes each, at most ` +
      `${Math.ceil((retainBlocks * blockBytes) / 1024 / 1024)} MiB a server`,
    'the leader of your own lanes goes on; its commits may take longer meanwhile; the lane is ' +
      'deleted at the end (and vanishes within an hour should this be killed)',
  ];
}

export function benchPlan(asked: BenchAsked, lane: string, nodes: number, command: string): Result {
  return {
    data: { dryRun: true, lane, asked, report: null },
    facts: benchEffect(asked, lane, nodes).map((text, at) => [at === 0 ? 'would do' : 'meanwhile', text]),
    next: [command],
  };
}

export function benchResult(report: BenchReport, asked: BenchAsked): Result {
  const { lane, ratio, set, commit, nodes, perSecond, seconds, left } = report;
  return {
    data: { dryRun: false, lane, asked, report },
    facts: [
      [
        'commit',
        ratio === null
          ? 'too short to tell'
          : `${ratio.value.toFixed(2)} × a bare SET (p50; ${ratio.low.toFixed(2)} … ${ratio.high.toFixed(2)} ` +
            'over rounds)',
      ],
      ['rate', `${perSecond.toFixed(1)} operations a second of at most ${asked.rate}, for ${seconds.toFixed(1)} s`],
      [
        'lane',
        left.length === 0
          ? `${lane}, deleted`
          : `${lane} may still be on ${left.join(', ')}; it vanishes within an hour`,
      ],
    ],
    tables: [
      {
        columns: COLUMNS,
        rows: [
          { what: 'SET, until a quorum answered', ...cells(set), note: null },
          { what: 'commit, until a quorum accepted', ...cells(commit), note: null },
          ...nodes.map((node) => ({
            what: `commit on ${node.id}`,
            ...cells(node.commit),
            note:
              [
                node.unanswered > 0 ? `${node.unanswered} unanswered` : '',
                node.refused === null ? '' : `left out: ${node.refused}`,
              ]
                .filter(Boolean)
                .join(', ') || null,
          })),
        ],
      },
    ],
    warnings: left.length === 0 ? [] : [`the lane could not be seen to be gone on ${left.join(', ')}`],
    exit: left.length === 0 ? EXIT.ok : EXIT.partial,
  };
}
