// `npm run lab`: prepares a fresh clone, starts a cluster and runs the demonstration. Arguments go to `seq lab demo`.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { bootstrapOrEnd } from './bootstrap.mjs';
import { root } from './paths.mjs';

bootstrapOrEnd();
const seq = (...args) => spawnSync(process.execPath, [join(root, 'bin', 'run.js'), ...args], { stdio: 'inherit' });
for (const args of [
  ['lab', 'up'],
  ['lab', 'demo', ...process.argv.slice(2)],
]) {
  const { status, signal } = seq(...args);
  if (status !== 0) {
    process.exitCode = status ?? (signal === 'SIGINT' ? 130 : 1);
    break;
  }
}
