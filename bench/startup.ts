// What does a start cost, compared with bare node? `--version` and `--help`, commands that need no Redis, `status` with
// three nodes; in turns, in new processes. Then what does idling cost: processor time and memory of `seq run`, and of
// the live screen (bench/watch.ts).
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { interleave } from './harness/rounds.js';
import { atMost, type Bench, type Measuring } from './harness/words.js';
import { usage } from './support/process.js';
import { runNode, runSeq } from './support/program.js';

const BARE = 'node -e 0';

async function starts(on: Measuring, nodeFlags: string[]): Promise<void> {
  const nodes = nodeFlags.flatMap((flag) => ['--node', flag]);
  const cases: [what: string, id: string, args: string[], goal: number][] = [
    ['seq --version', 'version', ['--version'], 1.5],
    ['seq --help', 'help', ['--help'], 1.5],
    ['seq explain FENCING_ERROR', 'explain', ['explain', 'FENCING_ERROR'], 2.5],
    ['seq context ls', 'context', ['context', 'ls'], 2.5],
    ['seq config show', 'config', ['config', 'show', ...nodes], 2.5],
    ['seq status, three nodes', 'status', ['status', ...nodes], 4],
  ];
  const measured = await interleave(
    [
      {
        name: BARE,
        work: async () => {
          await runNode(['-e', '0']);
        },
      },
      ...cases.map(([name, , args]) => ({
        name,
        work: async () => {
          await runSeq(args);
        },
      })),
    ],
    { rounds: on.pick(20, 8), perRound: on.pick(5, 2), warm: 1 },
  );
  on.table({
    title: 'From start to end of the process',
    unit: 'ms',
    rows: measured.rows.map((row) => ({ ...row, perSecond: null })),
  });
  for (const [what, id, , goal] of cases)
    on.ratio({
      id: `startup.${id}`,
      what: `${what} over bare node`,
      ...measured.ratio(BARE, what),
      goal: atMost(goal),
      tolerance: 0.3,
    });
}

const WINDOW_MS = 2000;
const LONGEST_SETTLING_MS = 20_000;

/** Processor time of each process over this time, in per cent of one processor. All processes are measured at once. */
async function spent(pids: readonly number[], ms: number): Promise<number[]> {
  const before = pids.map((pid) => usage(pid).cpuMs);
  const at = performance.now();
  await new Promise((done) => setTimeout(done, ms));
  return pids.map((pid, n) => ((usage(pid).cpuMs - before[n]!) / (performance.now() - at)) * 100);
}

/**
 * A process that has just started compiles and warms up. That is over when a time window takes no less than the one
 * before it.
 */
async function settle(pids: readonly number[]): Promise<void> {
  const sum = async (): Promise<number> => (await spent(pids, WINDOW_MS)).reduce((a, b) => a + b, 0);
  const until = performance.now() + LONGEST_SETTLING_MS;
  for (let before = await sum(); performance.now() < until;) {
    const now = await sum();
    if (now >= before * 0.9) return;
    before = now;
  }
}

async function idle(on: Measuring, cluster: PrivateCluster): Promise<void> {
  const leader = await cluster.waitForLeader();
  const pids = cluster.sequencers.map(({ name }) => cluster.pid(name));
  await settle(pids);
  const seconds = on.pick(30, 10);
  const shares = await spent(pids, seconds * 1000);
  cluster.sequencers.forEach(({ name }, n) => {
    const role = name === leader ? 'leader' : 'follower';
    on.figure({
      what: `seq run, idle ${role} (a block a second): processor`,
      value: shares[n]!,
      unit: '%',
      goal: atMost(3),
    });
    on.figure({
      what: `seq run, idle ${role}: resident memory`,
      value: usage(pids[n]!).rssMb,
      unit: 'MB',
      goal: atMost(150),
    });
  });
}

/** bench/watch.ts measures and prints. This reads its lines. */
async function screen(on: Measuring): Promise<void> {
  const child = spawn(process.execPath, [resolve('scripts/bench.mjs'), 'watch', 'live', String(on.pick(30, 5))], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let text = '';
  const take = (chunk: Buffer): void => {
    text = (text + chunk.toString()).slice(-20_000);
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const end = (): void => {
    try {
      process.kill(-child.pid!, 'SIGTERM');
    } catch {
      /* the process is gone */
    }
  };
  process.once('exit', end);
  const timer = setTimeout(end, on.pick(180_000, 40_000));
  await new Promise((done) => child.once('close', done));
  clearTimeout(timer);
  process.off('exit', end);
  let size = '';
  let found = 0;
  for (const line of text.split('\n')) {
    size = /^(\d+x\d+)\b/.exec(line)?.[1] ?? size;
    const figure = /^\s+(\S.*?)\s{2,}asked (<=?) ([\d.]+) (\S+)\s+measured ([\d.]+)/.exec(line);
    if (figure === null) continue;
    found += 1;
    const [, what, , asked, unit, measured] = figure as unknown as string[];
    on.figure({
      what: `seq watch ${size}: ${what}`,
      value: Number(measured),
      unit: unit === 'KB/s' ? 'KB' : (unit as 'MB'),
      goal: atMost(Number(asked)),
    });
  }
  if (found === 0)
    on.skip(
      `seq watch: npm run bench -- watch live gave no figures: ${
        text
          .trim()
          .split('\n')
          .find((line) => /error/i.test(line))
          ?.trim() ?? 'it said nothing'
      }`,
    );
}

export const bench: Bench = {
  title: 'start-up over bare node, and what idling costs',
  limitS: 120,
  async run(on) {
    const cluster = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: 3000, blockTimeMs: 1000 });
    try {
      if (on.wants('start')) await starts(on, cluster.nodeFlags);
      if (on.wants('idle')) await idle(on, cluster);
    } finally {
      await cluster.close();
    }
    if (on.wants('watch')) await screen(on);
  },
};
