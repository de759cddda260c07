// Does a lane that rests keep its leader (docs/PROTOCOL.md I8 and section 6.8)? Without work, the lease is extended
// without a block, with the checks of a write. With work, only an accepted block renews it.
import { expect, it } from 'vitest';
import type { SubmitOutcome } from '../../src/core/ports.js';
import { VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const TTL_MS = 1500;
const BLOCK_MS = 300;
const text = (s: string) => new TextEncoder().encode(s);
const terms = (one: VirtualSequencer) => one.events.filter((event) => event.type === 'leadership-ended');

async function resting(): Promise<{ cluster: VirtualCluster; a: VirtualSequencer; b: VirtualSequencer }> {
  const cluster = new VirtualCluster({ timing: { ttlMs: TTL_MS, blockTimeMs: BLOCK_MS }, rests: true, eager: true });
  const a = cluster.start('seq-a');
  await cluster.until(() => cluster.leader() === a, 4000, 'a leader');
  const b = cluster.start('seq-b');
  await cluster.until(() => b.sequencer.status().ready, 4000, 'the follower is ready');
  await cluster.until(() => a.store.head().height >= 1, 4000, 'the first block of the term');
  return { cluster, a, b };
}

it('no work for a hundred leases → one leader, one term, no block, and the lease never gets short', async () => {
  const { cluster, a, b } = await resting();
  const { height } = a.store.head();
  let least = Infinity;
  for (let passed = 0; passed < 100 * TTL_MS; passed += 100) {
    await cluster.clock.advance(100);
    least = Math.min(least, a.sequencer.status().leaseMs);
  }
  expect(a.store.head().height).toBe(height);
  expect(least).toBeGreaterThan(TTL_MS - 2 * BLOCK_MS);
  expect(cluster.leader()).toBe(a);
  expect([terms(a), terms(b)]).toEqual([[], []]);
  expect(b.sequencer.status()).toMatchObject({ ready: true, leader: { id: 'seq-a' } });
});

it('an item comes while the lane rests → its block is made at once, and the lane rests again', async () => {
  const { cluster, a } = await resting();
  await cluster.clock.advance(20 * TTL_MS);
  const { height } = a.store.head();
  let told: SubmitOutcome[] | undefined;
  void a.sequencer.submit([{ key: 'k', data: text('item') }]).then((outcomes) => (told = outcomes));
  const tookMs = await cluster.until(() => told !== undefined, BLOCK_MS, 'the receipt');
  expect(tookMs).toBeLessThan(BLOCK_MS / 4);
  expect(told).toMatchObject([{ outcome: 'committed', receipt: { height: height + 1 } }]);
  await cluster.clock.advance(20 * TTL_MS);
  expect(a.store.head().height).toBe(height + 1);
  expect(terms(a)).toEqual([]);
});

it('the leader dies while the lane rests → the other leads after the lease, makes one block, and the lane rests', async () => {
  const { cluster, a, b } = await resting();
  await cluster.clock.advance(20 * TTL_MS);
  for (const node of a.nodes) node.setCut(true);
  const tookMs = await cluster.until(() => cluster.leader() === b, 3 * TTL_MS, 'the other leads');
  expect(tookMs).toBeLessThan(1.5 * TTL_MS);
  await cluster.until(() => b.store.head().height > a.store.head().height, TTL_MS, 'its first block');
  const { height } = b.store.head();
  await cluster.clock.advance(20 * TTL_MS);
  expect(b.store.head().height).toBe(height);
  expect(cluster.leader()).toBe(b);
  // The former leader knew by its own clock that its lease had ended.
  expect(terms(a)).toMatchObject([{ code: 'LEASE_EXPIRED' }]);
});

it('work that no node accepts → the lease is not extended, and the term ends with it', async () => {
  const { cluster, a } = await resting();
  await cluster.clock.advance(5 * TTL_MS);
  // Blocks take longer than a lease to arrive. Calls without a block are as fast as before.
  for (const node of a.nodes) node.takes = (blocks) => (blocks > 0 ? 10 * TTL_MS : 0);
  void a.sequencer.submit([{ key: 'k', data: text('item') }]);
  await cluster.until(() => terms(a).length > 0, 2 * TTL_MS, 'the term ends');
  expect(terms(a)).toMatchObject([{ code: 'LEASE_EXPIRED' }]);
});

it('a request comes while the lane rests, and its hint is lost → the next extension of the lease finds it', async () => {
  const { cluster, a, b } = await resting();
  await cluster.clock.advance(5 * TTL_MS);
  const { epoch } = a.sequencer.status();
  for (const server of cluster.servers)
    server.state.request = {
      request: { id: 'q', kind: 'stepdown', to: 'seq-b', plan: '', by: 'op', reason: 'test', epoch },
      expiresAtMs: Infinity,
    };
  await cluster.until(() => cluster.leader() === b, 2 * BLOCK_MS + 500, 'handed over');
  expect(terms(a)).toMatchObject([{ code: 'REQUESTED' }]);
});

it('a node loses its memory while the lane rests → it is filled and admitted, and the lane rests again', async () => {
  const { cluster, a } = await resting();
  await cluster.clock.advance(5 * TTL_MS);
  cluster.servers[2]!.wipe();
  await cluster.until(
    () => a.sequencer.status().nodes.every(({ state }) => state === 'claimed'),
    20 * TTL_MS,
    'all nodes count',
  );
  // One more block trims the node like the others.
  await cluster.clock.advance(3 * BLOCK_MS);
  const { height } = a.store.head();
  await cluster.clock.advance(20 * TTL_MS);
  expect(a.store.head().height).toBe(height);
  expect(cluster.servers[2]!.state.entries.length).toBe(cluster.servers[0]!.state.entries.length);
  expect(terms(a)).toEqual([]);
  expect(a.refusals, 'how the leader learned it').toContain('extend_lock NOT_ADMITTED');
});

it(
  'two nodes are cut off from the leader while the lane rests → it gives up by its own clock, before ' +
    'anybody else can lead',
  async () => {
    const { cluster, a, b } = await resting();
    await cluster.clock.advance(5 * TTL_MS);
    a.nodes[0]!.setCut(true);
    a.nodes[1]!.setCut(true);
    let both = false;
    await cluster.until(
      () => {
        both ||= a.sequencer.status().role === 'leader' && b.sequencer.status().role === 'leader';
        return cluster.leader() === b;
      },
      3 * TTL_MS,
      'the other leads',
    );
    expect(both).toBe(false);
  },
);
