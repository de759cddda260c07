// Does each checker find its kind of fault? Each row is a history that is bad in one way. A good history must give no
// anomaly.
import { describe, expect, it } from 'vitest';
import { check } from './checkers/index.js';
import type { Answered, Entry, FinalStore, History, NodeOp, Submitted } from './history.js';

const G = 'g'.repeat(64);
const H = (name: string): string => name.padEnd(64, '0');

function op(over: Partial<NodeOp>): NodeOp {
  return {
    is: 'op',
    t: 0,
    node: 'r1',
    memory: 0,
    incarnation: 'boot',
    config: '',
    script: 'write_block',
    owner: 'a/1',
    epoch: 1,
    outcome: 'accepted',
    claimant: 'a/1',
    nodeEpoch: 1,
    height: 1,
    hash: H('b1'),
    parent: G,
    entryEpoch: 1,
    stamped: 1,
    stray: false,
    ...over,
  };
}
const claim = (node: string, owner: string, epoch: number, t: number): NodeOp =>
  op({ script: 'claim', node, owner, epoch, t, height: 0, hash: '', parent: '', entryEpoch: 0, stamped: 0 });
const promote = (node: string, owner: string, epoch: number, t: number): NodeOp => ({
  ...claim(node, owner, epoch, t),
  script: 'promote_leader',
});
const submit = (call: number, keys: string[]): Submitted => ({
  is: 'submit',
  t: call,
  call,
  client: 'c1',
  who: 'a',
  keys,
});
const answer = (call: number, key: string, outcome: Answered['outcome'], at?: [number, number]): Answered => ({
  is: 'answer',
  t: call + 0.5,
  call,
  client: 'c1',
  who: 'a',
  key,
  outcome,
  receipt: at ? { height: at[0], index: at[1], epoch: 1 } : null,
  why: '',
  synced: at ? at[0] : 0,
});
const store = (...keys: string[][]): FinalStore => ({
  id: 'a',
  blocks: keys.map((of, i) => ({
    height: i + 1,
    hash: H(`b${i + 1}`),
    parent: i === 0 ? G : H(`b${i}`),
    timestamp: i,
    keys: of,
  })),
});

function history(entries: Entry[], over: Partial<History> = {}): History {
  return {
    nodes: 3,
    quorum: 2,
    genesis: G,
    retainBlocks: 10,
    memoryFaults: false,
    entries,
    final: { nodes: [], stores: [] },
    healedAt: 10,
    convergedAt: 20,
    boundMs: 1000,
    missing: '',
    ...over,
  };
}
const end = (...stores: FinalStore[]): Partial<History> => ({ final: { nodes: [], stores } });
const node = (id: string, ...entries: [number, string, string][]): History['final']['nodes'][number] => ({
  id,
  admitted: true,
  floor: 0,
  floorHash: G,
  entries: entries.map(([height, hash, parent]) => ({
    height,
    hash: H(hash),
    parent: parent === G ? G : H(parent),
    epoch: 1,
  })),
});

const BAD: [string, string, History][] = [
  [
    'one-block-per-height',
    'two blocks on q nodes each',
    history([
      op({ node: 'r1' }),
      op({ node: 'r2' }),
      op({ node: 'r2', hash: H('x1'), epoch: 2, entryEpoch: 2, stamped: 2, owner: 'b/1' }),
      op({ node: 'r3', hash: H('x1'), epoch: 2, entryEpoch: 2, stamped: 2, owner: 'b/1' }),
    ]),
  ],
  [
    'one-block-per-height',
    'an entry above names another parent',
    history([
      op({ node: 'r1' }),
      op({ node: 'r2' }),
      op({ node: 'r3', height: 2, hash: H('b2'), parent: H('x1'), epoch: 2, entryEpoch: 2, owner: 'b/1' }),
    ]),
  ],
  [
    'one-block-per-height',
    'a reader got another block than the store holds',
    history([{ is: 'read', t: 1, who: 'a', reader: 't1', height: 1, hash: H('x1') }], end(store([]))),
  ],
  ['fencing', 'a write below a promise', history([claim('r1', 'b/1', 2, 1), op({ t: 2 })])],
  ['fencing', 'a write at an equal epoch from another term', history([claim('r1', 'b/1', 1, 1), op({ t: 2 })])],
  [
    'epochs',
    'two terms with one epoch',
    history([
      promote('r1', 'a/1', 1, 1),
      promote('r2', 'b/1', 1, 1),
      claim('r1', 'a/1', 1, 2),
      claim('r2', 'a/1', 1, 2),
      { ...claim('r3', 'b/1', 1, 3), memory: 1 },
      { ...claim('r2', 'b/1', 1, 3), memory: 1 },
    ]),
  ],
  [
    'epochs',
    'a later term with a lower epoch',
    history([
      promote('r1', 'a/1', 3, 1),
      claim('r1', 'a/1', 3, 2),
      claim('r2', 'a/1', 3, 2),
      { ...promote('r3', 'b/1', 2, 3), memory: 1 },
      { ...claim('r3', 'b/1', 2, 4), memory: 1 },
      { ...claim('r2', 'b/1', 2, 4), memory: 1 },
    ]),
  ],
  ['epochs', 'two blocks in one epoch at one height', history([op({ node: 'r1' }), op({ node: 'r2', hash: H('x1') })])],
  [
    'acknowledged',
    'an acknowledged item is missing',
    history([submit(1, ['k']), answer(1, 'k', 'committed', [1, 0])], end(store([]))),
  ],
  [
    'acknowledged',
    'an item is in the chain twice',
    history([submit(1, ['k']), answer(1, 'k', 'unknown')], end(store(['k'], ['k']))),
  ],
  [
    'linearizable',
    'a key without an answer was appended twice',
    history([submit(1, ['k']), answer(1, 'k', 'unknown')], end(store(['k'], ['k']))),
  ],
  [
    'linearizable',
    'an acknowledged key was sent again and appended again',
    history(
      [submit(1, ['k']), answer(1, 'k', 'committed', [1, 0]), submit(3, ['k']), answer(3, 'k', 'unknown')],
      end(store(['k'], ['k'])),
    ),
  ],
  [
    'acknowledged',
    'a receipt names another place',
    history([submit(1, ['k']), answer(1, 'k', 'committed', [1, 1])], end(store(['k']))),
  ],
  [
    'acknowledged',
    'a client finds its items in another order',
    history([submit(1, ['k', 'l'])], end(store(['l'], ['k']))),
  ],
  ['acknowledged', 'an item that nobody submitted', history([], end(store(['k'])))],
  [
    'acknowledged',
    'a refused item is in the chain',
    history([submit(1, ['k']), answer(1, 'k', 'refused')], end(store(['k']))),
  ],
  [
    'reads',
    'a reader misses a height',
    history([{ is: 'read', t: 1, who: 'a', reader: 't1', height: 2, hash: H('b2') }], end(store([], []))),
  ],
  [
    'reads',
    'a confirmed head is below an acknowledged block',
    history(
      [
        submit(1, ['k']),
        answer(1, 'k', 'committed', [2, 0]),
        { is: 'confirm', from: 5, t: 6, who: 'b', height: 1, hash: H('b1'), epoch: 1 },
      ],
      end(store([], ['k'])),
    ),
  ],
  [
    'reads',
    'a tail leaves a height out',
    history(
      [
        { is: 'tail', t: 1, session: 1, height: 3, hash: H('b3') },
        { is: 'tail', t: 2, session: 1, height: 5, hash: H('b5') },
      ],
      end(store([], [], [], [], [])),
    ),
  ],
  [
    'one-block-per-height',
    'a tail of the nodes shows another block',
    history([{ is: 'tail', t: 1, session: 1, height: 1, hash: H('x1') }], end(store([]))),
  ],
  [
    'one-block-per-height',
    'a status shows another block',
    history([{ is: 'status', t: 1, who: 'a', height: 1, hash: H('x1') }], end(store([]))),
  ],
  [
    'linearizable',
    'a status shows a height before an item in it was sent',
    history(
      [
        { is: 'status', t: 0.5, who: 'a', height: 1, hash: H('b1') },
        submit(1, ['k']),
        answer(1, 'k', 'committed', [1, 0]),
      ],
      end(store(['k'])),
    ),
  ],
  [
    'linearizable',
    'a tail shows a block before an item in it was sent',
    history(
      [
        { is: 'tail', t: 0.5, session: 1, height: 1, hash: H('b1') },
        submit(1, ['k']),
        answer(1, 'k', 'committed', [1, 0]),
      ],
      end(store(['k'])),
    ),
  ],
  [
    'linearizable',
    'a reader shows a block before an item in it was sent',
    history(
      [
        { is: 'read', t: 0.5, who: 'a', reader: 't1', height: 1, hash: H('b1') },
        submit(1, ['k']),
        answer(1, 'k', 'committed', [1, 0]),
      ],
      end(store(['k'])),
    ),
  ],
  [
    'linearizable',
    'an item is appended before one that was already acknowledged',
    history(
      [submit(1, ['k']), answer(1, 'k', 'committed', [2, 0]), { ...submit(3, ['l']), client: 'c2' }],
      end(store(['l'], ['k'])),
    ),
  ],
  [
    'linearizable',
    'an item is appended below a head confirmed before it was sent',
    history(
      [{ is: 'confirm', from: 1, t: 2, who: 'a', height: 2, hash: H('b2'), epoch: 1 }, submit(3, ['k'])],
      end(store(['k'], [])),
    ),
  ],
  [
    'linearizable',
    'a confirmed head is older than what a tail had shown',
    history(
      [
        { is: 'tail', t: 1, session: 1, height: 2, hash: H('b2') },
        { is: 'confirm', from: 2, t: 3, who: 'a', height: 1, hash: H('b1'), epoch: 1 },
      ],
      end(store([], [])),
    ),
  ],
  [
    'links',
    'a store whose links break',
    history([], {
      final: {
        nodes: [],
        stores: [{ id: 'a', blocks: [{ height: 1, hash: H('b1'), parent: H('no'), timestamp: 0, keys: [] }] }],
      },
    }),
  ],
  [
    'links',
    'a node with a hole',
    history([], { final: { nodes: [node('r1', [1, 'b1', G], [3, 'b3', 'b1'])], stores: [] } }),
  ],
  [
    'links',
    'a node retains too many entries',
    history([], { retainBlocks: 1, final: { nodes: [node('r1', [1, 'b1', G], [2, 'b2', 'b1'])], stores: [] } }),
  ],
  [
    'identical-nodes',
    'two nodes differ',
    history([], { final: { nodes: [node('r1', [1, 'b1', G]), node('r2', [1, 'x1', G])], stores: [store([])] } }),
  ],
  [
    'truthful',
    'an invariant failed inside a process',
    history([{ is: 'trouble', t: 1, who: 'a', kind: 'bug', text: 'InvariantError: I5' }]),
  ],
  [
    'truthful',
    'a false alarm',
    history([{ is: 'event', t: 1, who: 'a', event: { type: 'alarm', code: 'CONFLICT', reason: 'none' } }]),
  ],
  [
    'liveness',
    'the cluster is not in order after healing',
    history([], { convergedAt: null, missing: 'nobody leads' }),
  ],
];

describe('checkers', () => {
  it.each(BAD)('%s: %s → found', (checker, _what, bad) => {
    const found = check(bad);
    expect(found.map((one) => one.checker)).toContain(checker);
    expect(found.filter((one) => one.checker === checker)[0]!.witness.length).toBeGreaterThan(0);
  });

  it("a server whose memory the term's configuration does not name → no vote, neither for nor against a block", () => {
    const config = '1.0 dedup-ms=1 dedup-items=1 max-block=4096 | r1=boot@x r2=boot@x r3=new@x';
    const claims = ['r1', 'r2'].map((id) => ({ ...claim(id, 'a/1', 1, 1), config }));
    const old = op({ t: 2, node: 'r3', incarnation: 'boot' });
    const other = { hash: H('x1'), epoch: 2, entryEpoch: 2, stamped: 2, owner: 'b/1', t: 3 };
    const later = ['r1', 'r2'].flatMap((id) => [{ ...claim(id, 'b/1', 2, 3), config }, op({ ...other, node: id })]);
    expect(check(history([...claims, op({ t: 2 }), old, ...later])), 'r1 and a server that r3 was').toEqual([]);
    const named = { ...old, incarnation: 'new' };
    const found = check(history([...claims, op({ t: 2 }), named, ...later])).map(({ checker }) => checker);
    expect(found, 'r1 and the memory of r3 that counts').toContain('one-block-per-height');
  });

  it('a good history → no anomaly', () => {
    const good = history(
      [
        promote('r1', 'a/1', 1, 1),
        promote('r2', 'a/1', 1, 1),
        claim('r1', 'a/1', 1, 2),
        claim('r2', 'a/1', 1, 2),
        submit(3, ['k', 'l']),
        op({ t: 3 }),
        op({ t: 3, node: 'r2' }),
        answer(3, 'k', 'committed', [1, 0]),
        answer(3, 'l', 'committed', [1, 1]),
        { is: 'read', t: 4, who: 'a', reader: 't1', height: 1, hash: H('b1') },
        promote('r2', 'b/1', 2, 5),
        promote('r3', 'b/1', 2, 5),
        claim('r2', 'b/1', 2, 6),
        claim('r3', 'b/1', 2, 6),
        op({
          t: 7,
          node: 'r2',
          height: 2,
          hash: H('b2'),
          parent: H('b1'),
          epoch: 2,
          entryEpoch: 2,
          stamped: 2,
          owner: 'b/1',
        }),
      ],
      { final: { nodes: [node('r1', [1, 'b1', G])], stores: [store(['k', 'l'], [])] } },
    );
    expect(check(good)).toEqual([]);
  });
});
