// What does filling a node anew cost the blocks that are committed meanwhile, and how fast is it? 80 MB are retained.
// One node of three loses its data again and again while one client submits, one block each (eager), on real processes.
// Rounds with and without the filling take turns, and are compared in pairs (docs/PROTOCOL.md section 8).
import { Redis } from 'ioredis';
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { quantile, ratioOfRounds, ratioOfTails, rowOf, spread } from './harness/statistics.js';
import { atLeast, atMost, type Bench } from './harness/words.js';
import { itemsBody, submitClient } from './support/load.js';

const NODE = 'r3';
const BLOCKS = 1000;
const BLOCK_BYTES = 80_000;
const LIMIT_MS = 60_000;
/** Watching has a cost too. So, while a client submits, the rounds without filling ask the node just as often. */
const SELDOM_MS = 25;
const OFTEN_MS = 3;

export const bench: Bench = {
  title: 'a node of three is filled with 80 MB: what it costs the commits meanwhile, and how long it takes',
  limitS: 400,
  fullLimitS: 600,
  async run(on) {
    const cluster = await PrivateCluster.start({
      nodes: 3,
      sequencers: 1,
      persist: 'none',
      ttlMs: 6000,
      blockTimeMs: 1000,
      eager: true,
      runArgs: ['--retain-blocks', '50000', '--retain-bytes', '120MB'],
    });
    try {
      const leader = await cluster.waitForLeader();
      const big = submitClient(cluster.port(leader), itemsBody(1, BLOCK_BYTES), 1);
      for (let at = 0; at < BLOCKS; at += 1) await big.send();
      big.close();
      const rate = (ms: number): number => (BLOCKS * BLOCK_BYTES) / 1000 / ms;
      // The load of a cluster that makes a block a second: nothing is reserved for other work. This comes first,
      // before there are small blocks too.
      const idleMs: number[] = [];
      for (let at = 0; at < on.pick(8, 3); at += 1) {
        const killedAt = performance.now();
        await startEmpty(cluster);
        const filled = watchFilling(cluster.port(NODE), OFTEN_MS);
        idleMs.push(await filled.ended);
        filled.stop();
        const backMs = Math.round(performance.now() - killedAt);
        const text = `round ${at + 1}: ${backMs} ms from the kill of its server to the node counting again`;
        on.say(text);
        on.note(text);
      }
      on.figure({
        what: 'begun to admitted, a block a second',
        value: rate(spread(idleMs).value),
        unit: 'MB/s',
        goal: atLeast(24),
      });
      on.figure({ what: 'the slowest of them', value: rate(quantile(idleMs, 1)), unit: 'MB/s' });

      const client = submitClient(cluster.port(leader), itemsBody(1, 200), 1);
      const send = async (): Promise<number> => {
        const startedAt = performance.now();
        await client.send();
        return performance.now() - startedAt;
      };
      const round = async (more: (taken: number) => boolean): Promise<number[]> => {
        const samples: number[] = [];
        while (more(samples.length)) samples.push(await send());
        return samples;
      };
      await round((taken) => taken < 200);
      const well: number[][] = [];
      const filling: number[][] = [];
      const loadedMs: number[] = [];
      for (let at = 0; at < on.pick(4, 2); at += 1) {
        await startEmpty(cluster);
        const filled = watchFilling(cluster.port(NODE), SELDOM_MS);
        await filled.begun;
        let over = false;
        const ended = filled.ended.then((ms) => {
          over = true;
          return ms;
        });
        filling.push(await round(() => !over));
        loadedMs.push(await ended);
        on.say(
          `round ${at + 1}: filled in ${Math.round(loadedMs.at(-1)!)} ms ` +
            `while a client committed ${filling.at(-1)!.length} blocks`,
        );
        const count = filling.at(-1)!.length;
        well.push(await round((taken) => taken < count));
        filled.stop();
      }
      const seconds = (rounds: number[][]): number => rounds.flat().reduce((sum, ms) => sum + ms, 0) / 1000;
      on.table({
        title: `A submission until it is committed, while ${NODE} is filled`,
        unit: 'ms',
        rows: [rowOf('not filling', well, seconds(well)), rowOf('filling', filling, seconds(filling))],
      });
      on.ratio({
        id: 'readmission.p50',
        what: 'p50 of a commit while a node is filled, to that of the rounds between',
        ...ratioOfRounds(well, filling, 0.5),
        goal: atMost(1.1),
      });
      on.ratio({
        id: 'readmission.p99',
        what: 'p99 likewise, over all rounds',
        ...ratioOfTails(well, filling, 0.99),
        goal: atMost(1.1),
        tolerance: 1,
      });
      on.figure({
        what: 'filling while one client commits without a pause',
        value: rate(spread(loadedMs).value),
        unit: 'MB/s',
      });
      client.close();
    } finally {
      await cluster.close();
    }
  },
};

/** A client that kept connecting to the dead port may occupy it for a moment (a connection to itself). */
async function startEmpty(cluster: PrivateCluster): Promise<void> {
  await cluster.kill(NODE);
  cluster.removeData(NODE);
  for (let tries = 0; ; tries += 1) {
    try {
      return await cluster.startProcess(NODE);
    } catch (error) {
      if (tries >= 50 || !String(error).includes('Address already in use')) throw error;
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

/**
 * Reads one small key directly from the server until told to stop. Reports when the re-admission began, and how many ms
 * later the node counted.
 */
function watchFilling(
  port: number,
  everyMs: number,
): { begun: Promise<number>; ended: Promise<number>; stop: () => void } {
  const redis = new Redis(port, '127.0.0.1', { protocol: 2 });
  redis.on('error', () => undefined);
  let stopped = false;
  let seen: { pending: string | null; incarnation: string | null } | null = null;
  const probing = (async () => {
    while (!stopped) {
      const [pending, incarnation] = await redis.hmget('seq:node:admission', 'pending', 'incarnation');
      seen = { pending: pending ?? null, incarnation: incarnation ?? null };
      await new Promise((done) => setTimeout(done, everyMs));
    }
  })();
  probing.catch(() => undefined);
  const until = async (reached: (pending: string | null, incarnation: string | null) => boolean): Promise<number> => {
    for (const limit = performance.now() + LIMIT_MS; performance.now() < limit;) {
      if (seen !== null && reached(seen.pending, seen.incarnation)) return performance.now();
      await Promise.race([probing, new Promise((done) => setTimeout(done, everyMs))]);
    }
    throw new Error(`${NODE} was not admitted within ${LIMIT_MS} ms`);
  };
  const begun = until((pending, incarnation) => pending !== null || incarnation !== null);
  const ended = begun.then(
    async (at) => (await until((pending, incarnation) => pending === null && incarnation !== null)) - at,
  );
  return {
    begun,
    ended,
    stop: () => {
      stopped = true;
      redis.disconnect();
    },
  };
}
