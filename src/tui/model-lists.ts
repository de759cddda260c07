// What does each panel list, after filter and sort, and what does Enter open there? One place, so that cursor and
// screen never disagree. Pure.
import type { NodeRow } from '../core/view/cluster-view.js';
import type { SequencerRow } from '../core/view/presence.js';
import { agreement, type AgreementRow } from './model-agreement.js';
import type { WatchEvent } from './model-events.js';
import type { Panel } from './size.js';
import { shown, type NodeTrack, type WatchState, type Detail } from './model-state.js';

export interface Listed<T> {
  value: T;
  detail: Detail | null;
}

/** Heights in the agreement matrix. */
export const AGREEMENT_ROWS = 24;

const STATE_ORDER = { FOREIGN: 0, STRANGER: 1, DOWN: 2, REFUSED: 3, EMPTY: 4, OUT: 5, WARN: 6, OK: 7 } as const;
export const NODE_SORTS = ['as configured', 'worst first', 'lag', 'rtt'] as const;
export const SEQUENCER_SORTS = ['id', 'role', 'lag'] as const;
export const EVENT_SORTS = ['newest first', 'oldest first'] as const;

export interface NodeLine {
  track: NodeTrack;
  row: NodeRow | null;
}

const matches = (filter: string, ...texts: string[]): boolean =>
  filter === '' || texts.some((text) => text.toLowerCase().includes(filter.toLowerCase()));
const filterOf = (state: WatchState, panel: Panel): string =>
  state.ui.typing !== null && state.ui.panel === panel ? state.ui.typing : state.ui.filters[panel];

export function nodeList(state: WatchState): Listed<NodeLine>[] {
  const data = shown(state);
  const lines = data.nodes.map((track): NodeLine => ({
    track,
    row: data.view?.nodes.find((one) => one.id === track.id) ?? null,
  }));
  const sort = NODE_SORTS[state.ui.sorts.nodes % NODE_SORTS.length];
  const order = (line: NodeLine): number => {
    if (sort === 'worst first') return line.row === null ? 0 : STATE_ORDER[line.row.state];
    if (sort === 'lag') return -(line.row?.lag ?? Number.MAX_SAFE_INTEGER);
    return sort === 'rtt' ? -(line.row?.rttMs ?? Number.MAX_SAFE_INTEGER) : 0;
  };
  return lines
    .filter(({ track, row }) =>
      matches(filterOf(state, 'nodes'), track.id, row?.state ?? '', row?.holder ?? '', row?.note ?? ''),
    )
    .sort((a, b) => order(a) - order(b))
    .map((value) => ({ value, detail: { of: 'node', id: value.track.id } }));
}

export function sequencerList(state: WatchState): Listed<SequencerRow>[] {
  const sort = SEQUENCER_SORTS[state.ui.sorts.sequencers % SEQUENCER_SORTS.length];
  const roles = { leader: 0, promoting: 1, follower: 2, stopping: 3 };
  return (shown(state).view?.sequencers ?? [])
    .filter((one) => matches(filterOf(state, 'sequencers'), one.id, one.role, one.version, one.why))
    .sort((a, b) =>
      sort === 'role' ? roles[a.role] - roles[b.role] : sort === 'lag' ? (b.lag ?? 0) - (a.lag ?? 0) : 0,
    )
    .map((value) => ({ value, detail: { of: 'sequencer', id: value.id } }));
}

export function eventList(state: WatchState): Listed<WatchEvent>[] {
  const events = shown(state).events.filter((one) => matches(filterOf(state, 'events'), one.text, one.kind, one.level));
  if (EVENT_SORTS[state.ui.sorts.events % EVENT_SORTS.length] === 'oldest first') events.reverse();
  return events.map((value) => ({ value, detail: { of: 'event', seq: value.seq } }));
}

export function agreementList(state: WatchState): Listed<AgreementRow>[] {
  return agreement(shown(state), AGREEMENT_ROWS)
    .filter(({ verdict }) => matches(filterOf(state, 'agreement'), String(verdict.height), verdict.verdict))
    .map((value) => ({ value, detail: { of: 'height', height: value.verdict.height } }));
}

export function listOf(state: WatchState, panel: Panel): Listed<unknown>[] {
  const { view } = shown(state);
  switch (panel) {
    case 'nodes':
      return nodeList(state);
    case 'sequencers':
      return sequencerList(state);
    case 'events':
      return eventList(state);
    case 'agreement':
      return agreementList(state);
    case 'lease':
      return view?.leader ? [{ value: view.leader, detail: { of: 'sequencer', id: view.leader.id } }] : [];
    case 'chain':
      return view?.committed
        ? [{ value: view.committed, detail: { of: 'height', height: view.committed.height } }]
        : [];
  }
}
