// A separate file system for one sequencer's store, so that a full disk gives a real ENOSPC: a tmpfs, shrunk to the
// size in use. It needs root on Linux. Elsewhere the fault is left out, with a note.
import { spawnSync } from 'node:child_process';
import { mkdirSync, statfsSync } from 'node:fs';

const ROOMY = '1g';

export interface SmallDisk {
  /** The sequencer whose store is on it. */
  owner: string;
  path: string;
  fill(): void;
  empty(): void;
  unmount(): void;
}

/** Mounts it on `path`; returns null and the reason where that is not possible. */
export function mountSmallDisk(owner: string, path: string): SmallDisk | { why: string } {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { why: 'only root on Linux can mount a tmpfs' };
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const mounted = run('mount', '-t', 'tmpfs', '-o', `size=${ROOMY},mode=0700`, 'seq-chaos', path);
  if (mounted !== '') return { why: mounted };
  let open = true;
  const resize = (size: string): void => {
    const failed = run('mount', '-o', `remount,size=${size}`, path);
    if (failed !== '') throw new Error(`the small disk of ${owner} could not be resized: ${failed}`);
  };
  const disk: SmallDisk = {
    owner,
    path,
    fill: () => {
      const { blocks, bfree, bsize } = statfsSync(path);
      resize(String(Math.max(1, blocks - bfree) * bsize));
    },
    empty: () => resize(ROOMY),
    unmount: () => {
      if (!open) return;
      open = false;
      process.off('exit', disk.unmount);
      // Lazy unmount: a store that is still open somewhere must not keep it mounted for ever.
      run('umount', '-l', path);
    },
  };
  process.on('exit', disk.unmount);
  return disk;
}

/** '' on success. */
function run(command: string, ...args: string[]): string {
  const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8', timeout: 10_000 });
  return status === 0 ? '' : (error?.message ?? stderr.trim()) || `${command} ended with ${status}`;
}
