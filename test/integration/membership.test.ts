// Each server counts as one node, whatever a sequencer's own settings say. Each test takes the way on which sequencers
// with different settings once forked the chain, on real servers and processes. Every process reaches the servers
// through links of its own, so that a test can cut one of them.
import { expect, test } from 'vitest';
import type { RedisServer } from '../support/redis-server.js';
import {
  client,
  endAllAfterEach,
  follow,
  forkAt,
  initialise,
  Link,
  redis,
  soon,
  start,
  until,
  view,
} from '../support/live-sequencers.js';

endAllAfterEach();

/**
 * Sequencer a stays connected to the old server of r3. Sequencer b starts later and finds another server as r3. Then each
 * of them is cut off from one other node.
 */
async function twoServersForOneNode(other: RedisServer, becomes: (old: RedisServer) => Promise<void>): Promise<void> {
  const [r1, r2, old] = [await redis(), await redis(), await redis()];
  const [a1, a2, b1, b2] = [await Link.to(r1), await Link.to(r2), await Link.to(r1), await Link.to(r2)];
  const named = await Link.to(old);
  await initialise({ r1, r2, r3: named });
  const a = await start('a', { r1: a1, r2: a2, r3: old });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  await becomes(old);
  named.cut(); // at the address under which it was made a node, nobody reaches the old server any more
  const b = await start('b', { r1: b1, r2: b2, r3: other });
  await until('b to follow', async () => ((await b.get<{ height: number }>('/v1/status'))?.height ? true : undefined));
  for (const link of [a1, a2]) link.cut();
  await until('b to lead', b.leads);
  for (const link of [a1, a2]) link.heal();
  const before = await view(old);
  const admitted = await soon(8000, async () => {
    const { admission, incarnation } = await view(other);
    return admission === 'admitted' && incarnation !== before.incarnation ? true : undefined;
  });
  if (!admitted) return; // one server is r3, as ever
  await until('a to follow b', async () =>
    (await a.get<{ leader: { id: string } | null }>('/v1/status'))?.leader?.id === 'b' ? true : undefined,
  );

  // From here on a sees {r2, the old server}, b {r1, the other one}: no quorum of one has a server in common with b's.
  a1.cut();
  b2.cut();
  const receipt = await until('b to acknowledge the item', () => b.submit('paid once'));
  const block = await until('its block', () => b.block(receipt.height));
  b.child.kill('SIGKILL');
  const again = await soon(5000, () => a.submit('paid once'));
  expect(await forkAt(block.height, block, a), `two blocks at height ${block.height}`).toEqual([]);
  expect(again?.height ?? receipt.height, 'the item is sequenced once').toBe(receipt.height);
}

test('case 1: a promoted replica answers for a node, some stay connected to the old master → no fork', async () => {
  const replica = await redis();
  await twoServersForOneNode(replica, async (old) => {
    await follow(client(replica), old);
    await client(replica).replicaof('NO', 'ONE');
  });
}, 180_000);

test('case 2: the settings of one sequencer name another server for a node → no fork', async () => {
  await twoServersForOneNode(await redis(), async () => undefined);
}, 180_000);
