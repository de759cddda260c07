// Starts a command: finds it, or shows help. An unknown command gets exit code 64, a suggestion and (under -o json) the
// envelope. Replaces the framework's own runner, whose unknown-command and crash paths print text and exit 2 or 1.
import { Config } from '@oclif/core';
import { EXIT, type SeqError } from '../../core/errors.js';
import { askedFormat } from '../command/asked-format.js';
import { identify, indexed } from './command-index.js';
import { masked } from '../../core/log/redact.js';
import { disabledShortcuts } from '../../core/shortcuts.js';
import { toSeqError, usageError } from '../support/failure.js';
import { GLOBAL_FLAGS } from '../support/flags.js';
import { anyThreadHangs } from '../support/hung-threads.js';
import { listenForSignals } from '../support/interrupt.js';
import { flushed, ReaderGone, watchStreams, writeErr, writeOut } from '../support/output.js';
import { commandFirst } from '../support/meant.js';
import { envelope } from '../present/envelope.js';
import { renderError } from '../present/error-text.js';
import { terminalWrap } from '../support/terminal-wrap.js';
import { suggest } from '../support/suggest.js';

export interface Launch {
  argv: string[];
  /** Folder of package.json. */
  root: string;
  /** Ends the process at once: only for a second Ctrl-C. */
  end(code: number): void;
}

/**
 * Resolves when the answer has left the process and process.exitCode is set. False: a thread waits for a disk, and only
 * a signal ends the process.
 */
export async function main({ argv, root, end }: Launch): Promise<boolean> {
  watchStreams();
  listenForSignals(end);
  try {
    await start(argv, root);
  } catch (thrown) {
    await report(thrown, argv);
  }
  await flushed();
  return !anyThreadHangs();
}

async function start(argv: string[], root: string): Promise<void> {
  const end = argv.indexOf('--');
  const own = end < 0 ? argv : argv.slice(0, end);
  const asksHelp = own.length === 0 || own[0] === 'help' || own.some((word) => word === '--help' || word === '-h');
  const words = asksHelp ? own.filter((word) => word !== '--help' && word !== '-h' && word !== 'help') : own;
  const byManifest =
    asksHelp || words[0] === 'completion' || disabledShortcuts(process.env['SEQ_DISABLE']).has('command-index');
  const found = byManifest ? null : await indexed(words, root);
  const config = found?.config ?? (await Config.load({ root }));
  watchStreams();
  const { id, rest } = found ?? identify(words, config.commandIDs);
  const command = id === '' ? undefined : config.findCommand(id);
  if (!asksHelp && command) {
    refuseMisplaced(id, rest, found?.ids ?? config.commandIDs);
    await config.runCommand(id, argv.slice(argv.length - (rest.length + argv.length - own.length)), command);
    return;
  }
  const topic = id !== '' && config.findTopic(id) !== undefined;
  if (
    asksHelp
      ? (id === '' && rest.every((word) => word.startsWith('-'))) ||
        ((command || topic) && rest.every((word) => word.startsWith('-') || command))
      : topic && rest.length === 0
  ) {
    const { SeqHelp, helpWidth } = await import('./help.js');
    // `seq $n` with an empty n, in a script: an error, as for the seq of coreutils.
    const sendToStderr = own.length === 0 && !process.stdout.isTTY;
    const help = new SeqHelp(config, {
      ...config.pjson.oclif.helpOptions,
      maxWidth: helpWidth(process.stdout, process.env),
      sendToStderr,
      all: false,
    });
    await help.showHelp(id === '' ? [] : [...id.split(':')]);
    process.exitCode = sendToStderr ? EXIT.no : EXIT.ok;
    return;
  }
  if (!asksHelp) refuseMisplaced(id, rest, config.commandIDs);
  throw unknownCommand(id, rest, config, topic && !asksHelp);
}

/** A command whose words are not together: shows the line that was meant. Flags come after the command. */
function refuseMisplaced(id: string, rest: string[], ids: readonly string[]): void {
  if (id !== '' && !ids.some((known) => known.startsWith(`${id}:`))) return;
  const line = commandFirst(id, rest, ids, GLOBAL_FLAGS);
  if (line !== null)
    throw usageError(
      `the words of a command come first; did you mean 'seq ${line}'?`,
      [`seq ${line}`, 'seq --help'],
      'UNKNOWN_COMMAND',
    );
}

/** Quotes what was typed, but never a password: an address may have been typed where a command belongs. */
export function unknownCommand(id: string, rest: string[], config: Pick<Config, 'commands'>, topic: boolean): SeqError {
  const prefix = id === '' ? '' : `${id.replaceAll(':', ' ')} `;
  const known = config.commands.filter((command) => !command.hidden).map((command) => command.id.replaceAll(':', ' '));
  const word = rest.find((each) => !each.startsWith('-'));
  if (word === undefined) {
    if (topic)
      return usageError(`'${prefix.trim()}' needs a command after it`, [`seq ${prefix}--help`], 'UNKNOWN_COMMAND');
    return usageError(
      masked(`flags come after the command: seq COMMAND ${rest.join(' ')}`),
      ['seq --help'],
      'UNKNOWN_COMMAND',
    );
  }
  const words = rest.slice(0, rest.findIndex((each) => each.startsWith('-')) >>> 0);
  const asked = `${prefix}${word}`;
  const whole = suggest(`${prefix}${words.join(' ')}`, known);
  const [first, ...others] = [
    ...whole,
    ...suggest(asked, [...known, ...topics(known)]).filter((each) => !whole.includes(each)),
  ];
  return usageError(
    `there is no command '${masked(asked)}'${first ? `; did you mean '${first}'?` : ''}`,
    first
      ? [...[first, ...others].map((one) => runnable(one, config)), 'seq --help']
      : [`seq ${id === '' ? '' : prefix}--help`],
    'UNKNOWN_COMMAND',
  );
}

/** A topic, or a command that needs a word more, cannot be run as it stands: its help says what is missing. */
function runnable(words: string, config: Pick<Config, 'commands'>): string {
  const command = config.commands.find(({ id }) => id.replaceAll(':', ' ') === words);
  const complete = command !== undefined && !Object.values(command.args).some((arg) => arg.required);
  return complete ? `seq ${words}` : `seq ${words} --help`;
}

function topics(commands: string[]): string[] {
  return [
    ...new Set(commands.flatMap((command) => (command.includes(' ') ? [command.slice(0, command.indexOf(' '))] : []))),
  ];
}

async function report(thrown: unknown, argv: string[]): Promise<void> {
  if (thrown instanceof ReaderGone) {
    process.exitCode = EXIT.ok;
    return;
  }
  const error = toSeqError(thrown, { step: 'starting', changed: 'nothing', changedNodes: [], command: '' });
  process.exitCode = error.exit;
  const format = askedFormat(argv, process.env);
  if (format === null) {
    const colour =
      Boolean(process.stderr.isTTY) &&
      !process.env['NO_COLOR'] &&
      process.env['TERM'] !== 'dumb' &&
      !argv.includes('--no-color');
    writeErr(renderError(error, colour, await terminalWrap(process.stderr)));
  } else {
    const document = envelope(
      'error',
      {
        context: null,
        at: new Date().toISOString(),
        durationMs: Math.round(performance.now()),
        nodesAsked: 0,
        nodesAnswered: 0,
        quorum: 0,
      },
      { error },
    );
    const text =
      format === 'yaml'
        ? (await import('../config/yaml.js')).stringify(document)
        : JSON.stringify(document, null, format === 'json' ? 2 : 0);
    await writeOut(`${text.trimEnd()}\n`).catch(() => undefined);
  }
  if (argv.includes('--trace') && thrown instanceof Error) writeErr(`${thrown.stack}\n`);
}
