// `npm run check`: types, lint, manifest, and the suites that need no server: unit (with the import arrows),
// property, model, sim.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { bootstrapOrEnd } from './bootstrap.mjs';
import { root } from './paths.mjs';

bootstrapOrEnd();
/** @type {[name: string, script: string, args: string[]][]} */
const steps = [
  ['types', 'node_modules/typescript/bin/tsc', ['--noEmit', '-p', '.']],
  ['types of tests and benchmarks', 'node_modules/typescript/bin/tsc', ['-p', 'test']],
  ['types of scripts', 'node_modules/typescript/bin/tsc', ['-p', 'scripts']],
  ['lint', 'node_modules/eslint/bin/eslint.js', ['.']],
  ['manifest', 'scripts/build.mjs', ['--check']],
  ['tests', 'scripts/test.mjs', ['unit', 'property', 'model', 'sim']],
];
let failed = 0;
for (const [name, script, args] of steps) {
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], { cwd: root, stdio: 'inherit' });
  process.stdout.write(`${status === 0 ? 'ok  ' : 'FAIL'} ${name}\n`);
  if (status !== 0) failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
