import { describe, expect, test } from 'vitest';
import { firstConfiguration } from '../../src/core/protocol/configuration.js';
import {
  committedPrefix,
  readLedger,
  type FollowedNode,
  type HeightVerdict,
  type LedgerEntry,
  type NodeLedger,
} from '../../src/core/protocol/ledger.js';

// One row = one height (10) as the nodes show it, one cell a node:
//   A     entry of block A, epoch 1            A7  the same under epoch 7        A1B2  two entries at the height
//   A+    A, and a block on top of it          =A  trimmed up to here, floor A   -     trimmed far above
//   .     above its head                       _   a hole                        !     damaged entry
//   ?     no answer                            x   not admitted, empty           (A)   not admitted, holds A
const H = 10;

function nodeOf(cell: string, index: number): NodeLedger {
  const id = `r${index + 1}`;
  if (cell === '?') return { id, answered: false };
  const below = { height: H - 1, epoch: 1, hash: 'p', parent: 'o' };
  const facts = { head: H - 1, headEpoch: 1, headHash: 'p', floor: H - 2, floorHash: 'o' };
  const base = {
    id,
    answered: true as const,
    admitted: true as boolean,
    facts,
    entries: [below] as LedgerEntry[],
    damaged: [],
  };
  if (cell === '.') return base;
  if (cell === 'x')
    return {
      ...base,
      admitted: false,
      facts: { head: 0, headEpoch: 0, headHash: '', floor: 0, floorHash: '' },
      entries: [],
    };
  if (cell === '-') return { ...base, facts: { ...facts, head: H + 5, floor: H + 5, floorHash: 'far' }, entries: [] };
  if (cell === '!')
    return { ...base, facts: { ...facts, head: H }, damaged: [{ id: `${H}-1`, height: H, why: 'hash' }] };
  if (cell === '_') return { ...base, facts: { ...facts, head: H + 2 }, entries: [below, entry('T', 1, H + 2, 'S')] };
  if (cell.startsWith('='))
    return {
      ...base,
      facts: { head: H, headEpoch: 0, headHash: cell[1]!, floor: H, floorHash: cell[1]! },
      entries: [],
    };
  const inner = cell.replace(/[()]/g, '');
  const found = [...inner.matchAll(/([A-Z])(\d*)/g)].map(([, hash, epoch]) =>
    entry(hash!, epoch === '' ? 1 : Number(epoch)),
  );
  const entries = [below, ...found];
  if (inner.endsWith('+')) entries.push(entry(`on-${found[0]!.hash}`, 9, H + 1, found[0]!.hash));
  const head = entries[entries.length - 1]!;
  return {
    ...base,
    admitted: !cell.startsWith('('),
    entries,
    facts: { ...facts, head: head.height, headEpoch: head.epoch, headHash: head.hash },
  };
}

function entry(hash: string, epoch: number, height = H, parent = 'p'): LedgerEntry {
  return { height, epoch, hash, parent };
}

function say(v: HeightVerdict): string {
  const copies = `${v.hash ?? ''} ${v.copies}/${v.n}`;
  const may = v.mayBeCommitted ? ' maybe' : '';
  const notes = [
    ...v.orphans.map((o) => ` orphan ${o.node}`),
    ...v.damaged.map((c) => ` damaged ${c.node}`),
    ...v.missing.map((m) => ` hole ${m}`),
  ].join('');
  switch (v.verdict) {
    case 'committed':
      return `committed ${copies}${notes}`;
    case 'orphan':
      return `orphan, committed is ${v.hash}${notes}`;
    case 'pending':
    case 'undetermined':
      return `${v.verdict} ${v.candidates.length === 0 ? '' : copies}${may}${notes}`.replace('  ', ' ');
    case 'conflict':
      return `conflict: ${v.why}`;
    default:
      return `${v.verdict}${may}${notes}`;
  }
}

function check(rows: string[]): void {
  test.each(rows.map((row) => row.split('→').map((part) => part.trim()) as [string, string]))(
    'ledger: %s → %s',
    (pattern, verdict) => {
      const cells = pattern.replace(/^\S*:/, '').trim().split(/\s+/);
      const nodes = cells.map(nodeOf);
      const [v] = readLedger(nodes, cells.length, { from: H, to: H });
      expect(say(v!)).toBe(verdict);
      // The order in which nodes and entries come must not matter (case 15).
      const shuffled = [...nodes]
        .reverse()
        .map((node) => (node.answered ? { ...node, entries: [...node.entries].reverse() } : node));
      const [w] = readLedger(shuffled, cells.length, { from: H, to: H });
      expect(w!.verdict).toBe(v!.verdict);
      expect(w!.copies).toBe(v!.copies);
    },
  );
}

describe('ledger: three nodes', () => {
  check([
    'A   A   A   → committed A 3/3',
    'A   A   .   → committed A 2/3',
    'A   A   ?   → committed A 2/3',
    'A   A   x   → committed A 2/3',
    'A   A   !   → committed A 2/3 damaged r3',
    'A   A   B2  → committed A 2/3 orphan r3',
    'A   A   -   → committed A 2/3',
    'A   .   .   → pending A 1/3',
    'A   .   ?   → pending A 1/3 maybe',
    'A   .   x   → pending A 1/3 maybe',
    'A   ?   ?   → undetermined A 1/3 maybe',
    '?   ?   ?   → undetermined maybe',
    '.   ?   ?   → undetermined maybe',
    '.   .   ?   → empty',
    '.   .   .   → empty',
    'x   x   x   → undetermined maybe',
    'x   x   A   → undetermined A 1/3 maybe',
    '(A) (A) (A) → undetermined maybe',
    '(A) A   .   → pending A 1/3 maybe',
    'A   B2  .   → pending B 1/3',
    'A   B2  C3  → pending C 1/3',
    'A   A2  .   → pending A 1/3',
    'A   A2  A3  → pending A 1/3',
    'A   B   .   → conflict: epoch 1 has two blocks: A and B',
    'A+  .   .   → committed A 1/3',
    'A+  A2  .   → committed A 2/3',
    'A+  ?   ?   → committed A 1/3',
    'A+  A   B2  → committed A 2/3 orphan r3',
    'A+  B2  B2  → conflict: two blocks are committed: B and A',
    'A+  B2+ .   → conflict: two blocks are committed: A and B',
    '=A  .   .   → trimmed',
    '=A  A   .   → committed A 1/3',
    '=A  B2  .   → orphan, committed is A orphan r2',
    '=A  =B  .   → conflict: two blocks are committed: A and B',
    '-   -   -   → trimmed',
    '-   ?   ?   → trimmed',
    '!   .   .   → empty damaged r1',
    '!   A   .   → damaged maybe damaged r1',
    '!   !   .   → damaged maybe damaged r1 damaged r2',
    '_   A   A   → committed A 2/3 hole r1',
    '_   .   .   → missing hole r1',
    'A1B2 A  .   → damaged maybe damaged r1',
    'A1A2 .  .   → pending A 1/3',
  ]);
});

describe('ledger: other sizes, counted over the configured nodes', () => {
  check([
    'A              → committed A 1/1',
    '?              → undetermined maybe',
    'A  .           → pending A 1/2',
    'A  A           → committed A 2/2',
    'A  A  .  .     → pending A 2/4',
    'A  A  .  ?     → pending A 2/4 maybe',
    'A  A  A  .     → committed A 3/4',
    'A  A  B2 B2    → pending B 2/4',
    '.  .  ?  ?     → empty',
    'A  A  ?  ?  ?  → undetermined A 2/5 maybe',
    'A  .  .  .  ?  → pending A 1/5',
    'A  A  .  .  ?  → pending A 2/5 maybe',
    'A  A  A  ?  ?  → committed A 3/5',
    'A  A  A2 .  .  → pending A 2/5',
    'A  A  A  B2 B2 → committed A 3/5 orphan r4 orphan r5',
  ]);
});

describe('ledger: cases from the field', () => {
  check([
    'case1:  A  A  ?                            → committed A 2/3',
    'case2:  A268 A268 A268 A269 A270 A270      → pending A 3/6',
    'case2:  A271 A271 A271 A271 A270 A270      → committed A 6/6',
    'case3:  A2 A2 A2                           → committed A 3/3',
    'case4:  A1B2 A1B2 .                        → conflict: two blocks are committed: A and B',
    'case5:  A  .  .                            → pending A 1/3',
    'case6:  A  ?  ?                            → undetermined A 1/3 maybe',
    'case9:  A  B2 .                            → pending B 1/3',
    'case10: X5 X5 Y7                           → committed X 2/3 orphan r3',
    'case11: X2 X2 Y3 Y3 Y3 .                   → pending Y 3/6',
    'case12: A  A  .                            → committed A 2/3',
    'case13: A1 B2 B2                           → committed B 2/3 orphan r1',
    'case14: A1A2 .  .                          → pending A 1/3',
    'case15: A1A2 A2 .                          → committed A 2/3',
    'case16: _  A  .                            → pending A 1/3 hole r1',
    'case24: A  A  ?  ?  ?                      → undetermined A 2/5 maybe',
  ]);
  test(
    'ledger: case 2, at the head copies of three epochs → no block of three is enough, and none of ' +
      'the six is an orphan',
    () => {
      const nodes = ['A268', 'A268', 'A268', 'A269', 'A270', 'A270'].map(nodeOf);
      const [v] = readLedger(nodes, 6, { from: H, to: H });
      expect(v).toMatchObject({
        verdict: 'pending',
        epochs: [268, 269, 270],
        epoch: 268,
        copies: 3,
        mayBeCommitted: false,
        orphans: [],
      });
    },
  );
  test('ledger: case 14, two entries of one node at a height → one vote, at the higher epoch', () => {
    const [v] = readLedger(['A1A2', 'A1', '.'].map(nodeOf), 3, { from: H, to: H });
    expect(v).toMatchObject({ verdict: 'pending', copies: 1, epoch: 2 });
  });
  test('ledger: case 16, head says more than the stream shows → not read, not "empty"', () => {
    const node = nodeOf('.', 0) as Extract<NodeLedger, { answered: true }>;
    const [v] = readLedger([{ ...node, facts: { ...node.facts!, head: H } }, nodeOf('?', 1), nodeOf('.', 2)], 3, {
      from: H,
      to: H,
    });
    expect(v).toMatchObject({ verdict: 'undetermined', unknown: ['r1', 'r2'] });
  });
  test("ledger: an entry above the node's own epoch → damaged, counts for nothing", () => {
    const nodes = ['A9', 'A9', '.'].map(nodeOf).map((node) => ({ ...node, epoch: 5 }) as NodeLedger);
    const [v] = readLedger(nodes, 3, { from: H, to: H });
    expect(v).toMatchObject({ verdict: 'damaged', copies: 0 });
  });
  test('ledger: a link broken inside one node → neither of its two entries counts there', () => {
    const odd = nodeOf('A+', 0) as Extract<NodeLedger, { answered: true }>;
    const broken = { ...odd, entries: odd.entries.map((e) => (e.height === H + 1 ? { ...e, parent: 'Z' } : e)) };
    const [v] = readLedger([broken, nodeOf('A', 1), nodeOf('.', 2)], 3, { from: H, to: H });
    expect(v).toMatchObject({ verdict: 'damaged', copies: 1, damaged: [{ node: 'r1' }] });
  });
  test('ledger: a range → one verdict a height, in order, parents proven by their children', () => {
    const verdicts = readLedger(['A+', 'A+', '.'].map(nodeOf), 3, { from: H - 2, to: H + 2 });
    expect(verdicts.map((v) => `${v.height} ${v.verdict} ${v.copies}`)).toEqual([
      '8 trimmed 0',
      '9 committed 3',
      '10 committed 2',
      '11 committed 2',
      '12 empty 0',
    ]);
    expect(verdicts.map((v) => v.evidence)).toEqual(['successor', 'quorum', 'quorum', 'quorum', null]);
  });
});

// A follower at height 10 (hash J). Each node: its entries from 11 on, oldest first: K1 = block K, epoch 1; each
// block's parent is the letter before it, unless written K1<X.
function followed(spec: string, index: number): FollowedNode {
  const admitted = !spec.startsWith('(');
  const entries = spec
    .replace(/[()]/g, '')
    .trim()
    .split(/\s+/)
    .filter((s) => s !== '.')
    .map((s) => {
      const [, hash, epoch, parent] = /^([A-Z])(\d+)(?:<([A-Z]))?/.exec(s)!;
      const height = Number(/@(\d+)/.exec(s)?.[1] ?? hash!.charCodeAt(0) - 'K'.charCodeAt(0) + 11);
      return {
        height,
        epoch: Number(epoch),
        hash: hash!,
        parent: parent ?? String.fromCharCode(hash!.charCodeAt(0) - 1),
      };
    });
  return { id: `r${index + 1}`, admitted, entries };
}

describe('ledger: following from height 10', () => {
  // prettier-ignore
  test.each([
    ['nothing new',                         ['.', '.', '.'],                    '', ''],
    ['one copy',                            ['K1', '.', '.'],                   '', ''],
    ['a quorum',                            ['K1', 'K1', '.'],                  'K1', ''],
    ['two of five',                         ['K1', 'K1', '.', '.', '.'],        '', ''],
    ['two epochs at the head',              ['K1', 'K2', '.'],                  '', ''],
    ['two epochs, then a successor',        ['K1 L2', 'K2', '.'],               'K0', ''],
    ['a successor proves',                  ['K1 L1', '.', '.'],                'K0', ''],
    ['a run',                               ['K1 L1 M1', 'K1 L1 M1', 'K1'],     'K1 L1 M1', ''],
    ['a run with a pending head',           ['K1 L1 M1', 'K1 L1', 'K1'],        'K1 L1', ''],
    ['a not admitted node counts not',      ['K1', '(K1)', '.'],                '', ''],
    ['an orphan beside',                    ['K5', 'K5', 'X7<J@11'],            'K5', ''],
    ['superseded, both seen',               ['X1<J@11 K2', 'K2', '.'],          'K2', ''],
    ['superseded, unseen',                  ['X1<J@11 L2', 'K2 L2', '.'],       'K0 L2', ''],
    ['one epoch, two blocks',               ['K1', 'X1<J@11', '.'],             '', 'conflict 11'],
    ['two blocks committed',                ['K1 L1', 'X2<J@11 Y2<X@12', '.'],  '', 'conflict 11'],
    ['not my chain',                        ['K1<Z', '.', '.'],                 '', 'chain-mismatch 11'],
    ['the next is trimmed everywhere',      ['M1 N1', 'M1 N1', 'M1'],           '', 'not-retained 11'],
    ['only the successor is left',          ['L1', '.', '.'],                   '', 'not-retained 11'],
    ['good prefix before a conflict',       ['K1 L1', 'K1 X1<K@12', '.'],       'K1', 'conflict 12'],
  ])('ledger: follow, %s: %j → %s | %s', (_name, nodes, committed, anomalies) => {
    const found = committedPrefix(nodes.map(followed), nodes.length, { height: 10, hash: 'J' });
    expect(found.committed.map((c) => `${c.hash}${c.epoch}`).join(' ')).toBe(committed);
    expect(found.anomalies.map((a) => `${a.kind} ${a.height}`).join(' ')).toBe(anomalies);
    found.committed.forEach((c, i) => expect(c.height).toBe(11 + i));
    found.committed.forEach((c) => expect(c.holders.length).toBeGreaterThan(0));
  });
});

// The configurations that the holders showed, by letter: their version's epoch and their members.
const SHOWN: Record<string, [epoch: number, members: string]> = {
  a: [0, 'r1 r2 r3'],
  b: [2, 'r1 r2 r3 r4'],
  c: [0, 'r1 r2 r3 r4 r5'],
  d: [7, 'r1 r2 r3'],
};

describe('ledger: what a follower counts by, when the members changed (I10)', () => {
  // Each node: its entries, and behind a slash what it showed since.
  // prettier-ignore
  test.each([
    ['all know three',                              ['K1/a', 'K1/a', './a'],              'K1'],
    ['one holder knows four: three are needed',     ['K2/a', 'K2/b', './a'],              ''],
    ['three of four',                               ['K2/b', 'K2/b', './b', 'K2/b'],      'K2'],
    ['the holders know five, others know less',     ['K1/c', 'K1/c', '.', '.', './d'],    ''],
    ['three of five',                               ['K1/c', 'K1/c', '.', 'K1/c', '.'],   'K1'],
    ['the fourth is no member any more',            ['K7/d', '.', '.', 'K7/d'],           ''],
    // The copies were read before, and what the nodes know since says nothing of them.
    ['a later term changed the members since',      ['K1/d', 'K1/d', '.'],                ''],
    // Shown before the entries were read: the term of those entries may count by more members.
    ['two copies of three, shown before',           ['K7/a/-', 'K7/a', '.'],              ''],
    ['… and since',                                 ['K7/a', 'K7/a', '.'],                'K7'],
    ['… and a successor proves it',                 ['K1 L7/d', 'K1/d', '.'],             'K0'],
  ])('%s: %j → %s', (_name, specs, committed) => {
    const nodes = specs.map((spec, at): FollowedNode => {
      const [entries, shown, before] = spec.split('/') as [string, string?, string?];
      const node = followed(entries, at);
      if (shown === undefined) return node;
      const [epoch, ids] = SHOWN[shown]!;
      const members = ids.split(' ').map((id) => ({ id, memory: `m-${id}`, url: `redis://${id}` }));
      return {
        ...node,
        shown: {
          configuration: firstConfiguration(members, undefined, epoch),
          incarnation: `m-${node.id}`,
          epoch: before ? 0 : 9,
        },
      };
    });
    const found = committedPrefix(nodes, 3, { height: 10, hash: 'J' });
    expect(found.committed.map((c) => `${c.hash}${c.epoch}`).join(' ')).toBe(committed);
    // Every other reader counts in the same way.
    const ledgers = nodes.map((node) => ({ ...node, answered: true as const, facts: null, damaged: [] }));
    const [verdict] = readLedger(ledgers, 3, { from: 11, to: 11 });
    expect(verdict?.verdict === 'committed' ? `${verdict.hash}${verdict.epoch}` : '').toBe(committed);
  });

  test('a holder with another memory than the one that counts is no copy', () => {
    const nodes = ['K1', 'K1', '.'].map((entries, at) => ({
      ...followed(entries, at),
      shown: {
        configuration: firstConfiguration([
          { id: 'r1', memory: 'm1', url: 'redis://r1' },
          { id: 'r2', memory: 'm2', url: 'redis://r2' },
          { id: 'r3', memory: 'm3', url: 'redis://r3' },
        ]),
        incarnation: ['m1', 'other', 'm3'][at]!,
        epoch: 9,
      },
    }));
    expect(committedPrefix(nodes, 3, { height: 10, hash: 'J' }).committed).toEqual([]);
  });
});
