// The lab's answers: rows of processes, and what was done to one of them. Pure.
import type { ActResult } from '../../lab/act.js';
import type { ProcessRow } from '../../lab/status.js';
import type { Result, Table } from './result.js';

export function processTable(rows: readonly ProcessRow[]): Table {
  return {
    columns: [{ key: 'name' }, { key: 'kind' }, { key: 'state' }, { key: 'pid', align: 'right' }, { key: 'port', align: 'right' }, { key: 'url' }],
    rows: rows.map((row) => ({ ...row })),
  };
}

/** What an operator can do about the processes that are not running. */
export function nextForProcesses(rows: readonly ProcessRow[]): string[] {
  return rows.flatMap((row) => (row.state === 'dead' ? [`seq lab start ${row.name}`] : row.state === 'paused' ? [`seq lab unpause ${row.name}`] : []));
}

export function actResult(verb: string, already: string, act: ActResult, next: string[], more: Record<string, unknown> = {}): Result {
  const sentence = act.changed ? `${verb} ${act.name} (pid ${act.pid})${act.state === 'running' || act.state === 'dead' ? '' : `: ${act.state}`}` : `${act.name} is ${already} (pid ${act.pid})`;
  return { data: { ...act, ...more }, text: sentence, next };
}
