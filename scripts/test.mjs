// `npm test`: bootstrap, then every suite by itself under its time budget; the last line is the sum: `N passed, N
// failed`. A suite that runs no test, crashes, or passes its budget counts as one failed test. Files of suites with
// real processes that fail are run once more by themselves; what passes only then is named. `npm test -- unit cli`
// runs only those.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrapOrEnd, ensureTestTools } from './bootstrap.mjs';
import { root } from './paths.mjs';
import { suites } from './suites.mjs';

const names = process.argv.slice(2).filter((word) => !word.startsWith('-'));
const long = process.argv.includes('--long');
const say = (text) => process.stdout.write(`${text}\n`);

const holdsTests = (path) =>
  existsSync(join(root, path)) &&
  readdirSync(join(root, path), { recursive: true }).some((file) => /\.test\.tsx?$/.test(String(file)));

/** Ends the whole group: vitest's workers and the servers they started are its children. */
function end(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    /* it is gone */
  }
}

/**
 * One run of vitest over `targets`, `workers` files at a time, in processes that are kept from file to file; what its
 * report says, or null when it never came to its end.
 */
async function runTests(name, targets, { report, limitMs, since, workers = 1 }) {
  const child = spawn(
    process.execPath,
    [
      join(root, 'node_modules', 'vitest', 'vitest.mjs'),
      'run',
      ...targets,
      '--no-isolate',
      `--maxWorkers=${workers}`,
      ...(workers > 1 ? ['--fileParallelism'] : []),
      '--reporter=json',
      `--outputFile=${report}`,
      '--reporter=dot',
    ],
    {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_ENV: 'test', FORCE_COLOR: '0', CI: '1', ...(long ? { SEQ_TEST_LONG: '1' } : {}) },
    },
  );
  running.add(child);
  let output = '';
  const keep = (data) => {
    output = (output + data).slice(-64 * 1024);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const beat = setInterval(() => say(`  ${name}: running for ${Math.round((Date.now() - since) / 1000)} s`), 10_000);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    end(child, 'SIGTERM');
    setTimeout(() => end(child, 'SIGKILL'), 3000).unref();
  }, limitMs);
  const code = await new Promise((resolve) => {
    child.on('error', () => resolve(1));
    child.on('exit', resolve);
  });
  clearInterval(beat);
  clearTimeout(timer);
  running.delete(child);
  const result = { passed: 0, failed: 0, files: [], trouble: [], late, code, output };
  try {
    const found = JSON.parse(readFileSync(report, 'utf8'));
    for (const file of found.testResults) {
      const path = file.name.replace(`${root}/`, '');
      const bad = file.assertionResults.filter((test) => test.status === 'failed');
      const broken = file.status === 'failed' && bad.length === 0 ? 1 : 0;
      result.passed += file.assertionResults.filter((test) => test.status === 'passed').length;
      result.failed += bad.length + broken;
      if (bad.length + broken > 0) result.files.push(path);
      for (const test of bad)
        result.trouble.push(`FAILED ${path} > ${test.fullName}\n${firstLines(test.failureMessages.join('\n'))}`);
      if (broken) result.trouble.push(`FAILED ${path}\n${firstLines(file.message ?? '')}`);
    }
  } catch {
    /* no report: it never came to its end */
  }
  return result;
}

const firstLines = (text) => text.split('\n').slice(0, 12).join('\n');

async function runSuite({ name, paths, budget, processes, workers }, report) {
  const startedAt = Date.now();
  const leftMs = () => budget * 1000 - (Date.now() - startedAt);
  const first = await runTests(
    name,
    paths.filter(holdsTests).map((path) => `${path}/`),
    { report, limitMs: leftMs(), since: startedAt, workers },
  );
  let { passed, failed, trouble } = first;
  // Real processes on a machine that others use may miss a deadline. Their files get one more run, by themselves, and
  // it is said which.
  if (processes && !first.late && first.files.length > 0 && leftMs() > 10_000) {
    for (const text of trouble) say(`first attempt: ${text}`);
    say(`  ${name}: ${first.files.join(', ')} once more`);
    const before = JSON.parse(readFileSync(report, 'utf8')).testResults.filter((file) =>
      first.files.includes(file.name.replace(`${root}/`, '')),
    );
    const passedBefore = before
      .flatMap((file) => file.assertionResults)
      .filter((test) => test.status === 'passed').length;
    const second = await runTests(name, first.files, { report, limitMs: leftMs(), since: startedAt });
    passed = passed - passedBefore + second.passed;
    failed = second.failed;
    trouble = second.trouble;
    if (second.late || (second.code !== 0 && failed === 0)) {
      failed += 1;
      trouble.push(`FAILED ${name}: the second attempt did not come to its end\n${second.output.slice(-2000)}`);
    } else if (failed === 0) say(`  ${name}: passed at the second attempt only: ${first.files.join(', ')}`);
  } else if (first.late) {
    failed += 1;
    trouble.push(`FAILED ${name}: not done within its budget of ${budget} s\n${first.output.slice(-2000)}`);
  } else if (first.code !== 0 && failed === 0) {
    failed += 1;
    trouble.push(`FAILED ${name}: the runner ended with ${first.code}\n${first.output.slice(-4000)}`);
  } else if (passed + failed === 0) {
    failed += 1;
    trouble.push(`FAILED ${name}: no test ran`);
  }
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  for (const text of trouble) say(text);
  say(
    `${failed === 0 ? 'ok  ' : 'FAIL'} ${name.padEnd(12)} ${String(passed).padStart(5)} passed ` +
      `${String(failed).padStart(3)} failed  ${seconds} s of ${budget} s`,
  );
  return { passed, failed };
}

const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    for (const child of running) end(child, 'SIGTERM');
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

const unknown = names.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0) {
  say(`there is no suite ${unknown.join(', ')}; suites: ${suites.map((suite) => suite.name).join(', ')}`);
  process.exit(64);
}
bootstrapOrEnd();
ensureTestTools();
const chosen = suites.filter(
  (suite) => (names.length > 0 ? names.includes(suite.name) : long || !suite.long) && suite.paths.some(holdsTests),
);
const folder = mkdtempSync(join(tmpdir(), 'seq-test-'));
let passed = 0;
let failed = 0;
async function runInTurn(waiting) {
  for (let suite = waiting.shift(); suite; suite = waiting.shift()) {
    say(`${chosen.indexOf(suite) + 1}/${chosen.length} ${suite.name}`);
    const sum = await runSuite(suite, join(folder, `${suite.name}.json`));
    passed += sum.passed;
    failed += sum.failed;
  }
}
// What needs only a processor runs two at a time; real servers and processes have the machine for themselves.
const pure = chosen.filter((suite) => suite.pure);
await Promise.all([runInTurn(pure), runInTurn(pure)]);
await runInTurn(chosen.filter((suite) => !suite.pure));
rmSync(folder, { recursive: true, force: true });
if (passed + failed === 0) failed = 1;
process.exitCode = failed === 0 ? 0 : 1;
say(`${passed} passed, ${failed} failed`);
