// Which confirmation does a change need? Nothing (it can be undone), --yes (disruptive), the plan's digest (it decides
// data), or a flag named after a safety rule (it breaks that rule). A question is asked only on a terminal, on stderr,
// and its default is No.
// Invariant: these functions return only after the operator confirmed. Otherwise nothing has been done (exit 81, or 76
// for another plan's digest).
import { createInterface } from 'node:readline';
import { EXIT, SeqError } from '../../core/errors.js';
import { shellWord } from './meant.js';
import { withoutSecrets } from './node-url.js';
import { terminalWrap } from './terminal-wrap.js';

/** How many digits of a digest a person types. */
const TYPED = 8;

export interface Change {
  level: 'undoable' | 'disruptive' | 'decides-data';
  /** What will be done, e.g. `hand leadership over from seq-a to seq-b`. */
  what: string;
  /** What it means, line by line; shown before the question. */
  effect: readonly string[];
  /** Of the plan; for 'decides-data'. */
  digest?: string;
  /** The safety rule that the change breaks, and the flag that says "I know". */
  against?: { rule: string; flag: string; given: boolean };
}

export interface Asking {
  yes: boolean;
  /** Value of --confirm. */
  confirm: string | undefined;
  /** A terminal on stdin and stderr, and no --no-input. */
  mayAsk: boolean;
  /** The command as it was given, to be repeated with one more flag. */
  command: string;
  signal: AbortSignal;
  /** Writes to stderr. */
  say: (text: string) => void;
  /** Reads one line from the terminal; null at its end. For tests. */
  ask?: (question: string, signal: AbortSignal) => Promise<string | null>;
}

/** Returns when the change may be made; throws SeqError otherwise. */
export async function confirmChange(change: Change, asking: Asking): Promise<void> {
  const { against, level, digest = '', what } = change;
  if (against && !against.given) {
    const also = level === 'decides-data' && asking.confirm === undefined ? ` --confirm ${digest.slice(0, TYPED)}` : '';
    throw needed(
      `${what} goes against a safety rule: ${against.rule}`,
      `${asking.command} --${against.flag}${also}`,
      `--${against.flag}`,
    );
  }
  if (level === 'undoable') return;
  if (level === 'disruptive' && asking.yes) return;
  if (level === 'decides-data' && asking.confirm !== undefined) {
    if (fits(asking.confirm, digest)) return;
    throw new SeqError({
      code: 'PLAN_STALE',
      exit: EXIT.precondition,
      message: `--confirm ${asking.confirm} is not the digest of what would be done now (${digest.slice(0, TYPED)})`,
      why: 'the plan was made from another state of the cluster, or the digest is mistyped',
      changed: 'nothing',
      next: [`${asking.command} --dry-run`],
    });
  }
  const flag = level === 'disruptive' ? '--yes' : `--confirm ${digest.slice(0, TYPED)}`;
  if (!asking.mayAsk)
    throw needed(`${what} must be confirmed, and there is no terminal to ask on`, `${asking.command} ${flag}`, flag);
  for (const line of change.effect) asking.say(line);
  const question = level === 'disruptive' ? `${what}? [y/N] ` : `${what}: type ${digest.slice(0, TYPED)} to go on: `;
  const answer = (await (asking.ask ?? askTerminal)(question, asking.signal))?.trim() ?? '';
  asking.signal.throwIfAborted();
  const yes = level === 'disruptive' ? /^(y|yes)$/i.test(answer) : fits(answer, digest);
  if (yes) return;
  throw new SeqError({
    code: 'DECLINED',
    exit: EXIT.safety,
    message: `${what}: not confirmed, nothing was done`,
    why: answer === '' ? 'No is the default' : `the answer was '${answer.slice(0, 40)}'`,
    changed: 'nothing',
    next: [`${asking.command} ${flag}`],
  });
}

/** The command line as it can be repeated: quoted where a shell needs it, without --dry-run and secrets. */
export function commandLine(id: string, argv: readonly string[]): string {
  const kept = argv.filter((arg) => arg !== '--dry-run' && arg !== '-n').map((arg) => shellWord(withoutSecrets(arg)));
  return ['seq', ...id.split(':'), ...kept].join(' ');
}

/** The text has at least as many digits as a person must type, and they match. */
function fits(given: string, digest: string): boolean {
  return given.length >= TYPED && digest.length >= TYPED && digest.startsWith(given.toLowerCase());
}

function needed(message: string, command: string, flag: string): SeqError {
  return new SeqError({
    code: 'CONFIRMATION_NEEDED',
    exit: EXIT.safety,
    message,
    why: `it needs ${flag}`,
    changed: 'nothing',
    next: [command],
  });
}

async function askTerminal(text: string, signal: AbortSignal): Promise<string | null> {
  const question = `${(await terminalWrap(process.stderr))('', text.trimEnd()).join('\n')} `;
  return new Promise((resolve, reject) => {
    const reader = createInterface({ input: process.stdin, output: process.stderr });
    const onAbort = (): void => {
      reader.close();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    reader.once('close', () => resolve(null));
    // readline catches Ctrl-C itself: pass it on to the process.
    reader.once('SIGINT', () => {
      process.kill(process.pid, 'SIGINT');
    });
    reader.question(question, (answer) => {
      signal.removeEventListener('abort', onAbort);
      resolve(answer);
      reader.close();
    });
  });
}
