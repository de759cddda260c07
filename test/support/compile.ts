// Compiles a TypeScript program of the tests into a file that plain node can run as a child process.
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** `source` is relative to the repository. Packages stay outside the bundle. Returns the path to run. */
export function compileProgram(source: string): string {
  const dir = join(ROOT, 'node_modules', '.cache', 'seq-tests');
  mkdirSync(dir, { recursive: true });
  const outfile = join(dir, `${basename(source).replace(/\.ts$/, '')}.${process.pid}.mjs`);
  buildSync({
    entryPoints: [join(ROOT, source)],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
  });
  return outfile;
}
