// Text of an exact width on a terminal. Wide characters count two, combining characters none, and control characters
// are removed. All text from nodes and sequencers passes through here before it reaches the screen, so that no name can
// move the cursor.
import stringWidth from 'string-width';

const PLAIN = /^[\x20-\x7e]*$/;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Removes everything that a terminal would obey. */
export function clean(text: string): string {
  return PLAIN.test(text) ? text : text.replace(CONTROL, ' ');
}

/** How many cells a clean text takes. */
export function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text);
}

/** Cuts to `width` cells and marks the cut. */
export function cut(text: string, width: number, mark = '~'): string {
  const safe = clean(text);
  if (widthOf(safe) <= width) return safe;
  if (width <= 0) return '';
  if (PLAIN.test(safe)) return safe.slice(0, width - 1) + mark;
  let out = '';
  let used = 0;
  for (const { segment } of graphemes.segment(safe)) {
    const cells = stringWidth(segment);
    if (used + cells > width - 1) break;
    out += segment;
    used += cells;
  }
  return out + mark;
}

/** Cuts or pads to exactly `width` cells. */
export function fit(text: string, width: number, align: 'left' | 'right' = 'left', mark = '~'): string {
  const short = cut(text, width, mark);
  const gap = ' '.repeat(Math.max(0, width - widthOf(short)));
  return align === 'left' ? short + gap : gap + short;
}

/** Splits into lines of at most `width` cells, at spaces where there are any. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of clean(text).split(' ')) {
    let rest = word;
    if (line !== '' && widthOf(line) + 1 + widthOf(rest) <= width) {
      line += ` ${rest}`;
      continue;
    }
    if (line !== '') lines.push(line);
    while (widthOf(rest) > width) {
      let head = '';
      for (const { segment } of graphemes.segment(rest)) {
        if (widthOf(head + segment) > width) break;
        head += segment;
      }
      if (head === '') break;
      lines.push(head);
      rest = rest.slice(head.length);
    }
    line = rest;
  }
  if (line !== '' || lines.length === 0) lines.push(line);
  return lines;
}

/** `0.8s`, `12s`, `2m08s`, `3h12m`, `4d03h`. */
export function age(ms: number | null): string {
  if (ms === null) return '?';
  const s = Math.max(0, ms) / 1000;
  const two = (n: number) => String(Math.floor(n)).padStart(2, '0');
  if (s < 9.95) return `${s.toFixed(1)}s`;
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h${two((s % 3600) / 60)}m`;
  return `${Math.floor(s / 86_400)}d${two((s % 86_400) / 3600)}h`;
}

/** Whole units only, at most four cells: for narrow columns. */
export function shortAge(ms: number | null): string {
  if (ms === null) return '?';
  const s = Math.max(0, ms) / 1000;
  if (s < 60) return `${Math.floor(s)}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86_400) return `${Math.floor(s / 3600)}h`;
  return s < 86_400_000 ? `${Math.floor(s / 86_400)}d` : `${Math.floor(s / 31_557_600)}y`;
}

export function clockOf(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(11, 19)}Z`;
}

export function bytes(text: string | undefined): string {
  const n = Number(text);
  if (text === undefined || text === '' || !Number.isFinite(n)) return '?';
  if (n < 1024) return `${n}B`;
  const units = ['K', 'M', 'G', 'T'];
  let value = n / 1024;
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)}${units[at]}`;
}

export function duration(ms: number | null): string {
  if (ms === null) return '?';
  return ms < 1
    ? `${ms.toFixed(1)}ms`
    : ms < 9.95
      ? `${ms.toFixed(1)}ms`
      : ms < 1000
        ? `${Math.round(ms)}ms`
        : `${(ms / 1000).toFixed(1)}s`;
}
