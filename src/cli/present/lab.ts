// The lab's answers: rows of processes, and what was done to one of them. Pure.
import { quorumOf } from '../../core/config.js';
import type { ActResult } from '../../lab/act.js';
import type { DemoReport } from '../../lab/demo.js';
import type { ProcessRow } from '../../lab/status.js';
import type { Result, Table } from './result.js';

export function processTable(rows: readonly ProcessRow[]): Table {
  return {
    columns: [
      { key: 'name' },
      { key: 'kind' },
      { key: 'state' },
      { key: 'pid', align: 'right' },
      { key: 'port', align: 'right' },
      { key: 'url' },
    ],
    rows: rows.map((row) => ({ ...row })),
  };
}

/** What an operator can do about the processes that are not running. */
export function nextForProcesses(rows: readonly ProcessRow[]): string[] {
  return rows.flatMap((row) =>
    row.pid === null
      ? []
      : row.state === 'dead'
        ? [`seq lab start ${row.name}`]
        : row.state === 'paused'
          ? [`seq lab unpause ${row.name}`]
          : [],
  );
}

/**
 * The same for a whole lab. A returning node has no vote until a quorum of others admits it. With fewer than a quorum
 * left, the nodes would wait for ever.
 */
export function nextForLab(rows: readonly ProcessRow[]): string[] {
  const nodes = rows.filter(({ kind }) => kind === 'redis');
  const gone = nodes.filter(({ pid, state }) => pid !== null && state === 'dead');
  return gone.length > 0 && nodes.length - gone.length < quorumOf(nodes.length)
    ? ['seq lab down --keep', 'seq lab up']
    : nextForProcesses(rows);
}

export function actResult(
  did: string,
  already: string,
  act: ActResult,
  next: string[],
  more: Record<string, unknown> = {},
): Result {
  return {
    data: { ...act, ...more },
    text: act.changed ? `${did} ${act.name} (pid ${act.pid})` : `${act.name} is ${already} (pid ${act.pid})`,
    next,
  };
}

/** The report of the demo, one `name: value` line each. Scripts search for `duplicates: 0` and `lost: 0`. */
export function demoText(report: DemoReport, holds: boolean): string {
  const { blocks, comparison, gap, killed, successor, file } = report;
  return [
    `file: ${file.path} (${file.bytes} bytes)`,
    `blocks: ${blocks.count} (${blocks.from} to ${blocks.to}, ${blocks.withItems} with items)`,
    `items: ${report.items}`,
    `killed: ${killed.name} (pid ${killed.pid}, epoch ${killed.epoch}) after ${killed.acknowledged} ` +
      `lines, ${killed.inFlight} more in flight`,
    `successor: ${successor.name} (epoch ${successor.epoch})`,
    `gap: ${gap.ms} ms from the kill to the next commit, ${gap.leaseMs} ms of it lease`,
    `duplicates: ${comparison.duplicates}`,
    `lost: ${comparison.lost}`,
    ...(comparison.unexpected > 0 ? [`not of the file: ${comparison.unexpected}`] : []),
    comparison.identical
      ? 'identical: yes, byte for byte'
      : `identical: no, from line ${(comparison.firstDifference?.at ?? 0) + 1} on`,
    ...(holds ? [] : ['result: something is off']),
  ].join('\n');
}
