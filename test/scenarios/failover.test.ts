// The life of a cluster in virtual time: lead, lose, follow, lead again; the shipped engine on in-memory nodes.
import { describe, expect, it } from 'vitest';
import { VirtualCluster } from '../support/virtual-cluster.js';

const text = (s: string) => new TextEncoder().encode(s);

describe('a cluster under virtual time', () => {
  it('two sequencers start → one leads, blocks come at block time, both stores hold the same chain', async () => {
    const cluster = new VirtualCluster();
    const a = cluster.start('seq-a');
    const b = cluster.start('seq-b');
    await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
    await cluster.clock.advance(2000);
    const { height } = a.store.head();
    expect(height).toBeGreaterThan(15);
    await cluster.until(() => b.store.head().height >= height && a.store.head().height >= height, 500, 'the follower');
    for (let h = 1; h <= height; h++) expect(b.store.get(h)?.hash).toBe(a.store.get(h)?.hash);
    for (const server of cluster.servers) expect(server.state.entries.length).toBeLessThanOrEqual(cluster.limits.retainBlocks);
  });

  it('the leader is cut off from all nodes → it steps down by itself, the other leads, nothing acknowledged is lost', async () => {
    const cluster = new VirtualCluster({ eager: true });
    cluster.start('seq-a');
    cluster.start('seq-b');
    await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
    const old = cluster.leader()!;
    const first = old.sequencer.submit([{ key: 'k1', data: text('one') }]);
    await cluster.clock.advance(50);
    expect((await first)[0]).toMatchObject({ outcome: 'committed' });
    for (const port of old.nodes) port.setCut(true);
    const lost = old.sequencer.submit([{ key: 'k2', data: text('two') }]);
    await cluster.until(() => cluster.leader() !== undefined && cluster.leader() !== old, 2000, 'a successor');
    expect(old.sequencer.status().role).not.toBe('leader');
    const next = cluster.leader()!;
    const again = next.sequencer.submit([{ key: 'k1', data: text('one') }, { key: 'k2', data: text('two') }]);
    await cluster.clock.advance(500);
    const outcomes = await again;
    expect(outcomes[0]).toMatchObject({ outcome: 'committed', duplicate: true });
    expect(outcomes[1]).toMatchObject({ outcome: 'committed', duplicate: false });
    for (const port of old.nodes) port.setCut(false);
    await cluster.clock.advance(3000);
    expect((await lost)[0]!.outcome).not.toBe('committed');
    await cluster.until(() => old.store.head().height + 1 >= next.store.head().height, 2000, 'the old leader following');
    expect(old.store.get(5)?.hash).toBe(next.store.get(5)?.hash);
  });

  it('SIGTERM → the lock is released and the successor commits within two block times', async () => {
    const cluster = new VirtualCluster();
    cluster.start('seq-a');
    cluster.start('seq-b');
    await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
    const old = cluster.leader()!;
    await cluster.clock.advance(300);
    const { height } = old.store.head();
    const stopped = old.sequencer.stop('SIGTERM', 'asked to stop');
    const other = cluster.sequencers.find((one) => one !== old)!;
    const ms = await cluster.until(() => other.store.head().height > height, 1000, 'the next block');
    expect(ms).toBeLessThanOrEqual(2 * cluster.timing.blockTimeMs);
    await stopped;
  });
});
