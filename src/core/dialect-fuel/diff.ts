// Where does a node of the fuel dialect differ from the committed blocks, or from another node (docs/FUEL.md)? Holes
// are normal there, but still a difference: `lacks` and `other` tell them apart. Trimmed entries of either side are not
// compared.
import { openFuelMatrix, type FuelCell, type FuelRow, type MatrixWish } from './matrix.js';
import type { FuelProbe, FuelOptions } from './probe.js';
import type { FuelHeight } from './types.js';

interface FuelDifference {
  height: FuelHeight;
  /**
   * lacks: it has no entry there. other: its bytes differ. duplicate: it has the bytes twice, or beside other bytes.
   * unknown: cannot be told.
   */
  kind: 'lacks' | 'other' | 'duplicate' | 'unknown';
  node: string;
  has: string[];
  wanted: string[];
}

export interface FuelDiff {
  probes: FuelProbe[];
  range: { from: FuelHeight; to: FuelHeight } | null;
  compared: number;
  differences: FuelDifference[];
  total: number;
  /** How many of those heights cannot be judged by anybody. */
  untold: number;
}

const SECOND_PROBE_MS = 200;

export async function diffFuel(
  options: FuelOptions,
  on: readonly string[],
  listed: number,
  wish: MatrixWish,
): Promise<FuelDiff> {
  const first = await diffOnce(options, on, listed, wish);
  if (first.total === 0) return first;
  await new Promise<void>((resolve) => {
    options.clock.after(SECOND_PROBE_MS, resolve);
  });
  options.signal?.throwIfAborted();
  // A difference may be a block on its way, or a stream that was trimmed meanwhile. A difference that stays is real.
  const again = await diffOnce(options, on, listed, {
    ...wish,
    to: Math.min(wish.to ?? Infinity, first.range?.to ?? Infinity),
  });
  return { ...again, range: first.range, compared: first.compared };
}

async function diffOnce(
  options: FuelOptions,
  on: readonly string[],
  listed: number,
  wish: MatrixWish,
): Promise<FuelDiff> {
  const matrix = await openFuelMatrix(options, wish);
  const differences: FuelDifference[] = [];
  let total = 0;
  let untold = 0;
  let compared = 0;
  for await (const row of matrix.rows) {
    const found =
      on.length === 1
        ? againstCommitted(row, on[0] as string)
        : againstEachOther(row, on[0] as string, on[1] as string);
    if (found === 'not compared') continue;
    compared += 1;
    if (found === null) continue;
    total += 1;
    if (found.kind === 'unknown') untold += 1;
    if (differences.length < listed) differences.push(found);
  }
  options.signal?.throwIfAborted();
  return { probes: matrix.probes, range: matrix.range, compared, differences, total, untold };
}

type Found = FuelDifference | null | 'not compared';
const cellOf = (row: FuelRow, node: string): FuelCell => row.cells.find((cell) => cell.node === node) as FuelCell;
const digestsOf = (cell: FuelCell): string[] => cell.entries.map((entry) => entry.digest);

function againstCommitted(row: FuelRow, node: string): Found {
  const cell = cellOf(row, node);
  if (cell.mark.startsWith('-')) return 'not compared';
  // When nothing is known to be committed and the node holds nothing, there is nothing to compare.
  if (row.committed !== true && cell.entries.length === 0 && !cell.mark.startsWith('?')) return 'not compared';
  const has = digestsOf(cell);
  const wanted = row.committed === true && row.digest !== null ? [row.digest] : [];
  const of = (kind: FuelDifference['kind']): FuelDifference => ({ height: row.height, kind, node, has, wanted });
  if (cell.mark.startsWith('?') || wanted.length === 0) return of('unknown');
  if (has.length === 0) return of('lacks');
  if (!has.includes(row.digest as string)) return of('other');
  return has.length > 1 ? of('duplicate') : null;
}

function againstEachOther(row: FuelRow, left: string, right: string): Found {
  const [a, b] = [cellOf(row, left), cellOf(row, right)];
  if (
    a.mark.startsWith('-') ||
    b.mark.startsWith('-') ||
    (a.entries.length === 0 && b.entries.length === 0 && ![a, b].some((cell) => cell.mark.startsWith('?')))
  )
    return 'not compared';
  const [ours, theirs] = [digestsOf(a), digestsOf(b)];
  const silent = [a, b].find((cell) => cell.mark.startsWith('?'));
  if (silent !== undefined)
    return {
      height: row.height,
      kind: 'unknown',
      node: silent.node,
      has: digestsOf(silent),
      wanted: silent === a ? theirs : ours,
    };
  if (ours.length === 0) return { height: row.height, kind: 'lacks', node: left, has: [], wanted: theirs };
  if (theirs.length === 0) return { height: row.height, kind: 'lacks', node: right, has: [], wanted: ours };
  const set = new Set(theirs);
  if (new Set(ours).size !== set.size || ours.some((digest) => !set.has(digest)))
    return { height: row.height, kind: 'other', node: right, has: theirs, wanted: ours };
  return ours.length === theirs.length
    ? null
    : {
        height: row.height,
        kind: 'duplicate',
        node: ours.length > theirs.length ? left : right,
        has: ours.length > theirs.length ? ours : theirs,
        wanted: ours.length > theirs.length ? theirs : ours,
      };
}
