#!/usr/bin/env node
// seqctl: starts the command line; `seq --version` and `seq --help` are answered before anything is loaded (the page
// was made by the build), and `seq 1 5` is handed to the next `seq` on PATH.
import { readFileSync, realpathSync } from 'node:fs';
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
  process.stdout.write(quick);
} else {
  keepCompiled();
  const { main } = await import('../dist/cli/start/main.js');
  await main({ argv, root, end: (code) => process.exit(code) });
  // Everything written has left the process; a socket to a node that hangs must not keep it alive.
  process.exit();
}

/**
 * Compiled code is kept where Node can (22.1 and later), in the person's own cache: never in a directory that others
 * may write to.
 */
function keepCompiled() {
  const { HOME, XDG_CACHE_HOME } = process.env;
  const cache = XDG_CACHE_HOME || (HOME && `${HOME}/.cache`);
  if (cache) module.enableCompileCache?.(`${cache}/seq/compiled`);
}

/** What needs nothing but a file, or null. */
function quickAnswer([word, ...rest]) {
  if (rest.length > 0) return null;
  if (word === '--version' || word === '-V') return `${version()}\n`;
  return word === undefined || ['--help', '-h', 'help'].includes(word) ? helpPage() : null;
}

function version() {
  const { name, version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  return `${name}/${version} ${process.platform}-${process.arch} node-${process.version}`;
}

/** As the framework would draw it here, or null: another width, or a wish for colours that it must judge. */
function helpPage() {
  const { env, stdout } = process;
  if (env.OCLIF_COLUMNS || ['FORCE_COLOR', 'CLICOLOR_FORCE', 'DEBUG'].some((name) => env[name] !== undefined))
    return null;
  if (stdout.isTTY && !(stdout.columns >= 100)) return null;
  try {
    const page = readFileSync(`${root}dist/help/${stdout.isTTY ? 100 : 80}.txt`, 'utf8').replace(
      'VERSION-OF-THIS',
      version(),
    );
    return stdout.isTTY && !env.NO_COLOR && env.TERM !== 'dumb' ? page : page.replace(/\u001b\[\d+m/g, '');
  } catch {
    return null;
  }
}

/** A number, or one of coreutils' (or BSD's) flags: never a command of ours. */
function isForCoreutils([first = '', second = '']) {
  if (first === '--') return isNumber(second);
  return isNumber(first) || /^-[fstw]/.test(first) || /^--(f|s|e)[a-z-]*(=|$)/.test(first);
}

function isNumber(text) {
  return /^[+-]?(\.?\d|inf(inity)?$|nan$)/i.test(text);
}
