// Bundles test/sim/run.ts (the shipped engine on simulated ports) and runs it in one process. Stack traces of a failing
// run name source lines.
// `--break NAME` bundles it with one rule of the engine broken. The simulation must then find an anomaly
// (test/sim/broken.mjs lists the rules).
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { broken, editsOf } from '../test/sim/broken.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const args = process.argv.slice(2);
const at = args.indexOf('--break');
const rule = at < 0 ? null : broken.find((one) => one.name === args[at + 1]);
if (rule === undefined) {
  process.stderr.write(`--break knows ${broken.map((one) => one.name).join(', ')}\n`);
  process.exit(64);
}
if (at >= 0) args.splice(at, 2, ...(rule?.mutant ? ['--mutant', rule.mutant] : []));
const plugin = {
  name: 'break one rule',
  setup(setup) {
    setup.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const edits = editsOf(rule).filter(({ file }) => path.endsWith(`/${file}`));
      if (edits.length === 0) return undefined;
      const text = edits.reduce(
        (before, { file, from, to }) => {
          if (!before.includes(from)) throw new Error(`${file} no longer says ${from}`);
          return before.replace(from, to);
        },
        readFileSync(path, 'utf8'),
      );
      return { contents: text, loader: 'ts' };
    });
  },
};

const dir = mkdtempSync(join(tmpdir(), 'seq-sim-'));
const outfile = join(dir, 'sim.mjs');
await build({
  entryPoints: [join(root, 'test/sim/run.ts')],
  outfile,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  logLevel: 'error',
  sourcemap: 'inline',
  plugins: [plugin],
});
const child = spawn(process.execPath, ['--enable-source-maps', '--stack-trace-limit=20', outfile, ...args], {
  stdio: 'inherit',
});
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM']))
  process.on(signal, () => {
    child.kill(signal);
    setTimeout(() => child.kill('SIGKILL'), 3000).unref();
  }); // a run in an endless loop handles no signal
child.on('exit', (code, signal) => {
  rmSync(dir, { recursive: true, force: true });
  process.exit(signal ? 1 : (code ?? 1));
});
