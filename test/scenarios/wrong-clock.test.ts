// Does a wrong clock end a de-duplication window early (docs/PROTOCOL.md section 6)? Block time is the median of the
// nodes. A keyed item that is sent again must find its receipt, whoever leads.
import { describe, expect, test } from 'vitest';
import { VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';
import { WALL_START } from '../support/manual-clock.js';

const DAY_AND_HOUR = 90_000_000;
const item = { key: 'paid once', data: Buffer.from('paid once') };

async function submit(cluster: VirtualCluster, to: VirtualSequencer): Promise<{ height: number; duplicate: boolean }> {
  let told: Awaited<ReturnType<VirtualSequencer['sequencer']['submit']>> | undefined;
  void to.sequencer.submit([item]).then((outcomes) => (told = outcomes));
  await cluster.until(() => told !== undefined, 5000, 'the item to be answered');
  const [outcome] = told!;
  if (outcome?.outcome !== 'committed') throw new Error(JSON.stringify(outcome));
  return { height: outcome.receipt.height, duplicate: outcome.duplicate };
}
const leads = (one: VirtualSequencer) => one.sequencer.status().role === 'leader';
const alarms = (one: VirtualSequencer) =>
  one.events.flatMap((event) => (event.type === 'alarm' ? [`${event.code} ${event.node ?? 'own'}`] : []));

describe('a keyed item is sequenced once', () => {
  test("the leader's wall clock is 25 h ahead for 2.5 s → the item is not sequenced again", async () => {
    const cluster = new VirtualCluster();
    let aheadMs = 0;
    const a = cluster.start('a', undefined, { wallAheadMs: () => aheadMs });
    await cluster.until(() => leads(a), 5000, 'a to lead');
    const first = await submit(cluster, a);
    aheadMs = DAY_AND_HOUR;
    await cluster.clock.advance(2500);
    expect(alarms(a)).toEqual(['CLOCK_OFF own']);
    aheadMs = 0;
    await cluster.clock.advance(1000);
    expect(await submit(cluster, a)).toEqual({ ...first, duplicate: true });
    const head = a.store.head();
    expect(Math.abs(head.timestamp - (WALL_START + cluster.clock.now()))).toBeLessThan(300);
    expect(alarms(a), 'said once').toHaveLength(1);
  });

  test("a successor's wall clock is 25 h ahead for ever → it leads, and knows the item", async () => {
    const cluster = new VirtualCluster();
    const a = cluster.start('a');
    await cluster.until(() => leads(a), 5000, 'a to lead');
    const first = await submit(cluster, a);
    const b = cluster.start('b', undefined, { wallAheadMs: () => DAY_AND_HOUR });
    await cluster.until(() => b.sequencer.status().ready, 5000, 'b to be ready');
    void a.sequencer.stop('STOPPED', 'the test says so');
    await cluster.until(() => leads(b), 5000, 'b to lead');
    await cluster.clock.advance(1000);
    expect(await submit(cluster, b)).toEqual({ ...first, duplicate: true });
  });

  test.each([
    ['one node is 25 h ahead', [0, DAY_AND_HOUR, 0], ['CLOCK_OFF r2']],
    ['one node is 25 h behind', [-DAY_AND_HOUR, 0, 0], ['CLOCK_OFF r1']],
  ])('%s → it is outvoted, and an alarm names it', async (_what, aheadMs, named) => {
    const cluster = new VirtualCluster();
    const a = cluster.start('a');
    await cluster.until(() => leads(a), 5000, 'a to lead');
    const first = await submit(cluster, a);
    cluster.nodeAheadMs.push(...aheadMs);
    await cluster.clock.advance(2500);
    expect(await submit(cluster, a)).toEqual({ ...first, duplicate: true });
    expect(Math.abs(a.store.head().timestamp - (WALL_START + cluster.clock.now()))).toBeLessThan(300);
    expect(alarms(a)).toEqual(named);
  });
});
