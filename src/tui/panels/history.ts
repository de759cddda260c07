// How did it go? Commit latency, blocks per second and lag since the watch began, each over several rows with its scale
// and its time axis.
import { percentile } from '../model-series.js';
import { age, duration } from '../text.js';
import { chart, type Theme, type Tone } from '../theme.js';
import { line, type Span } from './box.js';
import type { Rows } from './lists.js';
import { shown, type Data, type WatchState } from '../model-state.js';

interface Series {
  name: string;
  values: readonly (number | null)[];
  text(value: number): string;
  least: number;
  tone: Tone;
  missing: string;
}

const AXIS = 9;

function seriesOf(data: Data): Series[] {
  const lagging = (data.lags.at(-1) ?? 0) > 0;
  return [
    {
      name: 'commit latency',
      values: data.commits,
      text: duration,
      least: 0,
      tone: 'accent',
      missing: 'the leader does not say',
    },
    {
      name: 'blocks per second',
      values: data.rates,
      text: (value) => value.toFixed(value < 100 ? 1 : 0),
      least: 1,
      tone: 'accent',
      missing: 'not known',
    },
    {
      name: 'greatest lag, blocks',
      values: data.lags,
      text: (value) => String(Math.round(value)),
      least: 1,
      tone: lagging ? 'warn' : 'ok',
      missing: 'not known',
    },
  ];
}

export function historyRows(state: WatchState, theme: Theme, width: number, height: number): Rows {
  const data = shown(state);
  const all = seriesOf(data);
  // Each series has a heading, the chart and a gap. The time axis appears once, below the last chart.
  const each = Math.max(1, Math.min(8, Math.floor((height - 1) / all.length) - 2));
  const room = Math.max(1, width - AXIS);
  const rows: Span[][] = [];
  for (const { name, values, text, least, tone, missing } of all) {
    const seen = values.slice(-room);
    const known = seen.flatMap((value) => (value === null ? [] : [value]));
    const top = Math.max(least, ...known);
    const now = values.at(-1);
    rows.push([
      { text: name, tone: 'bold' },
      { text: `  now ${now == null ? '?' : text(now)}` },
      {
        text:
          known.length === 0
            ? `  ${missing}`
            : `  p50 ${text(percentile(known, 0.5) ?? 0)}  p99 ${text(percentile(known, 0.99) ?? 0)}  max ` +
              `${text(Math.max(...known))}`,
        tone: 'dim',
      },
    ]);
    for (const [at, row] of chart(theme, values, room, each, top).entries()) {
      const label = at === 0 ? text(top) : at === each - 1 ? '0' : '';
      rows.push([
        { text: `${label.padStart(AXIS - 2)}  `, tone: 'dim' },
        { text: row, tone },
      ]);
    }
    rows.push([{ text: '' }]);
  }
  rows.pop();
  rows.push([{ text: axis(data, room, width), tone: 'dim' }]);
  return { rows: rows.slice(0, height).map((spans) => line(theme, spans, width)), note: '' };
}

/** `4m00s ago` under the oldest value that is drawn, `now` under the newest. */
function axis(data: Data, room: number, width: number): string {
  const times = data.probedAt.slice(-room);
  const [first] = times;
  if (first === undefined) return '';
  const left = Math.max(0, width - times.length);
  const text = `${age(data.at - first)} ago`;
  const at = Math.min(left, Math.max(0, width - text.length - 5));
  return `${' '.repeat(at)}${text}${' '.repeat(Math.max(1, width - at - text.length - 3))}now`;
}
