// The line that can be read from across the room: verdict, reason, and how many nodes may still be lost. Below it is
// the line with the next command.
import { age, clean, clockOf, cut, widthOf, wrap } from '../text.js';
import type { Theme, Tone } from '../theme.js';
import { ends, line, type Span } from './box.js';
import { shown, type Data, type Tab, type WatchState } from '../model-state.js';

export function badgeTone(verdict: string): Tone {
  return verdict === 'OK'
    ? 'badge-ok'
    : verdict === 'WARN'
      ? 'badge-warn'
      : verdict === 'CRIT'
        ? 'badge-crit'
        : 'badge-unknown';
}

/** The age of the data on the screen: that of the newest answer of any node. */
function dataAge(state: WatchState, data: Data): number | null {
  const answers = data.nodes.flatMap((node) => (node.probe === null ? [] : [node.answeredAt]));
  return answers.length === 0 ? null : state.now - Math.max(...answers);
}

export function verdictOf(data: Data): { verdict: string; reason: string } {
  if (data.view !== null) return data.view;
  const silent = data.nodes.filter((node) => node.probe?.reply.outcome === 'unknown').length;
  return {
    verdict: '?',
    reason:
      silent > 0
        ? `asking ${data.nodes.length} nodes, ${silent} did not answer yet`
        : `asking ${data.nodes.length} nodes`,
  };
}

/** `write 3/3 need 2  may lose 1`. */
function marginOf(data: Data): { votes: string; margin: string; tone: Tone } {
  const { view } = data;
  if (view === null) return { votes: `?/${data.nodes.length}`, margin: 'may lose ?', tone: 'dim' };
  const votes = `${Math.max(0, view.margin + view.quorum)}/${view.configured} need ${view.quorum}`;
  if (view.margin < 0) return { votes, margin: `${-view.margin} missing`, tone: 'crit' };
  return { votes, margin: `may lose ${view.margin}`, tone: view.margin === 0 ? 'warn' : 'plain' };
}

/** One row. Two when the reason does not fit and there is room. */
export function banner(state: WatchState, theme: Theme, width: number, mayWrap: boolean): string[] {
  const data = shown(state);
  const { verdict, reason } = verdictOf(data);
  const { votes, margin, tone } = marginOf(data);
  const stale = dataAge(state, data);
  const old = stale !== null && stale > Math.max(2500, 2.5 * state.ui.intervalMs);
  const state_: Span[] = state.still
    ? [{ text: `  BUNDLE ${new Date(state.wall).toISOString().slice(0, 10)}`, tone: 'badge-unknown' }]
    : state.ui.frozen !== null
      ? [{ text: `  FROZEN ${age(state.now - state.ui.frozen.at)}`, tone: 'badge-unknown' }]
      : old
        ? [{ text: `  data ${age(stale)} old`, tone: 'warn' }]
        : [];
  const clock: Span = { text: `  ${clockOf(state.wall)} `, tone: 'dim' };
  const right: Span[] =
    width >= 76
      ? [{ text: ` write ${votes}  ` }, { text: margin, tone }, ...state_, clock]
      : width >= 56
        ? [{ text: ` ${votes.split(' ')[0]} ` }, { text: margin, tone }, ...state_, clock]
        : width >= 36
          ? [{ text: ` ${votes.split(' ')[0]} ` }, { text: margin.replace('may ', ''), tone }, ...state_]
          : state_;
  const title = width >= 56 ? ` [${cut(titleOf(state), Math.max(8, Math.floor(width / 6)))}]` : '';
  const left: Span[] = [
    { text: `${title} `, tone: 'bold' },
    { text: ` ${verdict} `, tone: badgeTone(verdict) },
    { text: '  ' },
  ];
  const lead = widthOf(title) + verdict.length + 5;
  const room = width - lead - right.reduce((sum, span) => sum + widthOf(span.text), 0);
  const text = verdict === 'OK' ? shortened(reason, room) : reason;
  if (widthOf(text) <= room || !mayWrap)
    return [ends(theme, [...left, { text, tone: verdict === 'CRIT' ? 'crit' : 'plain' }], right, width)];
  const [first = '', ...rest] = wrap(text, Math.max(10, room));
  return [
    ends(theme, [...left, { text: first, tone: verdict === 'CRIT' ? 'crit' : 'plain' }], right, width),
    line(
      theme,
      [{ text: ' '.repeat(lead) }, { text: rest.join(' '), tone: verdict === 'CRIT' ? 'crit' : 'plain' }],
      width,
    ),
  ];
}

/** When tabs are shown, they name the lane. */
function titleOf({ title, tabs, tab, size }: WatchState): string {
  const lane = `:${tabs[tab]?.name ?? ''}`;
  return tabs.length > 1 && size.rows >= 8 && lane !== ':' && title.endsWith(lane)
    ? title.slice(0, -lane.length)
    : title;
}

/** A good verdict is kept short: as many of its clauses as fit. */
function shortened(reason: string, room: number): string {
  const clauses = reason.split(', ');
  while (clauses.length > 1 && widthOf(clauses.join(', ')) > room) clauses.pop();
  return clauses.join(', ');
}

const KEYS: [width: number, text: string][] = [
  [100, 'Tab panel  Enter detail  / filter  Space freeze  y copies  q quit  ? help '],
  [70, 'y copies   q quit  ? help '],
  [46, 'q quit  ? help '],
];

export function nextLine(state: WatchState, theme: Theme, width: number): string {
  const { ui } = state;
  if (ui.typing !== null)
    return ends(
      theme,
      [{ text: ` filter ${ui.panel}: `, tone: 'accent' }, { text: `${ui.typing}_` }],
      [{ text: 'Enter keeps  Esc drops ', tone: 'dim' }],
      width,
    );
  const { view } = shown(state);
  const keys = KEYS.find(([from]) => width >= from)?.[1] ?? '';
  if (ui.told !== null && state.now - ui.told.at < 4000) {
    const told: Span[] = [{ text: ` ${ui.told.text}`, tone: 'accent' }];
    return widthOf(ui.told.text) + widthOf(keys) + 2 <= width
      ? ends(theme, told, [{ text: keys, tone: 'dim' }], width)
      : line(theme, told, width);
  }
  const next = view === null ? '' : (view.next[0] ?? 'nothing to do');
  const more = view !== null && view.next.length > 1 ? `  (+${view.next.length - 1})` : '';
  const left: Span[] = [
    { text: ' next: ', tone: 'bold' },
    { text: next, tone: view?.next[0] === undefined ? 'dim' : 'accent' },
    { text: more, tone: 'dim' },
  ];
  // A long command is more important than the reminder of the keys.
  const taken = 7 + widthOf(next) + widthOf(more);
  return taken + widthOf(keys) + 1 <= width
    ? ends(theme, left, [{ text: keys, tone: 'dim' }], width)
    : taken + 8 <= width
      ? ends(theme, left, [{ text: ' ? help ', tone: 'dim' }], width)
      : line(theme, left, width);
}

/**
 * The three lines that stay on the normal screen: verdict, leader and epoch, next command. A fourth when several lanes
 * were watched.
 */
export function lastWords(state: WatchState, theme: Theme): string[] {
  const { data } = state;
  const { verdict, reason } = verdictOf(data);
  const { view } = data;
  const leader =
    view === null
      ? 'unknown'
      : view.leader === null
        ? view.leaderKnown
          ? 'nobody'
          : 'unknown'
        : `${view.leader.id}, epoch ${view.leader.epoch}`;
  const old = dataAge(state, data);
  const aged = old !== null && old > Math.max(2500, 2.5 * state.ui.intervalMs) ? ` (${age(old)} ago)` : '';
  return [
    line(theme, [{ text: verdict, tone: badgeTone(verdict) }, { text: `  ${reason}${aged}` }], 1000).trimEnd(),
    `leader: ${leader}`,
    `next: ${view?.next[0] ?? 'nothing to do'}`,
    ...(state.tabs.length < 2
      ? []
      : [`lanes: ${state.tabs.map((tab, at) => laneText(tab, at === state.tab)).join(', ')}`]),
  ];
}

function laneText({ name, verdict }: Tab, shownAbove: boolean): string {
  return `${name === '' ? '(default)' : clean(name)} ${verdict}${shownAbove ? ' (the one above)' : ''}`;
}
