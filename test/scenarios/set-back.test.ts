// Does anybody notice that a quorum of nodes was set back in time, by snapshots of whole machines
// (docs/PERSISTENCE.md)? Nothing on the nodes shows it. The presence record of a sequencer does.
import { describe, expect, it } from 'vitest';
import { batchProducer } from '../../src/core/produce/batch.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { memoryIdentity, MemoryNode } from '../support/memory-node.js';
import { cloneNodeState, type MemoryNodeState } from '../support/memory-state.js';
import { IDENTITY, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

class Snapshots extends VirtualCluster {
  private saved: MemoryNodeState[] = [];

  save(): void {
    this.saved = this.servers.map(({ state }) => cloneNodeState(state));
  }

  /** Restores the keys of the snapshot. The server process stays the same. */
  setBack(): void {
    this.servers.forEach(({ state }, at) => Object.assign(state, cloneNodeState(this.saved[at]!)));
  }

  async above(height: number, of = this.sequencers): Promise<void> {
    await this.until(() => of.every(({ store }) => store.head().height > height), 5000, `blocks above ${height}`);
  }
}
const alarms = ({ events }: VirtualSequencer): string[] =>
  events.flatMap((event) => (event.type === 'alarm' && event.code === 'NODES_SET_BACK' ? [event.reason] : []));
const hashAt = ({ store }: VirtualSequencer, height: number): string | undefined => store.header(height)?.hash;
const led = ({ events }: VirtualSequencer): boolean => events.some((one) => one.type === 'role' && one.to === 'leader');

describe('nodes that were set back in time', () => {
  it('the sequencer that has the blocks may lead → it leads and raises an alarm, and nothing is lost', async () => {
    const cluster = new Snapshots();
    const a = cluster.start('a');
    await cluster.above(3);
    cluster.save();
    await cluster.above(20);
    const [height, hash] = [20, hashAt(a, 20)];
    void a.sequencer.stop('STOPPED', 'test');
    await cluster.until(() => cluster.leader() === undefined, 3000, 'its end');
    cluster.setBack();
    const again = cluster.start('a', a.store);
    await cluster.until(() => led(again), 5000, 'it leads');
    const heads = () => cluster.servers.map(({ state }) => state.entries.at(-1)?.height ?? 0);
    await cluster.until(() => heads().every((head) => head > height), 5000, 'the nodes have it again');
    expect(alarms(again)).toEqual([expect.stringMatching(/^this store has block \d+, and no node that answers/)]);
    expect(hashAt(again, height)).toBe(hash);
    for (const server of cluster.servers) expect(cluster.chainOf(server).get(height) ?? hash).toBe(hash);
  });

  it('the sequencer that has the blocks may not lead → nobody leads and status is CRIT, until it may', async () => {
    let ready = false;
    let fail = (_why: string): void => undefined;
    const cluster = new Snapshots({
      producer: (id) => ({
        ...batchProducer({ maxBlockBytes: 1024 }),
        ready: () => (ready || id !== 'a' ? { ready: true } : { ready: false, why: 'test' }),
        onFailure: (listener) => void (id === 'a' && (fail = listener)),
      }),
    });
    ready = true;
    const a = cluster.start('a');
    await cluster.above(3);
    cluster.save();
    await cluster.above(20);
    const hash = hashAt(a, 20);
    ready = false;
    fail('test');
    await cluster.until(() => cluster.leader() === undefined, 3000, 'the end of its term');
    cluster.setBack();
    await cluster.clock.advance(300); // a announces itself again
    const b = cluster.start('b');
    await cluster.until(() => alarms(b).length > 0, 8000, 'b sees it');
    expect(alarms(b)[0]).toMatch(/^a has announced block \d+, and no node that answers has a block above \d+/);
    await cluster.clock.advance(3000);
    expect(led(b), 'nobody leads without the blocks').toBe(false);
    const nodes = cluster.servers.map((server) => new MemoryNode(server, IDENTITY, cluster.clock));
    const asked = inspectCluster({ nodes, limitMs: 50, clock: cluster.clock });
    await cluster.clock.advance(500);
    const view = await asked;
    expect([view.verdict, view.reasonCode]).toEqual(['CRIT', 'NODES_SET_BACK']);
    ready = true;
    await cluster.until(() => cluster.leader()?.id === 'a', 5000, 'a leads');
    await cluster.above(25);
    expect(hashAt(b, 20)).toBe(hash);
    expect(led(b)).toBe(false);
  });

  it.each([
    ['one node shows the presence record of an unknown sequencer', 1, 10_000],
    ['all nodes show the presence record of an unknown sequencer, which never expires', 3, 10 ** 12],
  ])('%s, with a height that no node has → the next leader leads', async (_, nodes, ttlMs) => {
    const cluster = new Snapshots();
    const [a, b] = [cluster.start('a'), cluster.start('b')];
    await cluster.above(3);
    const extra = { recordTtlMs: '10000' };
    const told = {
      id: 'ghost',
      role: 'follower' as const,
      height: 1_000_000,
      version: '',
      url: '',
      pid: 1,
      configDigest: '',
    };
    for (const server of cluster.servers.slice(0, nodes))
      server.apply({ script: 'announce', presence: { ...told, extra }, ttlMs }, memoryIdentity(IDENTITY), server.id);
    const leader = cluster.leader()!;
    const other = leader.id === 'a' ? b : a;
    await cluster.clock.advance(2000); // every sequencer has seen it
    void leader.sequencer.stop('STOPPED', 'test');
    await cluster.until(() => cluster.leader() === other, 5000, 'the other one leads');
    expect(alarms(other)).toEqual([]);
  });
});
