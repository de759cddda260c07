// Sequencers, agreement, events: lists with a cursor.
import { agreementList, EVENT_SORTS, eventList, SEQUENCER_SORTS, sequencerList } from '../model-lists.js';
import type { AgreementRow } from '../model-agreement.js';
import type { WatchEvent } from '../model-events.js';
import { since } from '../model-since.js';
import type { SequencerRow } from '../../core/view/presence.js';
import { clockOf, shortAge, widthOf } from '../text.js';
import type { Theme, Tone } from '../theme.js';
import { table, type Column } from './box.js';
import { noteText } from './nodes.js';
import { memberTracks, shown, type WatchState } from '../model-state.js';

export interface Rows {
  rows: string[];
  note: string;
}

export function sequencerRows(state: WatchState, theme: Theme, width: number, height: number): Rows {
  const list = sequencerList(state).map((one) => one.value);
  const data = shown(state);
  const digests = new Map<string, number>();
  for (const one of data.view?.sequencers ?? [])
    digests.set(one.configDigest, (digests.get(one.configDigest) ?? 0) + 1);
  const usual = [...digests].sort((a, b) => b[1] - a[1])[0]?.[0];
  const leader = data.view?.leader?.id;
  const sinceProbe = Math.max(0, state.ui.frozen === null ? state.now - data.at : 0);
  const digits = Math.max(6, ...list.map((one) => String(one.height).length));
  // Names are cut before numbers are.
  const most = Math.max(5, Math.min(width >= 60 ? 24 : 10, width - 2 - 9 - (1 + digits) - 4 - 5));
  const columns: Column<SequencerRow>[] = [
    {
      head: 'ID',
      width: Math.min(most, Math.max(5, ...list.map((one) => widthOf(one.id)))),
      text: (one) => one.id,
      tone: () => 'bold',
    },
    // The nodes' locks say who leads. What a sequencer says about itself is shown only as its own statement.
    {
      head: 'ROLE',
      width: 8,
      text: (one) => (one.id === leader ? 'LEADER' : one.role === 'leader' ? 'leader?' : one.role),
      tone: (one) => (one.id === leader ? 'ok' : 'plain'),
    },
    { head: 'HEIGHT', width: digits, align: 'right', text: (one) => String(one.height) },
    {
      head: 'LAG',
      width: 3,
      align: 'right',
      text: (one) => (one.lag === null ? '?' : String(one.lag)),
      tone: (one) => ((one.lag ?? 0) > 5 ? 'warn' : 'plain'),
    },
    {
      head: 'SEEN',
      width: 4,
      align: 'right',
      text: (one) => shortAge(one.seenMs === null ? null : one.seenMs + sinceProbe),
    },
  ];
  const used = 2 + columns.reduce((sum, column) => sum + column.width + 1, 0);
  if (width - used >= 8) {
    columns.push({
      head: 'VERSION',
      width: width - used,
      tone: (one) => (!one.ready || one.configDigest !== usual ? 'warn' : 'dim'),
      text: (one) => {
        const drift = one.configDigest !== usual && one.configDigest !== '' ? 'CONFIG DRIFT ' : '';
        return drift + (one.ready ? one.version : one.why || 'not ready');
      },
    });
  }
  const { rows, hidden } = table(theme, list, columns, {
    width,
    height,
    cursor: state.ui.panel === 'sequencers' ? state.ui.cursors.sequencers : null,
    heading: height > list.length || height > 4,
    empty:
      data.view === null
        ? ''
        : data.view.answered < data.view.quorum
          ? 'unknown: too few nodes answer'
          : 'none has announced itself',
  });
  const sort = state.ui.sorts.sequencers % SEQUENCER_SORTS.length;
  return { rows, note: noteText(state.ui.filters.sequencers, hidden, sort === 0 ? '' : (SEQUENCER_SORTS[sort] ?? '')) };
}

/** How much happened since the operator last looked and said so. */
function marked({ ui, data }: WatchState): string[] {
  return ui.mark === null ? [] : [`${since(ui.mark, ui.frozen ?? data).events.length} since ${clockOf(ui.mark.wall)}`];
}

const LEVEL_TONE: Record<WatchEvent['level'], Tone> = { ok: 'ok', info: 'plain', warn: 'warn', crit: 'crit' };
const LEVEL_WORD: Record<WatchEvent['level'], string> = { ok: 'ok', info: '-', warn: 'WARN', crit: 'CRIT' };

export function eventRows(state: WatchState, theme: Theme, width: number, height: number): Rows {
  const list = eventList(state).map((one) => one.value);
  const columns: Column<WatchEvent>[] = [
    { head: 'TIME', width: 8, text: (one) => clockOf(one.wall).slice(0, 8), tone: () => 'dim' },
    { head: '', width: 4, text: (one) => LEVEL_WORD[one.level], tone: (one) => LEVEL_TONE[one.level] },
    { head: 'EVENT', width: width - 16, text: (one) => `${one.text}${one.count > 1 ? ` (x${one.count})` : ''}` },
  ];
  const { rows, hidden } = table(theme, list, columns, {
    width,
    height,
    cursor: state.ui.panel === 'events' ? state.ui.cursors.events : null,
    heading: false,
    empty: 'nothing has changed yet',
  });
  const sort = state.ui.sorts.events % EVENT_SORTS.length;
  const note = noteText(state.ui.filters.events, hidden, sort === 0 ? '' : (EVENT_SORTS[sort] ?? ''));
  return { rows, note: [...marked(state), ...(note === '' ? [] : [note])].join(', ') };
}

export function agreementRows(state: WatchState, theme: Theme, width: number, height: number): Rows {
  const list = agreementList(state).map((one) => one.value);
  const nodes = memberTracks(shown(state));
  // In a narrow panel the nodes' names and the class are more important than epoch and age.
  const others = width < 60 ? 22 : 36;
  const cell = Math.max(
    1,
    Math.min(6, ...nodes.map((node) => widthOf(node.id)), Math.floor((width - others) / Math.max(1, nodes.length)) - 1),
  );
  const all: Column<AgreementRow>[] = [
    {
      head: 'HEIGHT',
      width: Math.max(6, ...list.map((one) => String(one.verdict.height).length)),
      align: 'right',
      text: (one) => String(one.verdict.height),
    },
    ...nodes.map((node, at): Column<AgreementRow> => ({
      head: node.id,
      width: cell,
      text: (one) => one.marks[at] ?? '?',
      tone: (one) =>
        one.marks[at] === 'A'
          ? 'ok'
          : one.marks[at] === '?'
            ? 'unknown'
            : one.marks[at] === '.' || one.marks[at] === '-'
              ? 'dim'
              : 'crit',
    })),
    {
      head: 'CLASS',
      width: 12,
      text: (one) => one.verdict.verdict,
      tone: (one) =>
        one.verdict.verdict === 'committed'
          ? 'ok'
          : one.verdict.verdict === 'conflict' || one.verdict.verdict === 'damaged'
            ? 'crit'
            : 'warn',
    },
    {
      head: 'EPOCH',
      width: Math.max(5, ...list.map((one) => String(one.verdict.epoch).length)),
      align: 'right',
      text: (one) => (one.verdict.epoch === 0 ? '?' : String(one.verdict.epoch)),
    },
    {
      head: 'AGE',
      width: 4,
      align: 'right',
      text: (one) => shortAge(one.timestamp === null ? null : shown(state).wall - one.timestamp),
    },
  ];
  let columns = all;
  for (const head of ['EPOCH', 'AGE'])
    if (columns.reduce((sum, column) => sum + column.width + 1, 2) > width)
      columns = columns.filter((column) => column.head !== head);
  const { rows, hidden } = table(theme, list, columns, {
    width,
    height,
    cursor: state.ui.panel === 'agreement' ? state.ui.cursors.agreement : null,
    heading: true,
    empty: shown(state).view?.answered === 0 ? 'unknown: no node answers' : 'no entry was read yet',
  });
  return { rows, note: noteText(state.ui.filters.agreement, hidden, '') };
}
