// What must be written so that one row of the screen becomes another? The runs of cells that differ, each placed
// absolutely. Rows are compared cell by cell only when every character surely takes one cell. Terminals disagree about
// the width of all others (emoji, CJK, combining marks), so the columns after one are unknown. A row with such a
// character is written again as a whole.

/** One text and one SGR code per cell. */
interface Cells {
  chars: string;
  styles: string[];
}

const NARROW = /^[\x20-\x7e─│┌┐└┘█░…▁▂▃▄▅▆▇›]*$/;
// eslint-disable-next-line no-control-regex
const SGR = /\u001b\[([\d;]*)m/g;

/** Placing the cursor costs about as many bytes as this many cells. */
const JOIN_CELLS = 6;

function cellsOf(row: string): Cells | null {
  let chars = '';
  const styles: string[] = [];
  let style = '';
  let at = 0;
  const take = (text: string) => {
    chars += text;
    for (let i = 0; i < text.length; i += 1) styles.push(style);
  };
  for (const match of row.matchAll(SGR)) {
    take(row.slice(at, match.index));
    at = match.index + match[0].length;
    style = match[1] === '0' || match[1] === undefined ? '' : match[1];
  }
  take(row.slice(at));
  return NARROW.test(chars) ? { chars, styles } : null;
}

function written({ chars, styles }: Cells, from: number, to: number): string {
  let out = '';
  let style = '';
  for (let at = from; at < to; at += 1) {
    const own = styles[at] ?? '';
    if (own !== style) out += own === '' ? '\u001b[0m' : style === '' ? `\u001b[${own}m` : `\u001b[0;${own}m`;
    style = own;
    out += chars[at];
  }
  return style === '' ? out : `${out}\u001b[0m`;
}

/** `line` counts from 1. Afterwards the cursor may be anywhere; the style is the one at the beginning of a row. */
export function rowUpdate(line: number, before: string, after: string): string {
  // The row is cleared first. After a full row the cursor is still on the last cell, and clearing then would erase that
  // cell.
  const whole = `\u001b[${line};1H\u001b[K${after}`;
  const [was, is] = [cellsOf(before), cellsOf(after)];
  if (was === null || is === null || was.chars.length !== is.chars.length) return whole;
  let out = '';
  let from = -1;
  let last = -1;
  const flush = () => {
    if (from >= 0) out += `\u001b[${line};${from + 1}H${written(is, from, last + 1)}`;
  };
  for (let at = 0; at < is.chars.length; at += 1) {
    if (was.chars[at] === is.chars[at] && was.styles[at] === is.styles[at]) continue;
    if (from < 0 || at - last > JOIN_CELLS) {
      flush();
      from = at;
    }
    last = at;
  }
  flush();
  return out.length < whole.length ? out : whole;
}
