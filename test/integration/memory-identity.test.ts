// Whose memory does a server hold, and which epochs can a cluster have reached? (docs/PROTOCOL.md sections 4 and 8.) A
// server that forgot what it acknowledged never counts again by itself. A number that somebody wrote by hand stops
// nobody. On real servers and processes.
import { expect, test } from 'vitest';
import type { NodeView } from '../../src/core/protocol/types.js';
import type { RedisNode } from '../../src/core/redis/node.js';
import { chain, lead, LIMIT, openNode, write } from '../lua/fixture.js';
import {
  afterTest,
  client,
  endAllAfterEach,
  field,
  flagsOf,
  follow,
  initialise,
  redis,
  soon,
  start,
  until,
  view,
  type LiveSequencer,
} from '../support/live-sequencers.js';
import type { RedisServer } from '../support/redis-server.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

test('case 5: rolled back to an older copy, and the server has forgotten that it was → it never counts again by itself', async () => {
  const [first, second] = [await redis(['--repl-backlog-ttl', '1']), await redis()];
  const [one, two] = [client(first), client(second)];
  const blocks = chain(3);
  const node = openNode(first);
  afterTest(() => node.close());
  await lead(node, blocks.slice(0, 2));
  await follow(two, first);
  await two.replicaof('NO', 'ONE');
  expect(await node.call(write(blocks[2]!), LIMIT)).toMatchObject({ outcome: 'accepted' });
  await follow(one, second);
  await one.replicaof('NO', 'ONE');
  expect(await one.xlen('seq:block:stream'), 'an acknowledged block is forgotten').toBe(2);
  const shown = async () => (await openView(node)).admission;
  expect(await shown()).toBe('restarted');
  await until('the server to forget that it was a replica', async () =>
    /^0+$/.test(await field(one, 'master_replid2')) ? true : undefined,
  );
  expect(await shown(), 'the same memory, some time later').toBe('restarted');
}, 180_000);

test('case 7: made a replica and a master again between two writes → the writer and a reader say the same of it', async () => {
  const [first, second] = [await redis(), await redis()];
  const [one, two] = [client(first), client(second)];
  const blocks = chain(400);
  const node = openNode(first);
  afterTest(() => node.close());
  await lead(node, blocks.slice(0, 2));
  await follow(two, first);
  let written = 2;
  expect(await node.call(write(blocks[written++]!), LIMIT)).toMatchObject({ outcome: 'accepted' });
  await until('the replica to have it', async () =>
    (await two.xlen('seq:block:stream')) === written ? true : undefined,
  );
  await two.replicaof('NO', 'ONE');
  await follow(one, second);
  await one.replicaof('NO', 'ONE');

  // A leader writes all the time. It knows within one poll whose memory it writes to.
  const agreed = await soon(3000, async () => {
    const reply = await node.call(write(blocks[written]!), LIMIT);
    if (reply.outcome === 'accepted') written += 1;
    const counts = (await openView(node)).admission === 'admitted';
    return counts === (reply.outcome === 'accepted') ? true : undefined;
  });
  expect(agreed, 'writes are accepted on a node that is not admitted').toBe(true);
}, 180_000);

async function openView(node: RedisNode): Promise<NodeView> {
  const reply = await node.call({ script: 'inspect' }, LIMIT);
  if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
  return reply.value;
}

test('all three nodes are given their first replica at once → the leader goes on, and no node is re-admitted', async () => {
  const servers = [await redis(), await redis(), await redis()];
  const [r1, r2, r3] = servers as [RedisServer, RedisServer, RedisServer];
  await initialise({ r1, r2, r3 });
  const a = await start('a', { r1, r2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  const before = await Promise.all(servers.map(view));
  const replicas = [await redis(), await redis(), await redis()];
  await Promise.all(replicas.map((replica, i) => follow(client(replica), servers[i]!)));
  for (const key of ['second', 'third']) await until(`${key} to be sequenced`, () => a.submit(key));
  // A reader that has just started cannot prove it. The leader notes the new name within one poll.
  const after = await until('each new name to be noted', async () => {
    const views = await Promise.all(servers.map(view));
    return views.every(({ admission }) => admission === 'admitted') ? views : undefined;
  });
  for (const [i, one] of after.entries()) {
    expect(one.incarnation, 'the same memory').toBe(before[i]!.incarnation);
    expect(one.runId, 'under another name').not.toBe(before[i]!.runId);
  }
}, 180_000);

/** A leader that nobody disturbs, and an epoch on r3 that no term can have reached, written by hand. */
async function strayEpoch(epoch: string): Promise<{ a: LiveSequencer; servers: RedisServer[] }> {
  const [r1, r2, r3] = [await redis(), await redis(), await redis()];
  await initialise({ r1, r2, r3 });
  const a = await start('a', { r1, r2, r3 });
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  await client(r3).set('seq:epoch:token', epoch);
  return { a, servers: [r1, r2, r3] };
}

test('the epoch 2^53-1 by hand on one node → damage: it is re-admitted, and in step again', async () => {
  const { a, servers } = await strayEpoch('9007199254740991');
  const healed = await soon(60_000, async () => {
    const [one, , three] = await Promise.all(servers.map(view));
    return three!.admission === 'admitted' && three!.epoch === one!.epoch && (await a.leads()) ? true : undefined;
  });
  expect(healed, 'r3 takes part again').toBe(true);
}, 180_000);

test('the epoch 2^53-2 by hand on one node → the others do not take it over: somebody can always lead', async () => {
  const { servers } = await strayEpoch('9007199254740990');
  const [r1] = servers as [RedisServer];
  const lifted = await soon(20_000, async () => {
    const [one, , three] = await Promise.all(servers.map(view));
    return three!.epoch < 1e6 && three!.admission === 'admitted' ? false : one!.epoch > 1e6 ? true : undefined;
  });
  expect(lifted, `the epoch of r1 is ${(await view(r1)).epoch}`).toBe(false);
}, 180_000);

test('an epoch near the end of the numbers by hand → nobody follows it; status and doctor name the way out', async () => {
  const { a, servers } = await strayEpoch(String(2 ** 48 - 1));
  const [r1, r2, r3] = servers as [RedisServer, RedisServer, RedisServer];
  const nodes = { r1, r2, r3 };
  const way = `redis-cli -u redis://127.0.0.1:${r3.port} del seq:epoch:token`;
  const ask = async (...words: string[]): Promise<string> =>
    (await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s', '--json'])).stdout;
  await until('seq status to say so', async () =>
    (await ask('status')).includes('no term has reached its epoch') ? true : undefined,
  );
  for (const words of [['status'], ['epoch', 'show'], ['doctor']])
    expect(await ask(...words), words.join(' ')).toContain(way);
  const { height } = await until('a key to be sequenced all the same', () => a.submit('second'));
  expect(height).toBeGreaterThan(0);
  expect((await view(r1)).epoch).toBeLessThan(1e6);

  await client(r3).del('seq:epoch:token');
  await until('r3 to take part again', async () =>
    (await view(r3)).admission === 'admitted' && (await view(r3)).epoch === (await view(r1)).epoch ? true : undefined,
  );
}, 180_000);
