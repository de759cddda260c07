// What can be wrong with a store directory, as errors that an operator can act on. A refused store is not changed.
import { EXIT, SeqError } from '../errors.js';

export function unreadable(dir: string, why: string, cause?: unknown): SeqError {
  return new SeqError({
    code: 'STORE_UNREADABLE',
    exit: EXIT.config,
    message: `the store in ${dir} cannot be read`,
    why,
    changed: 'nothing',
    cause,
    next: causeOf(cause)?.next(dir) ?? [
      'check that the directory is the right one and may be read and written by this user',
      `move it aside (mv ${dir} ${dir}.damaged) and start again: the chain is fetched from the nodes and a peer`,
    ],
  });
}

/** For readers of one block. The rest of the store is good. */
export function damagedBlock(height: number, dir: string): SeqError {
  return new SeqError({
    code: 'STORE_DAMAGED',
    exit: EXIT.tryAgain,
    message: `block ${height} in the store in ${dir} is damaged`,
    why: 'its bytes do not match its hash, so it is given to nobody; the sequencer of the store repairs it by itself',
    changed: 'nothing',
    next: ['ask another sequencer, or try again: seq status names what is not repaired yet'],
    retryable: true,
  });
}

export function cannotBeMade(dir: string, cause: unknown): SeqError {
  return new SeqError({
    code: 'STORE_UNREADABLE',
    exit: EXIT.config,
    message: `the directory ${dir} of the store cannot be made`,
    why: cause instanceof Error ? cause.message : String(cause),
    changed: 'nothing',
    cause,
    next: causeOf(cause)?.next(dir) ?? [`mkdir -p ${dir}`, 'point --store to a directory that this user may write to'],
  });
}

/**
 * What a failure of the store's library means, for an operator. Its own words speak of its buffers and page tables.
 * They are the cause of the error, and `--trace` shows them.
 */
export function lmdbSays(error: unknown): string {
  return (
    causeOf(error)?.means ??
    (DAMAGE.test(textOf(error))
      ? 'its file is damaged, or is no store'
      : 'the disk is full, read-only or failing (--trace shows what the library says)')
  );
}

interface Cause {
  says: RegExp;
  means: string;
  /** What an operator does first. The store itself may be good, so it is not moved aside. */
  next(dir: string): string[];
}

const DAMAGE = /MDB_CORRUPTED|MDB_PAGE_NOTFOUND|MDB_INVALID|not an LMDB/i;
const CAUSES: readonly Cause[] = [
  {
    says: /ENOSPC|EDQUOT|No space left|MDB_MAP_FULL|buffer sizes/i,
    means: 'no space is left on its disk',
    next: (dir) => [`make room on the disk of ${dir}, then start this sequencer again: its store stays where it is`],
  },
  {
    says: /ENOMEM|Cannot allocate memory/i,
    means: 'this process may not map a file of that size',
    next: () => ['raise the limit of address space of this process (ulimit -v), then start this sequencer again'],
  },
  {
    says: /EROFS|Read-only file system/i,
    means: 'its file system is read-only',
    next: (dir) => [`make the file system of ${dir} writable, or point --store to another directory`],
  },
  {
    says: /EIO\b|Input\/output error/i,
    means: 'its disk reports errors',
    next: (dir) => [
      `check the disk of ${dir}, then start this sequencer again`,
      'point --store to an empty directory on a good disk: the chain is fetched from the nodes and a peer',
    ],
  },
  {
    says: /EACCES|EPERM|Permission denied/i,
    means: 'this user may not read and write it',
    next: (dir) => [`let this user read and write ${dir}, or point --store to another directory`],
  },
];

function causeOf(error: unknown): Cause | undefined {
  return CAUSES.find(({ says }) => says.test(textOf(error)));
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Turns an error of LMDB during a read into a SeqError for an operator. A SeqError is passed on unchanged. */
export function readFailed(dir: string, error: unknown): SeqError {
  return error instanceof SeqError ? error : unreadable(dir, lmdbSays(error), error);
}

export function newerFormat(dir: string, format: number, known: number): SeqError {
  return new SeqError({
    code: 'STORE_UNREADABLE',
    exit: EXIT.config,
    message: `the store in ${dir} has format ${format}; this version knows up to ${known}`,
    why: 'a newer version of seq has written it',
    changed: 'nothing',
    next: ['run the version that wrote it, or point --store to another directory'],
  });
}

export function foreign(dir: string, what: 'cluster' | 'lane', theirs: string, ours: string): SeqError {
  return new SeqError({
    code: 'STORE_FOREIGN',
    exit: EXIT.precondition,
    message: `the store in ${dir} holds the chain of ${what} '${theirs}', not of '${ours}'`,
    why: `two ${what}s never share a chain; going on would mix them`,
    changed: 'nothing',
    next: [`point --store to the directory of ${what} '${ours}', or to an empty one`],
  });
}

export function locked(dir: string, lockFile: string, holder: string): SeqError {
  return new SeqError({
    code: 'STORE_LOCKED',
    exit: EXIT.config,
    message: `the store in ${dir} is in use by ${holder}`,
    why: 'a store has one writer: two would each append their own blocks',
    changed: 'nothing',
    next: [
      'stop that process, or give this one a --store of its own',
      `if no such process exists any more, remove ${lockFile}`,
    ],
  });
}

export function absent(dir: string): SeqError {
  return new SeqError({
    code: 'STORE_NOT_FOUND',
    exit: EXIT.notFound,
    message: `there is no store in ${dir}`,
    why: 'no sequencer has written a chain there',
    changed: 'nothing',
    next: ['check the directory: it is the --store of a sequencer on this machine'],
  });
}

export function writeFailed(dir: string, cause: unknown): SeqError {
  return new SeqError({
    code: 'STORE_WRITE_FAILED',
    exit: EXIT.output,
    message: `the store in ${dir} could not be written`,
    why: `${lmdbSays(cause)}; what was acknowledged before is safe, nothing after it is`,
    changed: 'unknown',
    cause,
    next: [`make room on the disk of ${dir} and check its health, then start this sequencer again`],
  });
}

export function closed(dir: string): SeqError {
  return new SeqError({
    code: 'STORE_CLOSED',
    exit: EXIT.tryAgain,
    message: `the store in ${dir} is closed`,
    why: 'this process is stopping',
    changed: 'nothing',
    next: ['start it again'],
    retryable: true,
  });
}
