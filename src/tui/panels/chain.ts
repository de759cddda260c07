// What is committed, how fast does it grow, and what is out of order?
import { AGREEMENT_ROWS } from '../model-lists.js';
import { agreement } from '../model-agreement.js';
import { age, duration } from '../text.js';
import { sparkline, type Theme, type Tone } from '../theme.js';
import { line, type Span } from './box.js';
import { shown, type Data, type WatchState } from '../model-state.js';

interface ChainCounts {
  pending: number;
  orphan: number;
  conflict: number;
  missing: number;
}

/** From the verdict and, where entries were read, from the ledger of the newest heights. */
function chainCounts(data: Data): ChainCounts {
  const { view } = data;
  const ledger = agreement(data, AGREEMENT_ROWS).map((row) => row.verdict);
  const orphans = new Set([
    ...(view?.findings ?? []).filter((one) => one.code === 'NODE_ORPHAN').flatMap((one) => one.nodes),
    ...ledger.flatMap((one) => one.orphans.map((orphan) => orphan.node)),
  ]);
  const missing = new Set(ledger.flatMap((one) => one.missing.map((id) => `${id} ${one.height}`)));
  const conflicts = new Set([
    ...(view?.conflicts ?? []).map((one) => one.height),
    ...ledger.filter((one) => one.verdict === 'conflict').map((one) => one.height),
  ]);
  return { pending: view?.pending ? 1 : 0, orphan: orphans.size, conflict: conflicts.size, missing: missing.size };
}

export function chainRows(state: WatchState, theme: Theme, width: number, height: number): string[] {
  const data = shown(state);
  const { view, committed } = data;
  const counts = chainCounts(data);
  const count = (name: string, value: number, tone: Tone): Span => ({
    text: `${name} ${known(data) ? value : '?'}  `,
    tone: !known(data) ? 'unknown' : value > 0 ? tone : 'plain',
  });
  const floors = view?.nodes.flatMap((node) => (node.admitted && node.floor !== null ? [node.floor] : [])) ?? [];
  const seen = committed === null ? '' : `   ${committed.sinceStart ? '>' : ''}${age(data.at - committed.at)} ago`;
  const floor =
    floors.length === 0
      ? 'floor ?'
      : `floor ${Math.min(...floors)}${Math.min(...floors) === Math.max(...floors) ? '' : `-${Math.max(...floors)}`}`;
  const series = (
    name: string,
    values: readonly (number | null)[],
    text: (value: number) => string,
    tone: Tone,
  ): Span[] => {
    const now = values.at(-1);
    const top = Math.max(name === 'lag' || name === 'rate' ? 1 : 0, ...values.slice(-60).map((value) => value ?? 0));
    const label = `${name} ${now == null ? '?' : text(now)} `.padEnd(12);
    const scale = (values.some((value) => value !== null) ? ` max ${text(top)}` : '').padEnd(10);
    const room = Math.max(0, Math.min(60, width - label.length - scale.length));
    return [{ text: label }, { text: sparkline(theme, values, room, top), tone }, { text: scale, tone: 'dim' }];
  };
  const lagging = (data.lags.at(-1) ?? 0) > 0;
  const rate = series('rate', data.rates, (value) => `${value.toFixed(value < 100 ? 1 : 0)}/s`, 'accent');
  const rows: Span[][] = [
    [
      { text: 'committed ' },
      {
        text:
          committed === null
            ? '?'
            : `${committed.height}${(view?.committed?.height ?? 0) < committed.height ? '?' : ''}`,
        tone: 'bold',
      },
      { text: seen },
    ],
    rate,
    [
      count('pending', counts.pending, 'warn'),
      count('orphan', counts.orphan, 'warn'),
      count('conflict', counts.conflict, 'crit'),
      ...(height < 4 ? [] : [count('missing', counts.missing, 'crit')]),
    ],
    series('commit', data.commits, duration, 'accent'),
    series('lag', data.lags, String, lagging ? 'warn' : 'dim'),
    [{ text: floor }],
  ];
  return rows.slice(0, height).map((spans) => line(theme, spans, width));
}

/** With fewer answers than a quorum it is unknown what is out of order on the other nodes. */
function known({ view }: Data): boolean {
  return view !== null && view.answered >= view.quorum;
}
