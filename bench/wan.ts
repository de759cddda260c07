// What do links of a real distance cost? Every connection of a sequencer to a node goes through the lab's own proxy, which
// delays the bytes of both directions. Measured: a submission, a planned hand-over (SIGTERM), and the time from the end of
// a killed leader's lease to the next commit, in ms and in round trips. Whoever measures asks the nodes directly.
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { runs } from './failover.js';
import { quantile, rowOf } from './harness/statistics.js';
import { atMost, type Bench, type Measuring } from './harness/words.js';
import { CommitWatch } from './support/commit-watch.js';
import { startSubmitters } from './support/submitters.js';

const ROUND_TRIPS_MS = [10, 50, 100];
/** Longer than any of the round trips: an item must not wait for an empty block that is under way. */
const BLOCK_MS = 500;
const TTL_MS = 2000;
/** What a hand-over and a takeover may take besides round trips. */
const LOOPBACK_MS = 15;
const SUBMITTERS = 4;

function delay(cluster: PrivateCluster, roundTripMs: number): void {
  for (const { name } of cluster.sequencers)
    for (const node of cluster.nodes)
      for (const direction of ['up', 'down'] as const)
        cluster.proxy(name, node.name).set(direction, roundTripMs === 0 ? {} : { delayMs: roundTripMs / 2 });
}

/** ms of one item after the other at the leader. */
async function submissions(cluster: PrivateCluster, count: number): Promise<number[]> {
  const took: number[] = [];
  const leader = await cluster.waitForLeader();
  for (let at = 0; at < count; at += 1) {
    const data = `wan ${at} ${Math.random()}`;
    const from = performance.now();
    const { status, body } = await cluster.submit(leader, [{ key: data, data }], 10_000);
    if (status !== 200) throw new Error(`submit: ${status} ${body}`);
    took.push(performance.now() - from);
  }
  return took;
}

async function overLinks(on: Measuring, roundTripMs: number, loopback: { submitMs: number }): Promise<void> {
  const cluster = await PrivateCluster.start({
    ...{ nodes: 3, sequencers: 2, ttlMs: TTL_MS, blockTimeMs: BLOCK_MS, eager: true, proxies: true },
    runArgs: ['--node-timeout', '600ms'],
  });
  const ports = cluster.nodes.map((node) => node.port);
  const clients = ports.map((port) => new Redis(port, '127.0.0.1', { protocol: 2 }));
  const watch = new CommitWatch(ports);
  const trips = (ms: number): string => `${(ms / roundTripMs).toFixed(1)} round trips`;
  try {
    if (loopback.submitMs === 0) loopback.submitMs = quantile(await submissions(cluster, 50), 0.5);
    delay(cluster, roundTripMs);
    const submit = quantile(await submissions(cluster, on.pick(100, 30)), 0.5);
    const stopSubmitters = startSubmitters(SUBMITTERS, () =>
      cluster.sequencers.map(({ name }) => `http://127.0.0.1:${cluster.port(name)}`),
    );
    try {
      const count = on.pick(20, 5);
      const planned = await runs(on, cluster, watch, clients, 'SIGTERM', count);
      const killed = await runs(on, cluster, watch, clients, 'SIGKILL', count);
      const [gap, takeover] = [quantile(planned.gaps, 0.5), quantile(killed.beyondLease, 0.5)];
      on.table({
        title: `links of ${roundTripMs} ms a round trip`,
        unit: 'ms',
        rows: [
          rowOf(`hand-over: last commit → first commit (${trips(gap)})`, [planned.gaps], 0),
          rowOf('of which: → lock released', [planned.steps.released], 0),
          rowOf('→ probed, votes counted', [planned.steps.voted], 0),
          rowOf('→ promoted, claimed, settled', [planned.steps.promoted], 0),
          rowOf('→ first block seen on two nodes', [planned.steps.wrote], 0),
          rowOf(`kill -9: end of the lease → first commit (${trips(takeover)})`, [killed.beyondLease], 0),
        ],
      });
      const of = (what: string) => `${roundTripMs} ms: ${what}, p50`;
      on.figure({
        what: of('a submission (goal: 1 round trip and what loopback takes)'),
        ...{ value: submit, unit: 'ms', goal: atMost(roundTripMs + loopback.submitMs) },
      });
      on.figure({
        what: of('hand-over (goal: 5 round trips and 15 ms)'),
        ...{ value: gap, unit: 'ms', goal: atMost(5 * roundTripMs + LOOPBACK_MS) },
      });
      on.figure({
        what: of('end of the lease → first commit (goal: 6 round trips and 15 ms)'),
        ...{ value: takeover, unit: 'ms', goal: atMost(6 * roundTripMs + LOOPBACK_MS) },
      });
    } finally {
      await stopSubmitters();
    }
  } finally {
    watch.stop();
    for (const client of clients) client.disconnect();
    await cluster.close();
  }
}

export const bench: Bench = {
  title: 'links of 10, 50 and 100 ms a round trip: a submission, a hand-over, a takeover',
  limitS: 600,
  async run(on) {
    const loopback = { submitMs: 0 };
    for (const roundTripMs of ROUND_TRIPS_MS) {
      if (!on.wants(`${roundTripMs} ms`)) continue;
      on.say(`links of ${roundTripMs} ms`);
      await overLinks(on, roundTripMs, loopback);
    }
    on.note('the proxies delay in user space: their own cost, some tenths of a ms, is in every figure');
  },
};
