// Which process is it, really? A pid alone is not enough: after an exit the system gives it to another process.
// Invariant: a process is ours only when its pid and its start time are both as recorded. Any other process counts as
// "dead" and is never signalled. Linux reads /proc (many containers have no `ps`); other systems ask `ps`.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { EXIT, SeqError } from '../core/errors.js';

/**
 * Recorded when a process starts. `startToken` is opaque. It differs between any two processes that ever had the same
 * pid.
 */
export interface ProcessIdentity {
  pid: number;
  startToken: string;
}

export type ProcessState = 'running' | 'paused' | 'dead';

interface Seen {
  startToken: string;
  /** First letter of the state as `ps` shows it: R, S, D, T, Z, … */
  letter: string;
}

const HAS_PROC = existsSync('/proc/self/stat');
let bootId: string | undefined;

/** The start token of a live process. Null when there is none (a zombie counts as none). */
export function startTokenOf(pid: number): string | null {
  const seen = readProcess(pid);
  return seen === null || isGone(seen.letter) ? null : seen.startToken;
}

/** State of exactly that process. `dead` also when its pid now belongs to another process. */
export function stateOf(identity: ProcessIdentity): ProcessState {
  const seen = readProcess(identity.pid);
  if (seen === null || isGone(seen.letter) || seen.startToken !== identity.startToken) return 'dead';
  return seen.letter === 'T' || seen.letter === 't' ? 'paused' : 'running';
}

/** Sends the signal only when the process is still the recorded one. False when that process is gone. */
export function signalIfOurs(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (stateOf(identity) === 'dead') return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

function isGone(letter: string): boolean {
  // A zombie runs nothing and holds nothing. In a container without an init it may stay for ever.
  return letter === 'Z' || letter === 'X' || letter === 'x';
}

function readProcess(pid: number): Seen | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  return HAS_PROC ? readProc(pid) : readWithPs(pid);
}

function readProc(pid: number): Seen | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The command name (field 2) may contain blanks and parentheses, so count from the last parenthesis. Field 22 is the
  // start in ticks since boot.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  bootId ??= readBootId();
  return { letter: fields[0] ?? 'X', startToken: `${bootId}:${fields[19] ?? ''}` };
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return 'boot';
  }
}

/** Exported so that a test can run it on systems that have /proc. */
export function readWithPs(pid: number): Seen | null {
  let line: string;
  try {
    // TZ and LC_ALL are fixed: the start time is compared as text with one that another shell recorded.
    line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], TZ: 'UTC0', LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: 5000,
    }).trim();
  } catch (error) {
    const failure = error as NodeJS.ErrnoException & { status?: number | null };
    if (typeof failure.status === 'number') return null;
    throw new SeqError({
      code: 'PS_MISSING',
      exit: EXIT.config,
      message: 'cannot tell processes apart: there is no /proc, and `ps` did not run',
      why: failure.message,
      changed: 'nothing',
      next: ['install procps (the command `ps`)'],
      cause: error,
    });
  }
  if (line === '') return null;
  const [letters = '', ...started] = line.split(/\s+/);
  return { letter: letters.slice(0, 1), startToken: `ps:${started.join(' ')}` };
}
