// Acts on the nodes of a lab: reads one directly, changes its keys, or waits until it counts again and is identical to
// the others.
import { cpSync, rmSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { NodeView } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { differences, readStreams, type Lab } from './lab.js';

/** `<id>.<generation>` as the nodes name it. */
export async function clusterOf(lab: Lab): Promise<string> {
  const { cluster } = (await lab.ask(['status', '--node-timeout', '2s'])) as { cluster: string };
  return cluster;
}

/** What one node reports about itself. Throws when it does not answer. */
export async function probe(lab: Lab, name: string, cluster: string): Promise<NodeView> {
  const node = new RedisNode({ id: name, url: lab.url(name), identity: { cluster, lane: '' } });
  try {
    const reply = await node.call({ script: 'inspect' }, 3000);
    if (reply.outcome !== 'accepted') throw new Error(`${name}: ${JSON.stringify(reply)}`);
    return reply.value;
  } finally {
    await node.close();
  }
}

/** Changes that no script makes, through a plain client on one node. */
export async function meddle<T>(lab: Lab, name: string, act: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(lab.port(name), '127.0.0.1');
  redis.on('error', () => undefined);
  try {
    return await act(redis);
  } finally {
    redis.disconnect();
  }
}

/** Waits until the node is admitted under another incarnation than `before` ('' = any). Returns the ms. */
export async function untilAdmitted(
  lab: Lab,
  name: string,
  cluster: string,
  before: string,
  limitMs = 120_000,
): Promise<{ ms: number; view: NodeView }> {
  const from = performance.now();
  const view = await lab.waitFor(`${name} to be admitted again`, limitMs, async () => {
    const seen = await probe(lab, name, cluster).catch(() => undefined);
    return seen?.admission === 'admitted' && seen.incarnation !== before ? seen : undefined;
  });
  return { ms: performance.now() - from, view };
}

/** Waits until all nodes retain the same range with the same block at every height. Writers may continue meanwhile. */
export async function untilIdentical(lab: Lab, limitMs = 120_000): Promise<void> {
  await lab.waitFor('identical nodes', limitMs, async () => {
    const streams = await readStreams(lab);
    const all = [...streams.values()];
    const heads = all.map((entries) => entries.at(-1)?.height ?? 0);
    const floors = all.map((entries) => entries[0]?.height ?? 0);
    const close = Math.max(...heads) - Math.min(...heads) <= 2 && Math.max(...floors) - Math.min(...floors) <= 2;
    const other = differences(streams);
    if (other.length > 1 || (other.length === 1 && !other[0]!.startsWith(`${Math.min(...heads)}:`)))
      throw new Error(other.join('\n'));
    return close && other.length === 0 ? true : undefined;
  });
}

/** Copies a node's data directory. The server must not run while its data is brought back. */
export function copyData(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true });
  cpSync(from, to, { recursive: true });
}
