// What does the lab record on disk, and who may change it now? One file, replaced whole; one lock, whose holder is an
// identifiable process. Invariants: a process is recorded before anything else happens to it. An interrupted write
// never leaves half a file. A lock whose holder has ended is taken over, so that a killed `up` blocks nobody.
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { EXIT, SeqError } from '../core/errors.js';
import { makeFolder, stateHome } from '../core/home.js';
import type { LabSettings, Place } from './plan.js';
import { startTokenOf, stateOf, type ProcessIdentity } from './process-identity.js';

export interface ProcessRecord extends Place {
  /** Null until the process was started for the first time. */
  identity: ProcessIdentity | null;
}

export interface LabState {
  version: 1;
  settings: LabSettings;
  /** How far `up` came; the next `up` continues from there. */
  phase: 'starting' | 'bootstrapped' | 'committed';
  /** The lab was taken down and its data kept. The next `up` continues with it. */
  kept?: true;
  processes: ProcessRecord[];
}

/**
 * $XDG_STATE_HOME/seq/lab, by default ~/.local/state/seq/lab. A relative XDG_STATE_HOME is ignored, as the XDG
 * specification requires.
 */
export function labDirectory(env: NodeJS.ProcessEnv = process.env): string {
  return join(stateHome(env), 'seq', 'lab');
}

/** Null when there is no lab. Throws SeqError (65) when the file exists and is not a lab's state. */
export function readState(directory: string): LabState | null {
  let text: string;
  try {
    text = readFileSync(stateFile(directory), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const state = JSON.parse(text) as LabState;
    if (
      state.version === 1 &&
      typeof state.settings === 'object' &&
      state.settings !== null &&
      Array.isArray(state.processes) &&
      state.processes.every(isRecord)
    )
      return state;
  } catch {
    // Falls through to the error below.
  }
  throw new SeqError({
    code: 'LAB_STATE_MALFORMED',
    exit: EXIT.data,
    message: `${stateFile(directory)} is not the state of a lab of this version`,
    why: 'it was edited, or written by another version',
    changed: 'nothing',
    next: [`stop its processes by hand, then: rm -r ${directory}`],
  });
}

/** Throws SeqError (66) when there is no lab. */
export function openState(directory: string): LabState {
  const state = readState(directory);
  if (state !== null) return state;
  throw new SeqError({
    code: 'NO_LAB',
    exit: EXIT.notFound,
    message: 'there is no lab',
    why: `nothing in ${directory}`,
    changed: 'nothing',
    next: ['seq lab up'],
  });
}

export function writeState(directory: string, state: LabState): void {
  makeFolder(directory, 0o700);
  const file = stateFile(directory);
  const temporary = `${file}.${process.pid}`;
  const handle = openSync(temporary, 'w', 0o600);
  try {
    writeSync(handle, `${JSON.stringify(state, null, 2)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
}

/** Runs `work` as the only process that changes this lab. Throws SeqError (75) while another one does. */
export async function withLabLock<T>(directory: string, work: () => Promise<T>): Promise<T> {
  const release = takeLock(directory);
  try {
    return await work();
  } finally {
    release();
  }
}

function takeLock(directory: string): () => void {
  // Beside the directory, not inside: `down` removes the directory.
  const lock = `${directory}.lock`;
  makeFolder(dirname(directory), 0o700);
  const mine = JSON.stringify({ pid: process.pid, startToken: startTokenOf(process.pid) ?? '' });
  const temporary = `${lock}.${process.pid}`;
  for (let attempt = 0; attempt < 5; attempt++) {
    const handle = openSync(temporary, 'w', 0o600);
    writeSync(handle, mine);
    closeSync(handle);
    try {
      // A link appears whole or not at all, so nobody can read a lock without its holder's name.
      linkSync(temporary, lock);
      return () => {
        if (readOrEmpty(lock) === mine) rmSync(lock, { force: true });
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    } finally {
      unlinkSync(temporary);
    }
    const held = readOrEmpty(lock);
    const holder = parseHolder(held);
    if (holder !== null && stateOf(holder) !== 'dead') throw busy(holder);
    // Renames the stale lock aside. Of two processes that find it, one moves it. A process that moved a fresh lock
    // instead puts it back.
    const aside = `${temporary}.stale`;
    try {
      renameSync(lock, aside);
      if (readOrEmpty(aside) !== held) linkSync(aside, lock);
    } catch {
      // Another process was faster; read the lock again.
    }
    rmSync(aside, { force: true });
  }
  throw busy(null);
}

function stateFile(directory: string): string {
  return join(directory, 'lab.json');
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function isRecord(one: Partial<ProcessRecord> | null): boolean {
  return (
    typeof one === 'object' &&
    one !== null &&
    typeof one.name === 'string' &&
    (one.kind === 'redis' || one.kind === 'sequencer') &&
    typeof one.port === 'number' &&
    (one.identity === null || isIdentity(one.identity))
  );
}

function isIdentity(one: Partial<ProcessIdentity> | null | undefined): boolean {
  return (
    typeof one === 'object' &&
    one !== null &&
    Number.isSafeInteger(one.pid) &&
    one.pid! > 0 &&
    typeof one.startToken === 'string'
  );
}

function parseHolder(text: string): ProcessIdentity | null {
  try {
    const holder = JSON.parse(text) as ProcessIdentity;
    return isIdentity(holder) ? holder : null;
  } catch {
    return null;
  }
}

function busy(holder: ProcessIdentity | null): SeqError {
  return new SeqError({
    code: 'LAB_BUSY',
    exit: EXIT.tryAgain,
    message: 'another command is changing this lab',
    why: holder === null ? 'several at once want its lock' : `process ${holder.pid} holds its lock`,
    changed: 'nothing',
    next: ['wait for it to end, then try again'],
    retryable: true,
  });
}
