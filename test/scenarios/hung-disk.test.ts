// What happens when a disk hangs? It accepts writes, syncs none for any length of time, and reports no error. Receipts
// wait for syncs, so a sequencer that cannot sync must not lead.
import { expect, it } from 'vitest';
import type { SubmitOutcome } from '../../src/core/ports.js';
import { VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const TTL_MS = 1500;
const text = (s: string) => new TextEncoder().encode(s);
const alarms = ({ events }: VirtualSequencer) =>
  events.filter((event) => event.type === 'alarm' && event.code === 'STORE_STALLED');

async function twoSequencers(): Promise<{ cluster: VirtualCluster; a: VirtualSequencer; b: VirtualSequencer }> {
  const cluster = new VirtualCluster({ timing: { ttlMs: TTL_MS } });
  const a = cluster.start('seq-a');
  await cluster.until(() => cluster.leader() === a, 4000, 'a leader');
  const b = cluster.start('seq-b');
  await cluster.until(() => b.sequencer.status().ready, 2000, 'the follower is ready');
  return { cluster, a, b };
}

it('the leader’s disk hangs → it hands over within two leases; receipts come from the other sequencer', async () => {
  const { cluster, a, b } = await twoSequencers();
  a.store.hang();
  let told: SubmitOutcome[] | undefined;
  void a.sequencer.submit([{ key: 'k', data: text('item') }]).then((outcomes) => (told = outcomes));
  const tookMs = await cluster.until(() => cluster.leader() === b, 10 * TTL_MS, 'the other leads');
  expect(tookMs).toBeLessThan(2 * TTL_MS);
  expect(a.events.filter((event) => event.type === 'leadership-ended')).toMatchObject([
    {
      code: 'STORE_STALLED',
      reason: expect.stringMatching(/^its disk has not synced block \d+ for 15\d\d ms$/) as string,
    },
  ]);
  expect(told).toMatchObject([{ outcome: 'unknown' }]);
  await cluster.until(() => b.store.receipt('k') !== undefined, TTL_MS, 'the item is in the other store');
  const again = b.sequencer.submit([{ key: 'k', data: text('item') }]);
  await cluster.clock.advance(0);
  expect(await again).toMatchObject([{ outcome: 'committed', duplicate: true }]);
  expect(a.sequencer.status()).toMatchObject({
    role: 'follower',
    ready: false,
    why: expect.stringMatching(/^its disk has not synced block/) as string,
  });
});

it('a disk hangs and the other leader dies → the sequencer with this disk does not lead until the disk works again', async () => {
  const { cluster, a, b } = await twoSequencers();
  a.store.hang();
  await cluster.until(() => cluster.leader() === b, 4 * TTL_MS, 'the other leads');
  for (const node of b.nodes) node.setCut(true);
  await cluster.clock.advance(4 * TTL_MS);
  expect(cluster.leader()).toBeUndefined();
  expect(alarms(a)).toHaveLength(1);
  a.store.heal();
  await cluster.until(() => cluster.leader() === a, 2 * TTL_MS, 'it leads again');
  expect(a.sequencer.status()).toMatchObject({ ready: true, why: '' });
});

it('a sync that lasts less than a lease → nothing changes', async () => {
  const { cluster, a } = await twoSequencers();
  a.store.hang();
  await cluster.clock.advance(TTL_MS * 0.9);
  a.store.heal();
  await cluster.clock.advance(3 * TTL_MS);
  expect(cluster.leader()).toBe(a);
  expect(alarms(a)).toEqual([]);
});

it('a follower’s disk hangs → it says so, is not ready, and the leader goes on', async () => {
  const { cluster, a, b } = await twoSequencers();
  b.store.hang();
  await cluster.until(() => !b.sequencer.status().ready, 2 * TTL_MS, 'it says so');
  expect(b.sequencer.status().why).toMatch(/^its disk has not synced block/);
  expect(cluster.leader()).toBe(a);
  b.store.heal();
  await cluster.until(() => b.sequencer.status().ready, TTL_MS, 'it is ready again');
});

it('a leader stops while its disk hangs → the stop still ends', async () => {
  const { cluster, a, b } = await twoSequencers();
  a.store.hang();
  await cluster.clock.advance(300);
  let stopped = false;
  void a.sequencer.stop('SIGTERM', 'test').then(() => (stopped = true));
  await cluster.until(() => cluster.leader() === b, 1000, 'the other leads');
  await cluster.until(() => stopped, 3 * TTL_MS, 'the stop');
});
