// Judges one height over the configured nodes of the fuel dialect (docs/FUEL.md). Pure. Votes are per node, not per
// entry. The same bytes are the same block, whatever the epochs. A node that did not answer counts neither as a copy
// nor as empty.
import type { FuelHeight } from './types.js';

export type FuelClass =
  | 'committed'
  /** One block below a quorum. The empty nodes can still complete the quorum. */
  | 'repairable'
  /** Several blocks. One of them can still reach a quorum. */
  | 'winnable-conflict'
  /** Several blocks, and none can reach a quorum: nothing is produced there until a person decides. */
  | 'unwinnable-conflict'
  /** Committed, and another entry has a higher epoch. */
  | 'shadowed'
  /** One node holds two entries at the height. */
  | 'duplicate'
  | 'index-mismatch'
  | 'trimmed'
  | 'unknown';

export interface HeightOnNode {
  id: string;
  /** False: nothing is known of this node. */
  answered: boolean;
  entries: readonly { digest: string; epoch: bigint }[];
  /** Whether its index has the height. Null when it keeps no index, or when that is unknown. */
  indexed: boolean | null;
  /** Missing, and older than everything that its stream still keeps. */
  trimmed: boolean;
}

export interface FuelBlock {
  digest: string;
  nodes: string[];
  /** The highest epoch among the copies. */
  epoch: bigint;
  /** True when a quorum holds it, or when the empty nodes that answered can complete a quorum. */
  canWin: boolean;
}

export interface FuelVerdict {
  height: FuelHeight;
  class: FuelClass;
  /** The other classes that also apply, worst first. */
  also: FuelClass[];
  /** Null when this cannot be told. */
  committed: boolean | null;
  n: number;
  quorum: number;
  /** Most copies first. The committed block comes first where there is one. */
  blocks: FuelBlock[];
  /** Nodes that answered, do not have the block, and would accept it. */
  empty: string[];
  silent: string[];
  trimmed: string[];
  duplicates: { node: string; entries: number; same: boolean }[];
  index: { node: string; is: 'only in the stream' | 'only in the index' }[];
}

/** Null when no node that answered has anything at this height. */
export function classify(height: FuelHeight, nodes: readonly HeightOnNode[], quorum: number): FuelVerdict | null {
  const answered = nodes.filter((node) => node.answered);
  const holders = answered.filter((node) => node.entries.length > 0);
  const absent = answered.filter((node) => node.entries.length === 0);
  const silent = nodes.filter((node) => !node.answered).map(({ id }) => id);
  const trimmed = absent.filter((node) => node.trimmed).map(({ id }) => id);
  const blocked = absent.filter((node) => !node.trimmed && node.indexed === true);
  const empty = absent.filter((node) => !node.trimmed && node.indexed !== true).map(({ id }) => id);
  const index: FuelVerdict['index'] = [
    ...holders
      .filter((node) => node.indexed === false)
      .map(({ id }) => ({ node: id, is: 'only in the stream' as const })),
    ...blocked.map(({ id }) => ({ node: id, is: 'only in the index' as const })),
  ];
  const duplicates = holders
    .filter((node) => node.entries.length > 1)
    .map(({ id, entries }) => ({
      node: id,
      entries: entries.length,
      same: new Set(entries.map((one) => one.digest)).size === 1,
    }));
  const blocks = blocksOf(holders, quorum, empty.length);
  const found = { height, n: nodes.length, quorum, blocks, empty, silent, trimmed, duplicates, index };
  if (blocks.length === 0 && index.length === 0 && trimmed.length === 0 && answered.length >= quorum) return null;

  const [best] = blocks;
  const winners = blocks.filter((block) => block.nodes.length >= quorum);
  const also: FuelClass[] = [];
  if (duplicates.length > 0) also.push('duplicate');
  if (index.length > 0) also.push('index-mismatch');
  const of = (kind: FuelClass, committed: boolean | null): FuelVerdict => ({
    ...found,
    class: kind,
    also: also.filter((one) => one !== kind),
    committed,
  });
  if (answered.length < quorum) return of('unknown', null);
  // A node that holds two blocks counts for both. So two quorums at one height are possible, and no reader can choose.
  if (winners.length > 1) return of('unwinnable-conflict', null);
  if (winners.length === 1 && best !== undefined) {
    if (blocks.some((block) => block !== best && block.epoch > best.epoch)) return of('shadowed', true);
    return of(also[0] ?? 'committed', true);
  }
  const most = best?.nodes.length ?? 0;
  // The missing copies may be among the entries that left the streams.
  if (trimmed.length > 0 && most + trimmed.length + silent.length >= quorum) return of('trimmed', null);
  if (best === undefined)
    return index.length > 0 ? of('index-mismatch', false) : of(trimmed.length > 0 ? 'trimmed' : 'unknown', null);
  const mayBe = most + silent.length >= quorum ? null : false;
  if (blocks.some((block) => block.canWin)) return of(blocks.length === 1 ? 'repairable' : 'winnable-conflict', mayBe);
  if (most + empty.length + silent.length >= quorum) return of('unknown', mayBe);
  return blocks.length === 1
    ? of(index.length > 0 ? 'index-mismatch' : 'trimmed', mayBe)
    : of('unwinnable-conflict', mayBe);
}

function blocksOf(holders: readonly HeightOnNode[], quorum: number, empty: number): FuelBlock[] {
  const byDigest = new Map<string, FuelBlock>();
  for (const { id, entries } of holders) {
    for (const { digest, epoch } of entries) {
      const block = byDigest.get(digest) ?? { digest, nodes: [], epoch: 0n, canWin: false };
      if (!block.nodes.includes(id)) block.nodes.push(id);
      if (epoch > block.epoch) block.epoch = epoch;
      byDigest.set(digest, block);
    }
  }
  const blocks = [...byDigest.values()];
  for (const block of blocks) block.canWin = block.nodes.length + empty >= quorum;
  return blocks.sort(
    (a, b) =>
      b.nodes.length - a.nodes.length ||
      (b.epoch > a.epoch ? 1 : b.epoch < a.epoch ? -1 : 0) ||
      (a.digest < b.digest ? -1 : 1),
  );
}
