// The matrix, its verification and its differences → Result. Pure. The names in `data` are a contract
// (schemas/stream.inspect.json, stream.verify.json, stream.diff.json).
import { decodeBlockData } from '../../../core/chain/items.js';
import type { Matrix, MatrixRow, MatrixSummary } from '../../../core/stream/matrix.js';
import { straysText, type Stray } from '../../../core/stream/strays.js';
import type { Diff } from '../../../core/stream/matrix-diff.js';
import type { Verified } from '../../../core/stream/verify.js';
import { andYet, saidByAll, VERDICT_RANK } from '../../../core/view/standstill.js';
import { wire } from '../envelope.js';
import type { Column, Result, Table } from '../result.js';
import { rangeData } from '../range.js';
import { DIFFERENCE_COLUMNS } from './differences.js';
import { itemData, itemsOf, itemText } from './tail-lines.js';
import { seconds } from '../cluster/cluster-view.js';

const LEGEND =
  'A B … blocks (the same letter is the same block; lower case: on a node that does not count)   . ' +
  'not there   - trimmed   _ hole   ! damaged   ? no answer';

export function rowData(row: MatrixRow, now: number): Record<string, unknown> {
  const { data, timestamp, ...rest } = row;
  return {
    ...rest,
    timestamp,
    ageMs: timestamp === null ? null : Math.max(0, now - timestamp),
    ...(data === undefined ? {} : { items: itemsData(row.height, data) }),
  };
}

/**
 * `rowData` as a line of NDJSON, built directly as text. For a million rows, intermediate objects would take longer
 * than reading the rows.
 */
export function rowLine(row: MatrixRow, now: number): string {
  if (row.data !== undefined) return JSON.stringify(wire(rowData(row, now)));
  const hash = JSON.stringify(row.hash);
  let cells = '';
  for (const cell of row.cells) {
    const own = cell.hash === row.hash ? hash : JSON.stringify(cell.hash);
    cells +=
      `${cells === '' ? '' : ','}{"node":${JSON.stringify(cell.node)},` +
      `"mark":"${cell.mark}","hash":${own},"epoch":${quoted(cell.epoch)}}`;
  }
  const { timestamp } = row;
  const ageMs = timestamp === null ? null : Math.max(0, now - timestamp);
  return (
    `{"height":"${row.height}","class":"${row.class}","copies":${row.copies},"n":${row.n},"hash":${hash},` +
    `"epoch":"${row.epoch}","writer":${JSON.stringify(row.writer)},"bytes":${row.bytes},"cells":[${cells}],` +
    `"note":${JSON.stringify(row.note)},"same":${row.same},"timestamp":${timestamp},"ageMs":${ageMs}}`
  );
}

function quoted(value: number | null): string {
  return value === null ? 'null' : `"${value}"`;
}

export function matrixColumns(nodes: readonly string[], withData: boolean): Column[] {
  return [
    { key: 'height', align: 'right' },
    { key: 'class' },
    { key: 'copies' },
    { key: 'epoch', align: 'right' },
    { key: 'writer' },
    { key: 'age', align: 'right' },
    ...nodes.map((id): Column => ({ key: id, label: id })),
    { key: 'hash', wide: true },
    { key: 'bytes', align: 'right', wide: true },
    ...(withData ? [{ key: 'items' }] : []),
    { key: 'note', wide: true },
  ];
}

export function matrixCells(row: MatrixRow, now: number): Record<string, string | number | null> {
  const cells = Object.fromEntries(
    row.cells.map((cell) => [
      cell.node,
      cell.epoch !== null && cell.epoch !== row.epoch ? `${cell.mark}@${cell.epoch}` : cell.mark,
    ]),
  );
  return {
    height: row.height,
    class: row.class,
    copies: `${row.copies}/${row.n}`,
    epoch: row.epoch === 0 ? null : row.epoch,
    writer: row.writer,
    age: row.timestamp === null ? null : seconds(now - row.timestamp),
    ...cells,
    hash: row.hash,
    bytes: row.bytes,
    note: row.same ? '' : row.note,
    ...(row.data === undefined ? {} : { items: itemsText(row.height, row.data) }),
  };
}

/** Fewer rows than this are shown one by one. */
const LEAST_RUN = 3;
/** Where nodes hold different things at a height, each height is told apart. */
const RUN_CLASSES: ReadonlySet<string> = new Set(['committed', 'undetermined', 'missing', 'trimmed']);

/** Consecutive heights that differ in nothing but height, age and hash, together. */
export function matrixRuns(rows: readonly MatrixRow[]): MatrixRow[][] {
  const runs: MatrixRow[][] = [];
  for (const row of rows) {
    const last = runs.at(-1);
    if (last !== undefined && continues(last.at(-1) as MatrixRow, row)) last.push(row);
    else runs.push([row]);
  }
  return runs.flatMap((run) => (run.length < LEAST_RUN ? run.map((row) => [row]) : [run]));
}

function continues(one: MatrixRow, next: MatrixRow): boolean {
  if (Math.abs(one.height - next.height) !== 1 || !RUN_CLASSES.has(one.class)) return false;
  if (one.class !== next.class || one.copies !== next.copies || one.n !== next.n || one.same !== next.same)
    return false;
  if (one.epoch !== next.epoch || one.writer !== next.writer || withoutBlock(one) !== withoutBlock(next)) return false;
  return one.cells.every(({ mark, epoch }, at) => mark === next.cells[at]?.mark && epoch === next.cells[at]?.epoch);
}

/** What is said of a height, without its number and its hash. */
function withoutBlock({ note }: MatrixRow): string {
  return note.replace(/^height \d+: (?:\S+ is )?/, '');
}

function heightsOf(run: readonly MatrixRow[]): string {
  const heights = run.map(({ height }) => height);
  return `${Math.min(...heights)}-${Math.max(...heights)}`;
}

/** The age is that of the newest block of the run. */
export function runCells(run: readonly MatrixRow[], now: number): Record<string, string | number | null> {
  const newest = run.reduce((one, other) => (other.height > one.height ? other : one));
  const cells = matrixCells(newest, now);
  return run.length === 1 ? cells : { ...cells, height: heightsOf(run), hash: null, bytes: null };
}

function runNote(run: readonly MatrixRow[]): string {
  const [first] = run as [MatrixRow];
  return run.length === 1 ? first.note : `heights ${heightsOf(run)}: ${withoutBlock(first)}`;
}

export function matrixResult(
  matrix: Matrix,
  rows: readonly MatrixRow[],
  summary: MatrixSummary,
  now: number,
  {
    withData,
    target,
    only,
    asText,
    runs,
  }: { withData: boolean; target: string; only: ReadonlySet<string>; asText: boolean; runs: boolean },
): Result {
  const { view, range, strays } = matrix;
  const { next, ...verdict } = summary.verdict(view, target, strays.found);
  const shown = view.nodes.filter((n) => only.has(n.id));
  const ids = shown.map((n) => n.id);
  const data = rows.map((row) => rowData(row, now));
  const together = !asText ? [] : runs && !withData ? matrixRuns(rows) : rows.map((row) => [row]);
  return {
    data: {
      cluster: view.cluster,
      committed: view.committed,
      range: rangeData(range),
      classes: summary.classes,
      heights: data,
      strays: strays.found,
      next,
      nodes: shown.map((n) => ({
        id: n.id,
        state: n.state,
        admitted: n.admitted,
        epoch: n.epoch,
        floor: n.floor,
        head: n.head,
        note: n.note,
      })),
    },
    verdict,
    next,
    items: data,
    warnings: strays.untold,
    facts: [
      ['heights', range === null ? 'none' : `${range.from} to ${range.to}`],
      ['committed', view.committed?.height ?? 'unknown'],
      ...shown
        .filter((n) => n.state !== 'OK')
        .map((n): [string, string] => [n.id, `${n.state}${n.note === '' ? '' : `: ${n.note}`}`]),
    ],
    // Text forms only: building a thousand rows of cells that nobody sees would cost as much as reading them.
    tables: asText
      ? [
          {
            columns: matrixColumns(ids, withData),
            rows: together.map((run) => runCells(run, now)),
          },
          ...strayTables(strays.found),
        ]
      : [],
    ...(rows.length === 0
      ? {}
      : {
          text: [
            ...together
              .filter(([row]) => row?.same === false)
              .slice(0, 20)
              .map(runNote),
            LEGEND,
          ].join('\n'),
        }),
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

/** A node that answers and shows no stream of this chain is not silent. */
function whyUnread({ view }: Verified, id: string): string {
  const state = view.nodes.find((node) => node.id === id)?.state ?? 'DOWN';
  if (state === 'REFUSED') return 'refuses us';
  return ['DOWN', 'OK', 'WARN'].includes(state) ? 'did not answer' : `is ${state}`;
}

export function verifyResult(verified: Verified, target: string): Result {
  const { view, range, violations, total, nodes } = verified;
  const unread = nodes.filter((n) => !n.verified).map((n) => n.id);
  const read = nodes.length - unread.length;
  // When only some nodes were asked, every one of them counts. For the whole cluster a quorum is enough.
  const needed = verified.narrowed ? nodes.length : view.quorum;
  const tail = target === '' ? '' : ` ${target}`;
  const conflict = violations.find((one) => one.code === 'CONFLICT');
  const first = conflict ?? violations[0];
  const where = first?.height == null ? '' : ` at height ${first.height}`;
  const unreadText = unread.map((id) => `${id} ${whyUnread(verified, id)}`);
  const proven =
    first !== undefined
      ? {
          verdict: conflict ? ('CRIT' as const) : ('WARN' as const),
          reason:
            `${total} ${total === 1 ? 'violation' : 'violations'}: ` +
            `${first.node === '' ? 'between nodes' : first.node}${where}: ${first.witness}`,
          reasonCode: conflict ? 'CONFLICT' : 'VIOLATIONS',
        }
      : read < needed
        ? {
            verdict: 'UNKNOWN' as const,
            reason: `only ${read} of ${nodes.length} nodes could be read, without a violation`,
            reasonCode: verified.narrowed ? 'NODE_DOWN' : 'NO_QUORUM',
          }
        : {
            verdict: 'OK' as const,
            reason:
              `no violation on ${read} of ${nodes.length} nodes` +
              (range === null ? ', which hold no block' : `, heights ${range.from} to ${range.to}`) +
              (unread.length === 0 ? '' : `; ${unreadText.join('; ')}`),
            reasonCode: 'OK',
          };
  // The exit code speaks of the streams. The verdict is that of all verbs: sound streams are no good news while
  // nothing can be committed.
  const said = saidByAll(view);
  const isWorse = said !== null && VERDICT_RANK[said.verdict] > VERDICT_RANK[proven.verdict];
  const verdict = isWorse
    ? { verdict: said.verdict, reason: andYet(proven.reason, said), reasonCode: said.code }
    : proven;
  const ofStreams =
    first === undefined
      ? proven.verdict === 'UNKNOWN'
        ? [`seq status${tail}`]
        : []
      : first.height === null
        ? [`seq status${tail}`]
        : [`seq stream inspect --height ${first.height}${tail}`];
  const next = [...new Set([...(isWorse ? said.next : []), ...ofStreams])];
  return {
    data: { cluster: view.cluster, range: rangeData(range), total, violations, nodes, next },
    verdict,
    next,
    items: violations,
    warnings: [...unreadText.map((text) => `${text}: nothing of it is verified`), ...verified.untold],
    tables: [
      {
        columns: [
          { key: 'node' },
          { key: 'entries', align: 'right' },
          { key: 'verified' },
          { key: 'violations', align: 'right' },
        ],
        rows: nodes.map((n) => ({
          node: n.id,
          entries: n.entries,
          verified: n.verified ? 'yes' : 'no',
          violations: n.violations,
        })),
      },
      {
        columns: [{ key: 'node' }, { key: 'height', align: 'right' }, { key: 'code' }, { key: 'witness' }],
        rows: violations.map((one) => ({
          node: one.node === '' ? 'between' : one.node,
          height: one.height,
          code: one.code,
          witness: one.witness,
        })),
      },
    ],
    meta: { nodesAsked: view.configured, nodesAnswered: read, quorum: view.quorum },
  };
}

export function diffResult(diff: Diff, on: readonly string[], target: string): Result {
  const { view, range, compared, differences, total, strays } = diff;
  const what = on.length === 1 ? `${on[0]} and the committed chain` : `${on[0]} and ${on[1]}`;
  const tail = target === '' ? '' : ` ${target}`;
  const first = differences[0];
  const differ = differences.find((one) => one.kind !== 'unknown');
  const untold =
    diff.untold === 0
      ? ''
      : `${diff.untold} of ${compared} heights could not be compared, the first is ` +
        `${differences.find((one) => one.kind === 'unknown')?.height ?? first?.height}`;
  const outside = straysText(strays.found);
  const verdict =
    outside !== '' && total === diff.untold
      ? { verdict: 'WARN' as const, reason: outside, reasonCode: 'STRAY' }
      : total === 0
        ? {
            verdict: 'OK' as const,
            reason:
              range === null
                ? `${what}: nothing to compare`
                : `${what} are the same at ${compared} heights (${range.from} to ${range.to})`,
            reasonCode: 'OK',
          }
        : total === diff.untold
          ? {
              verdict: 'UNKNOWN' as const,
              reason: `${what}: ${untold}: ${first?.node} ${sentence('unknown')}`,
              reasonCode: 'NOT_COMPARED',
            }
          : {
              verdict: 'WARN' as const,
              reason:
                `${what} differ at ${total - diff.untold} of ${compared} heights` +
                (differ === undefined ? '' : `, first at ${differ.height}: ${differ.node} ${sentence(differ.kind)}`) +
                (untold === '' ? '' : `; ${untold}`) +
                (outside === '' ? '' : `; ${outside}`),
              reasonCode: 'DIFFERENT',
            };
  const next =
    first === undefined
      ? outside === ''
        ? []
        : [`seq stream verify${tail}`]
      : [
          `seq stream inspect --height ${first.height}${tail}`,
          ...(view.leader === null ? [`seq status${tail}`] : [`seq status --watch${tail}`]),
        ];
  return {
    data: {
      cluster: view.cluster,
      on,
      against: on.length === 1 ? 'committed' : on[1],
      range: rangeData(range),
      compared,
      total,
      differences,
      strays: strays.found,
      next,
    },
    verdict,
    next,
    items: differences,
    warnings: strays.untold,
    tables: [
      {
        columns: DIFFERENCE_COLUMNS,
        rows: differences.map(({ height, node, kind, has, wanted }) => ({
          height,
          node,
          kind,
          has: has?.slice(0, 16),
          wanted: wanted?.slice(0, 16),
        })),
      },
      ...strayTables(strays.found),
    ],
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

function strayTables(strays: readonly Stray[]): Table[] {
  if (strays.length === 0) return [];
  return [
    {
      columns: [{ key: 'node' }, { key: 'entry' }, { key: 'writer' }, { key: 'why' }],
      rows: strays.map(({ node, id, writer, why }) => ({ node, entry: id, writer: writer === '' ? '?' : writer, why })),
    },
  ];
}

function sentence(kind: string): string {
  return (
    {
      lacks: 'lacks it',
      hole: 'has a hole there',
      other: 'holds another block',
      damaged: 'is damaged there',
      unknown: 'cannot be told',
    }[kind] ?? kind
  );
}

function itemsData(height: number, data: Uint8Array): Record<string, unknown>[] | string {
  const shown = shownItems(height, data);
  return typeof shown === 'string' ? shown : shown.map((item) => itemData(height, item));
}

function itemsText(height: number, data: Uint8Array): string {
  const shown = shownItems(height, data);
  return typeof shown === 'string' ? shown : shown.map((item) => itemText(item.bytes)).join(' | ');
}

/** A payload that this program did not write is shown unchanged: it may be damaged. */
function shownItems(height: number, data: Uint8Array) {
  const content = decodeBlockData(data);
  if (content.format !== 'items' && content.format !== 'exec') return `base64:${Buffer.from(data).toString('base64')}`;
  return itemsOf({ height, data, hash: '', parent: '', timestamp: 0, epoch: 0 });
}
