// The process harness: starts a program detached from this one, recognises it later, signals it, and waits for its
// effects. Invariants: only the recorded process is ever signalled (process-identity.ts); every wait has a bound;
// nothing is restarted here.
import { spawn } from 'node:child_process';
import { closeSync, fstatSync, mkdirSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { EXIT, SeqError } from '../core/errors.js';
import { signalIfOurs, startTokenOf, stateOf, type ProcessIdentity } from './process-identity.js';

export interface ProcessSpec {
  name: string;
  command: string;
  args: string[];
  cwd: string;
  /** stdout and stderr are appended here. */
  logFile: string;
  /** The whole environment of the process; it inherits nothing else. */
  env: NodeJS.ProcessEnv;
}

export interface WaitOptions {
  /** The object of the wait, for the error: "r1 to answer PING". */
  what: string;
  timeoutMs: number;
  everyMs?: number;
  signal?: AbortSignal;
}

/**
 * Starts it in a session of its own, so that neither Ctrl-C nor the end of this process reaches it. Resolves as soon as
 * it exists.
 */
export async function spawnDetached(spec: ProcessSpec): Promise<ProcessIdentity> {
  mkdirSync(dirname(spec.logFile), { recursive: true, mode: 0o700 });
  const log = openSync(spec.logFile, 'a', 0o600);
  try {
    const child = spawn(spec.command, spec.args, {
      cwd: spec.cwd,
      env: spec.env,
      detached: true,
      stdio: ['ignore', log, log],
    });
    if (child.pid === undefined) {
      const cause = await new Promise<Error>((resolve) => child.once('error', resolve));
      throw cannotStart(spec, cause.message, cause);
    }
    child.on('error', () => undefined);
    child.unref();
    const startToken = startTokenOf(child.pid);
    if (startToken === null)
      throw cannotStart(spec, `it ended at once; its log: ${lastLines(spec.logFile, 5).join(' | ') || '(empty)'}`);
    return { pid: child.pid, startToken };
  } finally {
    closeSync(log);
  }
}

/**
 * Polls until the probe returns something other than undefined. Throws SeqError 75 (WAIT_TIMED_OUT) at the bound, and
 * the abort reason when `signal` aborts.
 */
export async function waitUntil<T>(
  options: WaitOptions,
  probe: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    options.signal?.throwIfAborted();
    const found = await probe();
    if (found !== undefined) return found;
    if (performance.now() - startedAt >= options.timeoutMs) {
      throw new SeqError({
        code: 'WAIT_TIMED_OUT',
        exit: EXIT.tryAgain,
        message: `waited ${options.timeoutMs} ms for ${options.what}`,
        why: 'it did not happen within the limit',
        changed: 'unknown',
        next: ['seq lab status', 'seq lab logs NAME'],
        retryable: true,
      });
    }
    await delay(options.everyMs ?? 20, undefined, options.signal === undefined ? {} : { signal: options.signal });
  }
}

/** Waits until the process has ended. False at the bound. */
export async function waitUntilDead(
  identity: ProcessIdentity,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const startedAt = performance.now();
  while (stateOf(identity) !== 'dead') {
    if (performance.now() - startedAt >= timeoutMs) return false;
    await delay(10, undefined, signal === undefined ? {} : { signal });
  }
  return true;
}

/**
 * SIGTERM, then SIGKILL after `graceMs`. A paused process is continued first, because SIGTERM would stay pending.
 * Returns how it ended.
 */
export async function stopProcess(identity: ProcessIdentity, graceMs: number): Promise<'was-dead' | 'term' | 'kill'> {
  if (!signalIfOurs(identity, 'SIGTERM')) return 'was-dead';
  if (stateOf(identity) === 'paused') signalIfOurs(identity, 'SIGCONT');
  if (await waitUntilDead(identity, graceMs)) return 'term';
  signalIfOurs(identity, 'SIGKILL');
  if (await waitUntilDead(identity, 5000)) return 'kill';
  throw new SeqError({
    code: 'STILL_RUNNING',
    exit: EXIT.partial,
    message: `process ${identity.pid} is still there 5 s after SIGKILL`,
    why: 'it hangs inside the kernel (state D), most often on a disk',
    changed: 'some',
    next: [`ps -o pid,stat,wchan,args -p ${identity.pid}`],
  });
}

/** The last `count` lines of a file; reads at most the last MiB. [] when there is no file. */
export function lastLines(file: string, count: number): string[] {
  const { text } = readLog(file, { last: 1024 * 1024 });
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return count <= 0 ? [] : lines.slice(-count);
}

/**
 * The text of a log from a byte offset (`from`), or its last bytes (`last`), and the offset where the next read starts.
 * At most 1 MiB a call.
 */
function readLog(file: string, range: { from: number } | { last: number }): { text: string; next: number } {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { text: '', next: 0 };
    throw error;
  }
  try {
    const size = fstatSync(handle).size;
    // A file that shrank was started over, so it is read from its beginning.
    const wanted = 'from' in range ? range.from : size - range.last;
    const from = Math.max(0, wanted > size ? 0 : wanted);
    const bytes = Buffer.alloc(Math.min(size - from, 1024 * 1024));
    const got = bytes.length === 0 ? 0 : readSync(handle, bytes, 0, bytes.length, from);
    return { text: bytes.toString('utf8', 0, got), next: from + got };
  } finally {
    closeSync(handle);
  }
}

/** Where a log ends now. Pass it to `waitForLog` to wait for later lines. */
export function logEnd(file: string): number {
  return readLog(file, { last: 0 }).next;
}

/** Passes on the text that is appended from byte `from` on, until aborted (then it throws the abort's reason). */
export async function followLog(
  file: string,
  from: number,
  write: (text: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (let offset = from; ;) {
    signal.throwIfAborted();
    const { text, next } = readLog(file, { from: offset });
    offset = next;
    if (text === '') await delay(100, undefined, { signal });
    else await write(text);
  }
}

/** Waits for a line of the log (from byte `from` on) that matches; returns it. */
export async function waitForLog(
  file: string,
  pattern: RegExp,
  options: Omit<WaitOptions, 'what'> & { from?: number },
): Promise<string> {
  let offset = options.from ?? 0;
  let rest = '';
  return waitUntil({ ...options, what: `${pattern} in ${file}` }, () => {
    const { text, next } = readLog(file, { from: offset });
    offset = next;
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    return lines.find((line) => pattern.test(line));
  });
}

function cannotStart(spec: ProcessSpec, why: string, cause?: unknown): SeqError {
  return new SeqError({
    code: 'CANNOT_START',
    exit: EXIT.config,
    message: `could not start ${spec.name}: ${spec.command}`,
    why,
    changed: 'nothing',
    next: [`seq lab logs ${spec.name}`],
    cause,
  });
}
