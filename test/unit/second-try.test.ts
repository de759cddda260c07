// A node that lets its time run out once is asked again before a verdict, and both tries are told.
import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import type { NodePort } from '../../src/core/ports.js';
import type { NodeReply } from '../../src/core/protocol/types.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { ChainWriter } from '../support/chain-writer.js';
import { MemoryNode, MemoryServer } from '../support/memory-node.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const LATE: NodeReply<never> = { outcome: 'unknown', step: 'call', cause: 'no answer', limitMs: 100 };
const REFUSED: NodeReply<never> = { outcome: 'unknown', step: 'connect', cause: 'ECONNREFUSED', limitMs: 100 };

/** The cluster as it is seen when r3 answers its first calls with these replies. `calls`: how often it was asked. */
async function seen(replies: NodeReply<never>[]) {
  const nodes = [1, 2, 3].map(
    (at) =>
      new MemoryNode(new MemoryServer(`r${at}`, () => performance.now()), { cluster: CLUSTER, lane: '' }, systemClock),
  );
  const writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  await writer.write();
  const [r1, r2, r3] = nodes as [MemoryNode, MemoryNode, MemoryNode];
  let calls = 0;
  const busy = new Proxy(r3, {
    get(target, name) {
      if (name === 'call')
        return (...args: Parameters<NodePort['call']>) =>
          replies[calls++] === undefined ? target.call(...args) : Promise.resolve(replies[calls - 1]);
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  }) as unknown as NodePort;
  const view = await inspectCluster({ nodes: [r1, r2, busy], limitMs: 100, clock: systemClock });
  await Promise.all(nodes.map((node) => node.close()));
  return { view, row: view.nodes[2]!, calls };
}

test.each([
  ['answers at once', [], 'OK', ''],
  ['is late once', [LATE], 'OK', 'answered at the second try (no answer at call within 100 ms: no answer)'],
  ['is late twice', [LATE, LATE], 'DOWN', 'no answer at call within 100 ms: no answer, twice'],
  ['refuses the connection', [REFUSED], 'DOWN', 'no answer at connect within 100 ms: ECONNREFUSED'],
])('second try: r3 %s → %3$s, "%4$s"', async (_name, replies, state, note) => {
  const { view, row } = await seen(replies);
  expect([row.state, row.note]).toEqual([state, note]);
  expect(view.findings.some((finding) => finding.code === 'NODE_DOWN')).toBe(state === 'DOWN');
});
