// Bundles test/model/run.ts (TypeScript over the production reducer and the in-memory node). Runs it in one process
// with a large heap.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dir = mkdtempSync(join(tmpdir(), 'seq-model-'));
const outfile = join(dir, 'model.mjs');
await build({
  entryPoints: [join(root, 'test/model/run.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  logLevel: 'error',
});
const child = spawn(process.execPath, ['--max-old-space-size=4096', outfile, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  rmSync(dir, { recursive: true, force: true });
  process.exit(signal ? 1 : (code ?? 1));
});
