// Does leadership change hands as promised? The real engine runs in virtual time on in-memory nodes.
import { describe, expect, it } from 'vitest';
import { VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

/**
 * Two sequencers, one of which leads. `asked`: the calls that the other one makes to the nodes from now on, without its
 * presence records.
 */
async function ledWithSpy(): Promise<{
  cluster: VirtualCluster;
  old: VirtualSequencer;
  other: VirtualSequencer;
  asked: string[];
}> {
  const cluster = new VirtualCluster();
  const old = cluster.start('seq-a');
  await cluster.until(() => cluster.leader() === old, 2000, 'a leader');
  const other = cluster.start('seq-b');
  await cluster.until(() => other.sequencer.status().ready, 1000, 'the follower is ready');
  await cluster.clock.advance(300);
  const asked: string[] = [];
  for (const node of other.nodes) {
    const { call, read } = node;
    node.call = ((one, limitMs) => {
      if (one.script !== 'announce') asked.push(one.script);
      return call(one, limitMs);
    }) as typeof call;
    node.read = (range, limitMs) => {
      asked.push('read');
      return read(range, limitMs);
    };
  }
  return { cluster, old, other, asked };
}

const text = (s: string) => new TextEncoder().encode(s);

describe('order of successors', () => {
  it('a high --priority, alone → it leads as soon as a sequencer of priority 0 would', async () => {
    const took = async (priority: number): Promise<number> => {
      const cluster = new VirtualCluster();
      const one = cluster.start('seq-a', undefined, { priority });
      return cluster.until(() => cluster.leader() === one, 2000, 'a leader');
    };
    expect(await took(100_000)).toBe(await took(0));
  });

  it(
    'the leader stops → the lowest priority number leads, whatever the gaps between the numbers and ' +
      'whatever the ids',
    async () => {
      const cluster = new VirtualCluster();
      const first = cluster.start('seq-c');
      await cluster.until(() => cluster.leader() === first, 2000, 'a leader');
      const last = cluster.start('seq-a', undefined, { priority: 100_000 });
      const next = cluster.start('seq-b', undefined, { priority: 7 });
      await cluster.until(
        () => [last, next].every(({ sequencer }) => sequencer.status().ready),
        2000,
        'both followers ready',
      );
      await cluster.clock.advance(1000);
      const stopping = first.sequencer.stop('SIGTERM', 'test');
      await cluster.until(() => next.sequencer.status().role === 'leader', 1000, 'seq-b leads');
      await cluster.clock.advance(1000);
      await stopping;
      const stoppingNext = next.sequencer.stop('SIGTERM', 'test');
      await cluster.until(() => last.sequencer.status().role === 'leader', 1000, 'seq-a leads, alone');
      await cluster.clock.advance(1000);
      await stoppingNext;
    },
  );
});

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
    const other = cluster.leader() === a ? b : a;
    expect(other.refusals, 'what the nodes told the one that came second').toContain('promote_leader LOCK_HELD');
    for (const server of cluster.servers)
      expect(server.state.entries.length).toBeLessThanOrEqual(cluster.limits.retainBlocks);
  });

  it(
    'the leader is cut off from all nodes → it steps down by itself, the other leads, nothing ' +
      'acknowledged is lost',
    async () => {
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
      const again = next.sequencer.submit([
        { key: 'k1', data: text('one') },
        { key: 'k2', data: text('two') },
      ]);
      await cluster.clock.advance(500);
      const outcomes = await again;
      expect(outcomes[0]).toMatchObject({ outcome: 'committed', duplicate: true });
      expect(outcomes[1]).toMatchObject({ outcome: 'committed', duplicate: false });
      for (const port of old.nodes) port.setCut(false);
      await cluster.clock.advance(3000);
      expect((await lost)[0]!.outcome).not.toBe('committed');
      await cluster.until(
        () => old.store.head().height + 1 >= next.store.head().height,
        2000,
        'the old leader following',
      );
      expect(old.store.get(5)?.hash).toBe(next.store.get(5)?.hash);
    },
  );

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
    await cluster.clock.advance(100); // its last record on the nodes waits until others have had their turn
    await stopped;
  });

  it(
    'SIGTERM, every node announces that its lock was released → the follower promotes at once, without ' +
      'another probe',
    async () => {
      const { cluster, old, other, asked } = await ledWithSpy();
      const stopped = old.sequencer.stop('SIGTERM', 'asked to stop');
      await cluster.until(() => cluster.leader() === other, 100, 'the successor');
      expect(asked.slice(0, asked.indexOf('promote_leader'))).toEqual([]);
      await cluster.clock.advance(100);
      await stopped;
    },
  );

  it('a stepdown in favour of one follower → the other follower probes and does not try to lead', async () => {
    const { cluster, old, other } = await ledWithSpy();
    const third = cluster.start('seq-c');
    await cluster.clock.advance(500);
    const request = {
      id: 'q1',
      kind: 'stepdown' as const,
      to: 'seq-c',
      plan: '',
      by: 'op',
      reason: '',
      epoch: old.sequencer.status().epoch,
    };
    for (const node of old.nodes)
      await Promise.all([
        node.call({ script: 'request_leader', request, ttlMs: 10_000 }, 50),
        cluster.clock.advance(1),
      ]);
    await cluster.until(() => cluster.leader() === third, 1000, 'seq-c leads');
    expect(other.events.filter((event) => event.type === 'promotion-failed')).toEqual([]);
  });

  it(
    'the leader dies between its writes → a follower that has read the block proposes it again without ' +
      'reading it again',
    async () => {
      const { cluster, old, other, asked } = await ledWithSpy();
      const { height } = old.store.head();
      // The next block reaches r1 only.
      old.nodes[1]!.setCut(true);
      old.nodes[2]!.setCut(true);
      await cluster.until(
        () => cluster.servers[0]!.state.entries.at(-1)!.height === height + 1,
        500,
        'a block on one node',
      );
      const pending = cluster.servers[0]!.state.entries.at(-1)!.hash;
      old.nodes[0]!.setCut(true);
      // this lock would expire last, and the successor must claim all three nodes
      cluster.servers[0]!.state.lock = null;
      await cluster.until(() => cluster.leader() === other, 2000, 'the successor');
      expect(other.store.get(height + 1)?.hash).toBe(pending);
      expect(asked).not.toContain('read');
    },
  );
});
