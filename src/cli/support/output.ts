// Where output goes. One writer for stdout handles closed pipes (quiet end) and full disks (74). Everything else goes
// to stderr.
import { EXIT, SeqError } from '../../core/errors.js';

/** The reader closed the pipe (`| head`). Nobody reads any more, so the command ends quietly with 0. */
export class ReaderGone extends Error {
  constructor() {
    super('stdout was closed by its reader');
    this.name = 'ReaderGone';
  }
}

let failure: Error | undefined;
/** Nobody takes the output any more, and the process ends without it. */
let abandoned = false;
/** stdout is the log of a process that goes on without a reader. */
let isLog = false;
const waiters = new Set<(error: Error) => void>();

function fail(error: NodeJS.ErrnoException): void {
  if (failure || isLog) return;
  failure =
    error.code === 'EPIPE' ||
    error.code === 'EOF' ||
    error.code === 'ECONNRESET' ||
    error.code === 'ERR_STREAM_DESTROYED'
      ? new ReaderGone()
      : new SeqError({
          code: 'OUTPUT_FAILED',
          exit: EXIT.output,
          message: `stdout: ${error.code ?? error.message}`,
          why: error.code === 'ENOSPC' ? 'no space is left where the output goes' : 'the output could not be written',
          changed: 'nothing',
          next: ['write the output somewhere else and run the command again'],
          cause: error,
        });
  for (const waiter of [...waiters]) waiter(failure);
}

/** Handles the errors of stdout and stderr. The framework's own listener would turn a full disk into a crash. */
export function watchStreams(): void {
  process.stdout.removeAllListeners('error');
  process.stdout.on('error', fail);
  process.stderr.removeAllListeners('error');
  process.stderr.on('error', () => undefined);
}

/** From here on stdout is a log: a reader that goes away ends nothing. */
export function stdoutIsLog(): void {
  isLog = true;
}

/** What still waits for a reader is given up: the process is about to end. */
export function abandonOutput(): void {
  abandoned = true;
}

/** Calls back once when stdout fails. Returns a function that stops listening. */
export function onOutputFailure(listener: (error: Error) => void): () => void {
  if (failure) queueMicrotask(() => listener(failure as Error));
  waiters.add(listener);
  return () => waiters.delete(listener);
}

/** Writes to stdout and waits while the reader is slow. Throws ReaderGone or SeqError 74. */
export async function writeOut(text: string | Uint8Array): Promise<void> {
  if (failure) throw failure;
  if (abandoned || text.length === 0) return;
  await new Promise<void>((resolve, reject) => {
    const stop = onOutputFailure((error) => {
      stop();
      reject(error);
    });
    const done = (error?: Error | null) => {
      stop();
      if (error) {
        fail(error);
        reject(failure);
      } else resolve();
    };
    try {
      process.stdout.write(text, done);
    } catch (error) {
      done(error as Error);
    }
  });
}

export function writeErr(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // stderr is gone: the error cannot be shown anywhere
  }
}

/** Resolves when everything written so far has left the process. */
export async function flushed(): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) {
    if (abandoned || stream.destroyed || !stream.writable || stream.writableLength === 0) continue;
    await new Promise<void>((resolve) => {
      stream.write('', () => resolve());
    });
  }
}
