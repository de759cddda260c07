// Breaks prose for a terminal: lines end at words, and the text after a `name:` stays in its column. A command stays in
// one piece, so that it can be copied. If it does not fit beside its label it gets its own line. If it does not fit
// there either, the terminal folds it, and it still copies as one line.
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

/** Lines of `text` behind `prefix`. The text stays in the column that begins at the width of `prefix`. */
export type Wrap = (prefix: string, text: string) => string[];

/** Below this width breaking lines gains nothing. */
const LEAST = 20;
/** Room for text beside a label. */
const LEAST_BESIDE = 16;
const COMMAND = /^(REDISCLI_AUTH=\S+ |)(seq|redis-cli|curl|openssl|rm|ls|ss|mkdir|head) /;

export function wrapTo(width: number): Wrap {
  return (prefix, text) => {
    const column = stringWidth(prefix);
    if (width < LEAST || column + stringWidth(text) <= width) return [prefix + text];
    if (COMMAND.test(text))
      return stringWidth(text) <= width && prefix.trim() !== '' ? [prefix.trimEnd(), text] : [prefix + text];
    // If the column leaves too little room for text, the text goes below its label.
    const narrow = width - column < LEAST_BESIDE;
    const indent = ' '.repeat(narrow ? 2 : column);
    const lines = wrapAnsi(text, width - indent.length, { hard: false }).split('\n');
    return narrow
      ? [prefix.trimEnd(), ...lines.map((line) => indent + line)]
      : lines.map((line, at) => (at === 0 ? prefix : indent) + line);
  };
}
