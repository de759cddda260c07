// What is committed, how fast it grows, and what is out of order.
import { AGREEMENT_ROWS } from '../model-lists.js';
import { agreement } from '../model-agreement.js';
import { shown, type Data, type WatchState } from '../model.js';
import { age } from '../text.js';
import { sparkline, type Theme, type Tone } from '../theme.js';
import { line, type Span } from './box.js';

export interface ChainCounts { pending: number; orphan: number; conflict: number; missing: number }

/** From the verdict and, where entries were read, from the ledger of the newest heights. */
export function chainCounts(data: Data): ChainCounts {
  const { view } = data;
  const ledger = agreement(data, AGREEMENT_ROWS).map((row) => row.verdict);
  const orphans = new Set([...(view?.findings ?? []).filter((one) => one.code === 'NODE_ORPHAN').flatMap((one) => one.nodes), ...ledger.flatMap((one) => one.orphans.map((orphan) => orphan.node))]);
  const missing = new Set(ledger.flatMap((one) => one.missing.map((id) => `${id} ${one.height}`)));
  const conflicts = new Set([...(view?.conflicts ?? []).map((one) => one.height), ...ledger.filter((one) => one.verdict === 'conflict').map((one) => one.height)]);
  return { pending: view?.pending ? 1 : 0, orphan: orphans.size, conflict: conflicts.size, missing: missing.size };
}

export function chainRows(state: WatchState, theme: Theme, width: number, height: number): string[] {
  const data = shown(state);
  const { view, committed } = data;
  const rate = data.rates.at(-1) ?? 0;
  const top = Math.max(1, ...data.rates.slice(-60));
  const counts = chainCounts(data);
  const label = `rate ${rate.toFixed(1)}/s `;
  const scale = ` max ${top.toFixed(1)}`;
  const lagTop = Math.max(1, ...data.lags.slice(-60));
  const room = Math.max(0, Math.min(60, width - label.length - scale.length));
  const count = (name: string, value: number, tone: Tone): Span => ({ text: `${name} ${value}  `, tone: value > 0 ? tone : 'plain' });
  const floors = view?.nodes.flatMap((node) => (node.admitted && node.floor !== null ? [node.floor] : [])) ?? [];
  const seen = committed === null ? '' : `   ${committed.sinceStart ? '>' : ''}${age(data.at - committed.at)} ago`;
  const floor = floors.length === 0 ? 'floor ?' : `floor ${Math.min(...floors)}${Math.min(...floors) === Math.max(...floors) ? '' : `-${Math.max(...floors)}`}`;
  const rows: Span[][] = [
    [{ text: 'committed ' }, { text: committed === null ? '?' : `${committed.height}${view?.committed === null ? '?' : ''}`, tone: 'bold' }, { text: seen }],
    [{ text: label }, { text: sparkline(theme, data.rates, room, top), tone: 'accent' }, { text: scale, tone: 'dim' }],
    [count('pending', counts.pending, 'warn'), count('orphan', counts.orphan, 'warn'), count('conflict', counts.conflict, 'crit'), ...(height < 4 ? [] : [count('missing', counts.missing, 'crit')])],
    ...(height < 4 ? [] : [[{ text: `${floor}  ` }, ...(counts.missing > 0 && height < 4 ? [count('missing', counts.missing, 'crit')] : [])]]),
    [{ text: `lag  ${String(data.lags.at(-1) ?? 0).padEnd(Math.max(1, label.length - 5))}` }, { text: sparkline(theme, data.lags, room, lagTop), tone: (data.lags.at(-1) ?? 0) > 0 ? 'warn' : 'dim' }, { text: ` max ${lagTop}`, tone: 'dim' }],
  ];
  return rows.slice(0, height).map((spans) => line(theme, spans, width));
}
