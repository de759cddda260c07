// Does a node get filled while a client commits without a pause (docs/PROTOCOL.md section 8, step 2)? In virtual time,
// it must always be admitted, however fast the retained range moves. Where that is enough, filling must use a small
// share of the time.
import { describe, expect, it } from 'vitest';
import { VirtualCluster } from '../support/virtual-cluster.js';

interface Row {
  /**
   * there: how many blocks are present. old: bytes of each of them. bytes: bytes of each new block. window: how many
   * blocks the nodes retain.
   */
  there: number;
  old: number;
  bytes: number;
  window: number;
  /**
   * callMs: ms of a call to any node. The node that is filled takes farMs more per call and blockMs more per block. Its
   * link carries `link` bytes per ms.
   */
  callMs: number;
  farMs: number;
  blockMs: number;
  link: number;
  /** A client commits without a pause. */
  busy: boolean;
  mostMs: number;
  mostShare: number;
}

const ROW: Row = {
  there: 400,
  old: 2000,
  bytes: 200,
  window: 50_000,
  callMs: 1,
  farMs: 0,
  blockMs: 0.02,
  link: 60_000,
  busy: true,
  mostMs: 1000,
  mostShare: 1,
};

/**
 * ms: from the loss of the memory until the node counts again. share: the part of that time in which filling batches
 * were under way.
 */
async function refill(row: Row): Promise<{ ms: number; share: number; committed: number; slid: number }> {
  const cluster = new VirtualCluster({
    eager: true,
    timing: { ttlMs: 3000, blockTimeMs: 1000, nodeTimeoutMs: 100, pollMs: 500, pollJitterMs: 100 },
    limits: { maxBlockBytes: 256 * 1024, retainBlocks: row.window, retainBytes: 1024 ** 3 },
  });
  cluster.start('seq-a');
  await cluster.until(() => cluster.leader() !== undefined, 2000, 'a leader');
  const leader = cluster.leader()!;
  const commit = async (bytes: number): Promise<void> =>
    void (await leader.sequencer.submit([{ data: new Uint8Array(bytes) }]));
  for (let at = 0; at < row.there; at++) {
    let done = false;
    void commit(row.old).then(() => {
      done = true;
    });
    await cluster.until(() => done, 1000, 'a block');
  }
  let busyMs = 0;
  leader.nodes.forEach((port, at) => {
    port.takes = (blocks, bytes) => {
      const ms = row.callMs + row.farMs + blocks * row.blockMs + bytes / row.link;
      if (at === 2 && blocks > 0) busyMs += ms;
      return at === 2 ? ms : row.callMs;
    };
  });
  let over = false;
  const client = (async () => {
    while (row.busy && !over) await commit(row.bytes);
  })();
  await cluster.clock.advance(300);
  const before = leader.store.head().height;
  const node = cluster.servers[2]!;
  node.restart('none');
  await cluster.until(() => node.state.record !== null, 2000, 'the filling to begin');
  const { floor } = node.state.record!;
  busyMs = 0;
  const ms = await cluster.until(() => node.state.record?.pending === '', 60_000, 'its admission');
  over = true;
  await cluster.until(() => {
    void client;
    return true;
  }, 1);
  const head = leader.store.head().height;
  return { ms, share: busyMs / ms, committed: head - before, slid: Math.max(0, head - row.window) - Number(floor) };
}

describe('filling a node', () => {
  it.each<[string, Partial<Row>]>([
    ['nobody commits: filling uses all the time', { busy: false, mostMs: 1500 }],
    [
      'a client with small blocks, the retained range stays: a tenth of the time',
      { there: 800, old: 60_000, mostMs: 15_000, mostShare: 0.2 },
    ],
    ['the retained range moves', { window: 300, there: 300, old: 2000, bytes: 2000, mostMs: 3000 }],
    ['a short retained range that moves fast', { window: 16, there: 300, mostMs: 1000 }],
    [
      'new blocks take half of the link',
      { there: 200, window: 200, old: 10_000, bytes: 10_000, link: 20_000, mostMs: 5000 },
    ],
    ['the node is far away, and the next blocks come before its reply', { farMs: 20, mostMs: 3000 }],
    [
      'the node is far away, and a small batch holds fewer blocks than are made meanwhile',
      { farMs: 30, there: 150, window: 150, old: 10_000, bytes: 10_000, link: 40_000, blockMs: 0.04, mostMs: 10_000 },
    ],
    ['the node is so far away that the pause between blocks is hardly long enough', { farMs: 75, mostMs: 20_000 }],
  ])(
    'filling: %s → it is admitted',
    async (_, row) => {
      const whole = { ...ROW, ...row };
      const found = await refill(whole);
      expect(found.ms, JSON.stringify(found)).toBeLessThan(whole.mostMs);
      expect(found.share, JSON.stringify(found)).toBeLessThan(whole.mostShare);
    },
    300_000,
  );
});
