// A node that lets its time run out once is asked again before a verdict, and both tries are told.
import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import type { NodePort } from '../../src/core/ports.js';
import type { NodeReply } from '../../src/core/protocol/types.js';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { initialState, reduce } from '../../src/tui/model.js';
import { Poller, type Budget } from '../../src/tui/poll.js';
import { ChainWriter } from '../support/chain-writer.js';
import { MemoryNode, MemoryServer } from '../support/memory-node.js';
import { probe, start } from '../support/watch-states.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const LATE: NodeReply<never> = { outcome: 'unknown', step: 'call', cause: 'no answer', limitMs: 100 };
const REFUSED: NodeReply<never> = { outcome: 'unknown', step: 'connect', cause: 'ECONNREFUSED', limitMs: 100 };

/** Three nodes with one block. r3 answers its next calls with these replies. `calls`: how often it was asked. */
async function threeNodes(replies: NodeReply<never>[]) {
  const nodes = [1, 2, 3].map(
    (at) =>
      new MemoryNode(new MemoryServer(`r${at}`, () => performance.now()), { cluster: CLUSTER, lane: '' }, systemClock),
  );
  const writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  await writer.write();
  const [r1, r2, r3] = nodes as [MemoryNode, MemoryNode, MemoryNode];
  const asked = { calls: 0 };
  const busy = new Proxy(r3, {
    get(target, name) {
      if (name === 'call')
        return (...args: Parameters<NodePort['call']>) =>
          Promise.resolve(replies[asked.calls++] ?? target.call(...args));
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  }) as unknown as NodePort;
  const write = () => writer.write();
  return { nodes: [r1, r2, busy], asked, write, close: () => Promise.all(nodes.map((node) => node.close())) };
}

async function seen(replies: NodeReply<never>[]) {
  const { nodes, asked, close } = await threeNodes(replies);
  const view = await inspectCluster({ nodes, limitMs: 100, clock: systemClock });
  await close();
  return { view, row: view.nodes[2]!, calls: asked.calls };
}

test.each([
  ['answers at once', [], 'OK', ''],
  ['is late once', [LATE], 'OK', 'answered at the second try (no answer at call within 100 ms: no answer)'],
  ['is late twice', [LATE, LATE], 'DOWN', 'no answer at call within 100 ms: no answer, twice'],
  ['refuses the connection', [REFUSED], 'DOWN', 'no answer at connect within 100 ms: ECONNREFUSED'],
])('second try: r3 %s → its state, and both tries told', async (_name, replies, state, note) => {
  const { view, row } = await seen(replies);
  expect([row.state, row.note]).toEqual([state, note]);
  expect(view.findings.some((finding) => finding.code === 'NODE_DOWN')).toBe(state === 'DOWN');
});

/** A watch of three nodes that all answered. `budget`: whether r3 may be sent one more command. */
async function watching(held: NodeReply<never>[], budget: () => boolean) {
  const { nodes, asked, write, close } = await threeNodes(held);
  let state = initialState({
    title: 'lab',
    nodes,
    size: { columns: 80, rows: 24 },
    at: systemClock.now(),
    wall: systemClock.wall(),
    intervalMs: 1000,
    summarize: {},
  });
  const poller = new Poller({
    nodes,
    limitMs: 100,
    clock: systemClock,
    state: () => state,
    dispatch: (input) => (state = reduce(state, input)),
    budget: { spend: (url: string) => url !== nodes[2]!.url || budget() } as unknown as Budget,
  });
  await poller.first();
  const end = async () => {
    poller.stop();
    await close();
  };
  return { asked, poller, write, row: () => state.data.view!.nodes[2]!, watched: () => state.data, close: end };
}

// The watch asks as `seq status` does. A node that was silent already gets one try a probe: nothing new is at stake.
test.each([
  ['answers at once', [], ['OK'], [], 1],
  ['is late once', [LATE], ['OK'], ['r3 answered at the second try: no answer at call within 100 ms: no answer'], 2],
  ['is late twice', [LATE, LATE], ['DOWN'], ['r3 gone: no answer at call within 100 ms: no answer, twice'], 2],
  ['is late for two probes', [LATE, LATE, LATE], ['DOWN', 'DOWN'], [expect.stringMatching(/^r3 gone: /)], 3],
  ['refuses the connection', [REFUSED], ['DOWN'], ['r3 gone: no answer at connect within 100 ms: ECONNREFUSED'], 1],
])(
  'watch: r3 %s, after it answered → its state in the same probe, and it is told',
  async (_name, replies, states, told, calls) => {
    const held: NodeReply<never>[] = [];
    const { asked, poller, row, watched, close } = await watching(held, () => true);
    const seenBefore = watched().events.length;
    expect(row().state).toBe('OK');
    const before = asked.calls;
    held.length = before;
    held.push(...replies);
    for (const expected of states) {
      await poller.poll();
      expect(row().state).toBe(expected);
    }
    const news = watched()
      .events.slice(0, watched().events.length - seenBefore)
      .filter(({ kind }) => kind === 'node');
    expect([news.map(({ text }) => text), asked.calls - before]).toEqual([told, calls]);
    expect(watched().view!.verdict).toBe(states.includes('DOWN') ? 'WARN' : 'OK');
    await close();
  },
);

// A burst: many blocks between two probes of the watch. What stands still for one probe is no alarm.
test('watch: r3 stalls for one limit in the middle of a burst → OK throughout, and nothing but the second try is told', async () => {
  const held: NodeReply<never>[] = [];
  const { asked, poller, watched, write, close } = await watching(held, () => true);
  const seenBefore = watched().events.length;
  for (const late of [false, true, false, false]) {
    for (let block = 0; block < 20; block += 1) await write();
    if (late) {
      held.length = asked.calls;
      held.push(LATE);
    }
    await poller.poll();
    expect([watched().view!.verdict, watched().view!.reason]).toEqual(['OK', expect.any(String)]);
  }
  expect(watched().view!.committed!.height).toBe(81);
  const news = watched().events.slice(0, watched().events.length - seenBefore);
  expect(news.filter(({ level }) => level === 'warn' || level === 'crit')).toEqual([]);
  expect(news.map(({ text }) => text)).toEqual([expect.stringMatching(/^r3 answered at the second try: /)]);
  await close();
});

test('watch: a node behind at one probe of a burst is no alarm, one that stands still for two is', () => {
  const stalled = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x49@3 x49@3 x20@3');
  expect(stalled.data.view!.verdict).toBe('OK');
  expect(probe(stalled, 'x89@3 x89@3 x89@3').data.view!.verdict).toBe('OK');
  const still = probe(stalled, 'x89@3 x89@3 x20@3').data.view!;
  expect([still.verdict, still.reasonCode]).toEqual(['WARN', 'NODE_LAGGING']);
});

test('watch: r3 is late and the budget is spent → its next probe is the second try', async () => {
  const held: NodeReply<never>[] = [];
  let allowed = Infinity;
  const { asked, poller, row, close } = await watching(held, () => (allowed -= 1) >= 0);
  held.length = asked.calls;
  held.push(LATE, LATE);
  allowed = 1;
  await poller.poll();
  expect(row().state).toBe('OK');
  allowed = 1;
  await poller.poll();
  expect(row()).toMatchObject({ state: 'DOWN', note: expect.stringMatching(/, twice$/) });
  await close();
});
