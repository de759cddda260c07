// What if two servers answer for one node, and each sequencer is connected to a different one (docs/PROTOCOL.md section
// 8, I13)? Only the memory that the configuration names may count.
import { describe, expect, it } from 'vitest';
import type { CommittedBlock } from '../../src/core/ports.js';
import { followHead } from '../../src/core/stream/tail-follow.js';
import { readRetained } from '../../src/core/stream/tail-retained.js';
import { ChainMaker } from '../support/blocks.js';
import { cloneNodeState, emptyNodeState, MemoryNode, MemoryServer, type MemoryEntry } from '../support/memory-node.js';
import { CLUSTER, IDENTITY, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

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

    // From now on seq-a reaches r2 and the old server. seq-b reaches r1 and the other server.
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

  it('calls reach a node, and its tail reaches a copy of another node → the copy does not count as the node', async () => {
    const cluster = new VirtualCluster();
    const [r1, , r3] = cluster.servers as [MemoryServer, MemoryServer, MemoryServer];
    const block = new ChainMaker(CLUSTER).block([], { epoch: 1 });
    for (const { state } of cluster.servers) state.hold = { by: 'test', reason: 'nobody leads', expiresAtMs: 1e15 };
    write(r1, block); // not committed: one of three
    const copy = new MemoryServer('r1-copy', () => cluster.clock.now(), {
      ...cloneNodeState(r1.state),
      runId: 'run-copy',
    });
    const a = cluster.start('seq-a');
    const tails = new MemoryNode(copy, IDENTITY, cluster.clock, 'r3');
    a.nodes[2]!.tailsAt = tails;
    await cluster.clock.advance(3000);
    expect(a.store.head().height, 'one node and a copy of it').toBe(0);

    // The copy gets its own record, as if another term had admitted it as r3. Its memory is still another one.
    copy.state.record!.run = 'run-copy';
    copy.state.record!.incarnation = 'other';
    await cluster.clock.advance(3000);
    expect(a.store.head().height, 'one node and another memory').toBe(0);
    let asked = 0;
    const call = a.nodes[2]!.call;
    a.nodes[2]!.call = (...args) => {
      asked += 1;
      return call(...args);
    };
    await cluster.clock.advance(3000);
    expect(asked, 'probes while the two disagree').toBeLessThan(3 * (3000 / cluster.timing.pollMs));

    a.nodes[2]!.tailsAt = null;
    write(r3, block);
    await cluster.until(() => a.store.head().height === 1, 3000, 'two nodes');
  });

  it('only the old server is left, and its epoch is far above the term → the term is renewed above that epoch', async () => {
    const cluster = new VirtualCluster({ limits: { retainBlocks: 1000 } });
    const old = cluster.servers[2]!;
    const other = new MemoryServer('r3b', () => cluster.clock.now(), emptyNodeState('run-r3b'));
    cluster.elsewhere.set(OTHER, other);
    cluster.elsewhere.set('memory://r3', old);
    const a = cluster.start('seq-a');
    a.nodes[2]!.moveTo(OTHER);
    await cluster.until(() => other.state.record?.pending === '', 6000, 'the other server to be admitted');
    old.state.epoch = 1000; // raised by an operator, who was not told that the address led elsewhere
    a.nodes[2]!.moveTo('memory://r3');
    const named = (): string => cluster.servers[0]!.state.record!.config;
    await cluster.until(
      () => old.state.record!.pending === '' && named().includes(`r3=${old.state.record!.incarnation}@`),
      30_000,
      'the old server to count again',
    );
    expect(cluster.servers[0]!.state.epoch, 'one renewal reaches it').toBeGreaterThan(1000);
    expect(a.refusals, 'why it is renewed').toContain('begin_admission FENCING_ERROR');
  });
});

describe('a reader whose calls and other connections reach two servers', () => {
  /** r1 has the block. The other connections for r3 reach a copy of r1, so only one node of three has the block. */
  function misled(admittedAs: string): {
    cluster: VirtualCluster;
    block: CommittedBlock;
    nodes: MemoryNode[];
    right: () => void;
  } {
    const cluster = new VirtualCluster();
    const [r1, r2, r3] = cluster.servers as [MemoryServer, MemoryServer, MemoryServer];
    const block = new ChainMaker(CLUSTER).block([], { epoch: 1 });
    write(r1, block);
    const copy = new MemoryServer('r1-copy', () => cluster.clock.now(), {
      ...cloneNodeState(r1.state),
      runId: 'run-copy',
    });
    if (admittedAs !== '') Object.assign(copy.state.record!, { run: 'run-copy', incarnation: admittedAs });
    const nodes = [r1, r2, r3].map((server) => new MemoryNode(server, IDENTITY, cluster.clock));
    const there = new MemoryNode(copy, IDENTITY, cluster.clock, 'r3');
    const { tail, read } = MemoryNode.prototype;
    Object.assign(nodes[2]!, { tail: there.tail.bind(there), read: there.read.bind(there) });
    const right = () => {
      write(r3, block);
      Object.assign(nodes[2]!, { tail, read });
    };
    return { cluster, block, nodes, right };
  }

  const COPIES = [
    ['as it is', ''],
    ['admitted under another memory', 'other'],
  ] as const;

  it.each(COPIES)('following the head → a copy of another node, %s, proves nothing', async (_, as) => {
    const { cluster, block, nodes, right } = misled(as);
    const given: CommittedBlock[] = [];
    const stop = new AbortController();
    const context = { nodes, configured: 3, limitMs: 50, clock: cluster.clock, signal: stop.signal };
    const reading = (async () => {
      for await (const one of followHead(context, { next: 1, parent: null, to: 1 })) given.push(one);
    })();
    await cluster.clock.advance(3000);
    expect(given.map(({ hash }) => hash)).toEqual([]);
    right();
    await cluster.clock.advance(3000);
    expect(given.map(({ hash }) => hash)).toEqual([block.hash]);
    stop.abort();
    await reading;
  });

  it.each(COPIES)('reading what the nodes retain → a copy of another node, %s, proves nothing', async (_, as) => {
    const { cluster, block, nodes, right } = misled(as);
    const read = async (): Promise<string[]> => {
      const context = { nodes, configured: 3, limitMs: 50, clock: cluster.clock };
      const retained = await Promise.all(
        nodes.map(async (port) => {
          const reply = await port.call({ script: 'inspect' }, 50);
          if (reply.outcome !== 'accepted') throw new Error('no answer');
          return { port, view: reply.value };
        }),
      );
      const given: string[] = [];
      const range = { from: 1, to: 1, parent: null, committed: { height: 1, hash: null } };
      for await (const one of readRetained(context, retained, range)) given.push(one.hash);
      return given;
    };
    expect(await read()).toEqual([]);
    right();
    expect(await read()).toEqual([block.hash]);
  });
});

function write({ state }: MemoryServer, { height, hash, parent, timestamp, data, epoch }: CommittedBlock): void {
  const entry: MemoryEntry = { height, epoch, hash, parent, timestamp, owner: 'seq-x/1', data, damage: '' };
  state.entries.push(entry);
  state.epoch = epoch;
  Object.assign(state.record!, { claimant: entry.owner, head: height, headEpoch: epoch, headHash: hash });
}
