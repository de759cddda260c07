// Does the leader bring back nodes that lost their memory, without any loss (docs/PROTOCOL.md section 8)? The cluster
// runs in virtual time.
import { describe, expect, it } from 'vitest';
import { memoryIdentity } from '../support/memory-node.js';
import { IDENTITY, VirtualCluster } from '../support/virtual-cluster.js';

const MISHAPS = [
  ['restarted with all its data', 'all'],
  ['restarted with the last entries lost', 3],
  ['restarted empty', 'none'],
] as const;

describe('re-admission', () => {
  it.each(MISHAPS)(
    'a node is %s → admitted again within seconds, no block time missed, identical afterwards',
    async (_, keep) => {
      const cluster = new VirtualCluster();
      cluster.start('seq-a');
      cluster.start('seq-b');
      await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
      await cluster.clock.advance(3000);
      const leader = cluster.leader()!;
      const before = leader.store.head().height;
      const node = cluster.servers[1]!;
      node.restart(keep);
      const took = await cluster.until(
        () => node.state.record?.run === node.state.runId && node.state.record?.pending === '',
        3000,
        're-admission',
      );
      expect(took).toBeLessThan(1500);
      await cluster.clock.advance(1000);
      expect(cluster.leader()).toBe(leader);
      expect(leader.store.head().height - before).toBeGreaterThanOrEqual(
        Math.floor((took + 1000) / cluster.timing.blockTimeMs) - 3,
      );
      const other = cluster.chainOf(cluster.servers[0]!);
      const healed = cluster.chainOf(node);
      for (const [height, hash] of healed) if (other.has(height)) expect(hash).toBe(other.get(height));
      expect(Math.max(...healed.keys())).toBeGreaterThanOrEqual(Math.max(...other.keys()) - 1);
    },
  );

  it('a node has the mark of an unfinished bootstrap → the leader admits it like an empty node', async () => {
    const cluster = new VirtualCluster();
    const node = cluster.servers[2]!;
    node.wipe();
    node.apply({ script: 'bootstrap_prepare', nonce: 'aa.1' }, memoryIdentity(IDENTITY), node.id);
    expect(node.state.record?.pending).toBe('bootstrap:aa.1');
    cluster.start('seq-a');
    await cluster.until(() => node.state.record?.pending === '', 3000, 'admission');
    expect(node.apply({ script: 'bootstrap_commit', nonce: 'aa.1' }, memoryIdentity(IDENTITY), node.id)).toMatchObject({
      outcome: 'refused',
      reason: 'STALE_NONCE',
    });
  });

  it('under continuous load → a node is still re-admitted', async () => {
    const cluster = new VirtualCluster({ eager: true });
    cluster.start('seq-a');
    await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
    const leader = cluster.leader()!;
    let open = 0;
    const feed = () => {
      for (; open < 4; open++)
        void leader.sequencer.submit([{ data: new Uint8Array(10) }]).then(() => {
          open--;
        });
    };
    const node = cluster.servers[2]!;
    node.restart('none');
    await cluster.until(
      () => {
        feed();
        return node.state.record !== null && node.state.record.pending === '';
      },
      3000,
      're-admission',
    );
  });

  it('H on {A, B}, B wiped, A unreachable → no block is proposed until A is back', async () => {
    const cluster = new VirtualCluster();
    const a = cluster.start('seq-a');
    await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
    a.nodes[2]!.setCut(true); // C falls behind: the newest blocks are on A and B only
    await cluster.clock.advance(500);
    cluster.servers[1]!.restart('none');
    a.nodes[2]!.setCut(false);
    a.nodes[0]!.setCut(true);
    await cluster.clock.advance(200);
    const { height } = a.store.head();
    await cluster.clock.advance(5000);
    expect(a.store.head().height).toBe(height);
    expect(cluster.servers[1]!.state.record?.incarnation ?? '', 'begun perhaps, never admitted').toBe('');
    a.nodes[0]!.setCut(false);
    await cluster.until(() => a.store.head().height > height + 5, 5000, 'new blocks');
    await cluster.until(() => cluster.servers[1]!.state.record?.pending === '', 3000, 'B admitted again');
    expect(a.refusals, 'how the leader learned it').toContain('write_block NOT_ADMITTED');
  });
});
