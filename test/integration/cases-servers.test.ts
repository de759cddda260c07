// Field cases about what one real server does or tells: duplicates after a repair, votes counted twice, releases with
// side effects.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { committedPrefix, readLedger } from '../../src/core/protocol/ledger.js';
import type { Entry } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { keyed } from '../support/blocks.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

const CLUSTER = 'cafe000000000000.1';
const LIMIT_MS = 60_000;
let servers: RedisServer[];
beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
});

/** The three servers as a cluster of their own (a lane each). */
async function led(lane: string): Promise<{ nodes: RedisNode[]; writer: ChainWriter; close(): Promise<unknown> }> {
  const nodes = servers.map(
    (server, at) => new RedisNode({ id: `r${at + 1}`, url: server.url, identity: { cluster: CLUSTER, lane } }),
  );
  const writer = new ChainWriter(nodes, CLUSTER, lane);
  await writer.bootstrap();
  return { nodes, writer, close: () => Promise.all(nodes.map((node) => node.close())) };
}
async function entries(node: RedisNode): Promise<Entry[]> {
  const read = await node.read({ from: 1, to: 1000, limit: 1000, data: true }, LIMIT_MS);
  if (read.outcome !== 'accepted') throw new Error(JSON.stringify(read));
  return read.value.entries;
}

describe('cases on one server', () => {
  test(
    'case 15: an entry was superseded and the stream is no longer in the order of writing → sent ' +
      'again it is accepted and there once',
    async () => {
      const {
        nodes: [node],
        writer,
        close,
      } = (await led('order')) as { nodes: [RedisNode]; writer: ChainWriter; close(): Promise<unknown> };
      await writer.lead();
      const blocks = [await writer.write(keyed('a')), await writer.write(keyed('b')), await writer.write(keyed('c'))];
      // A later term puts a committed epoch of old on a higher head: ids are then no longer in the order in which
      // they were written.
      writer.owner = 'seq-b/0000000000000002';
      await node.call({ script: 'release_lock', owner: 'seq-a/0000000000000001' }, LIMIT_MS);
      expect(
        await node.call({ script: 'promote_leader', owner: writer.owner, expectedEpoch: 1, ttlMs: 60_000 }, LIMIT_MS),
      ).toMatchObject({ outcome: 'accepted' });
      expect(await node.call({ script: 'claim', owner: writer.owner, epoch: 5 }, LIMIT_MS)).toMatchObject({
        outcome: 'accepted',
      });
      const again = (at: number, entryEpoch: number) =>
        node.call(
          {
            script: 'write_block',
            owner: writer.owner,
            epoch: 5,
            ttlMs: 60_000,
            mode: 'repair',
            block: blocks[at]!,
            entryEpoch,
          },
          LIMIT_MS,
        );
      expect(await again(2, 5)).toMatchObject({ outcome: 'accepted', value: { head: 3 } }); // re-stamped
      for (let round = 0; round < 3; round++) {
        for (const at of [2, 0, 1, 0, 2])
          for (const epoch of [1, 3, 5])
            expect((await again(at, epoch)).outcome, `block ${at + 1} under ${epoch}`).toBe('accepted');
      }
      expect((await entries(node)).map(({ height, epoch }) => [height, epoch])).toEqual([
        [1, 1],
        [2, 1],
        [3, 5],
      ]);
      expect(await node.call({ script: 'inspect' }, LIMIT_MS)).toMatchObject({ value: { length: 3, head: 3 } });
      await close();
    },
  );

  test('case 14: two entries at one height on one node → one vote at most, for whoever reads', async () => {
    const { nodes, writer, close } = await led('twice');
    await writer.lead();
    const one = await writer.write(keyed('a'), nodes.slice(0, 1));
    const [entry] = await entries(nodes[0]!);
    const twin = { ...entry!, epoch: 2 };
    const facts = { head: 1, headEpoch: 2, headHash: one.hash, floor: 0, floorHash: one.parent };
    const seen = [
      { id: 'r1', answered: true as const, admitted: true, facts, entries: [entry!, twin], damaged: [] },
      ...['r2', 'r3'].map((id) => ({
        id,
        answered: true as const,
        admitted: true,
        facts: { head: 0, headEpoch: 0, headHash: one.parent, floor: 0, floorHash: one.parent },
        entries: [],
        damaged: [],
      })),
    ];
    expect(readLedger(seen, 3, { from: 1, to: 1 })[0]).toMatchObject({ verdict: 'pending', copies: 1 });
    const followed = seen.map(({ id, entries: held }) => ({ id, admitted: true, entries: held }));
    expect(committedPrefix(followed, 3, { height: 0, hash: one.parent })).toEqual({ committed: [], anomalies: [] });
    await close();
  });

  test(
    'case 21: a release below a quorum → takes no free lock, raises no epoch, and says on which ' +
      'nodes nothing was released',
    async () => {
      const { nodes, writer, close } = await led('release');
      await writer.lead(nodes.slice(0, 1)); // one node of three
      const picture = async () =>
        Promise.all(
          nodes.map(async (node) => {
            const reply = await node.call({ script: 'inspect' }, LIMIT_MS);
            if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
            return { lock: reply.value.lock?.owner ?? null, epoch: reply.value.epoch, claimant: reply.value.claimant };
          }),
        );
      const before = await picture();
      const replies = await Promise.all(
        nodes.map((node) => node.call({ script: 'release_lock', owner: writer.owner }, LIMIT_MS)),
      );
      expect(
        replies.map((reply) => (reply.outcome === 'refused' ? `${reply.reason} ${reply.detail.check}` : reply.outcome)),
      ).toEqual(['accepted', 'FENCING_ERROR lock', 'FENCING_ERROR lock']);
      expect(await picture()).toEqual([{ ...before[0]!, lock: null }, before[1], before[2]]);
      await close();
    },
  );

  test(
    'case 23: a stream of large blocks → a write costs what it costs on an empty one, and its answer ' +
      'comes in time',
    async () => {
      const { nodes, writer, close } = await led('large');
      const one = nodes.slice(0, 1);
      await writer.lead(one);
      const payload = new Uint8Array(100_000);
      const times: number[] = [];
      for (let at = 0; at < 400; at++) {
        const startedAt = performance.now();
        await writer.write(payload, one);
        times.push(performance.now() - startedAt);
      }
      const median = (some: number[]) => some.sort((a, b) => a - b)[Math.floor(some.length / 2)]!;
      const [early, late] = [median(times.slice(10, 60)), median(times.slice(-50))];
      // A scan of 40 MB would take tens of ms more. The noise of a busy machine is smaller.
      expect(late).toBeLessThan(3 * early + 5);
      await close();
    },
  );
});
