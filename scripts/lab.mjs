// `npm run lab`: prepares a fresh clone, starts a cluster and runs the demonstration. Arguments go to `seq lab demo`.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { bootstrapOrEnd } from './bootstrap.mjs';
import { root } from './paths.mjs';

bootstrapOrEnd();
const seq = (...args) => spawnSync(process.execPath, [join(root, 'bin', 'run.js'), ...args], { stdio: 'inherit' });
for (const args of [
  // A lab that an earlier start of this machine left goes on, if nothing of it can be lost.
  ['lab', 'up', '--yes'],
  ['lab', 'demo', ...process.argv.slice(2)],
]) {
  const { status, signal } = seq(...args);
  if (status !== 0) {
    if (args[1] === 'up') process.stderr.write('to begin anew instead: node bin/run.js lab down, then npm run lab\n');
    process.exitCode = status ?? (signal === 'SIGINT' ? 130 : 1);
    break;
  }
}
