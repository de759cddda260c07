// What `seq bench` measures on nodes that miss a block: one answer lost, or none for a while, is no reason to leave a
// node out of the rest.
import { expect, test } from 'vitest';
import { measureLane } from '../../src/core/bench/bench.js';
import { systemRandom } from '../../src/core/nodes/system-clock.js';
import type { BenchServer, Clock, NodePort } from '../../src/core/ports.js';
import type { NodeCall, ReplyTo } from '../../src/core/protocol/types.js';
import { MemoryNode, MemoryServer } from '../support/memory-node.js';

const LANE = 'bench-0123abcd';
const IDENTITY = { cluster: 'c.1', lane: LANE };
const DURATION_MS = 1000;

/** Time passes when somebody waits, and by one millisecond with every call. */
class Jumping implements Clock {
  private time = 0;
  now(): number {
    return this.time;
  }
  wall(): number {
    return this.time;
  }
  pass(ms: number): void {
    this.time += ms;
  }
  after(ms: number, run: () => void): () => void {
    let wanted = true;
    setImmediate(() => {
      if (!wanted) return;
      this.pass(ms);
      run();
    });
    return () => {
      wanted = false;
    };
  }
}

const server = (): BenchServer => ({
  set: async () => true,
  limitLife: async () => true,
  remove: async () => true,
  close: () => {},
});

/** How the n-th write to a node ends, for the sender and for the node. */
type Fate = (nth: number) => 'well' | 'lost' | 'answer lost';

async function measured(fate: Fate) {
  const clock = new Jumping();
  const nodes = ['r1', 'r2', 'r3'].map((id) => {
    const node = new MemoryNode(new MemoryServer(id, () => clock.now()), IDENTITY, clock, id);
    if (id !== 'r1') return node as NodePort;
    let nth = 0;
    const call = async <C extends NodeCall>(one: C, limitMs: number): Promise<ReplyTo<C>> => {
      const end = one.script === 'write_block' ? fate((nth += 1)) : 'well';
      clock.pass(1);
      const reply = end === 'lost' ? null : await node.call(one, limitMs);
      return end === 'well' ? reply! : ({ outcome: 'unknown', step: 'call', cause: 'no answer' } as ReplyTo<C>);
    };
    return new Proxy(node as NodePort, {
      get: (target, name) => (name === 'call' ? call : Reflect.get(target, name, target)),
    });
  });
  const report = await measureLane({
    servers: nodes.map((node) => ({ node, server: server() })),
    cluster: IDENTITY.cluster,
    lane: LANE,
    quorum: 2,
    limitMs: 100,
    clock,
    random: systemRandom,
    signal: new AbortController().signal,
    durationMs: DURATION_MS,
    rate: 200,
    blockBytes: 100,
    retainBlocks: 10,
    step: () => {},
    changing: () => {},
    announce: async () => {},
    cleaned: () => {},
    progress: () => {},
  });
  return { failed: report.failed, ...report.nodes[0]! };
}

test.each<[string, Fate, number]>([
  ['all is well', () => 'well', 0],
  ['its first block is lost', (nth) => (nth === 1 ? 'lost' : 'well'), 1],
  ['the answer to its first block is lost', (nth) => (nth === 1 ? 'answer lost' : 'well'), 1],
  ['three in the middle are lost', (nth) => (nth >= 20 && nth <= 22 ? 'lost' : 'well'), 3],
])('bench: %s on one node of three → it is brought up and measured on', async (_what, fate, unanswered) => {
  const node = await measured(fate);
  expect(node).toMatchObject({ id: 'r1', failed: 0, refused: null, unanswered });
  expect(node.commit.n).toBeGreaterThan(20);
});

test(
  'bench: a node that never answers a write → unanswered, nothing measured of it, and the others ' + 'measured',
  async () => {
    const node = await measured(() => 'lost');
    expect(node).toMatchObject({ failed: 0, refused: null, commit: { n: 0 } });
  },
);
