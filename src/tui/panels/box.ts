// Frames and columns: every row made here is exactly as wide as asked.
import { cut, fit, widthOf } from '../text.js';
import { glyphsOf, paint, type Theme, type Tone } from '../theme.js';

/** A piece of text with one tone. It is fitted before it is painted, so that colour never counts as width. */
export interface Span {
  text: string;
  tone?: Tone;
}

/** Joins spans and cuts or pads the row to `width`. */
export function line(theme: Theme, spans: readonly Span[], width: number): string {
  const { cut: mark } = glyphsOf(theme);
  let left = width;
  let out = '';
  for (const { text, tone } of spans) {
    if (left <= 0) break;
    const part = cut(text, left, mark);
    left -= widthOf(part);
    out += paint(theme, tone ?? 'plain', part);
  }
  return out + ' '.repeat(Math.max(0, left));
}

/** Left and right ends of one row. The right end is kept whole; the left end is cut. */
export function ends(theme: Theme, left: readonly Span[], right: readonly Span[], width: number): string {
  const taken = right.reduce((sum, span) => sum + widthOf(span.text), 0);
  return line(theme, left, Math.max(0, width - taken)) + line(theme, right, Math.min(taken, width));
}

export interface BoxOptions {
  title: string;
  width: number;
  height: number;
  focused?: boolean;
  note?: string;
}

/** `rows` are exactly width − 4 wide. `height` counts the frame. */
export function box(
  theme: Theme,
  rows: readonly string[],
  { title, width, height, focused = false, note = '' }: BoxOptions,
): string[] {
  const g = glyphsOf(theme);
  const inner = width - 4;
  const name = cut(` ${title}${note === '' ? '' : ` ${note}`} `, Math.max(0, width - 5), g.cut);
  const lead = focused ? g.cursor : g.h;
  const top = `${g.tl}${lead}`;
  const tail = g.h.repeat(Math.max(0, width - 3 - widthOf(name))) + g.tr;
  const frame: Tone = 'dim';
  const side = paint(theme, frame, g.v);
  const body = Array.from(
    { length: Math.max(0, height - 2) },
    (_, at) => `${side} ${rows[at] ?? ' '.repeat(inner)} ${side}`,
  );
  return [
    paint(theme, focused ? 'accent' : frame, top) +
      paint(theme, focused ? 'accent' : 'bold', name) +
      paint(theme, frame, tail),
    ...body,
    paint(theme, frame, g.bl + g.h.repeat(width - 2) + g.br),
  ];
}

export function beside(left: readonly string[], right: readonly string[]): string[] {
  return left.map((row, at) => row + (right[at] ?? ''));
}

export interface Column<T> {
  head: string;
  width: number;
  align?: 'left' | 'right';
  text(value: T): string;
  tone?(value: T): Tone;
}

/** A heading and rows with a cursor. Scrolls so that the cursor is visible, and shows how many rows are hidden. */
export function table<T>(
  theme: Theme,
  values: readonly T[],
  columns: readonly Column<T>[],
  options: {
    width: number;
    height: number;
    cursor: number | null;
    heading: boolean;
    empty: string;
    tone?: (value: T) => Tone | undefined;
  },
): { rows: string[]; hidden: number } {
  const { width, height, cursor, heading } = options;
  const g = glyphsOf(theme);
  const room = Math.max(0, height - (heading ? 1 : 0));
  const at = cursor === null ? 0 : Math.min(cursor, values.length - 1);
  const first = Math.max(0, Math.min(at - Math.floor(room / 2), values.length - room));
  const seen = values.slice(first, first + room);
  const rows = heading
    ? [
        line(
          theme,
          [{ text: `  ${columns.map((c) => fit(c.head, c.width, c.align, g.cut)).join(' ')}`, tone: 'dim' }],
          width,
        ),
      ]
    : [];
  for (const [offset, value] of seen.entries()) {
    const whole = options.tone?.(value);
    const here = cursor !== null && first + offset === at;
    const spans: Span[] = [{ text: here ? `${g.cursor} ` : '  ', tone: 'accent' }];
    for (const [index, column] of columns.entries()) {
      spans.push({
        text: `${index === 0 ? '' : ' '}${fit(column.text(value), column.width, column.align, g.cut)}`,
        tone: column.tone?.(value) ?? whole,
      });
    }
    rows.push(line(theme, spans, width));
  }
  if (values.length === 0 && room > 0) rows.push(line(theme, [{ text: `  ${options.empty}`, tone: 'dim' }], width));
  return { rows, hidden: values.length - seen.length };
}
