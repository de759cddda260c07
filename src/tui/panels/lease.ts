// Who leads, since when, on how many nodes, and how much of the lease is left?
import { sequencerOf } from '../../core/protocol/types.js';
import { age } from '../text.js';
import { bar, type Theme } from '../theme.js';
import { line, type Span } from './box.js';
import { shown, type Data, type WatchState } from '../model-state.js';

/** The lease ttl that the leader announces. Null when it does not announce one. */
function leaseTtlMs(data: Data): number | null {
  const id = data.view?.leader?.id;
  for (const node of data.nodes) {
    const told = Number(node.good?.view.sequencers.find((one) => one.id === id)?.extra['ttlMs']);
    if (Number.isFinite(told) && told > 0) return told;
  }
  return null;
}

export function leaseRows(state: WatchState, theme: Theme, width: number, height: number): string[] {
  const data = shown(state);
  const { view, term } = data;
  const rows: Span[][] = [];
  if (view === null) {
    rows.push([{ text: 'holder ?', tone: 'dim' }]);
  } else if (view.leader === null) {
    const was = term === null ? '' : ` (last: ${sequencerOf(term.owner)})`;
    rows.push(
      [
        { text: 'holder ' },
        { text: view.leaderKnown ? 'nobody' : `?${was}`, tone: view.leaderKnown ? 'crit' : 'unknown' },
      ],
      [{ text: `owns   ${view.leaderKnown ? 0 : '?'}/${view.configured}` }],
      [{ text: `ttl    ${view.leaderKnown ? '-' : '?'}` }],
    );
  } else {
    const { leader } = view;
    const ttlMs = leaseTtlMs(data);
    const left = (leader.ttlMs / 1000).toFixed(1);
    const label = `ttl ${left}/${ttlMs === null ? '?' : (ttlMs / 1000).toFixed(1)}s `;
    const barWidth = Math.max(4, Math.min(30, width - label.length - 2));
    const held = term === null ? '' : `held ${term.sinceStart ? '>' : ''}${age(data.at - term.at)}`;
    rows.push(
      [{ text: 'holder ' }, { text: leader.id, tone: 'bold' }, { text: `   epoch ${leader.epoch}` }],
      [
        { text: `${held}   owns ` },
        {
          text: `${leader.nodes.length}/${view.configured}`,
          tone: leader.nodes.length < view.configured ? 'warn' : 'plain',
        },
      ],
      [
        { text: label },
        {
          text: `[${bar(theme, ttlMs === null ? 0 : leader.ttlMs / ttlMs, barWidth)}]`,
          tone: ttlMs !== null && leader.ttlMs < ttlMs / 3 ? 'warn' : 'ok',
        },
      ],
    );
  }
  const gone = data.gone === 0 ? '' : `, ${data.gone} ${data.gone === 1 ? 'leader' : 'leaders'} gone`;
  rows.push([
    {
      text:
        `seen ${data.elections} ${data.elections === 1 ? 'election' : 'elections'}, ${data.stepdowns} ` +
        `${data.stepdowns === 1 ? 'stepdown' : 'stepdowns'}${gone}`,
      tone: 'dim',
    },
  ]);
  const hold = view?.hold ?? null;
  const handover = view?.handover ?? null;
  const marks: Span[][] = [
    hold === null
      ? [{ text: 'hold none', tone: 'dim' }]
      : [{ text: `HOLD by ${hold.by} ${age(hold.ttlMs)} (${hold.reason})`, tone: 'warn' }],
    handover === null
      ? [{ text: 'handover none', tone: 'dim' }]
      : [{ text: `HANDOVER to ${handover.to} ${age(handover.ttlMs)}`, tone: 'warn' }],
  ];
  // A hold takes the place of less important rows.
  if (hold !== null && rows.length >= height && marks[0] !== undefined) rows[height - 1] = marks[0];
  else rows.push(...marks);
  return rows.slice(0, height).map((spans) => line(theme, spans, width));
}

/** Two rows without a frame, for small terminals. */
export function leaseLines(state: WatchState, theme: Theme, width: number): string[] {
  const half = Math.floor((width - 2) / 2);
  const [holder = '', held = '', ttl = ''] = leaseRows(state, theme, half, 3);
  const gap = (cells: number) => ' '.repeat(Math.max(0, cells));
  return [` ${holder} ${ttl}${gap(width - 2 - 2 * half)}`, ` ${held}${gap(width - 1 - half)}`];
}
