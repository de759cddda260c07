// History → Result. Pure. The names in `data` are a contract (schemas/history.json).
import type { History } from '../../../core/report/history.js';
import { seconds } from './cluster-view.js';
import type { Result } from '../result.js';
import { isoTime } from '../text.js';
import { rangeData } from '../range.js';

export function historyResult({ view, range, terms, changes }: History): Result {
  const rows = terms.map(({ openMs: _, ...term }) => ({ ...term, durationMs: term.lastAt - term.firstAt }));
  const shown = changes.map((record) => ({
    at: Number(record['at'] ?? 0),
    what: record['what'] ?? '',
    kind: record['kind'] ?? '',
    by: record['by'] ?? '',
    reason: record['reason'] ?? '',
    before: record['before'] ?? '',
    after: record['after'] ?? '',
    outcome: record['outcome'] ?? '',
    command: record['command'] ?? '',
  }));
  return {
    data: {
      cluster: view.cluster,
      range: rangeData(range),
      terms: rows,
      changes: shown,
    },
    // What the judge of `seq status` says, so that nobody takes an old row for the present state.
    verdict: { verdict: view.verdict, reason: view.reason, reasonCode: view.reasonCode },
    next: view.next,
    items: rows,
    tables: [
      {
        columns: [
          { key: 'epoch', align: 'right' },
          { key: 'leader' },
          { key: 'heights' },
          { key: 'blocks', align: 'right', spare: 1 },
          { key: 'began' },
          { key: 'lasted', align: 'right', spare: 2 },
          { key: 'gap', align: 'right', spare: 3 },
          { key: 'ended' },
        ],
        rows: rows.map((t) => ({
          epoch: t.epoch,
          leader: t.leader,
          heights: `${t.heightFrom}-${t.heightTo}`,
          // What is trimmed cannot be counted any more.
          blocks: t.trimmed ? `≥ ${t.blocks}` : t.blocks,
          began: t.trimmed ? `≤ ${isoTime(t.firstAt)}` : isoTime(t.firstAt),
          lasted: t.trimmed ? `≥ ${seconds(t.durationMs)}` : seconds(t.durationMs),
          gap: t.gapBeforeMs === null ? '?' : seconds(t.gapBeforeMs),
          ended: t.current ? 'leads now' : t.ended === '' ? 'not recorded' : t.ended,
        })),
      },
      {
        runs: 'at',
        columns: [
          { key: 'at' },
          { key: 'what' },
          { key: 'by' },
          { key: 'reason', prose: true },
          { key: 'outcome' },
          { key: 'before', wide: true },
          { key: 'after', wide: true },
          { key: 'command', wide: true },
        ],
        rows: shown.map((one) => ({
          ...one,
          at: isoTime(one.at),
          what: one.kind === '' ? one.what : `${one.what} ${one.kind}`,
        })),
      },
    ],
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}
