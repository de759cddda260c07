// One writer per store. The lock file names its process by pid and start time. After kill -9 or a reboot, the next
// writer sees that the holder is gone, and takes the lock. Two writers would break I5 (docs/PROTOCOL.md section 3).
import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { locked, unreadable } from './store-errors.js';

interface Holder {
  pid: number;
  /** The kernel's start time of that process. '' where the system does not provide it. */
  started: string;
  /** Changes with every boot. '' where the system does not provide it. */
  boot: string;
  host: string;
}

const LOCK_FILE = 'writer.lock';
/** Each round either takes the lock, finds a living holder, or removes one dead one. */
const ROUNDS = 8;

/** Takes the lock or throws STORE_LOCKED. Returns the function that releases it. */
export function takeWriterLock(dir: string): () => void {
  const path = join(dir, LOCK_FILE);
  const mine = JSON.stringify(self());
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    // The file is written first and linked afterwards, so a lock file is never incomplete.
    writeFileSync(draft, mine);
  } catch (error) {
    throw unreadable(dir, `a file cannot be written there: ${(error as Error).message}`, error);
  }
  try {
    for (let round = 0; round < ROUNDS; round++) {
      if (tryLink(draft, path)) return () => release(path, mine);
      const text = readOrNull(path);
      if (text === null) continue;
      const holder = parse(text);
      if (holder !== null && isAlive(holder)) throw locked(dir, path, describe(holder));
      evict(path, text);
    }
    throw locked(dir, path, 'another process that is just starting');
  } finally {
    rmSync(draft, { force: true });
  }
}

function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw unreadable(dirname(path), `a lock cannot be made there: ${(error as Error).message}`, error);
  }
}

/** Removes a dead holder's lock. A lock that another process has taken meanwhile is put back. */
function evict(path: string, dead: string): void {
  const aside = `${path}.dead.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  if (readOrNull(aside) !== dead) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function release(path: string, mine: string): void {
  if (readOrNull(path) === mine) rmSync(path, { force: true });
}

function self(): Holder {
  return { pid: process.pid, started: processState(process.pid)?.started ?? '', boot: bootId(), host: hostname() };
}

function isAlive(holder: Holder): boolean {
  const boot = bootId();
  if (holder.boot !== '' && boot !== '' && holder.boot !== boot) return false;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const state = processState(holder.pid);
  if (state === null) return true;
  // A killed process stays in the process table until its parent reads its exit status. It does not write any more.
  if (state.dead) return false;
  return holder.started === '' || holder.started === state.started;
}

/** Reads /proc. Null on a system without it. */
function processState(pid: number): { started: string; dead: boolean } | null {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The command in parentheses may hold anything. Behind the last parenthesis are the fields 3… of proc(5).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { started: fields[19] ?? '', dead: fields[0] === 'Z' || fields[0] === 'X' };
}

function bootId(): string {
  return (readOrNull('/proc/sys/kernel/random/boot_id') ?? '').trim();
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function parse(text: string): Holder | null {
  try {
    const value = JSON.parse(text) as Partial<Holder>;
    if (!Number.isSafeInteger(value.pid) || value.pid! <= 0) return null;
    return {
      pid: value.pid!,
      started: String(value.started ?? ''),
      boot: String(value.boot ?? ''),
      host: String(value.host ?? ''),
    };
  } catch {
    return null;
  }
}

function describe(holder: Holder): string {
  return holder.pid === process.pid
    ? `this very process (pid ${holder.pid})`
    : `process ${holder.pid} on ${holder.host || 'this host'}`;
}
