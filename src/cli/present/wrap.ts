// Prose for a terminal: lines end at words, and what follows a `name:` stays in its column. A command that is to be
// copied stays in one piece: where it does not fit beside its label it gets a line of its own, and where it does not
// fit there the terminal folds it, which copies as one line.
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';

/** Lines of `text` behind `prefix`, whose width is that of the column the text keeps to. */
export type Wrap = (prefix: string, text: string) => string[];

/** Narrower than that nothing is gained. */
const LEAST = 20;
/** Room for text beside a label. */
const LEAST_BESIDE = 16;
const COMMAND = /^(seq|redis-cli|rm|ls|ss|mkdir|head) /;

export function wrapTo(width: number): Wrap {
  return (prefix, text) => {
    const column = stringWidth(prefix);
    if (width < LEAST || column + stringWidth(text) <= width) return [prefix + text];
    if (COMMAND.test(text))
      return stringWidth(text) <= width && prefix.trim() !== '' ? [prefix.trimEnd(), text] : [prefix + text];
    // A column that leaves no room for text is given up: the text goes below its label.
    const narrow = width - column < LEAST_BESIDE;
    const indent = ' '.repeat(narrow ? 2 : column);
    const lines = wrapAnsi(text, width - indent.length, { hard: false }).split('\n');
    return narrow
      ? [prefix.trimEnd(), ...lines.map((line) => indent + line)]
      : lines.map((line, at) => (at === 0 ? prefix : indent) + line);
  };
}
