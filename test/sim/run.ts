// The program behind `npm run sim`. Usage:
// npm run sim -- --seed S [--seeds N] [--seconds T] [--memory|--memory=mixed] [--members|--members=mixed] [--corrupt]
// [--faults A,B] [--narrate|--narrate=all] [--keep-going|--first] [--coverage] [--play NAME]
// It runs the seeds S, S+1, … and prints a line every ten seconds and a sum at the end. It minimises a failing seed and
// prints it as a scenario.
import { check } from './checkers/index.js';
import { minimise } from './minimise.js';
import { anomalyLines, asTest, narrate } from './narrate.js';
import { PLAYS } from './acts.js';
import { NO_LOCK_STUCK } from './operator.js';
import { drawScenario, FAULT_NAMES, kindsNamed, playScenario } from './plan.js';
import { run } from './world.js';
import type { Mutant } from '../support/memory-node.js';

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const args = new Map<string, string>();
for (let i = 2; i < process.argv.length; i++) {
  const [name, value] = process.argv[i]!.replace(/^--/, '').split('=', 2) as [string, string | undefined];
  const next = process.argv[i + 1];
  if (value !== undefined) args.set(name, value);
  else if (next !== undefined && !next.startsWith('--')) args.set(name, process.argv[++i]!);
  else args.set(name, 'yes');
}
const first = Number(args.get('seed') ?? 1);
const seconds = Number(args.get('seconds') ?? Infinity);
const seeds = Number(args.get('seeds') ?? (seconds === Infinity ? 1 : Infinity));
/** mixed: every other seed. */
const only = args.has('faults') ? kindsNamed(args.get('faults')!) : undefined;
const forgets = only?.some((kind) => kind === 'wipe' || kind === 'restart') === true;
const memoryOf = (seed: number): boolean =>
  forgets || (args.get('memory') === 'mixed' ? seed % 2 === 1 : args.has('memory'));
/** mixed: two of every four seeds, so that half of them also lose memory if --memory is mixed, too. */
const membersOf = (seed: number): boolean => (args.get('members') === 'mixed' ? seed % 4 < 2 : args.has('members'));
const narrated = args.get('narrate');
const mutant: Mutant | undefined = args.has('mutant')
  ? Object.fromEntries(
      args
        .get('mutant')!
        .split(',')
        .map((name) => [name, true]),
    )
  : undefined;
if (!Number.isSafeInteger(first) || !(seeds > 0) || !(seconds > 0) || only === null) {
  say(
    'usage: npm run sim -- --seed S [--seeds N] [--seconds T] [--memory|--memory=mixed] [--members|--members=mixed] [--faults ' +
      'A,B] [--narrate|--narrate=all] [--keep-going] [--mutant NAME,…] [--play NAME]',
  );
  say(`faults: ${FAULT_NAMES.join(', ')}`);
  process.exit(64);
}

const startedAt = performance.now();
let ran = 0;
let simulatedMs = 0;
let anomalies = 0;
let failing = 0;
let saidAt = startedAt;
let slowest = 0;
const kinds = new Map<string, number>();
/** Counts of events. They show whether the faults reach the branches that matter. */
const covered = new Map<string, number>();
/** Counts of cases that only an operator's command could solve. */
let locksFreed = 0;
let resizes = 0;
let stop = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    stop = true;
  });
for (let seed = first; ran < seeds && !stop; seed++) {
  const now = performance.now();
  if (now - startedAt > seconds * 1000) break;
  if (now - saidAt > 10_000) {
    saidAt = now;
    say(`  ${ran} seeds, ${Math.round(simulatedMs / 1000)} simulated seconds, ${anomalies} anomalies`);
  }
  const play = args.get('play');
  const scenario =
    play !== undefined
      ? { ...playScenario(PLAYS[play] ?? [], seed), ...(mutant ? { mutant } : {}) }
      : drawScenario(seed, {
          memory: memoryOf(seed),
          members: membersOf(seed),
          corrupt: args.has('corrupt'),
          ...(only ? { only } : {}),
          ...(mutant ? { mutant } : {}),
        });
  const result = await run(scenario);
  ran++;
  simulatedMs += result.simulatedMs;
  if (result.history.convergedAt !== null)
    slowest = Math.max(slowest, result.history.convergedAt - result.history.healedAt);
  if (args.has('coverage')) {
    covered.set('orphans', (covered.get('orphans') ?? 0) + result.orphans);
    for (const entry of result.history.entries) {
      const what =
        entry.is === 'op'
          ? `${entry.script} ${entry.outcome}`
          : entry.is === 'answer'
            ? `answer ${entry.outcome}`
            : entry.is === 'operator-task'
              ? `seq ${entry.verb} → ${entry.code}`
              : entry.is === 'event'
                ? `${entry.event.type} ${'code' in entry.event ? entry.event.code : ''}`
                : entry.is;
      covered.set(what, (covered.get(what) ?? 0) + 1);
    }
  }
  for (const entry of result.history.entries) {
    if (entry.is !== 'operator-task' || entry.code !== 'DONE') continue;
    if (entry.verb === 'resize') resizes++;
    if (entry.verb === 'revoke' && entry.text !== NO_LOCK_STUCK) locksFreed++;
  }
  const found = check(result.history);
  anomalies += found.length;
  if (narrated) for (const line of narrate(result.history, { all: narrated === 'all' })) say(line);
  if (found.length === 0) continue;
  failing++;
  const { checker } = found[0]!;
  kinds.set(checker, (kinds.get(checker) ?? 0) + 1);
  say(`seed ${seed}: ${found.length} anomalies`);
  for (const line of anomalyLines(found)) say(`  ${line}`);
  if (args.has('first')) break;
  if (args.has('keep-going')) continue;
  const small = await minimise(scenario, checker);
  say(`\nmade small in ${small.runs} runs (${scenario.faults.length} → ${small.scenario.faults.length} faults):`);
  if (small.anomalies.length === 0) say('  the second run of the same seed did not fail: the run is not deterministic');
  const story = await run(small.scenario);
  for (const line of narrate(story.history, { all: narrated === 'all' }).slice(-120)) say(line);
  for (const line of anomalyLines(small.anomalies)) say(`  ${line}`);
  say(`\n${asTest(small.scenario, `seed ${seed}: ${small.anomalies[0]?.what ?? checker}`)}`);
  break;
}
const wall = (performance.now() - startedAt) / 1000;
const cpu = process.cpuUsage();
const busy = (cpu.user + cpu.system) / 1e6;
for (const [what, count] of [...covered].sort()) say(`  ${what}: ${count}`);
if (resizes > 0) say(`  ${resizes} changes of members`);
if (locksFreed > 0)
  say(`  ${locksFreed} times an operator freed a lock that a wrong clock had left (seq stepdown --revoke)`);
for (const [kind, count] of kinds) say(`  ${kind}: ${count} seeds`);
say(
  `${ran} seeds, ${Math.round(simulatedMs / 1000)} simulated seconds, ${anomalies} anomalies in ` +
    `${failing} seeds; ${Math.round(simulatedMs / 1000 / wall)} simulated cluster-seconds a second, ` +
    `${Math.round(simulatedMs / 1000 / busy)} a second of processor time; slowest healing ` +
    `${Math.round(slowest)} ms`,
);
process.exitCode = anomalies === 0 ? 0 : 1;
