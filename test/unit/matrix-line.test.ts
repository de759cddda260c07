// A row of the matrix as a line: what is written straight down is what its data would be, byte for byte.
import { expect, test } from 'vitest';
import { wire } from '../../src/cli/present/envelope.js';
import { rowData, rowLine } from '../../src/cli/present/stream/stream-matrix.js';
import { narrowed, rowsOf } from '../../src/core/stream/matrix.js';
import type { NodeLedger } from '../../src/core/protocol/ledger.js';
import type { Entry } from '../../src/core/protocol/types.js';

const entry = (height: number, hash: string, of: Partial<Entry> = {}): Entry => ({
  height,
  hash,
  parent: `${height - 1}`,
  timestamp: 1000 + height,
  epoch: 2,
  owner: 'se"q\u2028/1',
  size: 3,
  data: Buffer.from('abc'),
  ...of,
});
const nodes = ['r1', 'r"2', 'r3'].map((id) => ({ id }));
const facts = { head: 4, headEpoch: 2, headHash: '4', floor: 0, floorHash: '0' };
const ledger = (id: string, entries: Entry[], of: object = {}): NodeLedger => ({
  id,
  answered: true,
  admitted: true,
  facts,
  entries,
  damaged: [],
  covers: { from: 1, to: 5 },
  ...of,
});

test.each<[string, Entry[], object]>([
  ['all hold the same', [entry(1, '1'), entry(2, '2'), entry(3, '3'), entry(4, '4')], {}],
  ['another block, a hole', [entry(1, '1'), entry(2, 'x'), entry(4, '4')], {}],
  ['two at one height', [entry(1, '1'), entry(2, '2'), entry(2, 'x', { epoch: 3 }), entry(3, '3'), entry(4, '4')], {}],
  [
    'damaged, not admitted',
    [entry(1, '1')],
    { admitted: false, damaged: [{ id: '2-2', height: 2, why: 'a "reason"' }] },
  ],
  [
    'damaged',
    [entry(1, '1'), entry(3, '3'), entry(4, '4')],
    { damaged: [{ id: '2-2', height: 2, why: 'a "reason"' }] },
  ],
  ['nothing', [], { facts: { ...facts, head: 0 } }],
])('matrix: %s on one of three nodes → its lines are its data', (_what, odd, of) => {
  const sound = [entry(1, '1'), entry(2, '2'), entry(3, '3'), entry(4, '4')];
  const chunk = {
    from: 1,
    to: 5,
    ledgers: [ledger('r1', sound), ledger('r"2', odd, of), { id: 'r3', answered: false } as NodeLedger],
    entries: new Map([
      ['r1', sound],
      ['r"2', odd],
    ]),
  };
  const rows = rowsOf(chunk, nodes, nodes.length);
  expect(rows).toHaveLength(5);
  for (const row of [
    ...rows,
    ...rows.map((one) => narrowed(one, new Set(['r1']))),
    ...rowsOf(chunk, nodes, nodes.length, true),
  ]) {
    expect(rowLine(row, 2000)).toBe(JSON.stringify(wire(rowData(row, 2000))));
  }
});
