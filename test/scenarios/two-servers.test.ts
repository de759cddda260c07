// Two servers answer for one node, and each sequencer is connected to another one of them (docs/PROTOCOL.md section 8,
// I13): only the memory that the configuration names counts, whoever is connected to what.
import { describe, expect, it } from 'vitest';
import { emptyNodeState, MemoryServer } from '../support/memory-node.js';
import { VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const OTHER = 'memory://r3b';

function cut(who: VirtualSequencer, nodes: number[], is: boolean): void {
  for (const node of nodes) who.nodes[node]!.setCut(is);
}

describe('two servers for one node', () => {
  it('one sequencer re-admits the other server → the old one, intact and still connected, is no vote', async () => {
    const cluster = new VirtualCluster({ limits: { retainBlocks: 1000 } });
    const old = cluster.servers[2]!;
    const a = cluster.start('seq-a');
    await cluster.until(() => cluster.leader() === a, 2000, 'a leader');
    const other = new MemoryServer('r3b', () => cluster.clock.now(), emptyNodeState('run-r3b'));
    cluster.elsewhere.set(OTHER, other);
    const b = cluster.start('seq-b');
    b.nodes[2]!.moveTo(OTHER);
    await cluster.until(() => b.store.head().height > 3, 3000, 'a follower');
    cut(a, [0, 1, 2], true);
    await cluster.until(
      () => other.state.record?.pending === '',
      6000,
      'seq-b leads and has admitted the other server',
    );
    const before = old.state.record!.incarnation;
    expect(old.state.record!.pending, 'the old server is intact').toBe('');
    expect(other.state.record!.incarnation).not.toBe(before);

    // From here on seq-a sees r2 and the old server, seq-b sees r1 and the other one.
    cut(b, [1], true);
    cut(a, [1, 2], false);
    const height = b.store.head().height;
    await cluster.clock.advance(4000);
    expect(a.sequencer.status().role, 'two of three by its own list').not.toBe('leader');
    expect(b.store.head().height, 'the leader goes on').toBeGreaterThan(height);
    for (let at = 1; at <= Math.min(a.store.head().height, b.store.head().height); at++)
      expect(a.store.get(at)?.hash, `height ${at}`).toBe(b.store.get(at)?.hash);
    expect(old.state.record!.head, 'nobody writes to the old server').toBeLessThan(b.store.head().height);
  });
});
