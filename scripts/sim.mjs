// Bundles test/sim/run.ts (the shipped engine on simulated ports) and runs it in one process. Output of a failing run keeps source lines.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dir = mkdtempSync(join(tmpdir(), 'seq-sim-'));
const outfile = join(dir, 'sim.mjs');
await build({ entryPoints: [join(root, 'test/sim/run.ts')], outfile, bundle: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error', sourcemap: 'inline' });
const child = spawn(process.execPath, ['--enable-source-maps', '--stack-trace-limit=20', outfile, ...process.argv.slice(2)], { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  rmSync(dir, { recursive: true, force: true });
  process.exit(signal ? 1 : code ?? 1);
});
