#!/usr/bin/env node
// Runs seq from its sources, for people who work on it. It first builds what changed since the last run into .dev/. An
// installed seq starts with bin/run.js instead.
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

process.env.NODE_ENV ??= 'production';
const root = fileURLToPath(new URL('..', import.meta.url));
const changedAt = (path) => statSync(`${root}${path}`, { throwIfNoEntry: false })?.mtimeMs ?? 0;
const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).map((path) => `src/${path}`);
const newest = Math.max(...[...sources, 'package.json', 'scripts/build.mjs'].map(changedAt));
if (changedAt('.dev/dist/commands.json') < newest) {
  const { status } = spawnSync(process.execPath, [`${root}scripts/build.mjs`, '--dev'], { stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}
const { main } = await import('../.dev/dist/cli/start/main.js');
await main({ argv: process.argv.slice(2), root: `${root}.dev/`, end: (code) => process.exit(code) });
process.exit();
