// Turns whatever was thrown into one SeqError with one exit code. Parse errors are usage errors (64). An unexpected
// error is a bug (70) and says so.
import type { ErrorCode } from '../../core/error-codes.js';
import { EXIT, InvariantError, SeqError } from '../../core/errors.js';
import { masked } from '../../core/log/redact.js';
import { DeadlinePassed, Interrupted } from './interrupt.js';

/** How far the command had come when it ended: nothing was sent, or a change was under way. */
export interface Progress {
  /** What it was doing; names node and step. */
  step: string;
  changed: 'nothing' | 'some' | 'unknown';
  changedNodes: string[];
  command: string;
}

export function usageError(message: string, next: string[], code: ErrorCode = 'USAGE'): SeqError {
  return new SeqError({
    code,
    exit: EXIT.usage,
    message,
    why: 'the command line does not fit the command',
    changed: 'nothing',
    next,
  });
}

function isParseError(error: unknown): error is Error {
  return error instanceof Error && ('oclif' in error || 'parse' in error);
}

function sentence(message: string): string {
  return message
    .replace(/\n?See more help with --help/g, '')
    .replace(/^The following errors? occurred:\s*/, '')
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)
    .join('; ');
}

/** True for errors with the parts of a SeqError that another copy of the class made. */
function looksLikeSeqError(error: unknown): error is SeqError {
  return (
    error instanceof Error && error.name === 'SeqError' && 'code' in error && 'exit' in error && 'changed' in error
  );
}

/** The parser adds its own text to an error that a flag's reader threw. This removes it. */
function unwrapped(error: SeqError): SeqError {
  if (!error.message.startsWith('Parsing --')) return error;
  error.message = sentence(error.message.replace(/^Parsing --\S+ *\n/, ''));
  return error;
}

export function toSeqError(thrown: unknown, progress: Progress): SeqError {
  if (thrown instanceof SeqError || looksLikeSeqError(thrown)) return unwrapped(thrown);
  const doing = progress.step || 'starting';
  if (thrown instanceof Interrupted) {
    return new SeqError({
      code: 'INTERRUPTED',
      exit: thrown.exit,
      message: `${thrown.signal} while ${doing}`,
      why: 'the command was told to stop',
      changed: progress.changed,
      changedNodes: progress.changedNodes,
      next:
        progress.changed === 'nothing'
          ? [`run seq ${progress.command} again`]
          : ['seq status', `run seq ${progress.command} again: it finishes what was begun`],
      retryable: true,
    });
  }
  if (thrown instanceof DeadlinePassed) {
    return new SeqError({
      code: 'DEADLINE',
      exit: progress.changed === 'nothing' ? EXIT.tryAgain : EXIT.outcomeUnknown,
      message: `${doing}: not done within the limit of ${thrown.limitMs} ms`,
      why: 'the command reached its --timeout',
      changed: progress.changed,
      changedNodes: progress.changedNodes,
      next: ['seq status', `run it again with a --timeout above ${thrown.limitMs}ms`],
      retryable: true,
    });
  }
  if (isParseError(thrown)) {
    return usageError(masked(sentence(thrown.message)), [`seq ${progress.command} --help`]);
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { code: reason } = error as NodeJS.ErrnoException;
  if (typeof reason === 'string' && /^E[A-Z0-9]+$/.test(reason)) {
    const path = (error as NodeJS.ErrnoException).path;
    const missing = reason === 'ENOENT';
    return new SeqError({
      code: missing ? 'FILE_NOT_FOUND' : 'SYSTEM_ERROR',
      exit: missing ? EXIT.notFound : EXIT.config,
      message: `${path ? `${path}: ` : ''}${reason} while ${doing}`,
      why: error.message,
      changed: progress.changed,
      next: [path ? `check that ${path} exists and may be read and written` : 'check the paths and addresses given'],
      cause: error,
    });
  }
  const invariant = error instanceof InvariantError || error.name === 'InvariantError';
  return new SeqError({
    code: invariant ? 'INVARIANT' : 'BUG',
    exit: EXIT.bug,
    message: `${invariant ? error.message : `${error.name}: ${error.message}`} (while ${doing})`,
    why: invariant
      ? 'something that must always hold does not: this is a bug in seq, or the data was changed by somebody else'
      : 'this was not foreseen: it is a bug in seq',
    changed: progress.changed === 'nothing' ? 'nothing' : 'unknown',
    next: ['run it again with --trace and report what it prints'],
    cause: error,
  });
}
