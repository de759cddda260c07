// How much is left on the disk of a folder of this machine: the store's, for a sequencer's presence record, and a
// local node's, for `seq doctor`.
import { statfs } from 'node:fs/promises';

const EVERY_MS = 10_000;

/** null where it cannot be told. */
async function freeBytes(dir: string): Promise<number | null> {
  try {
    const { bavail, bsize } = await statfs(dir);
    return bavail * bsize;
  } catch {
    return null;
  }
}

/** Of a node's data folder, where the address says that it is on this machine. */
export async function nodeFreeBytes(url: string, dir: string | undefined): Promise<number | null> {
  const local =
    url.startsWith('unix:') || /^rediss?:\/\/(?:[^@/]*@)?(?:127\.\d+\.\d+\.\d+|localhost|\[::1\])(?::|\/|$)/.test(url);
  return local && dir !== undefined && dir !== '' ? freeBytes(dir) : null;
}

/** Keeps `facts.storeFreeBytes` fresh; returns how to stop. */
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
