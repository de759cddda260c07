// Hands `seq 1 5` to the next `seq` on PATH. It skips this program, links to it and the shims of package managers, so
// that seq never calls itself in an endless loop.
import { spawn } from 'node:child_process';
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { constants as system } from 'node:os';
import { delimiter, join } from 'node:path';

// Every hop adds its choice to this variable. A wrapper of this program that cannot be recognised is therefore tried
// only once.
const TRIED = 'SEQ_HANDED_OVER';

/** Runs that program with our stdin, stdout and stderr. Ends with its exit code or by its signal. */
export async function handOver(argv, self) {
  const tried = (process.env[TRIED] ?? '').split(delimiter).filter(Boolean);
  const next = nextSeq(self, tried);
  if (!next) {
    process.stderr.write(
      'NO_OTHER_SEQ: there is no other seq on PATH to hand these arguments to\n' +
        `  why:     'seq ${argv.join(' ')}' is for the seq that prints numbers (coreutils)\n` +
        '  changed: nothing\n  next:    install coreutils, or see seq --help for the commands of this program\n',
    );
    process.exitCode = 66;
    return;
  }
  const child = spawn(next, argv, {
    stdio: 'inherit',
    env: { ...process.env, [TRIED]: [...tried, next].join(delimiter) },
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
  const forward = (signal) => child.kill(signal);
  for (const signal of signals) process.on(signal, forward);
  const [code, signal] = await new Promise((resolve) => {
    child.on('error', () => resolve([126, null]));
    child.on('exit', (...end) => resolve(end));
  });
  for (const name of signals) process.off(name, forward);
  process.exitCode = code ?? 128 + (system.signals[signal] ?? 0);
  if (signal && signal !== 'SIGPIPE') process.kill(process.pid, signal);
}

function nextSeq(self, tried) {
  for (const folder of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = join(folder, 'seq');
    if (!tried.includes(path) && isOther(path, self)) return path;
  }
  return null;
}

function isOther(path, self) {
  try {
    const real = realpathSync(path);
    if (real === self || !statSync(real).isFile()) return false;
    accessSync(real, constants.X_OK);
    return !isShim(real);
  } catch {
    return false;
  }
}

/** True for a script that names this package: another copy of it, or a shim that starts it. */
function isShim(path) {
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(4096);
    const text = head.toString('latin1', 0, readSync(file, head, 0, head.length, 0));
    return text.startsWith('#!') && text.includes('seqctl');
  } finally {
    closeSync(file);
  }
}
