// Does anybody still read this process's output? A pipe tells it only to who writes (EPIPE). A command that follows the
// chain may have nothing to write for hours, and would outlive its reader (`| head -1`). Linux only: /proc names the
// processes that hold the other end. Where that cannot be known, nothing is concluded.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { ReaderGone } from './output.js';

const POLL_MS = 500;

/** `pipe:[INODE]`, or null: the output is no pipe, or this system has no /proc. */
function pipeOf(fd: number): string | null {
  try {
    const target = readlinkSync(`/proc/self/fd/${fd}`);
    return target.startsWith('pipe:[') ? target : null;
  } catch {
    return null;
  }
}

/** True while this file of /proc is the reading end of that pipe. */
function reads(place: string, pipe: string): boolean {
  try {
    if (readlinkSync(place) !== pipe) return false;
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(place.replace(/\/fd\/(\d+)$/, '/fdinfo/$1'), 'utf8'))?.[1];
    // The last two bits are the way in which it is open: 1 is writing alone.
    return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 1;
  } catch {
    return false;
  }
}

/** Where in /proc the reading ends of that pipe are, as far as this user may see. */
function readersOf(pipe: string): string[] {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => list(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`))
    .filter((place) => reads(place, pipe));
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/**
 * Calls `gone` once when the last process that was seen to read the output has closed it. A reader of another user is
 * never seen, so nothing is concluded about it. Returns a function that stops watching.
 */
export function watchReader(gone: (reason: ReaderGone) => void): () => void {
  const pipe = pipeOf(1);
  if (pipe === null) return () => undefined;
  let known: string[] = [];
  const timer = setInterval(() => {
    if (known.some((place) => reads(place, pipe))) return;
    const seen = known.length > 0;
    known = readersOf(pipe);
    if (known.length > 0 || !seen) return;
    clearInterval(timer);
    gone(new ReaderGone());
  }, POLL_MS);
  timer.unref();
  known = readersOf(pipe);
  return () => clearInterval(timer);
}
