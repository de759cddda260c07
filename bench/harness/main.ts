// `npm run bench` runs every bench, one after the other, each in a process of its own with a limit. Then it prints the
// table, the verdict against bench/baseline.json (--check), the JSON (--json), and writes the files (--write). Exit: 0
// all well, 1 something is worse, 64 usage, 70 a bench failed.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { exitOf, judge, renew, type Baseline } from './budget.js';
import { machineOf } from './machine.js';
import { markdownOf, summaryText } from './report.js';
import type { Bench, Outcome } from './words.js';

/** Cheap benches first. The report has the same order. */
const ORDER = [
  'commit',
  'scan',
  'etcd',
  'submit',
  'leadership',
  'failover',
  'wan',
  'half-alive',
  'readmission',
  'resize',
  'data',
  'repair',
  'startup',
  'lanes',
  'rent',
];
const CHECK_LIMIT_S = 600;
const BASELINE = 'bench/baseline.json';
const LATEST = 'bench/latest.json';
const REPORT = 'docs/BENCHMARKS.md';
const MARKER = '<!-- Everything below is written by `npm run bench -- --write`. -->';
const USAGE = `usage: npm run bench -- [NAME …] [--check] [--short] [--only TEXT] [--json] [--write]
  NAME      ${ORDER.join(', ')} (all of them)
  --check   the short form, held against ${BASELINE}; exits 1 when a ratio is worse than its budget
  --short   the short form without the verdict
  --only    only cases with TEXT in their name, e.g. 'npm run bench -- commit --only "n3 none"'
  --json    one JSON document on stdout (npm writes there, too: npm run -s bench -- --json)
  --write   puts the results into ${REPORT}, ${LATEST} and ${BASELINE} (benches that did not run keep theirs)
  npm run bench -- watch live|soak [N]   what the live screen costs
`;

const [bundle] = process.argv.slice(2) as [string];
const say = (text: string): void => {
  process.stderr.write(text);
};

let parsed: { values: Record<string, string | boolean | undefined>; positionals: string[] };
try {
  parsed = parseArgs({
    args: process.argv.slice(3),
    allowPositionals: true,
    strict: true,
    options: {
      check: { type: 'boolean' },
      short: { type: 'boolean' },
      only: { type: 'string' },
      json: { type: 'boolean' },
      write: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
} catch (error) {
  say(`${(error as Error).message}\n${USAGE}`);
  process.exit(64);
}
const { values, positionals } = parsed;
const strangers = positionals.filter((name) => !ORDER.includes(name));
if (values['help'] || strangers.length > 0) {
  say(strangers.length > 0 ? `there is no bench ${strangers.join(', ')}\n${USAGE}` : USAGE);
  process.exit(strangers.length > 0 ? 64 : 0);
}
if (values['write'] && values['only'] !== undefined) {
  say('--write keeps whole benches: leave out --only\n');
  process.exit(64);
}

const read = <T>(file: string): T | null => (existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as T) : null);
const names = positionals.length > 0 ? ORDER.filter((name) => positionals.includes(name)) : ORDER;
const short = Boolean(values['check'] || values['short']);
const startedAt = performance.now();
const secondsLeft = (): number => (values['check'] ? CHECK_LIMIT_S - (performance.now() - startedAt) / 1000 : Infinity);

async function runOne(name: string, at: number): Promise<Outcome> {
  const module = join(bundle, `${name}.mjs`);
  const { bench } = (await import(module)) as { bench: Bench };
  const limitS = Math.min(short ? bench.limitS : (bench.fullLimitS ?? bench.limitS * 10), Math.max(1, secondsLeft()));
  say(
    `\n[${at + 1}/${names.length}] ${name}: ${bench.title} (${short ? 'short' : 'full'}, at most ` +
      `${Math.round(limitS)} s, load ${loadavg()[0]!.toFixed(1)})\n`,
  );
  const folder = mkdtempSync(join(tmpdir(), 'seq-bench-'));
  const file = join(folder, 'outcome.json');
  try {
    const child = spawn(
      process.execPath,
      [
        join(bundle, 'one.mjs'),
        name,
        module,
        file,
        short ? 'short' : 'full',
        (values['only'] as string | undefined) ?? '',
      ],
      { stdio: ['ignore', 2, 2] },
    );
    running = child;
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGTERM');
      setTimeout(() => child.kill('SIGKILL'), 5000).unref();
    }, limitS * 1000);
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((done) =>
      child.once('exit', (...end) => done(end)),
    );
    clearTimeout(timer);
    running = null;
    const outcome =
      read<Outcome>(file) ??
      ({
        name,
        title: bench.title,
        form: short ? 'short' : 'full',
        at: new Date().toISOString(),
        seconds: 0,
        loadBefore: 0,
        loadAfter: 0,
        tables: [],
        ratios: [],
        figures: [],
        skipped: [],
        notes: [],
        failure: 'nothing was measured',
      } satisfies Outcome);
    if (late) outcome.failure = `ended after its limit of ${Math.round(limitS)} s`;
    else if (code !== 0) outcome.failure = `ended with ${signal ?? code}`;
    return outcome;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

let interrupted = false;
let running: ChildProcess | null = null;
// On a signal, the running bench is ended too. Results so far are reported, and no other bench starts.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    interrupted = true;
    running?.kill(signal);
  });
const outcomes: Outcome[] = [];
for (const [at, name] of names.entries()) {
  if (interrupted) break;
  outcomes.push(await runOne(name, at));
}

const seconds = (performance.now() - startedAt) / 1000;
const baseline = read<Baseline>(BASELINE);
// A partial run says nothing about missing ratios.
const judgements = values['check']
  ? judge(outcomes, baseline).filter(({ verdict }) => values['only'] === undefined || verdict !== 'gone')
  : null;
const exit = interrupted
  ? 130
  : judgements === null
    ? outcomes.some(({ failure }) => failure !== null)
      ? 70
      : 0
    : exitOf(outcomes, judgements);
const { version } = read<{ version: string }>('package.json')!;
const machine = machineOf(version);

say(`\n${summaryText(outcomes, judgements)}\n`);
if (judgements !== null) {
  const worse = judgements.filter(({ verdict }) => verdict === 'worse' || verdict === 'gone').length;
  const fresh = judgements.filter(({ verdict }) => verdict === 'new').length;
  if (baseline === null) say(`there is no ${BASELINE}: nothing was held against anything; --write makes one\n`);
  say(
    `${exit === 0 ? 'OK' : exit === 1 ? 'WORSE' : 'BROKEN'}: ${judgements.length} ratios, ${worse} ` +
      `worse than the baseline${fresh > 0 ? `, ${fresh} not in it yet` : ''}; ${Math.round(seconds)} s ` +
      `of at most ${CHECK_LIMIT_S}\n`,
  );
}
if (values['json'])
  process.stdout.write(
    `${JSON.stringify(
      { machine, seconds: Math.round(seconds), exit, outcomes, ...(judgements === null ? {} : { judgements }) },
      null,
      2,
    )}\n`,
  );
if (values['write'] && !interrupted) write();
process.exitCode = exit;

function write(): void {
  const whole = outcomes.filter(({ failure }) => failure === null);
  const before = read<{ machine: Record<string, string>; outcomes: Outcome[] }>(LATEST)?.outcomes ?? [];
  const merged = ORDER.flatMap(
    (name) => whole.find((one) => one.name === name) ?? before.find((one) => one.name === name) ?? [],
  );
  const at = new Date().toISOString();
  writeFileSync(LATEST, `${JSON.stringify({ machine, outcomes: merged }, null, 1)}\n`);
  const measuredOn = `${machine['processors']}, node ${machine['node']}, redis ${machine['redis']}`;
  writeFileSync(BASELINE, `${JSON.stringify(renew(baseline, whole, measuredOn, at), null, 2)}\n`);
  const page = existsSync(REPORT) ? readFileSync(REPORT, 'utf8') : '';
  const head = page.includes(MARKER) ? page.slice(0, page.indexOf(MARKER)) : `${page.trimEnd()}\n\n`;
  writeFileSync(REPORT, `${head}${MARKER}\n\n${markdownOf(merged, machine)}`);
  say(`written: ${REPORT}, ${LATEST}, ${BASELINE} (${whole.map(({ name }) => name).join(', ') || 'nothing new'})\n`);
}
