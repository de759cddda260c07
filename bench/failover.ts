// How long can nobody write? From the end of a killed leader's lease to its successor's first commit (kill -9), and
// from the last commit of one leader to the first of the next (SIGTERM, `seq stepdown`; eager). Real processes: three
// nodes, two sequencers, and four submitters that work as `seq submit` does, so that items wait all the time. The logs
// show the time of each step: lock released, probed and votes counted, promoted and claimed, first block.
import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { rowOf, quantile, spread } from './harness/statistics.js';
import { atMost, type Bench, type Measuring } from './harness/words.js';
import { CommitWatch, leaseEnd } from './support/commit-watch.js';
import { startSubmitters } from './support/submitters.js';

const BLOCK_MS = 100;
/** The published estimate: 100 ms until a sequencer sees the expiry, 10 ms to take over. */
const PUBLISHED_MS = 110;
const LIMIT_MS = 20_000;
const SUBMITTERS = 4;
/** How long after its start a sequencer has finished its warm-up. */
const SETTLE_MS = 700;

/** Only a hand-over has `signalled` and `released`. */
interface Steps {
  signalled: number[];
  released: number[];
  voted: number[];
  promoted: number[];
  wrote: number[];
}

/**
 * The wall clock ms of the first line of the log, from this offset on, that has all these parts. NaN when there is
 * none.
 */
function saidAt(logFile: string, from: number, ...parts: string[]): number {
  const line = readFileSync(logFile)
    .subarray(from)
    .toString('utf8')
    .split('\n')
    .find((one) => parts.every((part) => one.includes(part)));
  return line === undefined ? NaN : Date.parse((JSON.parse(line) as { time: string }).time);
}

const tookRole = (logFile: string, from: number, role: string): number =>
  saidAt(logFile, from, '"event":"role"', `"to":"${role}"`);

/** Ends one leader after the other. Returns the ms of each round. */
export async function runs(
  on: Measuring,
  cluster: PrivateCluster,
  watch: CommitWatch,
  clients: Redis[],
  signal: 'SIGKILL' | 'SIGTERM',
  count: number,
): Promise<{ gaps: number[]; beyondLease: number[]; toItems: number[]; steps: Steps }> {
  const beyondLease: number[] = [];
  const toItems: number[] = [];
  const gaps: number[] = [];
  const steps: Steps = { signalled: [], released: [], voted: [], promoted: [], wrote: [] };
  const startedAt = performance.now();
  for (let round = 1; round <= count; round += 1) {
    const leader = await cluster.waitForLeader(LIMIT_MS);
    // A hand-over needs a sequencer that can take over. The takeover of the successor is measured, not its start.
    await cluster.waitFor('a successor that is ready', LIMIT_MS, async () => {
      const others = await Promise.all(
        cluster.sequencers.filter(({ name }) => name !== leader).map(({ name }) => cluster.status(name)),
      );
      return others.some((status) => status?.['ready'] === true) || undefined;
    });
    watch.forget();
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS + Math.random() * 200));
    const successor = cluster.sequencers.find(({ name }) => name !== leader)!.name;
    const [logged, loggedBefore] = [cluster.logEnd(successor), cluster.logEnd(leader)];
    const { epoch } = await cluster.waitFor('a commit', LIMIT_MS, () => watch.last());
    const signalAt = Date.now();
    process.kill(cluster.pid(leader), signal);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const end = signal === 'SIGKILL' ? await leaseEnd(clients) : 0;
    const next = await cluster.waitFor(
      "the successor's first commit",
      LIMIT_MS,
      () => watch.firstAfter(epoch, watch.last(epoch)!.height),
      2,
    );
    gaps.push(next.at - watch.last(epoch)!.at);
    const work = await cluster.waitFor(
      "the successor's first commit of items",
      LIMIT_MS,
      () => watch.firstAfter(epoch, watch.last(epoch)!.height, true),
      2,
    );
    toItems.push(work.at - (signal === 'SIGKILL' ? end : watch.last(epoch)!.at));
    if (signal === 'SIGKILL') beyondLease.push(next.at - end);
    const last = watch.last(epoch)!.at;
    const [promoting, leading] = ['promoting', 'leader'].map((role) =>
      tookRole(cluster.logFile(successor), logged, role),
    ) as [number, number];
    const ended =
      signal === 'SIGKILL' ? end : saidAt(cluster.logFile(leader), loggedBefore, '"event":"leadership-ended"');
    // The steps are known only where this successor won at its first attempt.
    if (leading >= promoting && !Number.isNaN(ended)) {
      if (signal === 'SIGTERM') {
        steps.signalled.push(Math.max(0, signalAt - last));
        steps.released.push(ended - Math.max(signalAt, last));
      }
      for (const [list, ms] of [
        [steps.voted, promoting - ended],
        [steps.promoted, leading - promoting],
        [steps.wrote, next.at - leading],
      ] as const)
        list.push(ms);
    }
    await cluster.waitFor('the old one to be gone', LIMIT_MS, () => cluster.state(leader) === 'dead' || undefined);
    await cluster.startProcess(leader);
    if (round % 10 === 0)
      on.say(`${signal}: ${round} of ${count}, ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
  return { gaps, beyondLease, toItems, steps };
}

/**
 * `seq stepdown`, as an operator runs it. Takes the gap that it reports, in ms. The former leader is the next
 * successor.
 */
async function stepdowns(on: Measuring, cluster: PrivateCluster, count: number): Promise<number[]> {
  const gaps: number[] = [];
  for (let round = 1; round <= count; round += 1) {
    const leader = await cluster.waitForLeader(LIMIT_MS);
    await cluster.waitFor('a successor that is ready', LIMIT_MS, async () => {
      const others = await Promise.all(
        cluster.sequencers.filter(({ name }) => name !== leader).map(({ name }) => cluster.status(name)),
      );
      return others.some((status) => status?.['ready'] === true) || undefined;
    });
    const { gapMs } = (await cluster.ask(['stepdown', '--yes', '--reason', 'measured'])) as { gapMs: number };
    gaps.push(gapMs);
    if (round % 10 === 0) on.say(`stepdown: ${round} of ${count}`);
  }
  return gaps;
}

export const bench: Bench = {
  title: 'how long nobody writes: kill -9, a planned hand-over, a stepdown',
  limitS: 240,
  async run(on) {
    const count = on.pick(100, 20);
    const ttlMs = on.pick(1000, 500);
    const cluster = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs, blockTimeMs: BLOCK_MS, eager: true });
    const ports = cluster.nodes.map((node) => node.port);
    const clients = ports.map((port) => new Redis(port, '127.0.0.1', { protocol: 2 }));
    const watch = new CommitWatch(ports);
    const stopSubmitters = startSubmitters(SUBMITTERS, () =>
      cluster.sequencers.map(({ name }) => `http://127.0.0.1:${cluster.port(name)}`),
    );
    const tenth = (values: number[]): number[][] =>
      Array.from({ length: 10 }, (_, at) => values.filter((__, index) => index % 10 === at)).filter(
        (list) => list.length > 0,
      );
    const ratio = (values: number[], q: number) => ({
      ...spread(tenth(values).map((part) => quantile(part, q) / PUBLISHED_MS)),
      value: quantile(values, q) / PUBLISHED_MS,
    });
    try {
      if (on.wants('kill')) {
        const { gaps, beyondLease, toItems, steps } = await runs(on, cluster, watch, clients, 'SIGKILL', count);
        on.table({
          title: `kill -9, ttl ${ttlMs} ms, block time ${BLOCK_MS} ms`,
          unit: 'ms',
          rows: [
            rowOf('end of the lease → next commit', tenth(beyondLease), 0),
            rowOf('end of the lease → next commit of items', tenth(toItems), 0),
            rowOf('last commit → next commit', tenth(gaps), 0),
          ],
        });
        on.table({
          title: "of which, by the successor's log",
          unit: 'ms',
          rows: [
            rowOf('end of the lease → probed, votes counted', tenth(steps.voted), 0),
            rowOf('→ promoted, claimed, settled', tenth(steps.promoted), 0),
            rowOf('→ first block seen on two nodes', tenth(steps.wrote), 0),
          ],
        });
        on.figure({
          what: 'kill -9: expiry → next commit, p50',
          value: quantile(beyondLease, 0.5),
          unit: 'ms',
          goal: atMost(10),
        });
        on.figure({
          what: 'kill -9: expiry → next commit, p99',
          value: quantile(beyondLease, 0.99),
          unit: 'ms',
          goal: atMost(60),
        });
        on.ratio({
          id: 'failover.kill.p50',
          what: `kill -9: expiry → next commit, over the published ${PUBLISHED_MS} ms`,
          ...ratio(beyondLease, 0.5),
          goal: atMost(10 / PUBLISHED_MS),
          tolerance: 1,
        });
      }
      if (on.wants('hand-over')) {
        const { gaps, toItems, steps } = await runs(on, cluster, watch, clients, 'SIGTERM', count);
        on.table({
          title: 'planned hand-over (SIGTERM), --eager, items waiting',
          unit: 'ms',
          rows: [
            rowOf('last commit of one → first of the other', tenth(gaps), 0),
            rowOf('last commit of one → first of items of the other', tenth(toItems), 0),
          ],
        });
        on.table({
          title: 'of which, by the logs of both',
          unit: 'ms',
          rows: [
            rowOf('last commit → the signal comes (0: while a block was under way)', tenth(steps.signalled), 0),
            rowOf('→ lock released', tenth(steps.released), 0),
            rowOf('→ probed, votes counted', tenth(steps.voted), 0),
            rowOf('→ promoted, claimed, settled', tenth(steps.promoted), 0),
            rowOf('→ first block seen on two nodes', tenth(steps.wrote), 0),
          ],
        });
        on.figure({
          what: 'hand-over: last commit → first commit, p50',
          value: quantile(gaps, 0.5),
          unit: 'ms',
          goal: atMost(10),
        });
        on.figure({
          what: 'hand-over: last commit → first commit, p99',
          value: quantile(gaps, 0.99),
          unit: 'ms',
          goal: atMost(40),
        });
        on.ratio({
          id: 'failover.handover.p50',
          what: `hand-over: last → first commit, over the published ${PUBLISHED_MS} ms`,
          ...ratio(gaps, 0.5),
          goal: atMost(10 / PUBLISHED_MS),
          tolerance: 1,
        });
      }
      if (on.wants('stepdown')) {
        const gaps = await stepdowns(on, cluster, count);
        on.table({
          title: 'seq stepdown, --eager, items waiting: data.gapMs',
          unit: 'ms',
          rows: [rowOf('last commit of one → first of the other', tenth(gaps), 0)],
        });
        on.figure({
          what: 'stepdown: data.gapMs, p50 (all of it counted as beyond the block time: work waits)',
          value: quantile(gaps, 0.5),
          unit: 'ms',
          goal: atMost(30),
        });
        on.figure({ what: 'stepdown: data.gapMs, p99', value: quantile(gaps, 0.99), unit: 'ms' });
      }
      on.note('p99 of fewer than 100 runs is the worst run, or near it.');
    } finally {
      await stopSubmitters().finally(async () => {
        watch.stop();
        for (const client of clients) client.disconnect();
        await cluster.close();
      });
    }
  },
};
