// A command line that the parser refuses: says what was probably meant, beside what is wrong.
import type { SeqError } from '../../core/errors.js';
import { masked } from '../../core/log/redact.js';
import { usageError } from '../support/failure.js';
import { nearFlags, neededFlag, shellWord, type KnownFlags } from '../support/meant.js';

export interface Refused {
  /** The command, with spaces. */
  command: string;
  flags: KnownFlags;
  /** The command line, without the command. */
  argv: readonly string[];
  /** Values that its argument may have here, when that is known. */
  known(): Promise<string[]>;
}

const MOST = 8;

/** Null: nothing is known about what was meant. */
export async function explainRefusal(
  thrown: unknown,
  { command, flags, argv, known }: Refused,
): Promise<SeqError | null> {
  if (!(thrown instanceof Error)) return null;
  const { name } = thrown.constructor;
  const help = `seq ${command} --help`;
  if (name === 'NonExistentFlagsError') {
    const wrong = (thrown as unknown as { flags: string[] }).flags;
    const [first] = wrong;
    const near = wrong.length === 1 && first !== undefined ? nearFlags(first, flags) : [];
    if (first === undefined || near.length === 0) return null;
    const corrected = near.map((flag) =>
      [
        'seq',
        command,
        ...argv.map((word) =>
          word === first || word.startsWith(`${first}=`) ? flag + word.slice(first.length) : shellWord(word),
        ),
      ].join(' '),
    );
    return usageError(masked(`there is no flag ${first}; did you mean ${near[0]}?`), [...corrected.map(masked), help]);
  }
  if (name === 'UnexpectedArgsError') {
    const [stray] = (thrown as unknown as { args: string[] }).args;
    const flag = neededFlag(flags);
    if (stray === undefined || flag === null || argv.includes(flag)) return null;
    const at = argv.indexOf(stray);
    const line = ['seq', command, ...argv.slice(0, at), flag, ...argv.slice(at)].map((word, index) =>
      index < 2 ? word : shellWord(word),
    );
    return usageError(masked(`'${stray}' stands alone; did you mean ${flag} ${stray}?`), [
      masked(line.join(' ')),
      help,
    ]);
  }
  if (name === 'RequiredArgsError') {
    const names = (thrown as unknown as { args: { name: string; description?: string }[] }).args;
    const [arg] = names;
    if (arg === undefined) return null;
    const values = await known();
    const prefix = ['seq', command, ...argv.map(shellWord)].join(' ');
    return usageError(
      `'seq ${command}' needs ${names.map((each) => each.name.toUpperCase()).join(' and ')}` +
        `${arg.description ? ` (${arg.description})` : ''}`,
      [...values.slice(0, MOST).map((value) => masked(`${prefix} ${shellWord(value)}`)), help],
    );
  }
  return null;
}
