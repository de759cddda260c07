// `npm test`: bootstrap, then every suite without the files that scripts/suites.mjs assigns to the long run. The last
// line is the total: `N passed, N failed`.
//   node scripts/test.mjs unit cli        only these suites
//   node scripts/test.mjs --long          what `npm test` leaves out
//   node scripts/test.mjs --all           both, the short part first
//   … --ci --within 25                    without test/long; starts nothing new after 25 minutes, and says what is left
// A slow test is never ended. A suite in which no test starts or ends for STILL_MINUTES counts as hung: it is ended,
// and the test that hung is named. A failed test is run once more by itself. If it then passes, it is counted and named
// as flaky.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { bootstrapOrEnd, ensureTestTools } from './bootstrap.mjs';
import { root } from './paths.mjs';
import { isLong, suites } from './suites.mjs';

const STILL_MINUTES = 8;
/** In test/long one test is one search of up to half an hour. */
const STILL_MINUTES_LONG = 40;

const argv = process.argv.slice(2);
const within = argv.indexOf('--within');
const minutes = within < 0 ? Infinity : Number(argv.splice(within, 2)[1]);
const names = argv.filter((word) => !word.startsWith('-'));
const [all, onlyLong, ci] = ['--all', '--long', '--ci'].map((flag) => argv.includes(flag));
const startedAt = performance.now();
const isLate = () => performance.now() - startedAt > minutes * 60_000;
const say = (text) => process.stdout.write(`${text}\n`);
const plural = (count, what) => `${count} ${what}${count === 1 ? '' : 's'}`;

/** Test files of a suite, in a stable order. */
function filesOf({ paths }) {
  return paths
    .filter((path) => existsSync(join(root, path)))
    .flatMap((path) =>
      readdirSync(join(root, path), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.test\.tsx?$/.test(file))
        .map((file) => `${path}/${file}`),
    )
    .sort();
}

/** Ends the whole process group: vitest's workers and the servers that they started belong to it. */
function end(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    /* it is gone */
  }
}

const folder = mkdtempSync(join(tmpdir(), 'seq-test-'));
const running = new Set();
let runs = 0;

/**
 * One run of vitest over `files`, with `workers` files at a time; a process is reused for the next file. `failed` has
 * one entry for every test that failed or hung, for every file that cannot be loaded, and for a runner that crashed.
 */
async function runTests(suite, files, workers, pattern = '') {
  const report = join(folder, `${runs++}.ndjson`);
  writeFileSync(report, '');
  const child = spawn(
    process.execPath,
    [
      join(root, 'node_modules', 'vitest', 'vitest.mjs'),
      'run',
      ...files,
      '--no-isolate',
      `--maxWorkers=${workers}`,
      ...(workers > 1 ? ['--fileParallelism'] : []),
      ...(pattern ? ['--testNamePattern', pattern] : []),
      `--reporter=${join(root, 'scripts', 'heartbeat-reporter.mjs')}`,
    ],
    {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        NODE_ENV: 'test',
        NO_COLOR: '1',
        CI: '1',
        SEQ_TEST_LINES: report,
        ...(all || onlyLong ? { SEQ_TEST_LONG: '1' } : {}),
      },
    },
  );
  running.add(child);
  let output = '';
  const keep = (data) => {
    output = (output + data).slice(-8 * 1024);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const still = suite.ci === false ? STILL_MINUTES_LONG : STILL_MINUTES;
  let [size, movedAt, saidAt, hung] = [0, performance.now(), performance.now(), false];
  const beat = setInterval(() => {
    const now = performance.now();
    const grown = statSync(report).size;
    if (grown !== size) [size, movedAt] = [grown, now];
    if (now - saidAt > 20_000) {
      saidAt = now;
      const lines = readLines(report);
      const at = unfinished(lines).map(({ file, name }) => (name ? `${file} > ${name}` : file));
      const count = lines.filter(({ is }) => is === 'passed').length;
      say(`  ${suite.name}: ${count} passed so far; ${at[0] ?? 'starting'}`);
    }
    if (hung || now - movedAt < still * 60_000) return;
    hung = true;
    end(child, 'SIGTERM');
    setTimeout(() => end(child, 'SIGKILL'), 3000).unref();
  }, 1000);
  const code = await new Promise((resolve) => {
    child.on('error', () => resolve(1));
    child.on('close', resolve);
  });
  clearInterval(beat);
  running.delete(child);
  end(child, 'SIGKILL');
  const lines = readLines(report);
  const failed = lines
    .filter(({ is, why }) => is === 'failed' || (is === 'end' && why) || (is === 'done' && why))
    .map(({ file, name, why }) => ({ file, name, why }));
  const tail = () => (output.trim() ? `its last output:\n${output.trim().slice(-2000)}` : 'it wrote nothing');
  if (hung) {
    const open = unfinished(lines);
    const why = `stood still: no test started or ended for ${still} minutes; ${tail()}`;
    failed.push(...(open.length > 0 ? open : [{}]).map(({ file, name }) => ({ file, name, why })));
  } else if (code !== 0 && failed.length === 0) {
    failed.push({ file: undefined, name: undefined, why: `the runner ended with ${code}; ${tail()}` });
  } else if (code === 0 && lines.at(-1)?.is !== 'done') {
    failed.push({ file: undefined, name: undefined, why: `the runner did not come to its end; ${tail()}` });
  }
  return { passed: lines.filter(({ is }) => is === 'passed').length, failed };
}

function readLines(path) {
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** Tests that started and did not end. If there is none, files that did not end. */
function unfinished(lines) {
  const ended = new Set(
    lines.filter(({ is }) => is !== 'start' && is !== 'file').map(({ file, name = '' }) => `${file} ${name}`),
  );
  const open = lines.filter(
    ({ is, file, name = '' }) => (is === 'start' || is === 'file') && !ended.has(`${file} ${name}`),
  );
  const tests = open.filter(({ is }) => is === 'start');
  return tests.length > 0 ? tests : open;
}

const firstLines = (text) => text.split('\n').slice(0, 12).join('\n');
const label = ({ file, name }) => [file, name].filter(Boolean).join(' > ') || 'the run';
const exactly = (name) => `^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`;
const inShell = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const howToRun = ({ file, name }) =>
  file ? `  run it: npx vitest run ${file}${name ? ` -t ${inShell(exactly(name))}` : ''}` : '';
const show = (heading, failure) =>
  [`${heading} ${label(failure)}`, firstLines(failure.why), howToRun(failure)].filter(Boolean).forEach(say);

const totals = { passed: 0, failed: 0 };
const flaky = [];

/** Runs `files`, then runs each failed test once more by itself. A file that hung or did not load is run whole. */
async function runPart(suite, files, workers) {
  const from = performance.now();
  const first = await runTests(suite, files, workers);
  let { passed } = first;
  const failed = [];
  for (const [at, failure] of first.failed.entries()) {
    const { file, name } = failure;
    // When many tests fail, something is broken. A second attempt of all of them would only take time.
    if (!file || at >= 10 || /stood still/.test(failure.why)) {
      failed.push(failure);
      continue;
    }
    show('first attempt:', failure);
    const second = await runTests(suite, [file], 1, name ? exactly(name) : '');
    if (second.failed.length > 0) failed.push(...second.failed.slice(0, 1));
    else if (second.passed === 0 && name) failed.push(failure);
    else {
      flaky.push(label(failure));
      passed += second.passed;
    }
  }
  if (passed + failed.length === 0)
    failed.push({ file: undefined, name: undefined, why: `${files.join(', ')}: no test ran` });
  for (const failure of failed) show('FAILED', failure);
  totals.passed += passed;
  totals.failed += failed.length;
  const title = files.length === 1 ? files[0] : `${suite.name} (${plural(files.length, 'file')})`;
  const seconds = ((performance.now() - from) / 1000).toFixed(1);
  say(`${failed.length === 0 ? 'ok  ' : 'FAIL'} ${title}: ${passed} passed, ${failed.length} failed, ${seconds} s`);
}

const notRun = [];

/** Takes parts until none is left or the time is up. */
async function takeFrom(parts) {
  for (let part = parts.shift(); part; part = parts.shift()) {
    if (isLate()) notRun.push(...part.files);
    else await runPart(part.suite, part.files, part.workers);
  }
}

for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
  process.on(signal, () => {
    for (const child of running) end(child, 'SIGTERM');
    rmSync(folder, { recursive: true, force: true });
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

const unknown = names.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0 || Number.isNaN(minutes)) {
  say(
    unknown.length > 0
      ? `there is no suite ${unknown.join(', ')}; suites: ${suites.map((suite) => suite.name).join(', ')}`
      : '--within takes minutes',
  );
  process.exit(64);
}
bootstrapOrEnd();
ensureTestTools();
const chosen = suites.filter((suite) => (names.length > 0 ? names.includes(suite.name) : !ci || suite.ci !== false));
const parts = chosen.map((suite) => {
  const files = filesOf(suite);
  return { suite, short: files.filter((file) => !isLong(file)), long: files.filter(isLong) };
});
if (!onlyLong) {
  const short = parts
    .filter((part) => part.short.length > 0)
    .map((part) => ({ suite: part.suite, files: part.short, workers: part.suite.workers ?? 1 }));
  // One group after the other. Two suites of a group run at a time. A suite without a group has the machine for itself.
  const groups = new Set(short.map(({ suite }) => suite.beside ?? suite.name));
  for (const group of groups) {
    const queue = short.filter(({ suite }) => (suite.beside ?? suite.name) === group);
    await Promise.all([takeFrom(queue), takeFrom(queue)]);
  }
}
if (onlyLong || all) {
  const long = parts.flatMap(({ suite, long: files }) => files.map((file) => ({ suite, files: [file], workers: 1 })));
  // Runs file by file, so that the time limit leaves out as little as possible. The files of test/long run alone on the
  // machine.
  const shared = long.filter(({ suite }) => suite.ci !== false);
  await Promise.all([takeFrom(shared), takeFrom(shared)]);
  await takeFrom(long.filter(({ suite }) => suite.ci === false));
}
rmSync(folder, { recursive: true, force: true });
if (totals.passed + totals.failed === 0) totals.failed = 1;
process.exitCode = totals.failed === 0 ? 0 : 1;
if (notRun.length > 0)
  say(
    `not run, the ${plural(minutes, 'minute')} were over: ${notRun.map((file) => relative('test', file)).join(', ')}`,
  );
if (flaky.length > 0) say(`flaky: ${flaky.length} (passed at the second attempt): ${flaky.join('; ')}`);
say(`${totals.passed} passed, ${totals.failed} failed`);
