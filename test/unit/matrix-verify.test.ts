// One node's stream against what the protocol promises: a table of what was done to it, and every violation with
// where (I3, I5, I6).
import { describe, expect, test } from 'vitest';
import { NodeProof } from '../../src/core/stream/verify-node.js';
import { addBlock, type Term } from '../../src/core/report/history.js';
import type { MatrixRow } from '../../src/core/stream/matrix.js';
import type { DamagedEntry, Entry, NodeView } from '../../src/core/protocol/types.js';

const hash = (height: number, letter = 'x') => `${letter}${height}`.padEnd(64, '0');
const entry = (height: number, more: Partial<Entry> = {}): Entry => ({
  height,
  hash: hash(height),
  parent: hash(height - 1),
  timestamp: 1000 + height,
  epoch: 1,
  owner: 'a/1',
  size: 0,
  ...more,
});
const whole = [1, 2, 3, 4].map((height) => entry(height));
const view = (more: Partial<NodeView> = {}): NodeView => ({
  head: 4,
  headEpoch: 1,
  headHash: hash(4),
  floor: 0,
  floorHash: hash(0),
  admission: 'admitted',
  admissionWhy: '',
  cluster: 'c.1',
  node: 'r1',
  incarnation: 'i',
  pending: '',
  config: '',
  admittedRunId: 'x',
  runId: 'x',
  lock: null,
  epoch: 1,
  claimant: '',
  length: 4,
  hold: null,
  handover: null,
  request: null,
  sequencers: [],
  timeMs: 0,
  info: {},
  ...more,
});

function found(
  entries: Entry[],
  options: { damaged?: DamagedEntry[]; view?: Partial<NodeView>; later?: Partial<NodeView>; pieces?: number[] } = {},
): string[] {
  const proof = new NodeProof('r1', view(options.view), 1);
  let from = 1;
  // As the reader gives them: each piece comes with one entry of its neighbours on both sides.
  for (const to of options.pieces ?? [10]) {
    proof.take(
      entries.filter((one) => one.height >= from - 1 && one.height <= to + 1),
      options.damaged ?? [],
      { from, to },
    );
    from = to + 1;
  }
  return proof.finish(view({ ...options.view, ...options.later })).map((one) => `${one.height ?? '-'} ${one.code}`);
}

describe('verify', () => {
  test.each<[string, string[], string[]]>([
    ['whole', found(whole), []],
    ['whole, read in pieces', found(whole, { pieces: [1, 2, 10] }), []],
    ['deleted in the middle', found([whole[0]!, whole[3]!]), ['3 HOLE']],
    ['deleted in the middle, at the edge of a piece', found([whole[0]!, whole[3]!], { pieces: [2, 10] }), ['3 HOLE']],
    ['deleted at the bottom', found(whole.slice(1)), ['1 HOLE']],
    ['the bottom trimmed while it was read', found(whole.slice(2), { later: { floor: 2, floorHash: hash(2) } }), []],
    ['another parent', found([...whole.slice(0, 2), entry(3, { parent: hash(2, 'y') }), whole[3]!]), ['3 LINK']],
    ['does not link to the floor', found([entry(1, { parent: hash(0, 'y') }), ...whole.slice(1)]), ['1 FLOOR_LINK']],
    [
      'two entries at one height',
      found(
        [
          ...whole.slice(0, 2),
          entry(2, { hash: hash(2, 'y'), epoch: 2 }),
          entry(3, { parent: hash(2, 'y') }),
          whole[3]!,
        ],
        { view: { epoch: 2 } },
      ),
      ['2 DOUBLE'],
    ],
    ['dated before its parent', found([whole[0]!, entry(2, { timestamp: 1 }), whole[2]!, whole[3]!]), ['2 TIME']],
    ["an epoch above the node's", found([...whole.slice(0, 3), entry(4, { epoch: 9 })]), ['4 EPOCH_ABOVE_FENCE']],
    [
      'the same, but the node was promised more meanwhile',
      found([...whole.slice(0, 3), entry(4, { epoch: 9 })], { later: { epoch: 9 } }),
      [],
    ],
    ["a head that is not the record's", found(whole, { view: { headHash: hash(4, 'y') } }), ['4 HEAD']],
    [
      'content that does not fit its hash',
      found([whole[0]!, whole[1]!, whole[3]!], {
        damaged: [{ id: '3-1', height: 3, why: 'its hash is not that of its content' }],
      }),
      ['3 DAMAGED'],
    ],
    ['a server that restarted', found(whole, { view: { admission: 'restarted' } }), ['- NOT_ADMITTED']],
    ['empty', found([], { view: { head: 0 } }), []],
  ])('verify: %s → %j', (_, is, expected) => {
    expect(is).toEqual(expected);
  });
});

describe('history', () => {
  test(
    'history: blocks of three terms, one backfilled under an older epoch → terms in order, gaps ' + 'between them',
    () => {
      const terms: Term[] = [];
      const row = (height: number, epoch: number, writer: string, timestamp: number): MatrixRow => ({
        height,
        class: 'committed',
        copies: 3,
        n: 3,
        hash: hash(height),
        epoch,
        writer,
        timestamp,
        bytes: 0,
        cells: [],
        note: '',
        same: true,
      });
      for (const one of [
        row(1, 1, 'a', 0),
        row(2, 1, 'a', 100),
        row(3, 4, 'b', 350),
        row(4, 1, 'a', 400),
        row(5, 5, 'a', 500),
        { ...row(6, 5, 'a', 600), class: 'pending' as const },
      ])
        addBlock(terms, one);
      expect(terms.map((t) => [t.epoch, t.heightFrom, t.heightTo, t.blocks, t.gapBeforeMs])).toEqual([
        [1, 1, 2, 2, null],
        [4, 3, 4, 2, 250],
        // One block may be its own, or the last one of the term before, proposed again: the outage is not known yet.
        [5, 5, 5, 1, null],
      ]);
      // Block 6 was proposed again by epoch 6 and kept its old time. Its own first block says when it took over.
      for (const one of [row(6, 6, 'b', 600), row(7, 6, 'b', 6200), row(8, 6, 'b', 6300)]) addBlock(terms, one);
      expect(terms.at(-1)).toMatchObject({ epoch: 6, blocks: 3, gapBeforeMs: 5600 });
    },
  );
});
