// Whose nodes are these, when the first question brought no answer? Nothing may be called foreign for that; and
// nothing may be changed.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openCluster } from '../../src/cli/compose/open-cluster.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { newHome, runSeq } from '../support/spawn-seq.js';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js';
import { surroundings } from '../../src/cli/cluster/settings.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
let servers: RedisServer[] = [];
let proxies: TcpProxy[] = [];

beforeAll(async () => {
  servers = await Promise.all([1, 2, 3, 4].map(() => startRedis()));
  proxies = await Promise.all(servers.map((server) => startTcpProxy(server.port)));
  const open = (of: RedisServer[], cluster: string) =>
    of.map((server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster, lane: '' } }));
  for (const [of, cluster] of [
    [servers.slice(0, 3), CLUSTER],
    [servers.slice(3), 'beef000000000000.1'],
  ] as const) {
    const nodes = open([...of], cluster);
    const writer = new ChainWriter(nodes, cluster, '', 'seq-a', 600_000);
    await writer.bootstrap();
    await writer.lead();
    await writer.write();
    await Promise.all(nodes.map((node) => node.close()));
  }
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

/** What `seq status` sees, when these were silent while the cluster was opened and answer afterwards. */
async function seen(which: number[], silentAtFirst: number[]): Promise<string> {
  for (const at of silentAtFirst) proxies[at]!.onConnect('refuse');
  const around = await surroundings({ node: which.map((at) => proxies[at]!.url), 'node-timeout': 2000 }, {});
  const cluster = await openCluster(around, { purpose: 'read' });
  for (const at of silentAtFirst) proxies[at]!.onConnect('accept');
  try {
    for (const until = performance.now() + 20_000; ;) {
      const view = await inspectCluster({
        nodes: cluster.nodes,
        limitMs: 2000,
        clock: systemClock,
        expectedCluster: cluster.settings.cluster,
      });
      // The client retries a refused connection after a moment.
      if (view.answered < which.length && performance.now() < until) continue;
      return `${view.verdict} ${view.nodes.map((n) => n.state).join(' ')}`;
    }
  } finally {
    await cluster.close();
  }
}

describe('discovery', () => {
  test.each([
    ['all answer', [0, 1, 2], [], 'OK OK OK OK'],
    ['none answered at first', [0, 1, 2], [0, 1, 2], 'OK OK OK OK'],
    ['one answered at first', [0, 1, 2], [1, 2], 'OK OK OK OK'],
    ['one did not', [0, 1, 2], [0], 'OK OK OK OK'],
    ['a stranger alone answered at first', [0, 1, 3], [0, 1], 'WARN OK OK FOREIGN'],
  ])('%s → judged by what they say afterwards', async (_, which, silentAtFirst, expected) => {
    expect(await seen(which, silentAtFirst)).toBe(expected);
  });

  test('an act verb that nobody answered → 69, nothing was changed', async () => {
    const { code, stderr } = await runSeq(newHome(), [
      'hold',
      '--for',
      '1s',
      '--reason',
      'x',
      '--node',
      'redis://127.0.0.1:1',
      '--node',
      'redis://127.0.0.1:2',
    ]);
    expect([code, stderr]).toEqual([
      69,
      expect.stringMatching(/^NO_ANSWER: none of 2 nodes answered.*\n {2}why: .*\n {2}changed: nothing/),
    ]);
  });
});
