// All that is known about one node, height, sequencer or event. Enter opens it, Esc closes it.
import { serverName } from '../../core/server-name.js';
import type { NodeView } from '../../core/protocol/types.js';
import { describeVerdict, shortHash } from '../../core/protocol/describe.js';
import { agreementOf, entryAt } from '../model-agreement.js';
import { percentile } from '../model-series.js';
import { since } from '../model-since.js';
import { age, bytes, clockOf, duration, fit, wrap } from '../text.js';
import { bar, sparkline, type Theme } from '../theme.js';
import { line, type Span } from './box.js';
import { historyRows } from './history.js';
import { stateTone } from './nodes.js';
import { memberTracks, shown, type Data, type NodeTrack, type WatchState, type Detail } from '../model-state.js';

type Line = readonly Span[];
const NAME = 14;
const fact = (name: string, text: string, tone?: Span['tone']): Line => [
  { text: name.padEnd(NAME), tone: 'dim' },
  { text, tone },
];
/** Uses as many rows as needed: a hash without its end is useless. */
const long = (name: string, text: string, width: number): Line[] =>
  wrap(text, Math.max(10, width - NAME)).map((part, at) => fact(at === 0 ? name : '', part));
const EMPTY: Line = [{ text: '' }];

export function detailTitle(detail: Detail): string {
  switch (detail.of) {
    case 'node':
      return `NODE ${detail.id}`;
    case 'height':
      return `HEIGHT ${detail.height}`;
    case 'sequencer':
      return `SEQUENCER ${detail.id}`;
    case 'event':
      return `EVENT ${detail.seq}`;
    case 'history':
      return 'HISTORY';
    case 'since':
      return 'SINCE';
  }
}

export function detailRows(
  state: WatchState,
  theme: Theme,
  width: number,
  height: number,
): { rows: string[]; note: string } {
  const { detail } = state.ui;
  const data = shown(state);
  if (detail?.of === 'history') return historyRows(state, theme, width, height);
  const lines =
    detail === null
      ? []
      : detail.of === 'node'
        ? nodeLines(data, detail.id, theme, width)
        : detail.of === 'height'
          ? heightLines(data, detail.height, width)
          : detail.of === 'sequencer'
            ? sequencerLines(data, detail.id, width)
            : detail.of === 'since'
              ? sinceLines(state.ui.mark, data, width)
              : eventLines(data, detail.seq, width);
  return scrolled(lines, state.ui.scroll, theme, width, height);
}

function scrolled(
  lines: readonly Line[],
  scroll: number,
  theme: Theme,
  width: number,
  height: number,
): { rows: string[]; note: string } {
  const first = Math.max(0, Math.min(scroll, lines.length - height));
  const rows = lines.slice(first, first + height).map((spans) => line(theme, spans, width));
  const hidden = lines.length - rows.length;
  return { rows, note: hidden > 0 ? `j k scroll, ${hidden} more lines` : '' };
}

function nodeLines(data: Data, id: string, theme: Theme, width: number): Line[] {
  const track = data.nodes.find((one) => one.id === id);
  const row = data.view?.nodes.find((one) => one.id === id);
  if (track === undefined) return [[{ text: 'this node is not among those watched' }]];
  const view = track.good?.view;
  const old = row === undefined || row.state === 'DOWN' || row.state === 'REFUSED';
  const lines: Line[] = [
    fact('url', track.url),
    fact('state', row?.state ?? '?', row === undefined ? 'dim' : stateTone(row.state)),
  ];
  for (const [at, text] of wrap(row?.note ?? '', Math.max(10, width - NAME)).entries())
    if (text !== '') lines.push(fact(at === 0 ? 'why' : '', text));
  if (view === undefined)
    return [
      ...lines,
      fact('facts', 'none yet: it has not answered since the watch began'),
      EMPTY,
      ...latency(track, theme, width),
    ];
  const facts: [string, string][] = [
    ['facts', `${age(data.at - (track.good?.at ?? data.at))} old${old ? ', from before it fell silent' : ''}`],
    ['admission', `${view.admission}${view.admissionWhy === '' ? '' : `: ${view.admissionWhy}`}`],
    ['cluster', `${view.cluster} as node ${view.node}`],
    ['incarnation', view.incarnation],
    [
      'run id',
      `${view.runId}${view.runId === view.admittedRunId ? '' : ` (admitted as ${view.admittedRunId || 'none'})`}`,
    ],
    ...(view.pending === '' ? [] : [['pending', view.pending] as [string, string]]),
    ['lock', view.lock === null ? 'free' : `${view.lock.owner}, ${leftText(view.lock.pttlMs)}`],
    ['epoch', `${view.epoch}, claimed by ${view.claimant || 'nobody'}`],
    ['head', `${view.head}  ${shortHash(view.headHash)}  epoch ${view.headEpoch}`],
    ['floor', `${view.floor}  ${shortHash(view.floorHash)}`],
    ['entries', String(view.length)],
    ['lag', row?.lag == null ? '?' : String(row.lag)],
    ['hold', view.hold === null ? 'none' : `by ${view.hold.by}, ${age(view.hold.pttlMs)} (${view.hold.reason})`],
    ['handover', view.handover === null ? 'none' : `to ${view.handover.to}, ${age(view.handover.pttlMs)}`],
    [
      'request',
      view.request === null
        ? 'none'
        : `${view.request.kind} ${view.request.to} by ${view.request.by} (${view.request.reason})`,
    ],
    [
      'server',
      (
        `${serverName(view.info)}, ${view.info['role'] ?? '?'}, up ` +
        `${age(Number(view.info['uptime_in_seconds'] ?? NaN) * 1000)}`
      ).replace('NaNd', '?'),
    ],
    [
      'memory',
      `${bytes(view.info['used_memory'])} of ` +
        `${view.info['maxmemory'] === '0' ? 'no limit' : bytes(view.info['maxmemory'])}, ` +
        `${view.info['maxmemory_policy'] ?? '?'}`,
    ],
    ...persistenceFacts(view),
    ['clock', `${clockOf(view.timeMs)} there`],
  ];
  lines.push(
    ...facts.map(([name, text]) => fact(old ? `${name}?` : name, text)),
    EMPTY,
    ...latency(track, theme, width),
  );
  const top = Math.max(1, ...track.lags.map((one) => one.value));
  lines.push(
    fact(
      'lag',
      `${sparkline(
        theme,
        track.lags.map((one) => one.value),
        Math.max(0, Math.min(60, width - NAME - 10)),
        top,
      )} max ${top}`,
    ),
  );
  const own = data.events.filter((one) => one.subject === id).slice(0, 8);
  if (own.length > 0) lines.push(EMPTY, ...own.map((one) => fact(clockOf(one.wall), one.text)));
  return lines;
}

function persistenceFacts({ info, timeMs }: NodeView): [string, string][] {
  const aof = info['aof_enabled'] === '1';
  const saved = Number(info['rdb_last_save_time']) * 1000;
  const changes = info['rdb_changes_since_last_save'];
  return [
    [
      'append-only',
      aof
        ? `on, last write ${info['aof_last_write_status'] ?? '?'}, last rewrite ` +
          `${info['aof_last_bgrewrite_status'] ?? '?'}, ${info['aof_delayed_fsync'] ?? '?'} delayed syncs`
        : 'off',
    ],
    [
      'snapshot',
      `last ${info['rdb_last_bgsave_status'] ?? '?'}` +
        (saved > 0 ? `, ${age(timeMs - saved)} ago` : '') +
        (changes === undefined ? '' : `, ${changes} changes since`),
    ],
  ];
}

const BUCKETS = [0.5, 1, 2, 5, 10, 20, 50, 100, Infinity];

function latency(track: NodeTrack, theme: Theme, width: number): Line[] {
  const { rtts } = track;
  if (rtts.length === 0) return [fact('round trip', 'none measured')];
  const counts = BUCKETS.map((top, at) => rtts.filter((rtt) => rtt <= top && rtt > (BUCKETS[at - 1] ?? -1)).length);
  const most = Math.max(...counts);
  const room = Math.max(4, Math.min(40, width - NAME - 16));
  const top = Math.max(...rtts);
  return [
    fact(
      'round trip',
      `p50 ${duration(percentile(rtts, 0.5))}  p99 ${duration(percentile(rtts, 0.99))}  max ` +
        `${duration(top)}  of ${rtts.length} probes`,
    ),
    fact('', `${sparkline(theme, rtts, room, top)} max ${duration(top)}`),
    ...BUCKETS.flatMap((upper, at): Line[] =>
      counts[at] === 0
        ? []
        : [
            fact(
              upper === Infinity ? 'more' : `to ${upper} ms`,
              `${bar(theme, (counts[at] ?? 0) / most, room)} ${counts[at]}`,
            ),
          ],
    ),
  ];
}

function heightLines(data: Data, height: number, width: number): Line[] {
  const [row] = agreementOf(data, { from: height, to: height });
  if (row === undefined) return [];
  const lines: Line[] = wrap(describeVerdict(row.verdict), Math.max(10, width)).map((text): Line => [
    { text, tone: row.verdict.verdict === 'committed' ? 'ok' : 'warn' },
  ]);
  const digits = width >= 90 ? 16 : 12;
  lines.push(EMPTY, [
    {
      text: `${'node'.padEnd(12)} mark  epoch     ${'hash'.padEnd(digits)}  ${'parent'.padEnd(digits)}  size      time`,
      tone: 'dim',
    },
  ]);
  for (const [at, node] of memberTracks(data).entries()) {
    const entry = entryAt(node, height);
    const mark = row.marks[at] ?? '?';
    const damaged = row.verdict.damaged.find((one) => one.node === node.id)?.why;
    const told =
      entry === undefined
        ? mark === '?'
          ? 'no answer, or not read'
          : mark === '.'
            ? 'not there'
            : mark === '-'
              ? 'trimmed'
              : (damaged ?? 'nothing read')
        : `${String(entry.epoch).padEnd(9)} ${entry.hash.slice(0, digits)}  ` +
          `${entry.parent.slice(0, digits)}  ${bytes(String(entry.size)).padEnd(8)}  ` +
          `${clockOf(entry.timestamp)}${damaged === undefined ? '' : `  ${damaged}`}`;
    lines.push([
      { text: fit(node.id, 13), tone: 'bold' },
      { text: `${mark}     `, tone: mark === 'A' ? 'ok' : 'warn' },
      { text: told },
    ]);
  }
  const [first] = memberTracks(data).flatMap((node) => entryAt(node, height) ?? []);
  if (first !== undefined)
    lines.push(
      EMPTY,
      ...long('hash', first.hash, width),
      ...long('parent', first.parent, width),
      fact('owner', first.owner),
    );
  return lines;
}

function sequencerLines(data: Data, id: string, width: number): Line[] {
  const one = data.view?.sequencers.find((other) => other.id === id);
  const leads = data.view?.leader?.id === id;
  if (one === undefined)
    return [
      [{ text: leads ? 'it holds the locks and has not announced itself' : 'it is no longer heard of', tone: 'warn' }],
      ...own(data, id),
    ];
  return [
    fact(
      'role',
      leads
        ? `LEADER under epoch ${data.view?.leader?.epoch}, lock on ${data.view?.leader?.nodes.join(', ')}`
        : one.role,
      leads ? 'ok' : undefined,
    ),
    ...(leads ? [fact('owner', data.view?.leader?.owner ?? '')] : []),
    fact('height', `${one.height}, ${one.lag ?? '?'} behind the committed head`),
    ...wrap(one.ready ? 'yes' : `no: ${one.why || 'it does not say why'}`, Math.max(10, width - NAME)).map((text, at) =>
      fact(at === 0 ? 'could lead' : '', text, one.ready ? undefined : 'warn'),
    ),
    fact('last heard', `${age(one.seenMs)} ago`),
    fact('address', one.url),
    fact('host', `${one.host || '?'}, pid ${one.pid}`),
    fact('version', one.version),
    fact('config digest', one.configDigest),
    EMPTY,
    ...own(data, id),
  ];
}

function own(data: Data, id: string): Line[] {
  return data.events
    .filter((one) => one.subject === id || one.text.includes(id))
    .slice(0, 12)
    .map((one) => fact(clockOf(one.wall), one.text));
}

function eventLines(data: Data, seq: number, width: number): Line[] {
  const event = data.events.find((one) => one.seq === seq);
  if (event === undefined) return [[{ text: 'older than what is kept' }]];
  return [
    ...wrap(event.text, Math.max(10, width)).map((text): Line => [{ text, tone: 'bold' }]),
    EMPTY,
    fact('time', `${new Date(event.wall).toISOString()} (${age(data.at - event.at)} ago)`),
    fact('kind', event.kind),
    fact('level', event.level),
    ...(event.count > 1 ? [fact('seen', `${event.count} times within a minute`)] : []),
    ...(event.subject === '' ? [] : [fact('about', event.subject)]),
    EMPTY,
    [{ text: 'the cluster at that moment', tone: 'dim' }],
    ...event.facts.flatMap((text) => wrap(text, Math.max(10, width - 2)).map((part): Line => [{ text: `  ${part}` }])),
  ];
}

/** What changed since the mark: first the facts that are others now, then the events. */
function sinceLines(mark: Data | null, data: Data, width: number): Line[] {
  if (mark === null) return [[{ text: 'no moment is marked: m marks this one' }]];
  const { facts, events, forgotten, forMs } = since(mark, data);
  return [
    [
      { text: `since ${clockOf(mark.wall)}, ${age(forMs)} ago`, tone: 'bold' },
      { text: '   m marks this moment anew, Esc goes back', tone: 'dim' },
    ],
    EMPTY,
    ...(facts.length === 0 ? [[{ text: 'every fact is as it was', tone: 'ok' } as const]] : []),
    ...facts.flatMap(({ what, was, is }) => long(what, `${was}, now ${is}`, width)),
    EMPTY,
    ...(events.length === 0 ? [[{ text: 'nothing happened', tone: 'dim' } as const]] : []),
    ...events.flatMap((one) => long(clockOf(one.wall), `${one.text}${one.count > 1 ? ` (x${one.count})` : ''}`, width)),
    ...(forgotten ? [[{ text: 'what happened before that is no longer kept', tone: 'warn' } as const]] : []),
  ];
}

const HELP: [string, string][] = [
  ['q', 'quit; three lines stay on the screen'],
  ['?', 'this help, and back'],
  ['Tab, 1-6', 'next panel; lease chain nodes sequencers agreement events'],
  ['j k g G', 'down, up, first, last'],
  ['Enter, Esc', 'open what the cursor is on, go back'],
  ['[ ], arrows', 'the lane before, the next one, where several are watched'],
  ['h', 'history: commit latency, blocks per second, lag'],
  ['m', 'mark this moment; then: what changed since it; there: mark anew'],
  ['/', 'filter the panel; Enter keeps, Esc drops'],
  ['s', 'sort the panel another way'],
  ['Space', 'freeze the screen; probing goes on behind it'],
  ['+ -', 'probe more or less often, 250 ms to 60 s'],
  ['r', 'probe now'],
  ['y', 'copy the command after next: (OSC 52)'],
  ['o', 'write what is known to a JSON file here'],
  ['Ctrl-L Ctrl-Z', 'draw the screen anew; suspend, and fg brings it back'],
];

export function helpRows(
  state: WatchState,
  theme: Theme,
  width: number,
  height: number,
): { rows: string[]; note: string } {
  const lines: Line[] = [
    ...HELP.map(([keys, text]) => fact(keys, text)),
    EMPTY,
    ...wrap(
      'No key changes the cluster. Values marked ? are the last ones of a node that does not answer ' +
        'now; SEEN is their age. In AGREEMENT the same letter is the same block, A the one that is ' +
        'committed or nearest to it; . not there, - trimmed, _ hole, ! damaged, ? no answer.',
      Math.max(10, width),
    ).map((text): Line => [{ text }]),
  ];
  return scrolled(lines, state.ui.scroll, theme, width, height);
}

/** A lock that was written by hand may never expire. */
function leftText(pttlMs: number): string {
  return pttlMs < 0 ? 'never expires' : `${(pttlMs / 1000).toFixed(1)}s left`;
}
