// Can a replaced server ever count again (docs/PROTOCOL.md section 8, I13)? The old server forgets that it was retired,
// and must never count beside the new one.
import { describe, expect, it } from 'vitest';
import { emptyNodeState, memoryIdentity, MemoryServer } from '../support/memory-node.js';
import { IDENTITY, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const identity = memoryIdentity(IDENTITY);
const NEW = 'memory://r3b';

/** seq-b is cut off from every node while seq-a leads and r3 is moved. Then the retired old server is emptied. */
async function replaced() {
  const cluster = new VirtualCluster({ limits: { retainBlocks: 1000 } });
  const [r1, r2, old] = cluster.servers as [MemoryServer, MemoryServer, MemoryServer];
  const a = cluster.start('seq-a');
  await cluster.until(() => cluster.leader() === a, 2000, 'a leader');
  const b = cluster.start('seq-b');
  await cluster.until(() => b.store.head().height > 3, 3000, 'a follower');
  cut(b, [0, 1, 2], true);
  const successor = new MemoryServer('r3b', () => cluster.clock.now(), emptyNodeState('run-r3b'));
  cluster.elsewhere.set(NEW, successor);
  await move(cluster, a, old);
  await cluster.until(() => successor.state.record?.pending === '', 3000, 'the new server');
  old.wipe();
  return { cluster, a, b, r1, r2, old, successor };
}

async function move(cluster: VirtualCluster, leader: VirtualSequencer, old: MemoryServer): Promise<void> {
  old.apply({ script: 'retire_node', expect: old.state.record!.incarnation, movedTo: NEW }, identity, 'r3');
  const { epoch } = leader.sequencer.status();
  await cluster.until(() => leader.sequencer.status().nodes[2]!.state !== 'claimed', 2000, 'the old server out');
  for (const server of cluster.servers.slice(0, 2)) {
    server.apply(
      {
        script: 'request_leader',
        request: {
          id: 'q1',
          kind: 'replace',
          to: 'r3',
          plan: JSON.stringify({ url: NEW }),
          by: 'ops',
          reason: 'new hardware',
          epoch,
        },
        ttlMs: 5000,
      },
      identity,
      server.id,
    );
  }
}

function cut(who: VirtualSequencer, nodes: number[], is: boolean): void {
  for (const node of nodes) who.nodes[node]!.setCut(is);
}

function oneChain(...all: { store: VirtualSequencer['store'] }[]): void {
  const [first, second] = all.map(({ store }) => store) as [VirtualSequencer['store'], VirtualSequencer['store']];
  for (let height = 1; height <= Math.min(first.head().height, second.head().height); height++)
    expect(second.get(height)?.hash, `height ${height}`).toBe(first.get(height)?.hash);
}

describe('replaced node', () => {
  it(
    'the old server is emptied, and a sequencer that does not know the move leads → it uses the new ' +
      'server; no fork, even with two leaders',
    async () => {
      const { cluster, a, b, old, successor } = await replaced();
      cut(a, [0, 1, 2], true);
      cut(b, [0, 1, 2], false);
      await cluster.until(
        () => b.sequencer.status().role === 'leader' && b.nodes[2]!.url === NEW,
        6000,
        'seq-b leads, with the new server',
      );
      await cluster.clock.advance(2000);
      expect(old.state.record, 'nobody has begun with the old server').toBeNull();
      // If both servers counted as r3, each leader would have a quorum of its own.
      cut(b, [1], true);
      cut(a, [1, 2], false);
      await cluster.clock.advance(4000);
      oneChain(a, b);
      cut(b, [1], false);
      cut(a, [0], false);
      await cluster.until(
        () => Math.min(a.store.head().height, b.store.head().height) > 40 && successor.state.record?.pending === '',
        8000,
        'new blocks for both',
      );
      oneChain(a, b);
      expect(a.refusals, 'what the old server told the one that led').toContain('write_block WRONG_CLUSTER');
    },
  );

  it(
    'the leader that moved the node dies at once → the next leader learns the move from a quorum of ' +
      'records and admits the new server',
    async () => {
      const cluster = new VirtualCluster();
      const old = cluster.servers[2]!;
      const a = cluster.start('seq-a');
      await cluster.until(() => cluster.leader() === a, 2000, 'a leader');
      const successor = new MemoryServer('r3b', () => cluster.clock.now(), emptyNodeState('run-r3b'));
      cluster.elsewhere.set(NEW, successor);
      await move(cluster, a, old);
      await cluster.until(
        () => cluster.servers.slice(0, 2).every(({ state }) => state.record?.config.includes(`@${NEW}#`)),
        2000,
        'the move noted',
      );
      expect(successor.state.record?.incarnation ?? '').toBe('');
      cut(a, [0, 1, 2], true);
      old.wipe();
      const b = cluster.start('seq-b');
      await cluster.until(() => successor.state.record?.pending === '', 5000, 'the new server admitted');
      expect(b.nodes[2]!.url).toBe(NEW);
      expect(old.state.record).toBeNull();
      expect(successor.state.record?.config, 'carried over').toContain(`@${NEW}#`);
    },
  );

  it('nodes that know the move lose their memory, one after the other → each new memory knows it again', async () => {
    const { cluster, r1, r2, successor } = await replaced();
    for (const server of [r1, r2, successor]) {
      server.restart('none');
      await cluster.until(() => server.state.record?.pending === '', 4000, 're-admission');
      expect(server.state.record?.config).toMatch(/ r3=\S+@memory:\/\/r3b#\d+\.\d+$/);
    }
  });
});
