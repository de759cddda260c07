#!/usr/bin/env node
// Entry point of seq. It answers `seq --version` and `seq --help` before it loads anything (the build made the help
// page). It hands `seq 1 5` to the next `seq` on PATH.
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

process.env.NODE_ENV ??= 'production';
const argv = process.argv.slice(2);
const root = fileURLToPath(new URL('..', import.meta.url));
const quick = quickAnswer(argv);

if (isForCoreutils(argv)) {
  await (await import('./hand-over.js')).handOver(argv, realpathSync(fileURLToPath(import.meta.url)));
} else if (quick !== null) {
  process.stdout.on('error', (error) => {
    process.exitCode = error.code === 'EPIPE' ? 0 : 74;
  });
  // `seq $n` with an empty n, in a script: an error, as for the seq of coreutils.
  const misused = argv.length === 0 && !process.stdout.isTTY;
  (misused ? process.stderr : process.stdout).write(quick);
  if (misused) process.exitCode = 1;
} else {
  keepCompiled();
  const { main } = await built();
  // Only `false` means a signal: an older build of dist/ returns nothing.
  if ((await main({ argv, root, end: (code) => process.exit(code) })) === false) endBySignal();
  // All output has left the process. A socket to a node that hangs must not keep the process alive.
  process.exit();
}

/** A clone has no dist/ before its first build. Then a sentence says so, as the five parts of every error. */
async function built() {
  try {
    return await import('../dist/cli/start/main.js');
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND' || existsSync(`${root}dist/cli/start/main.js`)) throw error;
    process.stderr.write(
      'NOT_BUILT: seq cannot start from this folder\n' +
        `  why:     ${root}dist holds no program: a clone is built once, and after each change\n` +
        '  changed: nothing\n' +
        `  next:    npm --prefix ${root} ci && npm --prefix ${root} run build\n`,
    );
    process.exit(78);
  }
}

/**
 * `process.exit` waits for threads. For a service manager, SIGTERM is a clean end, and SIGKILL is none. The signal has
 * its default effect once nobody listens to it.
 */
function endBySignal() {
  const signal = process.exitCode ? 'SIGKILL' : 'SIGTERM';
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/**
 * Caches compiled code where Node can (22.1 and later). The cache is in the user's own cache folder, never in a folder
 * that others may write to.
 */
function keepCompiled() {
  const { HOME, XDG_CACHE_HOME } = process.env;
  const cache = XDG_CACHE_HOME?.startsWith('/') ? XDG_CACHE_HOME : `${HOME}/.cache`;
  if (cache.startsWith('/')) module.enableCompileCache?.(`${cache}/seq/compiled`);
}

/** An answer that needs nothing but a file, or null. */
function quickAnswer([word, ...rest]) {
  if (rest.length > 0) return null;
  if (word === '--version' || word === '-V') return `${version()}\n`;
  return word === undefined || ['--help', '-h', 'help'].includes(word) ? helpPage() : null;
}

function version() {
  const { name, version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  return `${name}/${version} ${process.platform}-${process.arch} node-${process.version}`;
}

/**
 * The help page as the framework would draw it here. Null for another width or a colour setting: then the framework
 * must draw it.
 */
function helpPage() {
  const { env, stdout } = process;
  if (env.OCLIF_COLUMNS || ['FORCE_COLOR', 'CLICOLOR_FORCE', 'DEBUG'].some((name) => env[name] !== undefined))
    return null;
  const width = !stdout.isTTY ? 80 : stdout.columns >= 100 ? 100 : stdout.columns;
  if (width !== 80 && width !== 100) return null;
  try {
    const page = readFileSync(`${root}dist/help/${width}.txt`, 'utf8').replace('VERSION-OF-THIS', version());
    return stdout.isTTY && !env.NO_COLOR && env.TERM !== 'dumb' ? page : page.replace(/\u001b\[\d+m/g, '');
  } catch {
    return null;
  }
}

/** True for a number or for a flag of seq from coreutils (or BSD). No command of ours begins with either. */
function isForCoreutils([first = '', second = '']) {
  if (first === '--') return isNumber(second);
  return isNumber(first) || /^-[fstw]/.test(first) || /^--(f|s|e)[a-z-]*(=|$)/.test(first);
}

function isNumber(text) {
  return /^[+-]?(\.?\d|inf(inity)?$|nan$)/i.test(text);
}
