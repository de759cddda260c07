// Do the checkers of a chaos run find every kind of fault? A good hand-made history passes all of them. Each row breaks
// it in one way, and the named checker must find that.
import { describe, expect, test } from 'vitest';
import { checkHistory } from '../../src/lab/chaos/checkers/index.js';
import type { ChainBlock, Entry, History, ItemFate } from '../../src/lab/chaos/history.js';

const hash = (name: string): string => Buffer.from(name).toString('hex').padEnd(64, '0').slice(0, 64);
const GENESIS = hash('genesis');
const H = [GENESIS, hash('one'), hash('two'), hash('three')];

const block = (height: number, ...tokens: string[]): ChainBlock => ({
  height,
  hash: H[height]!,
  parent: H[height - 1]!,
  epoch: height < 3 ? 1 : 2,
  items: tokens.map((token) => ({ token, digest: `bytes of ${token}` })),
});
const item = (
  client: string,
  order: number,
  sentAt: number,
  answeredAt: number | null,
  at: [height: number, index: number] | null,
  more: Partial<ItemFate> = {},
): ItemFate => ({
  is: 'item',
  client,
  order,
  token: `${client}/${order}`,
  digest: `bytes of ${client}/${order}`,
  keyed: true,
  sentAt,
  answeredAt,
  outcome: at === null ? 'unknown' : 'committed',
  receipt: at === null ? null : { height: at[0], index: at[1], epoch: 1 },
  attempts: 1,
  ...more,
});
const seen = (t: number, reader: string, height: number): Entry => ({
  is: 'block',
  t,
  reader,
  height,
  hash: H[height]!,
  parent: H[height - 1]!,
  epoch: 1,
});
const head = (from: number, t: number, height: number): Entry => ({
  is: 'head',
  from,
  t,
  who: 'seq-a',
  height,
  hash: H[height]!,
  epoch: 1,
});
const status = (from: number, t: number, height: number, who = 'seq-a', more: object = {}): Entry => ({
  is: 'status',
  from,
  t,
  who,
  height,
  hash: H[height]!,
  role: 'follower',
  epoch: 0,
  leaseMs: 0,
  ...more,
});
const commit = (who: string, epoch: number, height: number): Entry => ({
  is: 'commit',
  who,
  epoch,
  height,
  hash: H[height]!,
});

/** Three blocks, four items of two clients, two terms. */
function good(): History {
  const chain = [block(1, 'a/1'), block(2, 'b/1', 'a/2'), block(3, 'u/1')];
  const bare = chain.map(({ height, hash: name, parent }) => ({ height, hash: name, parent }));
  return {
    genesis: GENESIS,
    chain,
    stores: ['seq-a', 'seq-b'].map((who) => ({ who, blocks: bare })),
    nodes: ['r1', 'r2'].map((id) => ({
      id,
      admission: 'admitted',
      floor: 1,
      head: 3,
      entries: bare.slice(1),
      damaged: 0,
      unread: '',
    })),
    entries: [
      item('a', 1, 10, 30, [1, 0]),
      item('a', 2, 40, 70, [2, 1]),
      item('b', 1, 20, 60, [2, 0]),
      item('u', 1, 80, null, null, { keyed: false }),
      item('u', 2, 120, null, null, { keyed: false, outcome: 'refused' }),
      seen(31, 'feed of seq-a', 1),
      seen(61, 'feed of seq-a', 2),
      seen(100, 'feed of seq-a', 3),
      seen(62, 'tail', 2),
      seen(101, 'tail', 3),
      head(32, 35, 1),
      head(71, 75, 2),
      head(90, 110, 3),
      status(33, 34, 1),
      status(90, 91, 2),
      status(100, 130, 3),
      { is: 'term', who: 'seq-a', epoch: 1 },
      { is: 'term', who: 'seq-b', epoch: 2 },
      commit('seq-a', 1, 1),
      commit('seq-a', 1, 2),
      commit('seq-b', 2, 2),
      commit('seq-b', 2, 3),
      { is: 'healing', t: 140, boundMs: 1000, commitMs: 5, followersMs: 6, nodesMs: 7, missing: '' },
      { is: 'note', t: 1, text: 'a fault' },
    ],
  };
}

const without = (history: History, token: string): Entry[] =>
  history.entries.filter((entry) => !(entry.is === 'item' && entry.token === token));
const add =
  (...entries: Entry[]) =>
  (history: History): History => ({ ...history, entries: [...history.entries, ...entries] });
const instead =
  (...items: ItemFate[]) =>
  (history: History): History => ({
    ...history,
    entries: [
      ...items.reduce((entries, { token }) => without({ ...history, entries }, token), history.entries),
      ...items,
    ],
  });
const chain =
  (...blocks: ChainBlock[]) =>
  (history: History): History => ({ ...history, chain: blocks });

const OTHER = hash('other');
const broken: [what: string, change: (history: History) => History, checker: string][] = [
  [
    'a feed shows another block',
    add({ is: 'block', t: 99, reader: 'feed of seq-b', height: 2, hash: OTHER, parent: H[1]!, epoch: 1 }),
    'one block per height',
  ],
  [
    'a confirmed head is another block',
    add({ is: 'head', from: 71, t: 80, who: 'seq-b', height: 2, hash: OTHER, epoch: 1 }),
    'one block per height',
  ],
  [
    'a leader committed another block',
    add({ is: 'commit', who: 'seq-a', epoch: 1, height: 3, hash: OTHER }),
    'one block per height',
  ],
  [
    'a store has another block',
    (history) => ({
      ...history,
      stores: [...history.stores, { who: 'seq-c', blocks: [{ height: 1, hash: OTHER, parent: GENESIS }] }],
    }),
    'one block per height',
  ],
  [
    'a block that was seen is in no store',
    add({ is: 'block', t: 150, reader: 'late', height: 4, hash: OTHER, parent: H[3]!, epoch: 2 }),
    'chain links',
  ],
  ['the chain has a gap', chain(block(1, 'a/1'), block(3, 'u/1', 'b/1', 'a/2')), 'chain links'],
  ['a reader goes back', add(seen(140, 'tail', 2)), 'readers in order'],
  ['a reader skips', add(seen(10, 'skips', 1), seen(140, 'skips', 3)), 'readers in order'],
  ['a store goes back', add(status(200, 201, 2)), 'stores never go back'],
  [
    'a node keeps another block',
    (history) => ({
      ...history,
      nodes: [
        {
          ...history.nodes[0]!,
          entries: [
            { height: 2, hash: OTHER, parent: H[1]! },
            { height: 3, hash: H[3]!, parent: OTHER },
          ],
        },
      ],
    }),
    'nodes identical',
  ],
  [
    'a node has a hole',
    (history) => ({
      ...history,
      nodes: [{ ...history.nodes[0]!, entries: [{ height: 3, hash: H[3]!, parent: H[2]! }] }],
    }),
    'nodes identical',
  ],
  [
    'a node was not re-admitted',
    (history) => ({ ...history, nodes: [{ ...history.nodes[0]!, admission: 'wiped' }] }),
    'nodes identical',
  ],
  [
    'a node has a damaged entry',
    (history) => ({ ...history, nodes: [{ ...history.nodes[0]!, damaged: 1 }] }),
    'nodes identical',
  ],
  ['an acknowledged item is lost', chain(block(1, 'a/1'), block(2, 'b/1'), block(3, 'u/1')), 'items as told'],
  [
    'an item is in the chain twice',
    chain(block(1, 'a/1'), block(2, 'b/1', 'a/2'), block(3, 'u/1', 'a/1')),
    'items as told',
  ],
  [
    'a keyed item is in the chain twice, although a log appends a key once',
    chain(block(1, 'a/1'), block(2, 'b/1', 'a/2'), block(3, 'u/1', 'b/1')),
    'linearizable',
  ],
  [
    'an item is not at the place in its receipt',
    chain(block(1, 'a/1'), block(2, 'a/2', 'b/1'), block(3, 'u/1')),
    'items as told',
  ],
  [
    'a refused item is in the chain',
    chain(block(1, 'a/1'), block(2, 'b/1', 'a/2'), block(3, 'u/1', 'u/2')),
    'items as told',
  ],
  [
    'an item with an unknown outcome is in the chain twice',
    chain(block(1, 'a/1'), block(2, 'b/1', 'a/2', 'u/1'), block(3, 'u/1')),
    'items as told',
  ],
  ['an item that nobody sent', chain(block(1, 'a/1'), block(2, 'b/1', 'a/2'), block(3, 'u/1', 'x/1')), 'items as told'],
  [
    'an item has other bytes',
    (history) => ({
      ...history,
      chain: [{ ...block(1), items: [{ token: 'a/1', digest: 'others' }] }, ...history.chain.slice(1)],
    }),
    'items as told',
  ],
  [
    "a client's items are out of order",
    (history) =>
      instead(
        item('a', 1, 10, 30, [2, 1]),
        item('a', 2, 40, 70, [1, 0]),
      )(chain(block(1, 'a/2'), block(2, 'b/1', 'a/1'), block(3, 'u/1'))(history)),
    'client order',
  ],
  ['two sequencers led under one epoch', add({ is: 'term', who: 'seq-b', epoch: 1 }), 'epochs unique'],
  [
    'a status shows a second leader of an epoch',
    add(status(5, 6, 0, 'seq-b', { role: 'leader', epoch: 1, leaseMs: 100 })),
    'epochs unique',
  ],
  ['a fenced term committed', add(commit('seq-a', 1, 3)), 'epochs rise'],
  ['a later term committed below', add(commit('seq-c', 3, 1)), 'epochs rise'],
  ['a confirmed head is older than what was acknowledged', add(head(76, 79, 1)), 'linearizable'],
  [
    'a confirmed head is older than what a follower had shown',
    add(seen(61, 'early', 2), head(65, 68, 1)),
    'linearizable',
  ],
  ['a confirmed head goes back', add(head(130, 131, 2)), 'linearizable'],
  [
    'an item is appended before one that was already acknowledged',
    instead(item('b', 1, 20, 60, [2, 0]), item('a', 1, 65, 90, [1, 0])),
    'linearizable',
  ],
  ['an item is appended below a confirmed head', instead(item('a', 2, 76, 90, [2, 1])), 'linearizable'],
  ['a feed shows a block before an item in it was sent', add(seen(35, 'ahead', 2)), 'linearizable'],
  ['a status shows a height before an item in it was sent', add(status(15, 19, 2, 'seq-c')), 'linearizable'],
  [
    'an unanswered item is appended below a confirmed head',
    instead(item('u', 1, 115, null, null, { keyed: false })),
    'linearizable',
  ],
  [
    'no commit after healing',
    add({
      is: 'healing',
      t: 150,
      boundMs: 1000,
      commitMs: null,
      followersMs: null,
      nodesMs: null,
      missing: 'no block was committed',
    }),
    'heals in time',
  ],
  ['a keyed item never gets its answer', add(item('b', 2, 100, null, null)), 'every item answered'],
  [
    'a process ended by itself',
    add({ is: 'trouble', t: 5, who: 'seq-a', kind: 'ended', text: 'it ended by itself' }),
    'no trouble',
  ],
];

describe('chaos checkers', () => {
  test('chaos checkers: a good history → no anomaly', () => {
    expect(checkHistory(good())).toEqual([]);
  });

  test.each(broken)('chaos checkers: %s → found', (_what, change, checker) => {
    const anomalies = checkHistory(change(good()));
    expect(anomalies.map((anomaly) => anomaly.checker)).toContain(checker);
    for (const anomaly of anomalies) expect(anomaly.witness.length).toBeGreaterThan(0);
  });

  test('chaos checkers: overlapping operations → no anomaly, whatever their order', () => {
    const history = instead(item('b', 1, 20, 75, [2, 0]), item('a', 2, 40, 100, [2, 1]))(good());
    expect(checkHistory(add(head(50, 95, 1))(history))).toEqual([]);
  });

  test('chaos checkers: a stale feed or status → no anomaly', () => {
    expect(checkHistory(add(seen(500, 'slow', 1), status(499, 500, 1, 'seq-c'))(good()))).toEqual([]);
  });

  test("chaos checkers: an uncommitted proposal at a node's head → no anomaly", () => {
    const history = good();
    const pending = { height: 4, hash: OTHER, parent: H[3]! };
    const nodes = [
      { ...history.nodes[0]!, head: 4, entries: [...history.nodes[0]!.entries, pending] },
      history.nodes[1]!,
    ];
    expect(checkHistory({ ...history, nodes })).toEqual([]);
  });
});
