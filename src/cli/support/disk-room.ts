// How much space is left on a local disk? For a sequencer's presence record that is the store's disk. For `seq doctor`
// it is the disk of a node on this machine.
import { statfs } from 'node:fs/promises';

const EVERY_MS = 10_000;

/** null where it cannot be determined. */
async function freeBytes(dir: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(dir);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Free bytes at a node's data folder, when the address says that the node is on this machine. */
export async function nodeFreeBytes(url: string, dir: string | undefined): Promise<number | null> {
  const local =
    url.startsWith('unix:') || /^rediss?:\/\/(?:[^@/]*@)?(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::|\/|$)/.test(url);
  return local && dir !== undefined && dir !== '' ? freeBytes(dir) : null;
}

/** Keeps `facts.storeFreeBytes` up to date. Returns a function that stops it. */
export async function watchDisk(dir: string, facts: Record<string, string>): Promise<() => void> {
  const measure = async (): Promise<void> => {
    const free = await freeBytes(dir);
    if (free !== null) facts['storeFreeBytes'] = String(free);
  };
  await measure();
  const timer = setInterval(() => void measure(), EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}
