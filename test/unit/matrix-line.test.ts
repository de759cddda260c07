// A row of the matrix as a line: what is written straight down is what its data would be, byte for byte.
import { expect, test } from 'vitest';
import { wire } from '../../src/cli/present/envelope.js';
import { matrixRuns, rowData, rowLine, runCells } from '../../src/cli/present/stream/stream-matrix.js';
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

test('matrix: in a table, heights that differ in nothing else are one row; whatever differs stays a row of its own', () => {
  const entries = Array.from({ length: 9 }, (_, at) => entry(at + 1, `${at + 1}`, at < 5 ? {} : { epoch: 3 }));
  const lacking = entries.filter(({ height }) => height !== 4);
  const chunk = {
    from: 1,
    to: 9,
    ledgers: [entries, entries, lacking].map((own, at) =>
      ledger(`r${at + 1}`, own, {
        facts: { ...facts, head: 9, headEpoch: 3, headHash: '9' },
        covers: { from: 1, to: 9 },
      }),
    ),
    entries: new Map([entries, entries, lacking].map((own, at) => [`r${at + 1}`, own])),
  };
  const rows = rowsOf(
    chunk,
    ['r1', 'r2', 'r3'].map((id) => ({ id })),
    3,
  );
  const shown = matrixRuns(rows)
    .map((run) => runCells(run, 20_000))
    .map((row) => [row['height'], row['class'], row['copies'], row['r3'], row['age']].join(' '));
  const oldestFirst = rows[0]?.height === 1 ? shown : shown.reverse();
  expect(oldestFirst).toEqual([
    '1-3 committed 3/3 A 19.0s',
    '4 committed 2/3 _ 19.0s',
    '5 committed 3/3 A 19.0s',
    '6-9 committed 3/3 A 19.0s',
  ]);
  expect(matrixRuns(rows.slice(0, 2))).toHaveLength(2);
});
