// Lists everything in the streams of the fuel dialect that its own scripts would not leave behind, or that may confuse
// a reader, each with its witness (docs/FUEL.md). What is normal there is counted and not listed. What could not be
// read counts as not verified.
import type { ConcernCode } from './concern.js';
import { FuelSummary, openFuelMatrix, type MatrixWish } from './matrix.js';
import type { FuelProbe, FuelOptions } from './probe.js';
import type { FuelHeight } from './types.js';

const MOST_VIOLATIONS = 1000;

export type ViolationCode = ConcernCode | 'WRONG_KEY' | 'UNREADABLE_ENTRY' | 'UNREADABLE_FIELD' | 'EPOCH_ABOVE_COUNTER';

interface FuelViolation {
  /** '' when the finding concerns several nodes. */
  node: string;
  height: FuelHeight | null;
  code: ViolationCode;
  witness: string;
}

export interface FuelVerified {
  probes: FuelProbe[];
  range: { from: FuelHeight; to: FuelHeight } | null;
  heights: number;
  violations: FuelViolation[];
  total: number;
  nodes: { id: string; entries: number; verified: boolean; violations: number }[];
  /** Heights that could not be judged. */
  undetermined: number;
  /**
   * Normal states, counted by height: the same bytes twice on a node, missing in an index, other bytes beside the
   * committed ones, fewer copies than a quorum below the head.
   */
  normal: { duplicates: number; unindexed: number; orphans: number; leftBehind: number };
}

export async function verifyFuel(options: FuelOptions, wish: MatrixWish): Promise<FuelVerified> {
  const matrix = await openFuelMatrix(options, wish);
  const found: FuelViolation[] = [];
  let total = 0;
  const add = (one: FuelViolation): void => {
    total += 1;
    if (found.length < MOST_VIOLATIONS) found.push(one);
  };
  const summary = new FuelSummary();
  const normal = { duplicates: 0, unindexed: 0, orphans: 0, leftBehind: 0 };
  for await (const row of matrix.rows) {
    const concerns = summary.add(row);
    for (const { code } of concerns) {
      if (code === 'UNDETERMINED') continue;
      const node =
        code === 'DUPLICATE'
          ? row.duplicates.find((one) => !one.same)?.node
          : code === 'INDEX_MISMATCH'
            ? row.index.find((one) => one.is === 'only in the index')?.node
            : undefined;
      add({ node: node ?? '', height: row.height, code, witness: row.note });
    }
    if (row.duplicates.some((one) => one.same)) normal.duplicates += 1;
    if (row.index.some((one) => one.is === 'only in the stream')) normal.unindexed += 1;
    if (
      row.committed === true &&
      row.class !== 'shadowed' &&
      row.cells.some((cell) => cell.entries.some((entry) => entry.digest !== row.digest))
    )
      normal.orphans += 1;
    if (row.class === 'repairable' && concerns.length === 0) normal.leftBehind += 1;
  }
  options.signal?.throwIfAborted();
  for (const node of matrix.nodes) {
    const reply = matrix.probes.find((one) => one.id === node.id)?.reply;
    const probe = reply?.outcome === 'accepted' ? reply.value : null;
    for (const { key, why } of probe?.wrong ?? [])
      add({ node: node.id, height: null, code: 'WRONG_KEY', witness: `${key}: ${why}` });
    for (const { id, why } of node.unreadable)
      add({
        node: node.id,
        height: null,
        code: 'UNREADABLE_ENTRY',
        witness: `entry ${id}: ${why}; its readers skip it`,
      });
    total += node.unreadableTotal - node.unreadable.length;
    for (const { height, why } of node.malformed)
      add({ node: node.id, height, code: 'UNREADABLE_FIELD', witness: why });
    for (const member of node.wrongIndex)
      add({
        node: node.id,
        height: null,
        code: 'INDEX_MISMATCH',
        witness: `${member}: a member should be its own score`,
      });
    if (probe !== null && node.answered && node.epoch > (probe.epoch ?? 0n)) {
      add({
        node: node.id,
        height: null,
        code: 'EPOCH_ABOVE_COUNTER',
        witness:
          `an entry bears epoch ${node.epoch} and the counter is ${probe.epoch ?? 'gone'}: it forgot what ` +
          'it had promised',
      });
    }
  }
  found.sort((a, b) => (b.height ?? -1) - (a.height ?? -1));
  return {
    probes: matrix.probes,
    range: matrix.range,
    heights: summary.rows,
    violations: found,
    total,
    undetermined: summary.classes['unknown'] ?? 0,
    normal,
    nodes: matrix.nodes.map(({ id, entries, answered }) => ({
      id,
      entries,
      verified: answered,
      violations: found.filter((one) => one.node === id).length,
    })),
  };
}
