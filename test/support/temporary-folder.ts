// One folder for everything that a run of the tests leaves below the folder for temporary files. A worker process can
// be ended before its own handlers run, so the process that started the workers removes it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Called by vitest before the first worker starts. What it returns is called after the last one has ended. */
export default function setup(): () => void {
  const before = process.env['TMPDIR'];
  const folder = mkdtempSync(join(tmpdir(), 'seq-')); // short: paths of sockets have a limit
  process.env['TMPDIR'] = folder;
  return () => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
}
