// Where the operator is on the screen, and what a key does there: (state, key) → state and at most one effect. Pure. No
// key changes the cluster: `copy` only gives the operator the command that would.
import { listOf } from './model-lists.js';
import { panelsOf } from './layout.js';
import { PANELS, roomFor, type Panel } from './size.js';
import { shown, type Detail, type UiState, type WatchState } from './model-state.js';
import { clockOf } from './text.js';

const INTERVALS_MS = [250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/** A key as the terminal sent it: one character, or a name. */
export type Key =
  | string
  | 'up'
  | 'down'
  | 'left'
  | 'right'
  | 'enter'
  | 'escape'
  | 'tab'
  | 'backtab'
  | 'backspace'
  | 'ctrl-c'
  | 'ctrl-z'
  | 'pageup'
  | 'pagedown'
  | 'home'
  | 'end';

export type Effect =
  | { do: 'quit' }
  | { do: 'interrupt' }
  | { do: 'suspend' }
  | { do: 'probe' }
  | { do: 'redraw' }
  | { do: 'snapshot' }
  | { do: 'interval'; ms: number }
  | { do: 'copy'; text: string }
  | { do: 'lane'; at: number };

export interface Pressed {
  state: WatchState;
  effect: Effect | null;
}

export function press(state: WatchState, key: Key): Pressed {
  const { ui } = state;
  const to = (change: Partial<UiState>, effect: Effect | null = null): Pressed => ({
    state: { ...state, ui: { ...ui, ...change } },
    effect,
  });
  if (key === 'ctrl-c') return to({}, { do: 'interrupt' });
  if (key === 'ctrl-z') return to({}, { do: 'suspend' });
  if (key === 'ctrl-l') return to({}, { do: 'redraw' });
  if (ui.typing !== null) return typed(state, key, to);
  switch (key) {
    case 'q':
      return to({}, { do: 'quit' });
    case '?':
      return to({ help: !ui.help });
    case 'escape':
      if (ui.help) return to({ help: false });
      if (ui.detail !== null) return to({ detail: null, scroll: 0 });
      return to({ filters: { ...ui.filters, [ui.panel]: '' } });
    case 'tab':
      return beside(state, 1, to);
    case 'backtab':
      return beside(state, -1, to);
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6': {
      const panel = PANELS[Number(key) - 1] as Panel;
      if (!panelsOf(state).includes(panel))
        return to({ told: { text: `${panel.toUpperCase()} is shown from ${roomFor(panel)}`, at: state.now } });
      return to({ panel, detail: null, scroll: 0 });
    }
    case '[':
    case 'left':
      return lane(state, -1, to);
    case ']':
    case 'right':
      return lane(state, 1, to);
    case 'j':
    case 'down':
      return moved(state, 1, to);
    case 'k':
    case 'up':
      return moved(state, -1, to);
    case 'pagedown':
      return moved(state, 10, to);
    case 'pageup':
      return moved(state, -10, to);
    case 'g':
    case 'home':
      return moved(state, -Infinity, to);
    case 'G':
    case 'end':
      return moved(state, Infinity, to);
    case 'enter':
      return ui.detail !== null || ui.help ? to({}) : to({ detail: detailAt(state), scroll: 0 });
    case 'h':
      return to({ detail: ui.detail?.of === 'history' ? null : { of: 'history' }, help: false, scroll: 0 });
    case 'm':
      return markOrShow(state, to);
    case '/':
      return to({ typing: ui.filters[ui.panel] });
    case 's':
      return to({ sorts: { ...ui.sorts, [ui.panel]: ui.sorts[ui.panel] + 1 } });
    case ' ':
      return to({ frozen: ui.frozen === null ? state.data : null });
    case '+':
    case '=':
      return rate(state, -1, to);
    case '-':
      return rate(state, 1, to);
    case 'r':
      return to({}, { do: 'probe' });
    case 'o':
      return to({}, { do: 'snapshot' });
    case 'y': {
      const command = (ui.frozen ?? state.data).view?.next[0];
      return command === undefined
        ? to({ told: { text: 'there is nothing to do, so nothing to copy', at: state.now } })
        : to({}, { do: 'copy', text: command });
    }
    default:
      return to({});
  }
}

/** The first press marks this moment. The next one shows what changed since; there, it marks anew. */
function markOrShow(state: WatchState, to: To): Pressed {
  const { ui } = state;
  if (ui.mark !== null && ui.detail?.of !== 'since') return to({ detail: { of: 'since' }, help: false, scroll: 0 });
  const told = { text: `marked ${clockOf(state.wall)}: m shows what changes from here`, at: state.now };
  return to({ mark: shown(state), detail: ui.detail?.of === 'since' ? null : ui.detail, scroll: 0, told });
}

type To = (change: Partial<UiState>, effect?: Effect | null) => Pressed;

function typed({ ui }: WatchState, key: Key, to: To): Pressed {
  const text = ui.typing ?? '';
  const filter = (value: string) => ({ ...ui.filters, [ui.panel]: value });
  if (key === 'enter') return to({ typing: null, filters: filter(text), cursors: { ...ui.cursors, [ui.panel]: 0 } });
  if (key === 'escape') return to({ typing: null, filters: filter('') });
  if (key === 'backspace') return to({ typing: [...text].slice(0, -1).join('') });
  // The name of a key is not text; a pasted run of characters is.
  return ['up', 'down', 'left', 'right', 'tab', 'backtab', 'pageup', 'pagedown', 'home', 'end'].includes(key)
    ? to({})
    : to({ typing: (text + key).slice(0, 60) });
}

function moved(state: WatchState, by: number, to: To): Pressed {
  const { ui } = state;
  if (ui.detail !== null || ui.help)
    return to({ scroll: Math.max(0, by === Infinity ? 1000 : by === -Infinity ? 0 : ui.scroll + by) });
  const last = Math.max(0, listOf(state, ui.panel).length - 1);
  const cursor = Math.min(last, Math.max(0, Math.min(last, ui.cursors[ui.panel]) + by));
  return to({ cursors: { ...ui.cursors, [ui.panel]: cursor } });
}

function beside(state: WatchState, by: 1 | -1, to: To): Pressed {
  const { ui } = state;
  const panels = panelsOf(state);
  return to({
    panel: panels[(panels.indexOf(ui.panel) + by + panels.length) % panels.length] as Panel,
    detail: null,
    scroll: 0,
  });
}

function lane({ tabs, tab }: WatchState, by: 1 | -1, to: To): Pressed {
  return tabs.length < 2 ? to({}) : to({}, { do: 'lane', at: (tab + by + tabs.length) % tabs.length });
}

function rate(state: WatchState, by: 1 | -1, to: To): Pressed {
  const { intervalMs } = state.ui;
  const ms =
    by < 0
      ? (INTERVALS_MS.findLast((one) => one < intervalMs) ?? intervalMs)
      : (INTERVALS_MS.find((one) => one > intervalMs) ?? intervalMs);
  return to(
    { intervalMs: ms, told: { text: `a probe every ${ms < 1000 ? `${ms} ms` : `${ms / 1000} s`}`, at: state.now } },
    { do: 'interval', ms },
  );
}

function detailAt(state: WatchState): Detail | null {
  const { panel, cursors } = state.ui;
  const list = listOf(state, panel);
  return list[Math.min(list.length - 1, cursors[panel])]?.detail ?? null;
}
