// `npm run bench -- [NAME …] [flags]`: bundles bench/ and runs it against the built program (see
// bench/harness/main.ts). `npm run bench -- watch …` is a separate program with its own arguments.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrapOrEnd } from './bootstrap.mjs';
import { root } from './paths.mjs';

bootstrapOrEnd();
const { build } = await import('esbuild');
const [first, ...rest] = process.argv.slice(2);
const alone = first === 'watch';
const outdir = join(root, 'node_modules', '.cache', 'seq-bench', alone ? 'watch' : `harness-${process.pid}`);
const files = alone
  ? ['watch.ts']
  : [
      ...readdirSync(join(root, 'bench')).filter((file) => file.endsWith('.ts') && file !== 'watch.ts'),
      'harness/main.ts',
      'harness/one.ts',
    ];
// The bundle goes to a folder from which the package's own files (lua/, bin/) have the same relative path as from src/.
await build({
  entryPoints: files.map((file) => join(root, 'bench', file)),
  outdir,
  entryNames: '[name]',
  outExtension: { '.js': '.mjs' },
  chunkNames: 'chunk-[hash]',
  splitting: !alone,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  jsx: 'automatic',
  logLevel: 'error',
  define: { 'import.meta.url': JSON.stringify(new URL('../src/lab/x.js', import.meta.url).href) },
});
// A signal ends the process through `exit`. There a private cluster ends its processes.
const ENDS =
  'data:text/javascript,process.on("SIGTERM",()=>process.exit(143));process.on("SIGINT",()=>process.exit(130));process.on("SIGHUP",()=>process.exit(129))';
const command = alone
  ? ['--expose-gc', '--import', ENDS, join(outdir, 'watch.mjs'), ...rest]
  : [join(outdir, 'main.mjs'), outdir, ...process.argv.slice(2)];
const child = spawn(process.execPath, command, {
  stdio: 'inherit',
  cwd: root,
  env: { ...process.env, NODE_ENV: 'production' },
});
// Ctrl-C in a terminal reaches the child directly. The child ends its servers and prints what it has measured.
process.on('SIGINT', () => {});
for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP'])) process.on(signal, () => child.kill(signal));
const [code] = await new Promise((done) => child.once('exit', (...end) => done(end)));
process.exitCode = code ?? 1;
if (!alone && existsSync(outdir)) rmSync(outdir, { recursive: true, force: true });
