// One writer per store. Two writers would break I5 (docs/PROTOCOL.md section 3). The kernel holds the lock (flock), so
// it holds across containers and users, and ends with its process. Node has no flock of its own: the program `flock`
// sets it on a descriptor that this process keeps open. Where that program is missing, the lock file names its holder
// by pid, and a holder that cannot be seen from here counts as alive.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  linkSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { networkDisk } from './disk-kind.js';
import { locked, unreadable } from './store-errors.js';

interface Holder {
  pid: number;
  /** The kernel's start time of that process. '' where the system does not provide it. */
  started: string;
  /** Changes with every boot. '' where the system does not provide it. */
  boot: string;
  host: string;
  /** The pid namespace. A pid means something else in another one. '' where the system does not provide it. */
  pids: string;
  /** `kernel`: flock says whether it lives. `pid`: only its pid does. */
  by: 'kernel' | 'pid';
}

const LOCK_FILE = 'writer.lock';
/** Each round either takes the lock, finds a living holder, or removes one dead one. */
const ROUNDS = 8;
const FLOCK_LIMIT_MS = 5000;

export interface WriterLock {
  /** The last writer ended without releasing it: killed, a power cut, or a crash that its store may have caused. */
  afterCrash: boolean;
  /** `inOrder` false: the next writer is told, as this one was, that a writer crashed. */
  release(inOrder?: boolean): void;
}

/** Takes the lock or throws STORE_LOCKED. */
export function takeWriterLock(dir: string): WriterLock {
  const path = join(dir, LOCK_FILE);
  for (let round = 0; round < ROUNDS; round++) {
    const fd = openLockFile(dir, path);
    const taken = flock(fd);
    if (taken === 'missing') {
      closeSync(fd);
      return takeByPid(dir, path);
    }
    const holder = parse(readOrNull(path) ?? '');
    if (taken === 'busy') {
      closeSync(fd);
      throw locked(dir, path, holder === null ? 'a process that is just starting' : describe(holder));
    }
    // A holder that ended has removed the file meanwhile: this descriptor locks a file that nobody else can find.
    if (!isAt(fd, path)) {
      closeSync(fd);
      continue;
    }
    if (holder !== null && mayLive(holder, dir, true)) {
      closeSync(fd);
      throw locked(dir, path, describe(holder));
    }
    return keep(fd, dir, path, holder !== null);
  }
  throw locked(dir, path, 'another process that is just starting');
}

function openLockFile(dir: string, path: string): number {
  try {
    return openSync(path, constants.O_RDWR | constants.O_CREAT, 0o644);
  } catch (error) {
    throw unreadable(dir, `a file cannot be written there: ${(error as Error).message}`, error);
  }
}

/** The child shares the open file. The lock stays when the child ends, until this process closes the file or ends. */
function flock(fd: number): 'taken' | 'busy' | 'missing' {
  const { status } = spawnSync('flock', ['-n', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', fd],
    timeout: FLOCK_LIMIT_MS,
  });
  return status === 0 ? 'taken' : status === 1 ? 'busy' : 'missing';
}

function isAt(fd: number, path: string): boolean {
  try {
    const [mine, there] = [fstatSync(fd), statSync(path)];
    return mine.ino === there.ino && mine.dev === there.dev;
  } catch {
    return false;
  }
}

function keep(fd: number, dir: string, path: string, afterCrash: boolean): WriterLock {
  try {
    ftruncateSync(fd);
    writeSync(fd, JSON.stringify(self('kernel')), 0);
  } catch (error) {
    rmSync(path, { force: true });
    closeSync(fd);
    throw unreadable(dir, `a file cannot be written there: ${(error as Error).message}`, error);
  }
  return {
    afterCrash,
    release(inOrder = true) {
      if (inOrder && isAt(fd, path)) rmSync(path, { force: true });
      closeSync(fd);
    },
  };
}

/** True unless it is certain that the holder has ended. `kernel`: this process has the kernel's lock. */
function mayLive(holder: Holder, dir: string, kernel: boolean): boolean {
  if (holder.by === 'kernel' && kernel) return false;
  const here = self('pid');
  // Another boot on a disk of this machine is the time before a restart. On a network disk it may be another host.
  if (holder.boot !== '' && here.boot !== '' && holder.boot !== here.boot)
    return holder.host !== here.host && networkDisk(dir) !== null;
  if (holder.pids !== '' && here.pids !== '' && holder.pids !== here.pids) return true;
  return isAlive(holder);
}

/** Without flock: the lock file itself is the lock. */
function takeByPid(dir: string, path: string): WriterLock {
  const mine = JSON.stringify(self('pid'));
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    // The file is written first and linked afterwards, so a lock file is never incomplete.
    writeFileSync(draft, mine);
    let afterCrash = false;
    for (let round = 0; round < ROUNDS; round++) {
      if (tryLink(draft, path)) return { afterCrash, release: () => release(path, mine) };
      const text = readOrNull(path);
      if (text === null) continue;
      const holder = parse(text);
      if (holder !== null && mayLive(holder, dir, false)) throw locked(dir, path, describe(holder));
      evict(path, text);
      afterCrash = true;
    }
    throw locked(dir, path, 'another process that is just starting');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw unreadable(dir, `a file cannot be written there: ${(error as Error).message}`, error);
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

function self(by: Holder['by']): Holder {
  return {
    pid: process.pid,
    started: processState(process.pid)?.started ?? '',
    boot: bootId(),
    host: hostname(),
    pids: pidNamespace(),
    by,
  };
}

function isAlive(holder: Holder): boolean {
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

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
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
      pids: String(value.pids ?? ''),
      by: value.by === 'kernel' ? 'kernel' : 'pid',
    };
  } catch {
    return null;
  }
}

function describe(holder: Holder): string {
  const where = holder.host || 'this host';
  const here = pidNamespace();
  if (holder.boot !== '' && holder.boot !== bootId())
    return `process ${holder.pid} on ${where}, which shares this disk`;
  if (holder.pids !== '' && here !== '' && holder.pids !== here)
    return `process ${holder.pid} of another container (host name ${where})`;
  return holder.pid === process.pid ? `this very process (pid ${holder.pid})` : `process ${holder.pid} on ${where}`;
}
