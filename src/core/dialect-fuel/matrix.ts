// Height × node for the fuel dialect, newest first (docs/FUEL.md). The same letter means the same bytes. A height is a
// row only when some node has it, because holes are normal.
import type { FuelClass, FuelVerdict } from './classify.js';
import { concernsOf, type Concern } from './concern.js';
import { describeFuel } from './describe.js';
import { gather, type GatherOptions, type HeightPicture, type ScannedNode } from './gather.js';
import {
  firstProbe,
  refuseFuelSilence,
  summarizeFuel,
  type FuelProbe,
  type FuelNodeRow,
  type FuelOptions,
} from './probe.js';
import type { FuelHeight } from './types.js';

export interface FuelCell {
  node: string;
  /** A, B, … for each entry; `.` missing, `-` trimmed, `?` no answer. `*` behind a mark: stream and index disagree. */
  mark: string;
  /** In the order of the stream. */
  entries: { digest: string; epoch: bigint }[];
}

export interface FuelRow {
  height: FuelHeight;
  class: FuelClass;
  also: FuelClass[];
  committed: boolean | null;
  copies: number;
  n: number;
  digest: string | null;
  epoch: bigint | null;
  /** The earliest timestamp among the copies, because each server stamps its own copy. */
  timestamp: number | null;
  bytes: number | null;
  cells: FuelCell[];
  duplicates: FuelVerdict['duplicates'];
  index: FuelVerdict['index'];
  note: string;
  /** The block is committed, on every node that can have it, once each, and no other block is there. */
  same: boolean;
}

export interface FuelMatrix {
  probes: FuelProbe[];
  rowsOfNodes: FuelNodeRow[];
  nodes: ScannedNode[];
  heights: number;
  range: { from: FuelHeight; to: FuelHeight } | null;
  rows: AsyncGenerator<FuelRow>;
}

export type MatrixWish = Pick<GatherOptions, 'from' | 'to' | 'limit' | 'progress' | 'heldEntries'>;

export async function openFuelMatrix(options: FuelOptions, wish: MatrixWish): Promise<FuelMatrix> {
  const probes = await firstProbe(options);
  refuseFuelSilence(probes, options);
  const gathered = await gather({ ...options, ...wish, probes: new Map(probes.map((one) => [one.id, one.reply])) });
  const rows = async function* (): AsyncGenerator<FuelRow> {
    for await (const picture of gathered.pictures) yield rowOf(picture);
  };
  return {
    probes,
    rowsOfNodes: summarizeFuel(probes, [], options).nodes,
    nodes: gathered.nodes,
    heights: gathered.heights,
    range: gathered.range,
    rows: rows(),
  };
}

/** One letter for each distinct block that a node holds. `?` without an answer, `-` trimmed, `.` missing. */
function markOf(cell: HeightPicture['cells'][number], letters: ReadonlyMap<string, string>): string {
  if (!cell.answered) return '?';
  if (cell.entries.length > 0) return cell.entries.map((entry) => letters.get(entry.digest)).join('');
  return cell.trimmed ? '-' : '.';
}

/** Pure. */
function rowOf({ verdict, cells }: HeightPicture): FuelRow {
  const letters = new Map(
    verdict.blocks.map((block, at) => [block.digest, String.fromCharCode(65 + Math.min(25, at))]),
  );
  const disagree = new Set(verdict.index.map((one) => one.node));
  const [best] = verdict.blocks;
  const copies = cells.flatMap((cell) => cell.entries.filter((entry) => entry.digest === best?.digest));
  const times = copies.flatMap((entry) => (entry.timestamp === null ? [] : [entry.timestamp]));
  return {
    height: verdict.height,
    class: verdict.class,
    also: verdict.also,
    committed: verdict.committed,
    copies: best?.nodes.length ?? 0,
    n: verdict.n,
    digest: best?.digest ?? null,
    epoch: best?.epoch ?? null,
    timestamp: times.length === 0 ? null : Math.min(...times),
    bytes: copies[0]?.size ?? null,
    cells: cells.map((cell) => ({
      node: cell.node,
      entries: cell.entries.map(({ digest, epoch }) => ({ digest, epoch })),
      mark: markOf(cell, letters) + (disagree.has(cell.node) ? '*' : ''),
    })),
    duplicates: verdict.duplicates,
    index: verdict.index,
    note: describeFuel(verdict),
    same: isSame(verdict),
  };
}

function isSame(v: FuelVerdict): boolean {
  return (
    v.class === 'committed' &&
    v.also.length === 0 &&
    v.blocks.length === 1 &&
    v.empty.length === 0 &&
    v.silent.length === 0
  );
}

export interface FuelSummaryVerdict {
  verdict: 'OK' | 'WARN' | 'CRIT' | 'UNKNOWN';
  reason: string;
  reasonCode: string;
  next: string[];
}
const RANK = { OK: 0, WARN: 1, UNKNOWN: 2, CRIT: 3 };

/** Sums up the rows while they pass, newest first. */
export class FuelSummary {
  readonly classes: Record<string, number> = {};
  rows = 0;
  committed: FuelRow | null = null;
  private worst: { row: FuelRow; concern: Concern } | null = null;

  /** Returns what deserves a report in this row. */
  add(row: FuelRow): Concern[] {
    this.rows += 1;
    this.classes[row.class] = (this.classes[row.class] ?? 0) + 1;
    const concerns = concernsOf(row, this.committed === null);
    if (row.committed === true) this.committed ??= row;
    const [concern] = concerns;
    if (concern !== undefined && (this.worst === null || RANK[concern.verdict] > RANK[this.worst.concern.verdict]))
      this.worst = { row, concern };
    return concerns;
  }

  verdict(target: string): FuelSummaryVerdict {
    const { worst } = this;
    const tail = target === '' ? '' : ` ${target}`;
    if (this.rows === 0)
      return {
        verdict: 'OK',
        reason: 'no node that answered holds an entry in this range',
        reasonCode: 'EMPTY',
        next: [],
      };
    if (worst !== null)
      return {
        verdict: worst.concern.verdict,
        reason: worst.row.note,
        reasonCode: worst.concern.code,
        next: [`seq stream inspect --height ${worst.row.height}${tail}`],
      };
    const { committed = 0, trimmed = 0 } = this.classes;
    return {
      verdict: 'OK',
      reason:
        `nothing stands in the way: of ${this.rows} ${this.rows === 1 ? 'height' : 'heights'} ` +
        `${committed} ${committed === 1 ? 'is' : 'are'} committed everywhere or with ` +
        `holes${trimmed === 0 ? '' : `, ${trimmed} partly trimmed`}`,
      reasonCode: 'OK',
      next: [],
    };
  }
}
