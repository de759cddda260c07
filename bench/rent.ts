// What does each shortcut buy (docs/ARCHITECTURE.md, "What cleverness buys")? Both sides of each shortcut, in turns, in
// one run. A ratio is the plain way divided by the shortcut: 1 means that the shortcut buys nothing.
import { Redis } from 'ioredis';
import type { Shortcut } from '../src/core/shortcuts.js';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { interleave } from './harness/rounds.js';
import { quantile, ratioOfRounds, rowOf } from './harness/statistics.js';
import { atLeast, type Bench, type Measuring } from './harness/words.js';
import { CommitWatch, leaseEnd } from './support/commit-watch.js';
import { Lane, Servers } from './support/lane.js';
import { runSeq } from './support/program.js';

const KB = 1024;
const LIMIT_MS = 20_000;
/** How long after its start a sequencer has finished its warm-up. */
const SETTLE_MS = 1500;
const BATCH = 50;

const off = (...shortcuts: Shortcut[]): NodeJS.ProcessEnv => ({ SEQ_DISABLE: shortcuts.join() });

/** One block, in turns: as a transaction, by its script, and by its script through ioredis. */
async function commits(on: Measuring): Promise<void> {
  const wants = { latency: on.wants('fast-append'), processor: on.wants('own-resp') };
  if (!wants.latency && !wants.processor) return;
  const servers = await Servers.start(3, 'none');
  const data = Buffer.alloc(KB, 7);
  const lanes = {
    'all shortcuts': new Lane(servers, 'all', 1000, data),
    'without fast-append': new Lane(servers, 'script', 1000, data, { fastAppend: false }),
    'without own-resp and fast-append': new Lane(servers, 'client', 1000, data, { ownResp: false }),
  };
  const [fast, script, client] = Object.keys(lanes) as (keyof typeof lanes)[] as [string, string, string];
  const sides = Object.entries(lanes);
  try {
    for (const lane of Object.values(lanes)) await lane.begin(on.say);
    const warm = on.pick(60, 30);
    const latency = await interleave(
      sides.map(([name, lane]) => ({ name, work: () => lane.commit() })),
      { rounds: on.pick(40, 16), perRound: on.pick(100, 50), warm },
    );
    on.table({ title: '1 KB block, 3 servers without persistence', unit: 'ms', rows: latency.rows });
    if (wants.latency)
      on.ratio({
        id: 'rent.fast-append.p50',
        what: "fast-append: a commit's p50 without it, over with it",
        ...latency.ratio(fast, script),
        goal: atLeast(1.05),
      });
    const ofServers: Record<string, number[][]> = {};
    const processor = await interleave(
      sides.map(([name, lane]) => ({
        name,
        work: async () => {
          const [before, serversBefore] = [process.cpuUsage(), await servers.processorSeconds()];
          for (let at = 0; at < BATCH; at += 1) await lane.commit();
          const { user, system } = process.cpuUsage(before);
          (ofServers[name] ??= []).push([((await servers.processorSeconds()) - serversBefore) / BATCH]);
          return (user + system) / 1000 / BATCH;
        },
      })),
      { rounds: on.pick(60, 20), perRound: 1, warm: 4 },
    );
    on.table({
      title: 'Processor time of the leader for a commit (hash, encoding, answers)',
      unit: 'ms',
      rows: processor.rows.map((row) => ({ ...row, perSecond: null })),
    });
    if (wants.processor)
      on.ratio({
        id: 'rent.own-resp.processor',
        what: "own-resp: the leader's processor time for a commit without it, over with it",
        ...processor.ratio(script, client),
        goal: atLeast(1.05),
      });
    if (wants.latency)
      on.ratio({
        id: 'rent.fast-append.servers',
        what: "fast-append: the servers' processor time for a commit without it, over with it",
        ...ratioOfRounds(ofServers[fast]!.slice(4), ofServers[script]!.slice(4), 0.5),
        goal: atLeast(1.05),
      });
  } finally {
    await Promise.all(Object.values(lanes).map((lane) => lane.close()));
    await servers.stop();
  }
}

/** Every second successor starts without its warm-up. Each successor takes over once, so this is its first takeover. */
async function takeovers(on: Measuring): Promise<void> {
  if (!on.wants('warm-up')) return;
  const cluster = await PrivateCluster.start({ nodes: 3, sequencers: 2, ttlMs: 500, blockTimeMs: 50 });
  const ports = cluster.nodes.map((node) => node.port);
  const clients = ports.map((port) => new Redis(port, '127.0.0.1', { protocol: 2 }));
  const watch = new CommitWatch(ports);
  const tookMs = { warm: [] as number[][], cold: [] as number[][] };
  const rounds = 2 * on.pick(40, 6);
  try {
    // No round started the first successor, so its takeover does not count.
    let successor: keyof typeof tookMs | null = null;
    for (let round = 0; round <= rounds; round += 1) {
      const leader = await cluster.waitForLeader(LIMIT_MS);
      await cluster.waitFor('a successor that is ready', LIMIT_MS, async () => {
        const others = cluster.sequencers.filter(({ name }) => name !== leader);
        const statuses = await Promise.all(others.map(({ name }) => cluster.status(name)));
        return statuses.some((status) => status?.['ready'] === true) || undefined;
      });
      watch.forget();
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS + Math.random() * 100));
      const { epoch } = await cluster.waitFor('a commit', LIMIT_MS, () => watch.last());
      process.kill(cluster.pid(leader), 'SIGKILL');
      await new Promise((resolve) => setTimeout(resolve, 20));
      const end = await leaseEnd(clients);
      const next = await cluster.waitFor(
        "the successor's first commit",
        LIMIT_MS,
        () => watch.firstAfter(epoch, watch.last(epoch)!.height),
        2,
      );
      if (successor !== null) tookMs[successor].push([next.at - end]);
      await cluster.waitFor('the old one to be gone', LIMIT_MS, () => cluster.state(leader) === 'dead' || undefined);
      successor = round % 2 === 0 ? 'warm' : 'cold';
      if (successor === 'cold') Object.assign(process.env, off('warm-up'));
      try {
        await cluster.startProcess(leader);
      } finally {
        delete process.env['SEQ_DISABLE'];
      }
    }
    const p50 = (rounds: number[][]): number => quantile(rounds.flat(), 0.5);
    on.table({
      title: 'kill -9, ttl 500 ms: end of the lease → first commit of a process that has never led',
      unit: 'ms',
      rows: [rowOf('with warm-up', tookMs.warm, 0), rowOf('without warm-up', tookMs.cold, 0)],
    });
    on.ratio({
      id: 'rent.warm-up.p50',
      what: 'warm-up: the first takeover without it, over with it',
      ...ratioOfRounds(tookMs.warm, tookMs.cold, 0.5),
      value: p50(tookMs.cold) / p50(tookMs.warm),
      goal: atLeast(1.05),
      tolerance: 1,
    });
  } finally {
    watch.stop();
    for (const client of clients) client.disconnect();
    await cluster.close();
  }
}

async function starts(on: Measuring): Promise<void> {
  if (!on.wants('command-index')) return;
  const args = ['config', 'show', '--node', 'r1=redis://127.0.0.1:1'];
  const measured = await interleave(
    [
      { name: 'with command-index', env: {} },
      { name: 'without command-index', env: off('command-index') },
    ].map(({ name, env }) => ({
      name,
      work: async () => {
        await runSeq(args, { env });
      },
    })),
    { rounds: on.pick(30, 10), perRound: on.pick(4, 2), warm: 1 },
  );
  on.table({
    title: 'seq config show, from start to end of the process',
    unit: 'ms',
    rows: measured.rows.map((row) => ({ ...row, perSecond: null })),
  });
  on.ratio({
    id: 'rent.command-index.start',
    what: 'command-index: a start without it, over with it',
    ...measured.ratio('with command-index', 'without command-index'),
    goal: atLeast(1.05),
  });
}

export const bench: Bench = {
  title: 'what each shortcut buys: the plain way over the shortcut',
  limitS: 240,
  async run(on) {
    await commits(on);
    await starts(on);
    await takeovers(on);
  },
};
