// How much does one half-alive node of three slow down a commit? One client's `POST /v1/submit` until it is
// acknowledged, one block each (eager), on real processes. Rounds with and without the half-alive node take turns in
// the same cluster. Each round with it is compared with the round before it. While two other nodes answer, no commit
// may wait for the silent one (docs/PROTOCOL.md section 6).
import { PrivateCluster } from '../src/lab/private-cluster.js';
import { median, rowOf, spread } from './harness/statistics.js';
import { atMost, type Bench } from './harness/words.js';
import { itemsBody, submitClient } from './support/load.js';

const ILL = 'r3';
const GOAL_MS = 5;
const WELL_LIMIT_MS = 30_000;

interface Ill {
  name: string;
  begin(cluster: PrivateCluster): void | Promise<void>;
  end(cluster: PrivateCluster): void;
}
type Proxy = ReturnType<PrivateCluster['proxy']>;

const proxyOf = (cluster: PrivateCluster): Proxy => cluster.proxy(cluster.sequencers[0]!.name, ILL);
const through = (name: string, act: (proxy: Proxy) => void): Ill => ({
  name,
  begin: (cluster) => act(proxyOf(cluster)),
  end: (cluster) => {
    proxyOf(cluster).heal();
    proxyOf(cluster).cut();
  },
});

const ILLS: Ill[] = [
  { name: 'SIGSTOPped', begin: (cluster) => cluster.pause(ILL), end: (cluster) => cluster.unpause(ILL) },
  through('black-holed', (proxy) => proxy.blackHole()),
  through('slow by 2 s', (proxy) => proxy.set('down', { delayMs: 2000 })),
  through('replies dropped', (proxy) => proxy.dropReplies()),
  through('speaks garbage', (proxy) => proxy.set('down', { garbage: true })),
];

export const bench: Bench = {
  title: 'a commit while one node of three is half alive, against all well',
  limitS: 100,
  fullLimitS: 500,
  async run(on) {
    const cluster = await PrivateCluster.start({
      nodes: 3,
      sequencers: 1,
      persist: 'none',
      ttlMs: 3000,
      blockTimeMs: 1000,
      eager: true,
      proxies: true,
    });
    try {
      const leader = await cluster.waitForLeader();
      const client = submitClient(cluster.port(leader), itemsBody(1, 200), 1);
      const round = async (count: number): Promise<number[]> => {
        const samples: number[] = [];
        for (let at = 0; at < count; at += 1) {
          const startedAt = performance.now();
          await client.send();
          samples.push(performance.now() - startedAt);
        }
        return samples;
      };
      const count = on.pick(200, 60);
      await round(count);
      for (const ill of ILLS) {
        if (!on.wants(ill.name)) continue;
        const well: number[][] = [];
        const sick: number[][] = [];
        for (let at = 0; at < on.pick(8, 3); at += 1) {
          await cluster.waitFor(`${ILL} to be up to date`, WELL_LIMIT_MS, async () => {
            // On a machine that is busy for a moment, maybe no node answers within its limit. Then try again.
            const status = (await cluster.ask(['status']).catch(() => null)) as { nodes: { state: string }[] } | null;
            return status?.nodes.every(({ state }) => state === 'OK') === true ? true : undefined;
          });
          well.push(await round(count));
          await ill.begin(cluster);
          sick.push(await round(count));
          ill.end(cluster);
        }
        const secondsOf = (rounds: number[][]): number => rounds.flat().reduce((sum, ms) => sum + ms, 0) / 1000;
        on.table({
          title: `A submission until it is committed, ${ILL} ${ill.name}`,
          unit: 'ms',
          rows: [rowOf('all well', well, secondsOf(well)), rowOf(ill.name, sick, secondsOf(sick))],
        });
        on.figure({
          what: `p50 with ${ILL} ${ill.name}, more than with all well`,
          value: spread(sick.map((of, at) => median(of) - median(well[at]!))).value,
          unit: 'ms',
          goal: atMost(GOAL_MS),
        });
      }
      client.close();
    } finally {
      await cluster.close();
    }
  },
};
