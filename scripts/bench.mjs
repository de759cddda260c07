// `npm run bench -- NAME [arguments]`: bundles bench/NAME.ts and runs it on the built program. Measures; asserts nothing.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrapOrEnd } from './bootstrap.mjs';
import { root } from './paths.mjs';

bootstrapOrEnd();
const { build } = await import('esbuild');
const [name, ...args] = process.argv.slice(2);
const known = readdirSync(join(root, 'bench')).filter((file) => file.endsWith('.ts')).map((file) => file.slice(0, -3));
if (!known.includes(name ?? '')) {
  process.stderr.write(`usage: npm run bench -- ${known.join('|')} [arguments]\n`);
  process.exitCode = 64;
} else {
  // Bundled to a place from which the package's own files (lua/, bin/) are found as from src/.
  const outfile = join(root, 'node_modules', '.cache', 'seq-bench', `${name}.mjs`);
  await build({ entryPoints: [join(root, 'bench', `${name}.ts`)], bundle: true, platform: 'node', format: 'esm', packages: 'external', outfile, logLevel: 'error', define: { 'import.meta.url': JSON.stringify(new URL('../src/lab/x.js', import.meta.url).href) } });
  process.exitCode = spawnSync(process.execPath, [outfile, ...args], { stdio: 'inherit', cwd: root }).status ?? 1;
}
