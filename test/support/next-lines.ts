// Can every `next` command that the program shows be run as it stands? The helpers that run the program check each one
// with oclif's parser and the flags of the command. They also check that it names the cluster of the run that showed
// it.
import { Config, Parser, type Command } from '@oclif/core';
import { resolve } from 'node:path';
import { shellWords } from './command-lines.js';

const root = resolve(import.meta.dirname, '../..');
let config: Promise<Config> | undefined;

/** The `next` lines of an answer, in any of its formats. */
export function nextLines(stdout: string, stderr: string): string[] {
  const found: string[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit);
    if (value === null || typeof value !== 'object') return;
    for (const [name, each] of Object.entries(value)) {
      if (name === 'next' && Array.isArray(each))
        found.push(...each.filter((line): line is string => typeof line === 'string'));
      visit(each);
    }
  };
  for (const text of [stdout, ...stdout.split('\n')]) {
    if (!/^[[{]/.test(text) || !text.includes('"next"')) continue;
    try {
      visit(JSON.parse(text));
    } catch {
      // a line of a document that spans several
    }
  }
  found.push(...[...stdout.matchAll(/^(?:next: |next\t)(.*)$/gm)].map(([, line]) => line as string));
  let inside = false;
  for (const line of stderr.split('\n')) {
    const first = /^ {2}next: {4}(.*)$/.exec(line);
    inside = first !== null || (inside && /^ {11}\S/.test(line));
    if (inside) found.push(first?.[1] ?? line.trim());
  }
  return [...new Set(found)].filter((line) => /^seq [a-z]/.test(line));
}

/** How a command line names its cluster: `-c lab`, `--node …` and `--lane x`, as words. */
function targetOf(words: readonly string[]): { cluster: string | null; lane: string | null } {
  const value = (names: string[]): string | null => {
    for (const [at, word] of words.entries()) {
      if (word === '--') return null;
      const name = names.find((each) => word === each || word.startsWith(`${each}=`));
      if (name !== undefined) return word === name ? (words[at + 1] ?? '') : word.slice(name.length + 1);
    }
    return null;
  };
  return { cluster: value(['-c', '--context']), lane: value(['--lane']) };
}

const WITHOUT_CLUSTER = /^(lab|context|explain|completion|chaos|config:validate)\b/;

/** Why this line does not run, or does not run on the cluster of the run that showed it. null when it does. */
export async function nextProblem(line: string, shownBy: readonly string[]): Promise<string | null> {
  config ??= Config.load({ root });
  const known = await config;
  const words = shellWords(line).slice(1);
  if (words.includes('--help')) return null;
  const ids = known.commandIDs;
  const length = [3, 2, 1].find((count) => ids.includes(words.slice(0, count).join(':')));
  if (length === undefined) return 'there is no such command';
  const id = words.slice(0, length).join(':');
  const loaded = (await known.findCommand(id, { must: true }).load()) as Command.Class;
  const end = words.indexOf('--');
  const argv = words.slice(length, end < 0 ? undefined : end);
  try {
    await Parser.parse(argv, {
      flags: { ...loaded.baseFlags, ...loaded.flags },
      args: loaded.args,
      strict: loaded.strict,
    });
  } catch (error) {
    // A word in capitals stands for what only the reader knows (`--reason TEXT`, `lab logs NAME`).
    if (!argv.some((word) => /^[A-Z][A-Z_]+$/.test(word)))
      return (error as Error).message.replaceAll(/\s+/g, ' ').trim();
  }
  if (WITHOUT_CLUSTER.test(id) || words.includes('--from-bundle')) return null;
  const [shown, own] = [targetOf(shownBy), targetOf(words)];
  if (shown.cluster !== null && own.cluster === null && !words.some((word) => word.startsWith('--node')))
    return `it lacks -c ${shown.cluster}`;
  // Its lanes are arguments, and it refuses the flag.
  const refusesLane = /^lane\b/.test(id);
  if (refusesLane && own.lane !== null) return 'it names --lane, which it refuses';
  if (!refusesLane && shown.lane !== null && own.lane === null) return `it lacks --lane ${shown.lane}`;
  if (shownBy.includes('--node') && own.cluster === null && !words.includes('--node')) return 'it lacks --node';
  return null;
}

/**
 * Not run: they report on the configuration or on processes of this machine, so a bad answer is no fault of the line.
 */
const NOT_RUN = /^(config:validate|lab:(?!status|logs)|context:(?!ls)|run|submit|completion|chaos|bench|stream:export)/;
/** Commands that run until they are stopped, with the arguments that end them. */
const ENDLESS: Record<string, string[]> = { watch: ['--count', '1'], wait: ['--timeout', '100ms'] };
/** Error codes of the parser, and of the search for a cluster, that mean: this line does not run. */
const CANNOT_RUN = new Set([
  'USAGE',
  'UNKNOWN_COMMAND',
  'NO_CLUSTER',
  'CONTEXT_NOT_FOUND',
  'BAD_CONFIG',
  'BAD_NODE_URL',
]);

/** Runs a command line of the program in the place of the run that showed it. */
type Runner = (argv: string[]) => Promise<{ code: number | null; stdout: string; stderr: string }>;

/**
 * The line in a form that a test may run: it only reads, or stops before its first write, and ends by itself. null: it
 * may not be run.
 */
export async function harmless(line: string): Promise<string[] | null> {
  const words = shellWords(line).slice(1);
  config ??= Config.load({ root });
  const known = await config;
  const length = [3, 2, 1].find((count) => known.commandIDs.includes(words.slice(0, count).join(':')));
  const id = words.slice(0, length ?? 0).join(':');
  // A word in capitals stands for what only the reader knows.
  if (length === undefined || NOT_RUN.test(id) || words.some((word) => /^[A-Z][A-Z_]+$/.test(word) && id !== 'explain'))
    return null;
  const loaded = (await known.findCommand(id, { must: true }).load()) as Command.Class;
  const flags = { ...loaded.baseFlags, ...loaded.flags };
  const has = (flag: string): boolean => words.some((word) => word === `--${flag}`);
  if (words.includes('--help')) return [...words];
  const more = [
    ...('dry-run' in flags && !has('dry-run') && !words.includes('-n') ? ['--dry-run'] : []),
    ...(has('watch') && !has('count') ? ['--count', '1'] : []),
    ...(has('follow') ? ['--timeout', '100ms'] : []),
    ...(ENDLESS[id] ?? []),
  ];
  return [...words, ...more.filter((word, at) => !(word.startsWith('--') && has(word.slice(2))) || at > 0)];
}

/** A test file runs lines with the same command and the same flags only once. */
const tried = new Set<string>();

/** `corrected`: the line is what the user typed, without the mistake. It may name a cluster that does not exist. */
async function runProblem(line: string, run: Runner, corrected: boolean): Promise<string | null> {
  const argv = await harmless(line);
  if (argv === null) return null;
  const shape = argv
    .filter((word, at) => word.startsWith('-') || (at < 3 && /^[a-z]+$/.test(word)))
    .map((word) => word.replace(/=.*/, ''))
    .join(' ');
  if (tried.has(shape)) return null;
  tried.add(shape);
  const { code, stdout, stderr } = await run(argv);
  const error = /^([A-Z][A-Z_]+): /m.exec(stderr)?.[1] ?? /"code": ?"([A-Z_]+)"/.exec(stdout)?.[1] ?? '';
  return code === 64 || (!corrected && CANNOT_RUN.has(error))
    ? `run as ${argv.join(' ')} it ends with ${code}: ${stderr}`
    : null;
}

/**
 * Throws when a `next` of this run cannot be pasted as it is. With `run`, lines that only read are also run at once.
 */
export async function checkNext(
  args: readonly string[],
  { code, stdout, stderr }: { code: number | null; stdout: string; stderr: string },
  run?: Runner,
): Promise<void> {
  for (const line of nextLines(stdout, stderr)) {
    // With wrong settings, the next command fails for the same reason.
    const mayRun = run !== undefined && code !== 78;
    const problem = (await nextProblem(line, args)) ?? (mayRun ? await runProblem(line, run, code === 64) : null);
    if (problem !== null) throw new Error(`seq ${args.join(' ')} says next: ${line}: ${problem}`);
  }
}
