// What did somebody mean who typed words in the wrong order, a flag that does not exist, or a value without its flag?
// Pure. Nothing is run on a guess: the line is only shown.
import { masked } from '../../core/log/redact.js';
import { suggest } from './suggest.js';

interface KnownFlag {
  char?: string | undefined;
  type: string;
  hidden?: boolean | undefined;
  required?: boolean | undefined;
}
export type KnownFlags = Readonly<Record<string, KnownFlag>>;

/** True where the word before is a flag whose value this word is. */
function isValue(word: string | undefined, flags: KnownFlags): boolean {
  if (word === undefined || !word.startsWith('-') || word.includes('=')) return false;
  const flag = word.startsWith('--')
    ? flags[word.slice(2)]
    : Object.values(flags).find((each) => each.char === word[1] && word.length === 2);
  return flag?.type === 'option';
}

/**
 * `repair -c lab plan` → `repair plan -c lab`. The words of a command belong together and come first. Null when no
 * command is meant this way. `id`: the leading words that were understood.
 */
export function commandFirst(
  id: string,
  rest: readonly string[],
  ids: readonly string[],
  flags: KnownFlags,
): string | null {
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === '--') return null;
    if (rest[at]?.startsWith('-') || isValue(rest[at - 1], flags)) continue;
    for (let length = 2; length > 0; length -= 1) {
      const words = rest.slice(at, at + length);
      const meant = [...(id === '' ? [] : id.split(':')), ...words].join(':');
      if (words.length < length || !ids.includes(meant)) continue;
      return masked([...meant.split(':'), ...rest.slice(0, at), ...rest.slice(at + length)].map(shellWord).join(' '));
    }
  }
  return null;
}

/** A word as a shell reads it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]*$/.test(word) && word !== '' ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** `--contxt` → [`--context`]. A flag of the program that this command does not have is left out. */
export function nearFlags(word: string, flags: KnownFlags): string[] {
  const name = word.replace(/=.*$/s, '');
  if (!name.startsWith('--')) return [];
  const known = Object.entries(flags).flatMap(([each, flag]) => (flag.hidden ? [] : [`--${each}`]));
  return suggest(name, known);
}

/** The flag that a stray word was meant for, when the command needs exactly one: `wait leader` → `--for`. */
export function neededFlag(flags: KnownFlags): string | null {
  const needed = Object.entries(flags).filter(([, flag]) => flag.required);
  return needed.length === 1 ? `--${needed[0]?.[0]}` : null;
}
