// Can a command line that the program or a document names be run? Checked against the manifest: the command exists, it
// has these flags, and nothing is missing. `lineProblem` is for a line to be pasted as it is. `mentionProblems` is for
// prose that names commands and flags.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

interface ManifestFlag {
  name: string;
  char?: string;
  type: 'boolean' | 'option';
  multiple?: boolean;
  required?: boolean;
  options?: string[];
  allowNo?: boolean;
  dependsOn?: string[];
  exclusive?: string[];
  hidden?: boolean;
  helpValue?: string;
  default?: unknown;
}
interface ManifestArg {
  name: string;
  required?: boolean;
  options?: string[];
}
export interface ManifestCommand {
  id: string;
  summary?: string;
  hidden?: boolean;
  strict?: boolean;
  flags: Record<string, ManifestFlag>;
  args: Record<string, ManifestArg>;
  examples?: string[];
}

const root = resolve(import.meta.dirname, '../..');
const { commands: byId } = JSON.parse(readFileSync(join(root, 'oclif.manifest.json'), 'utf8')) as {
  commands: Record<string, ManifestCommand>;
};

/** Every command. */
export const commands: ManifestCommand[] = Object.values(byId);

/** Stands for a value that is inserted at run time. */
export const HOLE = '‹›';
const OPEN = /‹›|^[[<(]?[A-Z][A-Z0-9_=,…]*[\])>]?$|…/;

/** Splits into words as a shell does, and removes the quotes. */
export function shellWords(line: string): string[] {
  return [...line.replace(/(?<=\w)‹›(?=\s|$)/g, ` ${HOLE}`).matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) =>
    word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'),
  );
}

function identify(words: readonly string[]): { command: ManifestCommand | null; topic: boolean; rest: string[] } {
  for (let length = Math.min(words.length, 3); length > 0; length -= 1) {
    const id = words.slice(0, length).join(':');
    if (byId[id]) return { command: byId[id], topic: false, rest: words.slice(length) };
    if (Object.keys(byId).some((known) => known.startsWith(`${id}:`)))
      return { command: null, topic: true, rest: words.slice(length) };
  }
  return { command: null, topic: false, rest: [...words] };
}

/** The flag that a word names, and its value if the word contains it. */
function flagOf(command: ManifestCommand, word: string): { flag: ManifestFlag; value?: string } | null {
  const long = /^--([\w-]+)(?:=(.*))?$/s.exec(word);
  if (long) {
    const flag =
      command.flags[long[1] as string] ??
      Object.values(command.flags).find((one) => one.allowNo && `no-${one.name}` === long[1]);
    return flag ? { flag, ...(long[2] === undefined ? {} : { value: long[2] }) } : null;
  }
  const flag = Object.values(command.flags).find((one) => one.char === word[1]);
  return flag ? { flag, ...(word.length > 2 ? { value: word.slice(2) } : {}) } : null;
}

/** Why this line cannot be run as it is, or null. The line begins with `seq`. Words in capitals stand for values. */
export function lineProblem(line: string): string | null {
  const words = shellWords(line.trim());
  if (words.shift() !== 'seq') return 'does not begin with seq';
  if (words.length === 0 || words[0] === 'COMMAND' || words[0]?.startsWith('--'))
    return /^(--help|--version|COMMAND --help)$/.test(words.join(' ')) ? null : 'no command';
  const { command, topic, rest } = identify(words);
  if (!command && words[0] === HOLE) return null;
  if (!command)
    return topic && rest.length === 1 && rest[0] === '--help'
      ? null
      : topic && rest[0] !== undefined && OPEN.test(rest[0])
        ? null
        : `there is no command '${words.slice(0, 2).join(' ')}'`;
  const given = new Set<string>();
  const positional: string[] = [];
  let open = false;
  for (let at = 0; at < rest.length; at += 1) {
    const word = rest[at] as string;
    if (word === '--' && command.strict === false) return null;
    if (word === HOLE || word === `--${HOLE}`) {
      open = true;
      continue;
    }
    if (!/^-\D/.test(word)) {
      positional.push(word);
      continue;
    }
    if (word === '--help' || word === '-h') return null;
    const found = flagOf(command, word);
    if (!found) return `'${words.slice(0, words.length - rest.length).join(' ')}' has no flag ${word}`;
    const { flag } = found;
    given.add(flag.name);
    if (flag.type === 'boolean') {
      if (found.value !== undefined) return `${word}: takes no value`;
      continue;
    }
    const value = found.value ?? rest[(at += 1)];
    if (value === undefined) return `${word} lacks its value`;
    if (flag.options && !OPEN.test(value) && !flag.options.includes(value))
      return `${word}: '${value}' is none of ${flag.options.join(', ')}`;
  }
  const args = Object.values(command.args);
  if (command.strict !== false && positional.length > args.length)
    return `'${positional.slice(args.length).join(' ')}' is too much`;
  if (open) return null;
  const lacking = args.filter((arg, at) => arg.required && positional[at] === undefined).map((arg) => arg.name);
  const missing = Object.values(command.flags)
    .filter(
      (flag) =>
        (flag.required && !given.has(flag.name)) ||
        (given.has(flag.name) && flag.dependsOn?.some((other) => !given.has(other))),
    )
    .map((flag) => `--${flag.name}`);
  return lacking.length + missing.length > 0 ? `lacks ${[...lacking, ...missing].join(', ')}` : null;
}

/** Commands and flags that prose names and that do not exist. `text` is one sentence or one list entry. */
export function mentionProblems(text: string): string[] {
  const problems: string[] = [];
  for (const match of text.matchAll(/(?<![\w/.@$-])seq (?=[a-z-])([^`\n]*)/g)) {
    const words = shellWords((match[1] as string).split(/\s+# | (?:\||&&|;) |[)]|: |, |; | — /)[0] as string).map(
      (word) => word.replace(/[.,;:]+$/, ''),
    );
    if (words[0]?.startsWith('--') || words[0] === 'COMMAND' || words[0] === HOLE) continue;
    const { command, topic, rest } = identify(words);
    if (!command) {
      if (!topic && !PROSE.has(words[0] as string)) problems.push(`seq ${words[0]}: no such command`);
      else if (topic && rest[0] !== undefined && /^[a-z]{3,}$/.test(rest[0]) && !FOLLOWING.has(rest[0]))
        problems.push(`seq ${words.slice(0, 2).join(' ')}: no such command`);
      continue;
    }
    for (const word of rest) {
      if (word === '--') break;
      if (
        /^--?[a-z]/.test(word) &&
        !word.includes(HOLE) &&
        word !== '--help' &&
        word !== '-h' &&
        !flagOf(command, word)
      )
        problems.push(`seq ${command.id.replaceAll(':', ' ')} has no flag ${word}`);
    }
  }
  return problems;
}

/** Words that may follow the program's name in prose and are no command. */
const PROSE = new Set([
  'are',
  'hands',
  'itself',
  'on',
  'can',
  'and',
  'does',
  'asks',
  'needs',
  'is',
  'that',
  'has',
  'alone',
  'everywhere',
  'or',
  'runs',
  'cannot',
  'would',
  'never',
  'could',
  'may',
  'for',
  'processes',
  'in',
  'of',
  'by',
  'knows',
]);
const FOLLOWING = new Set(['and', 'shows', 'or', 'that', 'when', 'again', 'in', 'knows']);
