// The report of a chaos run: verdict, injected faults, counts, and each anomaly with its witness. Pure.
import type { ChaosReport } from '../../lab/chaos/run.js';
import type { Cell, Result } from './result.js';

const MOST_SHOWN = 20;

export function chaosResult(report: ChaosReport, kept: string | null): Result {
  const { anomalies, counts, faults, healing } = report;
  const injected = faults.reduce((sum, fault) => sum + fault.injected, 0);
  const verdict =
    anomalies.length === 0
      ? {
          verdict: 'OK' as const,
          reasonCode: 'NO_ANOMALY',
          reason:
            `held: ${injected} faults in ${report.rounds} rounds, ${counts.acknowledged} items acknowledged, ` +
            '0 anomalies',
        }
      : {
          verdict: 'CRIT' as const,
          reasonCode: 'ANOMALIES',
          reason: `${anomalies.length} anomalies: ${anomalies[0]!.what}`,
        };
  const facts: [string, Cell][] = [
    ['seed', report.seed],
    ['ran for', `${(report.durationMs / 1000).toFixed(1)} s`],
    ['cluster', `${report.nodes} nodes, ${report.sequencers} sequencers, ttl ${report.ttlMs} ms`],
    ['blocks', counts.blocks],
    ['terms', counts.terms],
    ['re-admissions', counts.readmissions],
    [
      'items',
      `${counts.acknowledged} acknowledged, ${counts.refused} refused, ${counts.unknown} unknown ` +
        `(${counts.unknownInChain} of them in the chain), ${counts.attempts} attempts`,
    ],
    ['reads', `${counts.blocksRead} blocks, ${counts.heads} confirmed heads, ${counts.statuses} status`],
    [
      'healing',
      `next commit ${spread(healing.commitMs)}, all sequencers ${spread(healing.followersMs)}, all ` +
        `nodes ${spread(healing.nodesMs)}`,
    ],
    ['longest time without a commit', `${report.longestGapMs} ms`],
    [
      'machine',
      `timers late by ${report.machine.worstLateMs} ms at worst, slow for ` +
        `${(report.machine.slowMs / 1000).toFixed(1)} s`,
    ],
    ...report.alarms.map(({ code, count, first }): [string, Cell] => [
      `alarm ${code}`,
      `${count} × (${first.slice(0, 160)})`,
    ]),
    ...(kept === null ? [] : [['kept in', kept] as [string, Cell]]),
  ];
  return {
    data: {
      verdict: verdict.verdict,
      reason: verdict.reason,
      reasonCode: verdict.reasonCode,
      ...report,
      anomalies: anomalies.slice(0, MOST_SHOWN),
      anomalyCount: anomalies.length,
      keptIn: kept,
    },
    verdict,
    facts,
    tables: [
      {
        columns: [
          { key: 'fault' },
          { key: 'injected', align: 'right' },
          { key: 'skipped', align: 'right' },
          { key: 'why', label: 'LAST SKIPPED BECAUSE', wide: true },
        ],
        rows: faults.map((fault) => ({ ...fault })),
      },
      ...(anomalies.length === 0
        ? []
        : [
            {
              title: 'anomalies',
              columns: [{ key: 'checker' }, { key: 'what' }, { key: 'witness', wide: true }],
              rows: anomalies.slice(0, MOST_SHOWN).map(({ checker, what, witness }) => ({
                checker,
                what,
                witness: JSON.stringify(witness).slice(0, 1000),
              })),
            },
          ]),
    ],
    next:
      kept === null
        ? []
        : [
            `seq chaos --seed ${report.seed} --duration ${Math.ceil(report.durationMs / 1000)}s --keep`,
            `less ${kept}/history.ndjson`,
            `less ${kept}/logs/seq-a.log`,
          ],
  };
}

/** Median and maximum. */
function spread(values: readonly number[]): string {
  return values.length === 0
    ? 'never'
    : `${values[Math.floor((values.length - 1) / 2)]} ms (at most ${values.at(-1)} ms)`;
}
