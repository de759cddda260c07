// Does a sequencer end when its lane was removed (`seq lane rm`) while nobody saw it? It was paused, so that its presence
// record had expired. It must not wait for ever for nodes that will never answer it again.
import { expect, test } from 'vitest';
import type { SeqError } from '../../src/core/errors.js';
import { memoryIdentity } from '../support/memory-node.js';
import { IDENTITY, VirtualCluster } from '../support/virtual-cluster.js';

const identity = memoryIdentity(IDENTITY);

function retire(cluster: VirtualCluster, ids: readonly string[], movedTo: string): void {
  for (const server of cluster.servers.filter(({ id }) => ids.includes(id))) {
    const expect = server.state.record!.incarnation;
    server.apply({ script: 'retire_node', expect, movedTo }, identity, server.id);
  }
}

async function led() {
  const cluster = new VirtualCluster();
  const a = cluster.start('seq-a');
  await cluster.until(() => cluster.leader() === a, 2000, 'a leader');
  const b = cluster.start('seq-b');
  await cluster.until(() => b.store.head().height > 3, 3000, 'a follower');
  const ended = new Map<string, SeqError>();
  for (const { id, sequencer } of [a, b]) void sequencer.failure.then((error) => ended.set(id, error));
  return { cluster, a, ended };
}

test.each([['all of the nodes', ['r1', 'r2', 'r3']] as const, ['a quorum of them', ['r1', 'r3']] as const])(
  'removed lane: %s are retired → leader and follower end with LANE_REMOVED',
  async (_, ids) => {
    const { cluster, ended } = await led();
    retire(cluster, ids, 'removed');
    await cluster.until(() => ended.size === 2, 5000, 'both to end');
    expect([...ended.values()].map(({ code, exit, changed }) => [code, exit, changed])).toEqual([
      ['LANE_REMOVED', 76, 'nothing'],
      ['LANE_REMOVED', 76, 'nothing'],
    ]);
  },
);

test.each([
  ['one node of three is retired, because the removal was interrupted', ['r3'], 'removed'],
  ['one node was retired for another reason', ['r3'], '-'],
] as const)('removed lane: %s → the leader goes on', async (_, ids, movedTo) => {
  const { cluster, a, ended } = await led();
  retire(cluster, ids, movedTo);
  const { height } = a.store.head();
  await cluster.until(() => a.store.head().height > height + 20, 5000, 'blocks');
  expect(ended.size).toBe(0);
});
