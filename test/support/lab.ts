// A cluster of real processes for one test: `await withLab({ nodes: 3, sequencers: 2, ttlMs: 500, blockTimeMs: 100 },
// async (lab) => …)`. It needs the built program (dist/). All processes end with the test. If the test fails, its error
// has the last lines of their logs.
import type { Entry } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { PrivateCluster, type PrivateClusterOptions } from '../../src/lab/private-cluster.js';

export type Lab = PrivateCluster;
export type LabOptions = PrivateClusterOptions;

/** Short timing: a failover takes well under a second. */
export const QUICK: LabOptions = { nodes: 3, sequencers: 2, ttlMs: 500, blockTimeMs: 100 };

export async function withLab<T>(options: LabOptions, body: (lab: Lab) => Promise<T>): Promise<T> {
  const lab = await PrivateCluster.start({ ...QUICK, ...options });
  try {
    return await body(lab);
  } catch (error) {
    const logs = lab.places.flatMap(({ name }) => [`--- ${name} (${lab.state(name)})`, ...lab.log(name, 15)]);
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${logs.join('\n')}`, { cause: error });
  } finally {
    await lab.close();
  }
}

/**
 * The whole stream of each node, read from the server itself. For checks that nodes are identical. Throws when a node
 * does not answer.
 */
export async function readStreams(
  lab: Lab,
  lane = '',
  names = lab.nodes.map((node) => node.name),
): Promise<Map<string, Entry[]>> {
  const streams = new Map<string, Entry[]>();
  for (const name of names) {
    const node = new RedisNode({ id: name, url: lab.url(name), identity: { cluster: '', lane } });
    try {
      const read = await node.read({ from: 1, to: Number.MAX_SAFE_INTEGER, limit: 100_000, data: true }, 5000);
      if (read.outcome !== 'accepted') throw new Error(`${name}: ${JSON.stringify(read)}`);
      if (read.value.damaged.length > 0)
        throw new Error(`${name} holds damaged entries: ${JSON.stringify(read.value.damaged)}`);
      streams.set(name, read.value.entries);
    } finally {
      await node.close();
    }
  }
  return streams;
}

/**
 * `height hash` of every height that all nodes retain and where they differ. [] means that they are identical there.
 */
export function differences(streams: ReadonlyMap<string, readonly Entry[]>): string[] {
  const found: string[] = [];
  const heights = [...streams.values()].map((entries) => entries.map((entry) => entry.height));
  const from = Math.max(...heights.map((of) => of[0] ?? 1));
  const to = Math.min(...heights.map((of) => of.at(-1) ?? 0));
  for (let height = from; height <= to; height++) {
    const hashes = [...streams].map(
      ([name, entries]) => `${name}=${entries.find((entry) => entry.height === height)?.hash ?? 'missing'}`,
    );
    if (new Set(hashes.map((text) => text.slice(text.indexOf('=')))).size > 1)
      found.push(`${height}: ${hashes.join(' ')}`);
  }
  return found;
}
