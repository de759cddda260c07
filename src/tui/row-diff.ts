// What has to be written so that one row of the screen becomes another: the runs of cells that differ, each placed
// absolutely. Only rows whose every character surely takes one cell are compared cell by cell. Terminals disagree
// about the width of all others (emoji, CJK, combining marks): behind such a one no column can be named, so a row
// that holds one is written anew as a whole.

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

/** `line` counts from 1. The cursor is left anywhere, the style as it is at the beginning of a row. */
export function rowUpdate(line: number, before: string, after: string): string {
  // Cleared first: after a full row the cursor still stands on its last cell, and clearing then would take that one
  // away.
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
