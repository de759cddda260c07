// Colours and glyphs of one terminal. Every state is also a word or a number, so nothing is lost without colour and
// without Unicode.
export interface Theme {
  colour: boolean;
  unicode: boolean;
}

export type Tone =
  | 'ok'
  | 'warn'
  | 'crit'
  | 'unknown'
  | 'dim'
  | 'bold'
  | 'accent'
  | 'plain'
  | 'badge-ok'
  | 'badge-warn'
  | 'badge-crit'
  | 'badge-unknown';

/** The 16 colours that every terminal has, as its owner set them. */
const SGR: Record<Tone, string> = {
  ok: '32',
  warn: '33',
  crit: '1;31',
  unknown: '35',
  dim: '2',
  bold: '1',
  accent: '36',
  plain: '',
  'badge-ok': '30;42',
  'badge-warn': '30;43',
  'badge-crit': '1;97;41',
  'badge-unknown': '30;45',
};

export function paint(theme: Theme, tone: Tone, text: string): string {
  const code = SGR[tone];
  return theme.colour && code !== '' && text !== '' ? `\u001b[${code}m${text}\u001b[0m` : text;
}

export interface Glyphs {
  h: string;
  v: string;
  tl: string;
  tr: string;
  bl: string;
  br: string;
  full: string;
  empty: string;
  cut: string;
  steps: string[];
  cursor: string;
}

const ASCII: Glyphs = {
  h: '-',
  v: '|',
  tl: '+',
  tr: '+',
  bl: '+',
  br: '+',
  full: '#',
  empty: '-',
  cut: '~',
  steps: ['_', '.', '-', '=', '*', '#'],
  cursor: '>',
};
const UNICODE: Glyphs = {
  h: '─',
  v: '│',
  tl: '┌',
  tr: '┐',
  bl: '└',
  br: '┘',
  full: '█',
  empty: '░',
  cut: '…',
  steps: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
  cursor: '›',
};

export function glyphsOf(theme: Theme): Glyphs {
  return theme.unicode ? UNICODE : ASCII;
}

/** From the environment. Most fonts of TERM=linux have no block elements; a locale other than UTF-8 has none at all. */
export function themeOf(env: NodeJS.ProcessEnv, colour: boolean): Theme {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  const plain = env['TERM'] === 'linux' || env['TERM'] === 'dumb' || env['SEQ_ASCII'] === '1';
  return { colour, unicode: /utf-?8/i.test(locale) && !plain };
}

/** The newest `width` values, oldest left. A missing value is a gap. `max` is the top of the scale. */
export function sparkline(theme: Theme, values: readonly (number | null)[], width: number, max: number): string {
  const { steps } = glyphsOf(theme);
  const shown = values.slice(-width);
  const line = shown
    .map((value) => {
      if (value === null) return ' ';
      if (!(max > 0) || value <= 0) return steps[0];
      return steps[Math.min(steps.length - 1, Math.max(1, Math.round((value / max) * (steps.length - 1))))];
    })
    .join('');
  return ' '.repeat(Math.max(0, width - shown.length)) + line;
}

/** The same over several rows, top row first. */
export function chart(
  theme: Theme,
  values: readonly (number | null)[],
  width: number,
  height: number,
  max: number,
): string[] {
  const { steps, full } = glyphsOf(theme);
  const shown = values.slice(-width);
  return Array.from({ length: height }, (_, row) => {
    const below = height - 1 - row;
    const line = shown
      .map((value) => {
        if (value === null) return ' ';
        const level = max > 0 ? (Math.min(value, max) / max) * height - below : 0;
        if (level >= 1) return full;
        // The lowest row always shows that there was a value.
        if (level <= 0) return below === 0 ? steps[0] : ' ';
        return steps[Math.min(steps.length - 1, Math.floor(level * steps.length))];
      })
      .join('');
    return ' '.repeat(Math.max(0, width - shown.length)) + line;
  });
}

export function bar(theme: Theme, part: number, width: number): string {
  const { full, empty } = glyphsOf(theme);
  const filled = Math.round(Math.min(1, Math.max(0, part)) * width);
  return full.repeat(filled) + empty.repeat(width - filled);
}
