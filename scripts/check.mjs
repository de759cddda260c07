// `npm run check`, before a commit: format, types, lint, unused exports, manifest, and the suites that need no server
// (unit with the import arrows, property, model, sim).
// `npm run check -- --fast`, while you work: checks only what differs from the last commit, or from the commit where
// the branch left SEQ_CHECK_BASE. Types come from a cache, lint runs without the rules that need types, and only unit
// tests that the changed files can reach are run.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { bootstrapOrEnd } from './bootstrap.mjs';
import { root } from './paths.mjs';

const fast = process.argv.includes('--fast');
const say = (text) => process.stdout.write(`${text}\n`);
const TSC = 'node_modules/typescript/bin/tsc';
const ESLINT = 'node_modules/eslint/bin/eslint.js';
const PRETTIER = 'node_modules/prettier/bin/prettier.cjs';
const VITEST = 'node_modules/vitest/vitest.mjs';
const KNIP = 'node_modules/knip/bin/knip.js';
/** Not in node_modules: several work trees may share that folder. */
const cache = join(root, '.cache');
const types = (project) => [
  ...['-p', project, '--noEmit', '--incremental', '--tsBuildInfoFile'],
  join(cache, `types-${project === '.' ? 'src' : project}.tsbuildinfo`),
];

/** Files that differ from the commit where this branch started, untracked files included. */
function changedFiles() {
  const git = (...args) => spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.split('\n').filter(Boolean);
  const [base = 'HEAD'] = git('merge-base', 'HEAD', process.env.SEQ_CHECK_BASE ?? 'HEAD');
  return [...git('diff', '--name-only', '--diff-filter=d', base), ...git('ls-files', '--others', '--exclude-standard')]
    .filter((file) => /\.(ts|tsx|mjs|js)$/.test(file) && existsSync(join(root, file)))
    .sort();
}

/** @typedef {{ name: string, script: string, args: string[] }} Step */

/** @returns {Step[]} */
function wholeSteps() {
  return [
    { name: 'format', script: PRETTIER, args: ['--check', '--log-level', 'warn', '.'] },
    { name: 'types', script: TSC, args: types('.') },
    { name: 'types of tests and benchmarks', script: TSC, args: types('test') },
    { name: 'types of scripts', script: TSC, args: types('scripts') },
    { name: 'lint', script: ESLINT, args: ['--cache', '--cache-location', join(cache, 'lint'), '.'] },
    { name: 'unused exports', script: KNIP, args: ['--no-progress'] },
    { name: 'manifest', script: 'scripts/build.mjs', args: ['--check'] },
    { name: 'tests', script: 'scripts/test.mjs', args: ['unit', 'property', 'model', 'sim'] },
  ];
}

/** @returns {Step[]} */
function fastSteps() {
  const changed = changedFiles();
  say(changed.length === 0 ? 'nothing has changed' : `${changed.length} changed: ${changed.slice(0, 5).join(', ')}`);
  const touches = (...folders) => changed.some((file) => folders.some((folder) => file.startsWith(`${folder}/`)));
  const linted = changed.filter((file) => /^(src|scripts|bin)\//.test(file));
  /** @type {Step[]} */
  const steps = [];
  if (changed.length > 0)
    steps.push({ name: 'format', script: PRETTIER, args: ['--check', '--log-level', 'warn', ...changed] });
  // The type check of the tests includes the sources, so one run finds the errors of both.
  if (touches('src', 'test', 'bench')) steps.push({ name: 'types', script: TSC, args: types('test') });
  if (touches('scripts')) steps.push({ name: 'types of scripts', script: TSC, args: types('scripts') });
  if (linted.length > 0)
    steps.push({
      name: 'lint',
      script: ESLINT,
      args: linted,
    });
  if (touches('src', 'test', 'scripts'))
    steps.push({
      name: 'unit tests that the change reaches',
      script: VITEST,
      args: [
        'related',
        '--run',
        '--no-isolate',
        '--passWithNoTests',
        '--reporter=dot',
        // Not --dir: the globs of vitest.config.ts start at the root, and would find no file below test/unit.
        '--exclude',
        'test/!(unit)/**',
        ...changed,
      ],
    });
  return steps;
}

/** @param {Step} step */
function run({ name, script, args }) {
  const from = performance.now();
  const child = spawn(process.execPath, [join(root, script), ...args], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', CI: '1', ...(fast ? { SEQ_LINT_FAST: '1' } : {}) },
    stdio: fast ? ['ignore', 'pipe', 'pipe'] : 'inherit',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data) => {
      output += data;
    });
  return new Promise((resolve) => {
    child.on('close', (status) => {
      if (status !== 0 && output) say(output.trimEnd());
      say(`${status === 0 ? 'ok  ' : 'FAIL'} ${name}, ${((performance.now() - from) / 1000).toFixed(1)} s`);
      resolve(status === 0);
    });
  });
}

if (!fast) bootstrapOrEnd();
mkdirSync(cache, { recursive: true });
const results = [];
if (fast) results.push(...(await Promise.all(fastSteps().map(run))));
else for (const step of wholeSteps()) results.push(await run(step));
process.exitCode = results.every(Boolean) ? 0 : 1;
