// Height × node: which block does every node hold at every height, and what does that add up to (docs/PROTOCOL.md
// section 9)? Newest first. The same letter is the same block. A is the committed block, or else the one with the most
// copies. Verdicts come from the ledger and are never guesses.
import type { Clock, NodePort } from '../ports.js';
import { describeVerdict } from '../protocol/describe.js';
import { readLedger, type HeightVerdict, type VerdictKind } from '../protocol/ledger.js';
import { sequencerOf, type Entry, type Epoch, type Hash, type Height } from '../protocol/types.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { ClusterView, NodeProbe } from '../view/cluster-view.js';
import { inspectWithProbes } from '../view/inspect.js';
import { heldRange, readChunks, type Chunk } from './chunks.js';
import { readStrays, straysText, type Stray, type Strays } from './strays.js';

export interface MatrixCell {
  node: string;
  /**
   * A, B, …: a block (lower case: on a node that does not count). `.` not there, `-` trimmed, `_` hole, `!` damaged,
   * `?` no answer.
   */
  mark: string;
  hash: Hash | null;
  epoch: Epoch | null;
}

export interface MatrixRow {
  height: Height;
  class: VerdictKind;
  copies: number;
  n: number;
  hash: Hash | null;
  epoch: Epoch;
  /** The sequencer that wrote the copy. '' when no copy was read. */
  writer: string;
  timestamp: number | null;
  bytes: number | null;
  cells: MatrixCell[];
  /** The verdict in words. */
  note: string;
  /** Every node that counts holds the block under one hash, or has trimmed it. */
  same: boolean;
  data?: Uint8Array;
}

export interface MatrixOptions {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
  target: string;
  expectedCluster?: string;
  /** Only these nodes are shown (`--on`). Classes and counts still cover all nodes. */
  only?: ReadonlySet<string>;
}

export interface MatrixRange {
  from?: Height;
  to?: Height;
  limit: number;
  keepData: boolean;
}

export interface Matrix {
  view: ClusterView;
  probes: NodeProbe[];
  /** null: no node holds anything. */
  range: { from: Height; to: Height } | null;
  /** Entries outside the records of the nodes that are shown. */
  strays: Strays;
  /** Rows come in pieces: one promise for each of a million rows would take longer than the row itself. */
  pieces: AsyncGenerator<MatrixRow[]>;
}

export async function openMatrix(options: MatrixOptions, wish: MatrixRange): Promise<Matrix> {
  const { view, probes } = await inspectWithProbes(options);
  refuseNoAnswer(view);
  const held = heldRange(probes);
  const to = held === null ? 0 : Math.min(wish.to ?? held.to, held.to);
  const from = held === null ? 1 : Math.max(wish.from ?? 1, held.from, to - wish.limit + 1);
  const range = held === null || from > to ? null : { from, to };
  const strays = await readStrays({ ...options, probes });
  return { view, probes, range, strays, pieces: matrixPieces(options, { view, probes, range }, wish.keepData) };
}

async function* matrixPieces(
  options: MatrixOptions,
  { view, probes, range }: Omit<Matrix, 'pieces' | 'strays'>,
  keepData: boolean,
): AsyncGenerator<MatrixRow[]> {
  if (range === null) return;
  for await (const chunk of readChunks({ ...options, probes, ...range, newestFirst: true, keepData })) {
    const rows = rowsOf(chunk, options.nodes, view.configured, keepData).reverse();
    yield options.only === undefined ? rows : rows.map((row) => narrowed(row, options.only as ReadonlySet<string>));
  }
}

/** The same height, reduced to these nodes. What other nodes lack is no difference here. */
export function narrowed(row: MatrixRow, only: ReadonlySet<string>): MatrixRow {
  const cells = row.cells.filter((cell) => only.has(cell.node));
  return {
    ...row,
    cells,
    same:
      (row.class === 'committed' || row.class === 'trimmed') &&
      cells.every((cell) => cell.mark === 'A' || cell.mark === '-'),
  };
}

/** Rows of one piece, in ascending order. `configured`: how many nodes the cluster has. Pure. */
export function rowsOf(
  chunk: Chunk,
  nodes: readonly { id: string }[],
  configured: number,
  keepData = false,
): MatrixRow[] {
  const at = new Map<string, EntryAt>();
  for (const [id, entries] of chunk.entries) at.set(id, byHeight(entries));
  return readLedger(chunk.ledgers, configured, { from: chunk.from, to: chunk.to }).map((verdict) =>
    rowOf(verdict, nodes, at, keepData),
  );
}

type EntryAt = (height: Height) => Entry | undefined;

/**
 * Finds the entry at a height. Of two entries at one height, the later one wins. Nearly always there is no hole and no
 * double entry; then the position gives the height.
 */
function byHeight(entries: readonly Entry[]): EntryAt {
  const first = entries[0]?.height ?? 0;
  if (entries.every((entry, at) => entry.height === first + at)) return (height) => entries[height - first];
  const found = new Map(entries.map((entry) => [entry.height, entry]));
  return (height) => found.get(height);
}

/** A is the verdict's block. Nearly always it is the only block. */
function lettersOf(verdict: HeightVerdict): (hash: Hash) => string {
  let letters: Hash[] | null = null;
  return (hash) => {
    if (hash === verdict.hash) return 'A';
    letters ??= [
      ...new Set([...(verdict.hash === null ? [] : [verdict.hash]), ...verdict.candidates.map((one) => one.hash)]),
    ];
    if (!letters.includes(hash)) letters.push(hash);
    return String.fromCharCode(65 + Math.min(25, letters.indexOf(hash)));
  };
}

function rowOf(
  verdict: HeightVerdict,
  nodes: readonly { id: string }[],
  at: Map<string, EntryAt>,
  keepData: boolean,
): MatrixRow {
  const letter = lettersOf(verdict);
  let copy: Entry | undefined;
  for (const entryAt of at.values()) {
    const entry = entryAt(verdict.height);
    if (entry !== undefined && entry.hash === verdict.hash) copy ??= entry;
  }
  const cells = nodes.map(({ id }): MatrixCell => {
    const entry = at.get(id)?.(verdict.height);
    const mark = verdict.damaged.some((one) => one.node === id)
      ? '!'
      : entry !== undefined
        ? verdict.leftOut.includes(id)
          ? letter(entry.hash).toLowerCase()
          : letter(entry.hash)
        : verdict.trimmed.includes(id)
          ? '-'
          : verdict.missing.includes(id)
            ? '_'
            : verdict.unknown.includes(id)
              ? '?'
              : '.';
    return { node: id, mark, hash: entry?.hash ?? null, epoch: entry?.epoch ?? null };
  });
  return {
    height: verdict.height,
    class: verdict.verdict,
    copies: verdict.copies,
    n: verdict.n,
    hash: verdict.hash,
    epoch: verdict.epoch === 0 ? (copy?.epoch ?? 0) : verdict.epoch,
    writer: copy === undefined ? '' : sequencerOf(copy.owner),
    timestamp: copy?.timestamp ?? null,
    bytes: copy?.size ?? null,
    cells,
    note: describeVerdict(verdict),
    same:
      (verdict.verdict === 'committed' || verdict.verdict === 'trimmed') &&
      verdict.lacking.length +
        verdict.orphans.length +
        verdict.damaged.length +
        verdict.missing.length +
        verdict.unknown.length +
        verdict.leftOut.length ===
        0,
    ...(keepData && copy?.data !== undefined ? { data: copy.data } : {}),
  };
}

type MatrixCode = 'OK' | 'NODE_DOWN' | 'STRAY' | 'UNDER_REPLICATED' | Uppercase<MatrixRow['class']>;

export interface MatrixVerdict {
  verdict: 'OK' | 'WARN' | 'CRIT' | 'UNKNOWN';
  reason: string;
  reasonCode: MatrixCode | 'EMPTY';
  next: string[];
}

/** Collects the summary of the rows while they pass. */
export class MatrixSummary {
  readonly classes: Record<string, number> = {};
  private worst: { rank: number; row: MatrixRow; code: MatrixCode } | null = null;
  rows = 0;

  add(row: MatrixRow): void {
    this.rows += 1;
    this.classes[row.class] = (this.classes[row.class] ?? 0) + 1;
    if (row.same) return; // Nothing is wrong with it. Nearly every row is like that.
    const [rank, code] = rankOf(row);
    if (rank > 0 && rank > (this.worst?.rank ?? 0)) this.worst = { rank, row, code };
  }

  verdict(view: ClusterView, target: string, strays: readonly Stray[]): MatrixVerdict {
    const tail = target === '' ? '' : ` ${target}`;
    const { worst } = this;
    if (strays.length > 0 && (worst?.rank ?? 0) <= 3)
      return { verdict: 'WARN', reason: straysText(strays), reasonCode: 'STRAY', next: [`seq stream verify${tail}`] };
    if (this.rows === 0)
      return { verdict: 'OK', reason: 'no node holds a block in this range', reasonCode: 'EMPTY', next: [] };
    if (worst === null)
      return {
        verdict: 'OK',
        reason: `${this.rows} ${this.rows === 1 ? 'height' : 'heights'}, all nodes hold the same`,
        reasonCode: 'OK',
        next: [],
      };
    const verdict = worst.rank >= 5 ? 'CRIT' : worst.rank === 4 ? 'UNKNOWN' : 'WARN';
    const next =
      worst.rank >= 3
        ? [`seq stream verify${tail}`]
        : view.leader === null
          ? [`seq status${tail}`]
          : [`seq status --watch${tail}`];
    return { verdict, reason: worst.row.note, reasonCode: worst.code, next };
  }
}

function rankOf(row: MatrixRow): [number, MatrixCode] {
  switch (row.class) {
    case 'conflict':
      return [6, 'CONFLICT'];
    case 'damaged':
      return [5, 'DAMAGED'];
    case 'missing':
      return [5, 'MISSING'];
    case 'undetermined':
      return [4, 'UNDETERMINED'];
    case 'orphan':
      return [3, 'ORPHAN'];
    case 'pending':
      return [2, 'PENDING'];
    default: {
      if (row.cells.some((cell) => cell.mark === '!')) return [3, 'DAMAGED'];
      if (row.cells.some((cell) => cell.mark === '_')) return [3, 'MISSING'];
      if (row.same) return [0, 'OK'];
      return row.cells.some((cell) => /[B-Z]/.test(cell.mark))
        ? [2, 'ORPHAN']
        : row.cells.some((cell) => cell.mark === '?')
          ? [1, 'NODE_DOWN']
          : [1, 'UNDER_REPLICATED'];
    }
  }
}
