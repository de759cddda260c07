// Which file does the demo sequence? The named one, else the first real text of suitable size that such machines
// usually have.
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { EXIT, SeqError } from '../core/errors.js';
import { linesOf } from './compare.js';

export interface DemoFile {
  path: string;
  bytes: Buffer;
  lines: Uint8Array[];
}

/** The comparison keeps the file in memory three times. */
const MOST_BYTES = 32 * 1024 * 1024;
const FEWEST_LINES = 2;
/** A default must be useful: enough lines to cut in half, and not minutes of work. */
const GOOD = { fewestLines: 200, mostBytes: 8 * 1024 * 1024 };

const OWN = ['../../package-lock.json', '../../oclif.manifest.json', '../../LICENSE'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);
/** System package logs first: Debian, Arch, Fedora, Alpine, macOS. */
const DEFAULTS = [
  '/var/log/dpkg.log',
  '/var/log/pacman.log',
  '/var/log/dnf.rpm.log',
  '/var/log/dnf.log',
  '/lib/apk/db/installed',
  '/var/log/install.log',
  '/usr/share/dict/words',
  ...OWN,
];

export function chooseDemoFile(named: string | undefined): DemoFile {
  if (named !== undefined) return readNamed(named);
  const small: DemoFile[] = [];
  for (const path of DEFAULTS) {
    const file = tryRead(path);
    if (file !== null && file.lines.length >= GOOD.fewestLines) return file;
    if (file !== null && file.lines.length >= FEWEST_LINES) small.push(file);
  }
  const first = small[0];
  if (first !== undefined) return first;
  throw new SeqError({
    code: 'NO_DEMO_FILE',
    exit: EXIT.notFound,
    message: 'there is no text file to sequence',
    why: `none of these can be read: ${DEFAULTS.join(', ')}`,
    changed: 'nothing',
    next: ['seq lab demo FILE'],
  });
}

function readNamed(path: string): DemoFile {
  const stat = statSync(path);
  if (!stat.isFile()) throw unfit(path, 'it is not a regular file');
  if (stat.size > MOST_BYTES)
    throw unfit(path, `it has ${stat.size} bytes; the demo compares in memory, up to ${MOST_BYTES}`);
  const bytes = readFileSync(path);
  const lines = linesOf(bytes);
  if (lines.length < FEWEST_LINES)
    throw unfit(
      path,
      `it has ${lines.length} ${lines.length === 1 ? 'line' : 'lines'}; the leader is to be killed between two halves`,
    );
  return { path, bytes, lines };
}

function tryRead(path: string): DemoFile | null {
  try {
    if (statSync(path).size > GOOD.mostBytes) return null;
    return readNamed(path);
  } catch {
    return null;
  }
}

function unfit(path: string, why: string): SeqError {
  return new SeqError({
    code: 'UNFIT_DEMO_FILE',
    exit: EXIT.data,
    message: `${path} cannot be used for the demo`,
    why,
    changed: 'nothing',
    next: ['seq lab demo', 'seq lab demo FILE'],
  });
}
