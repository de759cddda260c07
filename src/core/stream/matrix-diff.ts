// Where does a node differ from the committed chain, or two nodes from each other (docs/PROTOCOL.md section 9)? A diff
// of two nodes compares (height, hash). Streams change while they are read, so a difference is reported only when a
// second probe shows it, too.
import { pause } from '../nodes/pause.js';
import type { Hash, Height } from '../protocol/types.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { ClusterView } from '../view/cluster-view.js';
import { inspectWithProbes } from '../view/inspect.js';
import { heldRange, readChunks } from './chunks.js';
import { readStrays, type Strays } from './strays.js';
import { rowsOf, type MatrixCell, type MatrixOptions, type MatrixRow } from './matrix.js';

interface Difference {
  height: Height;
  /**
   * lacks: the height is above the node's head. hole: the entry is missing in between. other: the node has another
   * block. damaged: the entry is damaged. unknown: nobody can tell.
   */
  kind: 'lacks' | 'hole' | 'other' | 'damaged' | 'unknown';
  /** The node that differs. */
  node: string;
  has: Hash | null;
  /** The committed block, or the other node's block. */
  wanted: Hash | null;
}

export interface DiffOptions extends MatrixOptions {
  /** One node: it is compared with the committed chain. Two nodes: they are compared with each other. */
  on: readonly string[];
  from?: Height;
  to?: Height;
  limit: number;
  progress: (done: number, total: number) => void;
}

export interface Diff {
  view: ClusterView;
  range: { from: Height; to: Height } | null;
  compared: number;
  differences: Difference[];
  total: number;
  /** The number of these heights at which nobody can tell, because a node did not answer or no block is proven. */
  untold: number;
  /** Entries outside the records of the nodes that are compared. */
  strays: Strays;
}

const SECOND_PROBE_MS = 200;

export async function diffStreams(options: DiffOptions): Promise<Diff> {
  const first = await diffOnce(options);
  if (first.total === 0 || first.range === null) return first;
  // A block may be under way, or the retained range may have moved. A difference after a short wait is real.
  await pause(options.clock, SECOND_PROBE_MS);
  options.signal?.throwIfAborted();
  const lowest = Math.min(...first.differences.map((one) => one.height));
  const to =
    first.total > first.differences.length ? first.range.to : Math.max(...first.differences.map((one) => one.height));
  const again = await diffOnce({ ...options, from: lowest, to });
  return { ...again, range: first.range, compared: first.compared };
}

async function diffOnce(options: DiffOptions): Promise<Diff> {
  const { on, nodes, limit } = options;
  const { view, probes } = await inspectWithProbes(options);
  refuseNoAnswer(view);
  const held = heldRange(probes);
  const top = on.length === 1 ? Math.min(held?.to ?? 0, view.committed?.height ?? 0) : (held?.to ?? 0);
  const floors = view.nodes.filter((n) => on.includes(n.id) && n.floor !== null).map((n) => n.floor as number);
  const from = Math.max(
    held?.from ?? 1,
    options.from ?? 1,
    ...(on.length === 2 && floors.length === 2 ? [Math.max(...floors) + 1] : []),
  );
  const to = Math.min(top, options.to ?? top);
  const strays = await readStrays({ ...options, probes, only: new Set(on) });
  const empty = { view, range: null, compared: 0, differences: [], total: 0, untold: 0, strays };
  if (held === null || from > to) return empty;
  const differences: Difference[] = [];
  let total = 0;
  let untold = 0;
  let compared = 0;
  for await (const chunk of readChunks({ ...options, probes, from, to, newestFirst: false })) {
    for (const row of rowsOf(chunk, nodes, view.configured)) {
      compared += 1;
      const found =
        on.length === 1
          ? againstCommitted(row, on[0] as string)
          : againstEachOther(row, on[0] as string, on[1] as string);
      if (found === null) continue;
      total += 1;
      if (found.kind === 'unknown') untold += 1;
      if (differences.length < limit) differences.push(found);
    }
    options.progress(chunk.to - from + 1, to - from + 1);
  }
  return { view, range: { from, to }, compared, differences, total, untold, strays };
}

function againstCommitted(row: MatrixRow, node: string): Difference | null {
  const cell = cellOf(row, node);
  if (cell.mark === '-') return null;
  const wanted = row.class === 'committed' || row.class === 'orphan' || row.class === 'damaged' ? row.hash : null;
  if (cell.hash !== null && cell.mark !== '!' && cell.hash === wanted) return null;
  const kind =
    cell.mark === '!'
      ? 'damaged'
      : cell.mark === '_'
        ? 'hole'
        : cell.mark === '?' || wanted === null
          ? 'unknown'
          : cell.hash === null
            ? 'lacks'
            : 'other';
  return { height: row.height, kind, node, has: cell.hash, wanted };
}

function againstEachOther(row: MatrixRow, one: string, other: string): Difference | null {
  const [a, b] = [cellOf(row, one), cellOf(row, other)];
  if (a.mark !== '!' && b.mark !== '!' && a.hash === b.hash && a.mark !== '?' && b.mark !== '?') return null;
  const odd = a.mark === '!' || a.mark === '?' || (a.hash === null && b.hash !== null) ? a : b;
  const rest = odd === a ? b : a;
  const kind =
    odd.mark === '!'
      ? 'damaged'
      : odd.mark === '?'
        ? 'unknown'
        : odd.mark === '_'
          ? 'hole'
          : odd.hash === null
            ? 'lacks'
            : 'other';
  return { height: row.height, kind, node: odd.node, has: odd.hash, wanted: rest.hash };
}

function cellOf(row: MatrixRow, node: string): MatrixCell {
  return row.cells.find((cell) => cell.node === node) as MatrixCell;
}
