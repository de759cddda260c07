// What happens to damage that a server cannot see (docs/PROTOCOL.md section 8)? Three questions, in virtual time: who
// finds it, what happens to the node, and what happens when so many heads are damaged that nobody can lead.
import { describe, expect, it } from 'vitest';
import { VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const DAMAGE = 'its hash does not match its content';

async function led(): Promise<{ cluster: VirtualCluster; a: VirtualSequencer; b: VirtualSequencer }> {
  const cluster = new VirtualCluster();
  const a = cluster.start('seq-a');
  await cluster.until(() => cluster.leader() === a, 2000, 'a leader');
  const b = cluster.start('seq-b');
  await cluster.clock.advance(1500);
  return { cluster, a, b };
}

function cutOff(one: VirtualSequencer, cut: boolean): void {
  for (const node of one.nodes) node.setCut(cut);
}

function spoilHead(cluster: VirtualCluster, ...nodes: number[]): string[] {
  return nodes.map((node) => {
    const { entries, record } = cluster.servers[node]!.state;
    entries[entries.length - 1] = { ...entries.at(-1)!, damage: DAMAGE };
    return record!.incarnation;
  });
}

const anew = (cluster: VirtualCluster, node: number, former: string): boolean => {
  const { record, entries } = cluster.servers[node]!.state;
  return record?.pending === '' && record.incarnation !== former && entries.every((entry) => entry.damage === '');
};

describe('damaged entry', () => {
  it(
    'damage: a follower reads it → it tells the leader, which sets the node aside and re-admits it; no ' +
      'block time is missed',
    async () => {
      const { cluster, a, b } = await led();
      cutOff(b, true);
      // Only a little behind: further back, a follower reads payloads from one node only.
      await cluster.clock.advance(2 * cluster.timing.blockTimeMs);
      const [former] = spoilHead(cluster, 1);
      const { height } = a.store.head();
      const from = cluster.clock.now();
      cutOff(b, false);
      await cluster.until(() => anew(cluster, 1, former!), 5000, 'r2 admitted anew');
      expect(cluster.leader()).toBe(a);
      expect(a.store.head().height - height).toBeGreaterThanOrEqual(
        Math.floor((cluster.clock.now() - from) / cluster.timing.blockTimeMs) - 3,
      );
      expect(b.events).toContainEqual(expect.objectContaining({ type: 'alarm', code: 'DAMAGED_ENTRY', node: 'r2' }));
      expect(a.events).toContainEqual(
        expect.objectContaining({ type: 'request', kind: 'admit', outcome: 'taken', by: 'seq-b' }),
      );
      const others = cluster.chainOf(cluster.servers[0]!);
      for (const [at, hash] of cluster.chainOf(cluster.servers[1]!))
        if (others.has(at)) expect(hash).toBe(others.get(at));
    },
  );

  it('damage: a claimant finds it → it leads without the node, and then re-admits it', async () => {
    const { cluster, a, b } = await led();
    cutOff(b, true);
    await cluster.clock.advance(320);
    const [former] = spoilHead(cluster, 0);
    const stopping = a.sequencer.stop('STOPPED', 'test');
    await cluster.clock.advance(100); // it waits for its successor
    await stopping;
    cutOff(b, false);
    await cluster.until(() => cluster.leader() === b, 5000, 'b leads');
    await cluster.until(() => anew(cluster, 0, former!), 5000, 'r1 admitted anew');
    expect(cluster.leader()).toBe(b);
    expect(b.events.filter((event) => event.type === 'leadership-ended')).toEqual([]);
  });

  it(
    'damage: reported while another node is out of reach → the node stays and counts until q others are ' +
      'enough without it',
    async () => {
      const { cluster, a } = await led();
      a.nodes[2]!.setCut(true);
      await cluster.clock.advance(1000);
      const [former] = spoilHead(cluster, 1);
      const epoch = cluster.servers[0]!.state.epoch!;
      const request = {
        id: 'q1',
        kind: 'admit' as const,
        to: 'r2',
        plan: JSON.stringify({ incarnation: former, why: DAMAGE }),
        by: 'op',
        reason: '',
        epoch,
      };
      for (const node of a.nodes.slice(0, 2))
        await Promise.all([
          node.call({ script: 'request_leader', request, ttlMs: 10_000 }, 50),
          cluster.clock.advance(5),
        ]);
      const { height } = a.store.head();
      await cluster.clock.advance(3000);
      expect(cluster.servers[1]!.state.record!.incarnation).toBe(former);
      expect(a.store.head().height).toBeGreaterThan(height + 20);
      a.nodes[2]!.setCut(false);
      await cluster.until(
        () =>
          cluster.servers[1]!.state.record?.pending === '' && cluster.servers[1]!.state.record.incarnation !== former,
        5000,
        'r2 admitted anew',
      );
      expect(cluster.leader()).toBe(a);
    },
  );

  it('request: on one node only → not carried out; on a quorum → carried out once', async () => {
    const { cluster, a, b } = await led();
    const request = {
      id: 'q2',
      kind: 'stepdown' as const,
      to: 'seq-b',
      plan: '',
      by: 'op',
      reason: '',
      epoch: cluster.servers[0]!.state.epoch!,
    };
    const ask = (node: number) =>
      Promise.all([
        a.nodes[node]!.call({ script: 'request_leader', request, ttlMs: 20_000 }, 50),
        cluster.clock.advance(5),
      ]);
    await ask(0);
    await cluster.clock.advance(3000);
    expect(cluster.leader()).toBe(a);
    await ask(1);
    await cluster.until(() => cluster.leader() === b, 3000, 'b leads');
    expect(a.events.filter((event) => event.type === 'request')).toHaveLength(1);
  });

  it(
    'damage: two of three heads are damaged → the sequencer that read the third leads with it; the two ' +
      'are re-admitted',
    async () => {
      const { cluster, a, b } = await led();
      cutOff(b, true);
      await cluster.clock.advance(320);
      const former = spoilHead(cluster, 0, 1);
      const { height, hash } = a.store.head();
      const stopping = a.sequencer.stop('STOPPED', 'test');
      await cluster.clock.advance(100); // it waits for its successor
      await stopping;
      cutOff(b, false);
      await cluster.until(() => cluster.leader() === b, 5000, 'b leads');
      expect(b.store.get(height)?.hash).toBe(hash);
      await cluster.until(
        () => anew(cluster, 0, former[0]!) && anew(cluster, 1, former[1]!),
        10_000,
        'r1 and r2 admitted anew',
      );
      expect(b.events.filter((event) => event.type === 'leadership-ended')).toEqual([]);
    },
  );

  it(
    'damage: all heads are damaged → attempts to lead back off and say why; a sequencer whose store has ' +
      'the block leads at once',
    async () => {
      const { cluster, a, b } = await led();
      cutOff(b, true);
      await cluster.clock.advance(320);
      spoilHead(cluster, 0, 1, 2);
      const epoch = cluster.servers[0]!.state.epoch!;
      const stopping = a.sequencer.stop('STOPPED', 'test');
      await cluster.clock.advance(100); // it waits for its successor
      await stopping;
      cutOff(b, false);
      await cluster.clock.advance(30_000);
      expect(b.events).toContainEqual(
        expect.objectContaining({
          type: 'alarm',
          code: 'RETRY_BACKOFF',
          reason: expect.stringContaining('DAMAGED_HEADS') as string,
        }),
      );
      expect(cluster.servers[0]!.state.epoch! - epoch, 'epochs burnt in 30 s').toBeLessThan(20);
      expect(b.sequencer.status()).toMatchObject({
        ready: false,
        why: expect.stringContaining('back-off') as string,
      });
      const again = cluster.start('seq-a', a.store);
      await cluster.until(() => cluster.leader() === again, 7000, 'the one that has the block leads');
      const { height } = again.store.head();
      await cluster.until(() => b.store.head().height > height + 3, 5000, 'b follows');
    },
  );
});
