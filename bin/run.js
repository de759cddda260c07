#!/usr/bin/env node
// seqctl: starts the command line; `seq --version` is answered before anything is loaded, and `seq 1 5` is handed to the next `seq` on PATH.
import { readFileSync, realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.env.NODE_ENV ??= 'production';
const argv = process.argv.slice(2);
const root = fileURLToPath(new URL('..', import.meta.url));

if (isForCoreutils(argv)) {
  await (await import('./hand-over.js')).handOver(argv, realpathSync(fileURLToPath(import.meta.url)));
} else if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
  const { name, version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  process.stdout.write(`${name}/${version} ${process.platform}-${process.arch} node-${process.version}\n`);
} else {
  const { main } = await import('../dist/cli/main.js');
  await main({ argv, root, end: (code) => process.exit(code) });
  // Everything written has left the process; a socket to a node that hangs must not keep it alive.
  process.exit();
}

/** A number, or one of coreutils' (or BSD's) flags: never a command of ours. */
function isForCoreutils([first = '', second = '']) {
  if (first === '--') return isNumber(second);
  return isNumber(first) || /^-[fstw]/.test(first) || /^--(f|s|e)[a-z-]*(=|$)/.test(first);
}

function isNumber(text) {
  return /^[+-]?(\.?\d|inf(inity)?$|nan$)/i.test(text);
}
