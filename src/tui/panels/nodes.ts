// One row per node. When a node falls silent its last facts stay, marked with `?` and their age.
import type { NodeView } from '../../core/protocol/types.js';
import { sequencerOf } from '../../core/protocol/types.js';
import { nodeList, NODE_SORTS, type NodeLine } from '../model-lists.js';
import { percentile, slope } from '../model-series.js';
import { bytes, duration, shortAge, widthOf } from '../text.js';
import type { Theme, Tone } from '../theme.js';
import { table, type Column } from './box.js';
import { shown, type WatchState } from '../model-state.js';

const RESTART_RECENT_S = 300;
/** Width in cells. */
const NOTE_LEAST = 12;

export function stateTone(state: string): Tone {
  return state === 'OK' ? 'ok' : state === 'WARN' || state === 'OUT' || state === 'EMPTY' ? 'warn' : 'crit';
}

const silent = ({ row }: NodeLine): boolean => row === null || row.state === 'DOWN' || row.state === 'REFUSED';

/** What the node says now, or its last answer, marked. */
function fact(lineOf: NodeLine, read: (view: NodeView) => string): string {
  const { track } = lineOf;
  if (!silent(lineOf) && track.probe?.reply.outcome === 'accepted') return read(track.probe.reply.value);
  return track.good === null ? '?' : `${read(track.good.view)}?`;
}

/** `uptimeShown`: another column already shows a restart. */
function noteOf(lineOf: NodeLine, now: number, uptimeShown = false): string {
  const { row, track } = lineOf;
  if (row === null) return '';
  if (row.state === 'DOWN')
    return (
      `${row.error?.step ?? 'call'}: ` +
      (track.probe?.reply.outcome === 'unknown' ? track.probe.reply.cause : 'no answer') +
      (track.good === null ? '' : `, facts ${shortAge(now - track.good.at)} old`)
    );
  if (row.diverged !== null) return row.note;
  if ((row.lag ?? 0) > 0) {
    const speed = slope(track.lags, 6000);
    return speed === null || Math.abs(speed) < 0.5
      ? row.note
      : `${speed < 0 ? 'closing' : 'growing'} ${Math.round(Math.abs(speed))}/s`;
  }
  if (row.note !== '') return row.note;
  return !uptimeShown && restarted(row.info['uptime_in_seconds'])
    ? `up ${shortAge(Number(row.info['uptime_in_seconds']) * 1000)} only`
    : '';
}

const restarted = (uptime: string | undefined): boolean => uptime !== undefined && Number(uptime) < RESTART_RECENT_S;

function persistence(info: Record<string, string>): string {
  if (info['loading'] === '1') return 'loading';
  if (info['aof_enabled'] === undefined) return '?';
  const aof = info['aof_enabled'] === '1';
  const failed = aof ? info['aof_last_write_status'] !== 'ok' : info['rdb_last_bgsave_status'] !== 'ok';
  return `${aof ? 'aof' : 'no aof'}${failed ? ' FAIL' : ''}`;
}

const dim = (one: NodeLine): Tone => (silent(one) ? 'dim' : 'plain');

const stateOf = (one: NodeLine): string => one.row?.state ?? '?';
const holderOf = (one: NodeLine): string =>
  fact(one, (view) => (view.lock === null ? '-' : sequencerOf(view.lock.owner)));
const epochOf = (one: NodeLine): string => fact(one, (view) => String(view.epoch));
const headOf = (one: NodeLine): string => fact(one, (view) => String(view.head));

function ttlOf(one: NodeLine): string {
  if (silent(one)) return '?';
  return fact(one, (view) =>
    view.lock === null ? '-' : view.lock.pttlMs < 0 ? 'never' : `${(view.lock.pttlMs / 1000).toFixed(1)}s`,
  );
}

/** As wide as its widest text, within limits. */
function widest(texts: readonly string[], least: number, most: number): number {
  return Math.min(most, Math.max(least, ...texts.map(widthOf)));
}

/** Who is it, how is it, and who holds its lock? */
function leaseColumns(width: number, lines: readonly NodeLine[]): Column<NodeLine>[] {
  const share = width >= 130 ? 24 : width >= 94 ? 16 : width >= 74 ? 10 : 8;
  const ids = lines.map((one) => one.track.id);
  return [
    { head: 'NODE', width: widest(ids, 4, share), text: (one) => one.track.id, tone: () => 'bold' },
    {
      head: 'STATE',
      width: widest(lines.map(stateOf), 7, 8),
      text: stateOf,
      tone: (one) => (one.row === null ? 'dim' : stateTone(one.row.state)),
    },
    { head: 'HOLDER', width: widest(lines.map(holderOf), 6, share), text: holderOf, tone: dim },
    { head: 'TTL', width: 5, align: 'right', text: ttlOf, tone: dim },
  ];
}

/** How far is it? */
function heightColumns(lines: readonly NodeLine[]): Column<NodeLine>[] {
  return [
    { head: 'EPOCH', width: widest(lines.map(epochOf), 5, 16), align: 'right', text: epochOf, tone: dim },
    { head: 'HEAD', width: widest(lines.map(headOf), 6, 16), align: 'right', text: headOf, tone: dim },
    {
      head: 'LAG',
      width: 5,
      align: 'right',
      text: (one) => (one.row?.lag == null ? '?' : String(one.row.lag)),
      tone: (one) => ((one.row?.lag ?? 0) > 0 ? 'warn' : dim(one)),
    },
  ];
}

/** How quickly does it answer, and when did it answer last? */
function answerColumns(width: number, now: number): Column<NodeLine>[] {
  const roundTrip: Column<NodeLine> = {
    head: 'RTT',
    width: 6,
    align: 'right',
    text: (one) => (silent(one) ? '?' : duration(one.track.rtts.at(-1) ?? null)),
    tone: dim,
  };
  const spread: Column<NodeLine> = {
    head: 'P50/P99',
    width: 12,
    align: 'right',
    tone: dim,
    text: ({ track }) =>
      `${duration(percentile(track.rtts, 0.5)).replace('ms', '')}/${duration(percentile(track.rtts, 0.99))}`,
  };
  const seen: Column<NodeLine> = {
    head: 'SEEN',
    width: 4,
    align: 'right',
    text: (one) => shortAge(one.track.good === null ? null : now - one.track.good.at),
    tone: (one) => (silent(one) ? 'warn' : 'plain'),
  };
  return [...(width >= 66 ? [roundTrip] : []), ...(width >= 116 ? [spread] : []), seen];
}

/** What kind of server is it? On wide screens only. */
const SERVER_COLUMNS: readonly Column<NodeLine>[] = [
  { head: 'ADMISSION', width: 9, text: (one) => fact(one, (view) => view.admission), tone: dim },
  {
    head: 'PERSIST',
    width: 11,
    text: (one) => fact(one, (view) => persistence(view.info)),
    tone: (one) => (persistence(one.row?.info ?? {}).includes('FAIL') ? 'crit' : dim(one)),
  },
  {
    head: 'MEM',
    width: 7,
    align: 'right',
    text: (one) => fact(one, (view) => bytes(view.info['used_memory'])),
    tone: dim,
  },
  {
    head: 'UP',
    width: 5,
    align: 'right',
    text: (one) => fact(one, (view) => uptimeOf(view.info['uptime_in_seconds'])),
    tone: (one) => (restarted(one.row?.info['uptime_in_seconds']) ? 'warn' : dim(one)),
  },
];

function uptimeOf(uptime: string | undefined): string {
  const up = shortAge(Number(uptime ?? NaN) * 1000).replace('NaNd', '?');
  return restarted(uptime) ? `${up}*` : up;
}

/** The cells that the columns take, with the gaps between them. */
function taken(columns: readonly Column<NodeLine>[]): number {
  return 2 + columns.reduce((sum, column) => sum + column.width + 1, 0);
}

/**
 * Makes room for the note. The reason why a node is not well is more important than its full name, and than what LEASE
 * repeats. Half a word of the reason would mislead.
 */
function withRoomForNote(columns: readonly Column<NodeLine>[], width: number): Column<NodeLine>[] {
  let kept = columns.map((column) => ({ ...column }));
  const lacking = () => Math.max(0, NOTE_LEAST - (width - taken(kept)));
  for (const [head, least] of [
    ['HOLDER', 6],
    ['NODE', 8],
  ] as const) {
    const column = kept.find((one) => one.head === head);
    if (column !== undefined) column.width -= Math.min(lacking(), Math.max(0, column.width - least));
  }
  for (const head of ['TTL', 'HOLDER']) if (lacking() > 0) kept = kept.filter((one) => one.head !== head);
  return kept;
}

function nodeColumns(state: WatchState, width: number, lines: readonly NodeLine[]): Column<NodeLine>[] {
  const { at } = shown(state);
  const wide = width >= 130;
  const columns = withRoomForNote(
    [
      ...leaseColumns(width, lines),
      ...heightColumns(lines),
      ...answerColumns(width, at),
      ...(wide ? SERVER_COLUMNS : []),
    ],
    width,
  );
  const left = width - taken(columns);
  if (left < NOTE_LEAST) return columns;
  const note: Column<NodeLine> = {
    head: 'NOTE',
    width: left,
    text: (one) => noteOf(one, at, wide),
    tone: (one) => (one.row?.state === 'OK' ? 'dim' : 'plain'),
  };
  return [...columns, note];
}

export function nodeRows(
  state: WatchState,
  theme: Theme,
  width: number,
  height: number,
): { rows: string[]; note: string } {
  const lines = nodeList(state).map((one) => one.value);
  const focused = state.ui.panel === 'nodes';
  const { rows, hidden } = table(theme, lines, nodeColumns(state, width, lines), {
    width,
    height,
    cursor: focused ? state.ui.cursors.nodes : null,
    heading: true,
    empty: 'no node matches the filter',
  });
  return {
    rows,
    note: noteText(
      state.ui.filters.nodes,
      hidden,
      state.ui.sorts.nodes % NODE_SORTS.length === 0
        ? ''
        : (NODE_SORTS[state.ui.sorts.nodes % NODE_SORTS.length] ?? ''),
    ),
  };
}

/** The part of the title after the name. */
export function noteText(filter: string, hidden: number, sort: string): string {
  return [
    ...(filter === '' ? [] : [`/${filter}`]),
    ...(sort === '' ? [] : [sort]),
    ...(hidden > 0 ? [`+${hidden} more`] : []),
  ].join(', ');
}

/** Without a frame: for terminals that have no room for anything else. */
export function plainNodeRows(state: WatchState, theme: Theme, width: number, height: number): string[] {
  const lines = nodeList(state).map((one) => one.value);
  const name = Math.min(12, Math.max(4, ...lines.map((one) => widthOf(one.track.id))));
  const rest = width - 2 - name - 1 - 7 - 1 - 9 - 1 - 5 - 1;
  const columns: Column<NodeLine>[] = [
    { head: 'NODE', width: name, text: (one) => one.track.id, tone: () => 'bold' },
    {
      head: 'STATE',
      width: widest(lines.map(stateOf), 7, 8),
      text: stateOf,
      tone: (one) => (one.row === null ? 'dim' : stateTone(one.row.state)),
    },
    { head: 'HEAD', width: 9, align: 'right', text: (one) => fact(one, (view) => String(view.head)) },
    { head: 'LAG', width: 5, align: 'right', text: (one) => (one.row?.lag == null ? '?' : String(one.row.lag)) },
    ...(rest >= 4
      ? [
          {
            head: 'HOLDER',
            width: rest,
            text: (one: NodeLine) => fact(one, (view) => (view.lock === null ? '-' : sequencerOf(view.lock.owner))),
          },
        ]
      : []),
  ];
  return table(theme, lines, columns, {
    width,
    height,
    cursor: null,
    heading: height > lines.length,
    empty: 'no node matches the filter',
  }).rows;
}
