// What if locks outlive every lease, because the clocks of their servers stepped back (docs/PROTOCOL.md section 4, "A
// stuck lock")? Nobody can lead until an operator frees them. Whatever the former holder does afterwards, there must be
// one block at each height, and each item once. Locks decide who tries when, and epochs decide who counts.
import { expect, test } from 'vitest';
import { freeLocks } from '../../src/core/operate/free-locks.js';
import { SeqError } from '../../src/core/errors.js';
import { MemoryNode } from '../support/memory-node.js';
import { IDENTITY, VirtualCluster, type VirtualSequencer } from '../support/virtual-cluster.js';

const HOUR = 3_600_000;
const leads = (one: VirtualSequencer) => one.sequencer.status().role === 'leader';

/** The clocks of all servers step back by an hour. All keys with an expiry live an hour longer. */
const stepBack = (cluster: VirtualCluster) => cluster.nodeAheadMs.splice(0, Infinity, -HOUR, -HOUR, -HOUR);

/** `seq stepdown --revoke`. Returns the freed locks, or the code of its error. */
async function revoke(cluster: VirtualCluster): Promise<string> {
  let told = '';
  void freeLocks({
    nodes: cluster.servers.map((server) => new MemoryNode(server, IDENTITY, cluster.clock)),
    limitMs: 50,
    clock: cluster.clock,
    target: '',
    expectedCluster: IDENTITY.cluster,
    reason: 'the clocks stepped back',
    operator: { by: 'ann', host: 'h', command: 'stepdown --revoke' },
    dryRun: false,
    confirm: () => Promise.resolve(),
    changing: () => undefined,
    step: () => undefined,
  }).then(
    (freed) =>
      (told = freed === null ? 'none' : freed.plan.locks.map(({ node, holder }) => `${node} ${holder}`).join(' ')),
    (error: unknown) => (told = error instanceof SeqError ? error.code : String(error)),
  );
  await cluster.until(() => told !== '', 10_000, 'the command to end');
  return told;
}

async function submit(cluster: VirtualCluster, to: VirtualSequencer, key: string): Promise<number> {
  let height = 0;
  void to.sequencer.submit([{ key, data: Buffer.from(key) }]).then(([outcome]) => {
    if (outcome?.outcome === 'committed') height = outcome.receipt.height;
  });
  await cluster.until(() => height > 0, 5000, `${key} to be committed`);
  return height;
}

/** Two sequencers: a leads, and b is ready to lead. */
async function pair(timing: { ttlMs?: number; blockTimeMs?: number } = {}) {
  const cluster = new VirtualCluster({ timing });
  const a = cluster.start('a');
  await cluster.until(() => leads(a), 10_000, 'a to lead');
  const b = cluster.start('b');
  await cluster.until(() => b.sequencer.status().ready, 10_000, 'b to be ready');
  return { cluster, a, b };
}

/** All reports of a committed height name the same block, and so does every node. */
function oneChain({ cluster, a, b }: Awaited<ReturnType<typeof pair>>): void {
  const blocks = new Map<number, Set<string>>();
  const told = [a, b].flatMap(({ events }) => events.filter((event) => event.type === 'committed'));
  for (const { height, hash } of told) blocks.set(height, (blocks.get(height) ?? new Set()).add(hash));
  for (const server of cluster.servers)
    for (const [height, hash] of cluster.chainOf(server)) blocks.get(height)?.add(hash);
  expect([...blocks].filter(([, hashes]) => hashes.size > 1)).toEqual([]);
}

test('the holder is cut off → nobody leads until its locks are freed; after it returns, it follows', async () => {
  const all = await pair();
  const { cluster, a, b } = all;
  const first = await submit(cluster, a, 'before');
  for (const port of a.nodes) port.setCut(true);
  stepBack(cluster);
  await cluster.clock.advance(20 * cluster.timing.ttlMs);
  expect([leads(a), leads(b)]).toEqual([false, false]);

  expect(await revoke(cluster)).toBe('r1 a r2 a r3 a');
  await cluster.until(() => leads(b), 5000, 'b to lead');
  expect(await submit(cluster, b, 'before'), 'the same item has the same place').toBe(first);
  const second = await submit(cluster, b, 'after');
  for (const port of a.nodes) port.setCut(false);
  await cluster.until(() => a.store.head().height > second, 10_000, 'a to follow');
  expect([leads(a), leads(b)]).toEqual([false, true]);
  oneChain(all);
});

test('a block of the holder is still under way when another one leads → every node refuses it', async () => {
  const all = await pair();
  const { cluster, a, b } = all;
  const written = a.store.head().height;
  for (const port of a.nodes) port.takes = (blocks) => (blocks > 0 ? 8000 : 0);
  await cluster.clock.advance(2 * cluster.timing.blockTimeMs); // from now on, one block is under way
  stepBack(cluster);
  expect(await revoke(cluster)).toBe('r1 a r2 a r3 a');
  await cluster.until(() => leads(b), 5000, 'b to lead');
  await submit(cluster, b, 'after');
  await cluster.clock.advance(10_000);
  for (const port of a.nodes) port.takes = null;
  await cluster.until(() => a.store.head().height >= b.store.head().height - 1, 20_000, 'a to follow');
  const later = a.events.flatMap((event) =>
    event.type === 'committed' && event.by === 'leader' && event.height > written + 2 ? [event.height] : [],
  );
  expect(later, 'what a committed after the locks were freed').toEqual([]);
  expect(a.refusals).toContain('write_block FENCING_ERROR');
  oneChain(all);
});

test('the holder is alive → its next block renews the locks, and nothing is freed', async () => {
  const all = await pair({ ttlMs: 6000, blockTimeMs: 1500 });
  const { cluster, a } = all;
  const { epoch } = a.sequencer.status();
  stepBack(cluster);
  expect(await revoke(cluster)).toBe('LEADER_ANSWERS');
  await cluster.clock.advance(20_000);
  expect([leads(a), a.sequencer.status().epoch]).toEqual([true, epoch]);
  expect(await revoke(cluster)).toBe('none');
  oneChain(all);
});
