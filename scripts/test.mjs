// `npm test`: bootstrap, then every suite by itself under its time budget; the last line is the sum: `N passed, N failed`.
// A suite that runs no test, crashes, or passes its budget counts as one failed test. `npm test -- unit cli` runs only those.
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

const holdsTests = (path) => existsSync(join(root, path)) && readdirSync(join(root, path), { recursive: true }).some((file) => /\.test\.tsx?$/.test(String(file)));

/** Ends the whole group: vitest's workers and the servers they started are its children. */
function end(child, signal) {
  try { process.kill(-child.pid, signal); } catch { /* it is gone */ }
}

async function runSuite({ name, paths, budget }, report) {
  const startedAt = Date.now();
  const child = spawn(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', ...paths.filter(holdsTests).map((path) => `${path}/`), '--reporter=json', `--outputFile=${report}`, '--reporter=dot'], {
    cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_ENV: 'test', FORCE_COLOR: '0', CI: '1' },
  });
  current = child;
  let output = '';
  const keep = (data) => { output = (output + data).slice(-64 * 1024); };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const beat = setInterval(() => say(`  ${name}: running for ${Math.round((Date.now() - startedAt) / 1000)} s of ${budget} s`), 10_000);
  let late = false;
  const timer = setTimeout(() => { late = true; end(child, 'SIGTERM'); setTimeout(() => end(child, 'SIGKILL'), 3000).unref(); }, budget * 1000);
  const code = await new Promise((resolve) => { child.on('error', () => resolve(1)); child.on('exit', resolve); });
  clearInterval(beat);
  clearTimeout(timer);
  current = null;
  const seconds = ((Date.now() - startedAt) / 1000).toFixed(1);
  let passed = 0;
  let failed = 0;
  const trouble = [];
  try {
    const found = JSON.parse(readFileSync(report, 'utf8'));
    passed = found.numPassedTests;
    failed = found.numFailedTests;
    for (const file of found.testResults) {
      const bad = file.assertionResults.filter((test) => test.status === 'failed');
      for (const test of bad) trouble.push(`FAILED ${file.name.replace(`${root}/`, '')} > ${test.fullName}\n${test.failureMessages.join('\n').split('\n').slice(0, 12).join('\n')}`);
      if (file.status === 'failed' && bad.length === 0) { failed += 1; trouble.push(`FAILED ${file.name.replace(`${root}/`, '')}\n${(file.message ?? '').split('\n').slice(0, 12).join('\n')}`); }
    }
  } catch { /* no report: it never came to its end */ }
  if (late) { failed += 1; trouble.push(`FAILED ${name}: not done within its budget of ${budget} s\n${output.slice(-2000)}`); }
  else if (code !== 0 && failed === 0) { failed += 1; trouble.push(`FAILED ${name}: the runner ended with ${code}\n${output.slice(-4000)}`); }
  else if (passed + failed === 0) { failed += 1; trouble.push(`FAILED ${name}: no test ran`); }
  for (const text of trouble) say(text);
  say(`${failed === 0 ? 'ok  ' : 'FAIL'} ${name.padEnd(12)} ${String(passed).padStart(5)} passed ${String(failed).padStart(3)} failed  ${seconds} s`);
  return { passed, failed };
}

let current = null;
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => { if (current) end(current, 'SIGTERM'); process.exit(signal === 'SIGINT' ? 130 : 143); });
}

const unknown = names.filter((name) => !suites.some((suite) => suite.name === name));
if (unknown.length > 0) {
  say(`there is no suite ${unknown.join(', ')}; suites: ${suites.map((suite) => suite.name).join(', ')}`);
  process.exit(64);
}
bootstrapOrEnd();
ensureTestTools();
const chosen = suites.filter((suite) => (names.length > 0 ? names.includes(suite.name) : long || !suite.long) && suite.paths.some(holdsTests));
const folder = mkdtempSync(join(tmpdir(), 'seq-test-'));
let passed = 0;
let failed = 0;
for (const [at, suite] of chosen.entries()) {
  say(`${at + 1}/${chosen.length} ${suite.name}`);
  const sum = await runSuite(suite, join(folder, `${suite.name}.json`));
  passed += sum.passed;
  failed += sum.failed;
}
rmSync(folder, { recursive: true, force: true });
if (passed + failed === 0) failed = 1;
process.exitCode = failed === 0 ? 0 : 1;
say(`${passed} passed, ${failed} failed`);
