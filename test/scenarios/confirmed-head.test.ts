// Is a confirmed head current? It must not be older than a block that anybody saw committed before the request.
import { expect, it } from 'vitest';
import { VirtualCluster } from '../support/virtual-cluster.js';

it(
  'confirmed head: a follower has read a block whose replies are still under way to the leader → the ' +
    'head is that block or a later one',
  async () => {
    const cluster = new VirtualCluster();
    cluster.start('seq-a');
    cluster.start('seq-b');
    await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
    const leader = cluster.leader()!;
    const follower = cluster.sequencers.find((one) => one !== leader)!;
    for (const port of leader.nodes) {
      const call = port.call;
      port.call = (async (sent, limitMs) => {
        const reply = await call(sent, limitMs);
        if (sent.script === 'write_block') await new Promise<void>((resolve) => cluster.clock.after(40, resolve));
        return reply;
      }) as typeof call;
    }
    let asked = 0;
    for (let step = 0; step < 400 && asked < 5; step++) {
      await cluster.clock.advance(5);
      const { height } = follower.store.head();
      if (height <= leader.store.head().height) continue;
      asked++;
      const answer = leader.sequencer.confirmHead();
      await cluster.clock.advance(60);
      const head = await answer;
      expect(head).toMatchObject({ confirmed: true });
      if (head.confirmed) expect(head.height).toBeGreaterThanOrEqual(height);
    }
    expect(asked).toBe(5);
  },
);
