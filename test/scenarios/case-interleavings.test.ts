// Does the engine survive states and interleavings that stopped or forked other systems? Whole sequencers run in
// virtual time on in-memory nodes. They start from such a state, or are driven into it. At every commit of a leader,
// the test counts the nodes: q copies of one epoch, or it is a fork.
import { afterEach, describe, expect, it } from 'vitest';
import { genesisHash, makeBlock } from '../../src/core/chain/block.js';
import { encodeItems } from '../../src/core/chain/items.js';
import type { Item, NodePort, Producer } from '../../src/core/ports.js';
import type { Block, NodeCall, ReplyTo } from '../../src/core/protocol/types.js';
import { batchProducer } from '../../src/core/produce/batch.js';
import { check } from '../sim/checkers/index.js';
import { run } from '../sim/world.js';
import { MemoryStore } from '../support/memory-store.js';
import { CLUSTER, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const bytes = (text: string) => new TextEncoder().encode(text);
const item = (text: string): Item => ({ key: text, data: bytes(text) });
const first = (text: string): Block =>
  makeBlock({ height: 1, parent: genesisHash(CLUSTER, ''), timestamp: 1, data: encodeItems([item(text)]) });
const X = first('x');
const Y = first('y');

/** Puts a block on a node, as a term of this epoch would have left it. */
function put(cluster: VirtualCluster, node: number, block: Block, epoch: number): void {
  const { state } = cluster.servers[node]!;
  const { height, hash, parent, timestamp, data } = block;
  state.entries.push({ height, epoch, hash, parent, timestamp, data, owner: 'old/0000000000000001', damage: '' });
  state.epoch = Math.max(state.epoch ?? 0, epoch);
  Object.assign(state.record!, { head: height, headEpoch: epoch, headHash: hash, claimant: 'old/0000000000000001' });
}

/** Commits that a leader announced although fewer than q nodes held the block under its epoch. */
const miscounted: string[] = [];
afterEach(() => {
  expect(miscounted.splice(0)).toEqual([]);
});

/** A sequencer whose commits are counted on the nodes at the moment when it announces them. */
function watched(cluster: VirtualCluster, id: string, store?: MemoryStore): VirtualSequencer {
  const one = cluster.start(id, ...(store ? ([store] as const) : []));
  const push = one.events.push.bind(one.events);
  one.events.push = (...events) => {
    for (const event of events) {
      if (event.type !== 'committed' || event.by !== 'leader' || event.epoch === 0) continue;
      const copies = cluster.servers.filter(({ state }) =>
        state.entries.some(
          ({ height, hash, epoch }) => height === event.height && hash === event.hash && epoch === event.epoch,
        ),
      ).length;
      if (copies < cluster.quorum)
        miscounted.push(`I4: ${id} committed ${event.height} with ${copies} copies in epoch ${event.epoch}`);
    }
    return push(...events);
  };
  return one;
}
const alarms = (one: VirtualSequencer) => one.events.filter(({ type }) => type === 'alarm');
const identical = (cluster: VirtualCluster) => {
  const chains = cluster.servers.map((server) => cluster.chainOf(server));
  for (const chain of chains)
    for (const [height, hash] of chain)
      for (const other of chains) if (other.has(height)) expect(other.get(height)).toBe(hash);
};

describe('states in which other systems were left', () => {
  it('case 2: one block on six nodes under three epochs → re-stamped to one epoch and committed at once', async () => {
    const cluster = new VirtualCluster({ nodes: 6 });
    [268, 268, 268, 269, 270, 270].forEach((epoch, node) => put(cluster, node, X, epoch));
    const a = watched(cluster, 'seq-a');
    const took = await cluster.until(() => a.store.head().height >= 1, 1000, 'the block');
    expect(a.store.get(1)!.hash).toBe(X.hash);
    expect(took).toBeLessThan(2 * cluster.timing.blockTimeMs);
    await cluster.until(() => a.store.head().height >= 4, 1000, 'further blocks');
    const stamps = cluster.servers.map(({ state }) => state.entries.find(({ height }) => height === 1)!.epoch);
    expect(new Set(stamps)).toEqual(new Set([271]));
    identical(cluster);
  });

  // Every state in which two terms can have left one height on three nodes. A block with q copies of one epoch is
  // committed.
  const cells = ['-', 'X5', 'Y6'];
  // Two copies of X5 and a Y6 are impossible: the claim of epoch 6 would have seen X. Other systems got there (cases 4
  // and 10).
  const ways = cells
    .flatMap((a) => cells.flatMap((b) => cells.map((c) => [a, b, c] as const)))
    .filter(
      (way) =>
        way.some((cell) => cell !== '-') && !(way.includes('Y6') && way.filter((cell) => cell === 'X5').length > 1),
    );
  it.each(ways)(
    'cases 4 and 5: height 1 left as %s %s %s → one block there, the committed one if any, and the chain goes on',
    async (...way) => {
      const cluster = new VirtualCluster();
      way.forEach((cell, node) => {
        if (cell !== '-') put(cluster, node, cell === 'X5' ? X : Y, Number(cell[1]));
      });
      const a = watched(cluster, 'seq-a');
      watched(cluster, 'seq-b');
      await cluster.until(() => a.store.head().height >= 4, 4000, 'further blocks');
      await cluster.clock.advance(300);
      const committed = [X, Y].find(
        (block) => way.filter((cell) => cell === (block === X ? 'X5' : 'Y6')).length >= cluster.quorum,
      );
      if (committed) expect(a.store.get(1)!.hash).toBe(committed.hash);
      for (const server of cluster.servers) expect(cluster.chainOf(server).get(1)).toBe(a.store.get(1)!.hash);
      identical(cluster);
      for (const one of cluster.sequencers) expect(alarms(one)).toEqual([]);
    },
  );

  it('case 11: six nodes, X on two, Y on three, one empty → the empty node stays usable, one block is committed', async () => {
    const cluster = new VirtualCluster({ nodes: 6 });
    [0, 1].forEach((node) => put(cluster, node, X, 5));
    [2, 3, 4].forEach((node) => put(cluster, node, Y, 6));
    const a = watched(cluster, 'seq-a');
    await cluster.until(() => a.store.head().height >= 3, 3000, 'further blocks');
    expect(a.store.get(1)!.hash).toBe(Y.hash);
    await cluster.clock.advance(300);
    identical(cluster);
  });

  it(
    'case 10: failed promotions raise one node only → the highest epoch there hides no block that was ' +
      'committed below it',
    async () => {
      const cluster = new VirtualCluster();
      // L1 led on {B, C} with epoch 7 and left Y on C only. Then L2 led on {A, B} with a higher epoch and committed X
      // there.
      put(cluster, 2, Y, 7);
      cluster.servers[1]!.state.epoch = 7;
      put(cluster, 0, X, 8);
      put(cluster, 1, X, 8);
      cluster.servers[2]!.state.epoch = 60;
      const lagging = watched(cluster, 'seq-c');
      await cluster.until(() => lagging.store.head().height >= 3, 3000, 'further blocks');
      expect(lagging.store.get(1)!.hash).toBe(X.hash);
      await cluster.clock.advance(300);
      identical(cluster);
    },
  );

  it(
    'case 9: a leader finds another block at its height on one node → that refusal is no vote; it ' +
      'commits only with a second copy',
    async () => {
      const cluster = new VirtualCluster({ eager: true });
      const a = watched(cluster, 'seq-a');
      a.nodes[0]!.setCut(true); // promoted by {B, C}
      put(cluster, 0, X, 0);
      await cluster.until(() => a.sequencer.status().role === 'leader', 2000, 'the lead');
      const done = a.sequencer.submit([item('z')]);
      a.nodes[2]!.setCut(true);
      a.nodes[0]!.setCut(false); // reachable now: its X must be superseded and must not count
      await cluster.until(() => a.store.head().height >= 2, 3000, 'commits with {A, B}');
      expect((await done)[0]!.outcome).toBe('committed');
      expect(cluster.chainOf(cluster.servers[0]!).get(1)).toBe(a.store.get(1)!.hash);
      expect(a.store.get(1)!.hash).not.toBe(X.hash);
      expect(cluster.servers[0]!.state.orphans.map(({ entry }) => entry.hash)).toEqual([X.hash]);
    },
  );
});

describe('reads, retries and late calls', () => {
  it(
    'case 6: the only claimed node with the block cannot be read → nothing else is proposed there ' +
      'before it can be read',
    async () => {
      const cluster = new VirtualCluster();
      put(cluster, 0, X, 3);
      put(cluster, 1, X, 3);
      const a = watched(cluster, 'seq-a');
      a.nodes[0]!.setCut(true); // A is unreachable and C is empty: only B knows height 1
      const read = a.nodes[1]!.read;
      const tail = a.nodes[1]!.tail;
      const failing = { outcome: 'unknown' as const, step: 'call' as const, cause: 'no answer' };
      a.nodes[1]!.read = () => Promise.resolve(failing);
      a.nodes[1]!.tail = (_, waitMs) => new Promise((resolve) => cluster.clock.after(waitMs, () => resolve(failing)));
      await cluster.clock.advance(3000);
      expect(a.store.head().height).toBe(0);
      expect(cluster.chainOf(cluster.servers[2]!).size).toBe(0);
      a.nodes[1]!.read = read;
      a.nodes[1]!.tail = tail;
      await cluster.until(() => a.store.head().height >= 2, 3000, 'further blocks');
      expect(a.store.get(1)!.hash).toBe(X.hash);
    },
  );

  it('case 13: a write that was given up arrives after the successor has read → refused, and nothing changes', async () => {
    const cluster = new VirtualCluster();
    const a = watched(cluster, 'seq-a');
    await cluster.until(() => a.store.head().height >= 2, 2000, 'blocks');
    const held: { port: NodePort; call: NodeCall }[] = [];
    for (const port of a.nodes) {
      const call = port.call;
      port.call = ((one: NodeCall, limitMs: number) => {
        if (one.script !== 'write_block') return call(one, limitMs);
        held.push({ port: { ...port, call } as unknown as NodePort, call: one });
        return new Promise<ReplyTo<NodeCall>>((resolve) =>
          cluster.clock.after(limitMs, () => resolve({ outcome: 'unknown', step: 'call', cause: 'no answer' })),
        );
      }) as unknown as NodePort['call'];
    }
    await cluster.until(() => held.length >= 3, 1000, 'writes on their way');
    const b = watched(cluster, 'seq-b');
    await cluster.until(() => cluster.leader() === b && b.store.head().height >= 6, 4000, 'the successor');
    const before = cluster.servers.map(({ state }) =>
      JSON.stringify(state.entries.map(({ height, hash, epoch }) => [height, hash, epoch])),
    );
    for (const { port, call } of held)
      expect(await port.call(call, 50)).toMatchObject({ outcome: 'refused', reason: 'FENCING_ERROR' });
    expect(
      cluster.servers.map(({ state }) =>
        JSON.stringify(state.entries.map(({ height, hash, epoch }) => [height, hash, epoch])),
      ),
    ).toEqual(before);
  });
});

describe('terms', () => {
  it(
    'case 3: a leader re-proposes the block of its predecessor → it is ready at once and makes the next ' +
      'block within a block time',
    async () => {
      const cluster = new VirtualCluster();
      put(cluster, 0, X, 3); // pending: one copy
      const a = watched(cluster, 'seq-a');
      await cluster.until(() => a.sequencer.status().role === 'leader', 2000, 'the lead');
      const took = await cluster.until(() => a.store.head().height >= 2, 2000, 'the next block');
      expect(took).toBeLessThanOrEqual(2 * cluster.timing.blockTimeMs);
      expect(a.sequencer.status()).toMatchObject({ role: 'leader', ready: true });
    },
  );

  it('case 3: a leader whose producer does not answer → it says that it leads without producing, and why', async () => {
    const silent: Producer = { ...batchProducer({ maxBlockBytes: 1024 }), produce: () => new Promise(() => {}) };
    const cluster = new VirtualCluster({ producer: () => silent, timing: { ttlMs: 3000 } });
    const a = watched(cluster, 'seq-a');
    await cluster.until(() => a.sequencer.status().role === 'leader', 2000, 'the lead');
    await cluster.clock.advance(1500);
    expect(a.sequencer.status().role).toBe('leader');
    expect(a.sequencer.status().why).toMatch(/produc/);
    await cluster.until(() => a.events.some((event) => event.type === 'leadership-ended'), 3000, 'the end of the term');
    expect(a.events.find((event) => event.type === 'leadership-ended')).toMatchObject({
      reason: expect.stringMatching(/producer/) as string,
    });
  });

  it('case 7: the leader’s producer fails once → the lease is released at once, and nobody waits for it', async () => {
    let fail = false;
    const cluster = new VirtualCluster({
      timing: { ttlMs: 5000 },
      producer: (id) => {
        const good = batchProducer({ maxBlockBytes: 64 * 1024 });
        return {
          ...good,
          produce: (request) => (fail && id === 'seq-a' ? Promise.reject(new Error('no')) : good.produce(request)),
          ready: () => good.ready(),
          committed: (block) => good.committed(block),
          revoked: (why) => good.revoked(why),
          onFailure: (listener) => good.onFailure(listener),
          close: () => good.close(),
        };
      },
    });
    const a = watched(cluster, 'seq-a');
    await cluster.until(() => a.store.head().height >= 2, 2000, 'blocks');
    const b = watched(cluster, 'seq-b');
    await cluster.clock.advance(500);
    fail = true;
    await cluster.until(() => a.sequencer.status().role !== 'leader', 500, 'the end of the term');
    const { height } = b.store.head();
    const took = await cluster.until(() => b.store.head().height > height, 2000, 'the next block');
    expect(took).toBeLessThanOrEqual(3 * cluster.timing.blockTimeMs);
  });

  it('case 19: a long backlog is imported without holding the lease → one promotion only', async () => {
    const cluster = new VirtualCluster({ limits: { retainBlocks: 400 } });
    const a = watched(cluster, 'seq-a');
    await cluster.until(() => a.store.head().height >= 200, 40_000, 'a long chain');
    const stopping = a.sequencer.stop('SIGTERM', 'gone').catch(() => undefined);
    await cluster.clock.advance(1500); // it may wait for its successor
    await stopping;
    const { height } = a.store.head();
    // A slow store: every block takes a while to reach the disk.
    const store = new MemoryStore({ cluster: CLUSTER, lane: '', clock: cluster.clock, syncMs: 200 });
    const b = watched(cluster, 'seq-b', store);
    await cluster.until(() => b.store.head().height > height + 3, 10_000, 'the newcomer');
    const promotions = b.events.filter((event) => event.type === 'role' && event.to === 'promoting');
    expect(promotions).toHaveLength(1);
    expect(b.events.filter((event) => event.type === 'promotion-failed' || event.type === 'leadership-ended')).toEqual(
      [],
    );
  });

  it('case 17: H on {A, B}, B restarts empty, A unreachable → C alone forks nothing', async () => {
    const cluster = new VirtualCluster();
    put(cluster, 0, X, 3);
    put(cluster, 1, X, 3);
    cluster.servers[1]!.restart('none');
    const a = watched(cluster, 'seq-a');
    a.nodes[0]!.setCut(true);
    await cluster.clock.advance(3000);
    expect([a.store.head().height, a.sequencer.status().role]).toEqual([0, 'follower']);
    a.nodes[0]!.setCut(false);
    await cluster.until(() => a.store.head().height >= 2, 4000, 'further blocks');
    expect(a.store.get(1)!.hash).toBe(X.hash);
  });
});

describe('refusals, splits and clocks', () => {
  it(
    'case 22: one node refuses as fenced while others are filled → they are filled, and it is claimed ' +
      'again afterwards',
    async () => {
      const cluster = new VirtualCluster({ nodes: 5 });
      const a = watched(cluster, 'seq-a');
      await cluster.until(() => a.store.head().height >= 2, 2000, 'blocks');
      for (const node of [3, 4]) a.nodes[node]!.setCut(true); // they fall behind
      await cluster.until(() => a.store.head().height >= 8, 2000, 'blocks that two nodes lack');
      Object.assign(cluster.servers[3]!.state, { epoch: a.sequencer.status().epoch! + 1000 });
      cluster.servers[3]!.state.record!.claimant = '';
      for (const node of [3, 4]) a.nodes[node]!.setCut(false);
      const head = (node: number) => cluster.servers[node]!.state.record!.head;
      await cluster.until(() => head(4) >= a.store.head().height - 1, 1000, 'the other node to be level');
      await cluster.until(() => head(3) >= a.store.head().height - 1, 3000, 'the one that refused to be level');
      expect(cluster.leader()).toBe(a);
      identical(cluster);
    },
  );

  it(
    'case 43: two sequencers reach two of four nodes each → nobody leads on half; one of them leads ' +
      'once a third node answers',
    async () => {
      const cluster = new VirtualCluster({ nodes: 4 });
      const a = watched(cluster, 'seq-a');
      const b = watched(cluster, 'seq-b');
      for (const node of [2, 3]) a.nodes[node]!.setCut(true);
      for (const node of [0, 1]) b.nodes[node]!.setCut(true);
      await cluster.clock.advance(3000);
      expect([a.store.head().height, b.store.head().height, cluster.leader()]).toEqual([0, 0, undefined]);
      for (const one of [a, b]) for (const port of one.nodes) port.setCut(false);
      await cluster.until(
        () => a.store.head().height >= 3 && b.store.head().height >= 3,
        4000,
        'one of them to lead and the other to follow',
      );
      const [led] = [a, b].filter((one) => one.events.some((event) => event.type === 'role' && event.to === 'leader'));
      expect([a, b].filter((one) => one !== led).every((one) => one.sequencer.status().role === 'follower')).toBe(true);
    },
  );

  it(
    'case 43: a lock of an earlier life still exists → the sequencer does not take it for its own, and ' +
      'leads after it expires',
    async () => {
      const cluster = new VirtualCluster();
      for (const { state } of cluster.servers) {
        state.lock = { owner: 'seq-a/00000000000000aa', expiresAtMs: cluster.clock.wall() + 1500 };
        state.epoch = 4;
      }
      const a = watched(cluster, 'seq-a');
      await cluster.clock.advance(1400);
      expect([a.sequencer.status().role, a.store.head().height]).toEqual(['follower', 0]);
      expect(new Set(cluster.servers.map(({ state }) => state.epoch))).toEqual(new Set([4]));
      await cluster.until(() => a.store.head().height >= 2, 1500, 'blocks once it has expired');
      expect(a.sequencer.status().epoch).toBeGreaterThan(4);
    },
  );

  it('case 43: promotions are acknowledged when the lease is almost over → the sequencer does not lead on them', async () => {
    const cluster = new VirtualCluster({ timing: { ttlMs: 400, nodeTimeoutMs: 1000, blockTimeMs: 50 } });
    const a = watched(cluster, 'seq-a');
    let slow = true;
    for (const port of a.nodes) {
      const call = port.call;
      port.call = (async (one: NodeCall, limitMs: number) => {
        const reply = await call(one, limitMs);
        if (slow && one.script === 'promote_leader')
          await new Promise<void>((resolve) => cluster.clock.after(450, resolve));
        return reply;
      }) as unknown as NodePort['call'];
    }
    await cluster.clock.advance(5000);
    expect(a.store.head().height).toBe(0);
    expect(a.events.some((event) => event.type === 'role' && event.to === 'leader')).toBe(false);
    slow = false;
    await cluster.until(() => a.store.head().height >= 2, 3000, 'blocks');
  });

  it.each([
    ['forward, on a quorum: the locks expire early', ['r1', 'r2'], 10_000, 2],
    ['forward, on one node', ['r3'], 10_000, 1],
    ['back, on every node: the locks outlive the leader', ['r1', 'r2', 'r3'], -4000, 1],
    ['back, on two nodes', ['r1', 'r2'], -3000, 1],
  ])(
    'case 25: a clock jumps %s → no fork, the old leader writes nothing more, and all nodes converge',
    async (_, nodes, ms, terms) => {
      const plan = (id: string) => ({
        id,
        ttlMs: 1500,
        blockTimeMs: 500,
        nodeTimeoutMs: 50,
        pollMs: 250,
        eager: true,
        priority: 0,
        syncMs: 1,
        wallOffsetMs: 0,
      });
      const { history } = await run({
        seed: 25,
        nodes: 3,
        retainBlocks: 40,
        clients: 2,
        thinkMs: 200,
        healAt: 12_000,
        processes: ['seq-a', 'seq-b', 'seq-c'].map(plan),
        faults: [
          ...nodes.map((node) => ({ at: 4000, kind: 'jump' as const, node, ms })),
          { at: 4010, kind: 'pause' as const, process: '@leader', forMs: 300 },
          ...(ms < 0
            ? [
                {
                  at: 5000,
                  kind: 'crash' as const,
                  process: '@leader',
                  afterCalls: 1,
                  downMs: 3000,
                  store: 'keep' as const,
                },
              ]
            : []),
        ],
      });
      expect(check(history)).toEqual([]);
      const epochs = new Set(
        history.entries.flatMap((entry) =>
          entry.is === 'event' && entry.event.type === 'committed' && entry.event.by === 'leader'
            ? [entry.event.epoch]
            : [],
        ),
      );
      expect(epochs.size).toBeGreaterThanOrEqual(ms < 0 ? 2 : terms);
    },
  );
});
