// What the other dialect's nodes hold → Result (docs/FUEL.md). Pure. The names in `data` are a contract
// (schemas/fuel.*.json).
import type { FuelDiff } from '../../../core/dialect-fuel/diff.js';
import type { FuelProbe, FuelOptions, FuelView } from '../../../core/dialect-fuel/probe.js';
import type { FuelMatrix, FuelRow, FuelSummary } from '../../../core/dialect-fuel/matrix.js';
import type { FuelVerified } from '../../../core/dialect-fuel/verify.js';
import { short } from '../../../core/dialect-fuel/describe.js';
import { marginText, seconds } from '../cluster/cluster-view.js';
import type { Cell, Column, Result } from '../result.js';
import { rangeData } from '../range.js';
import { DIFFERENCE_COLUMNS } from './differences.js';

const DIALECT = 'fuel';
const FUEL_LEGEND =
  'A B … (the same letter is the same bytes; two letters: two entries)   . not there   - trimmed   ' +
  '* stream and index disagree   ? no answer';

export function fuelStatusResult(view: FuelView, budget: number, on: readonly string[] | null): Result {
  const { leader, committed, open } = view;
  const nodes = view.nodes.filter((row) => on === null || on.includes(row.id));
  return {
    data: {
      dialect: DIALECT,
      leaseKey: view.leaseKey,
      quorum: view.quorum,
      quorumBudget: budget,
      margin: view.margin,
      leader,
      leaderKnown: view.leaderKnown,
      committed,
      open: open.map((one) => ({ height: one.height, class: one.class, blocks: one.blocks })),
      findings: view.findings,
      next: view.next,
      nodes,
    },
    verdict: view,
    next: view.next,
    warnings: view.findings.slice(1).map((one) => one.reason),
    facts: [
      ['lease key', view.leaseKey],
      [
        'leader',
        leader === null
          ? view.leaderKnown
            ? 'nobody'
            : 'unknown'
          : `${leader.owner}, epoch ${leader.epoch ?? '?'}, ${seconds(leader.ttlMs)} left, on ` +
            `${leader.nodes.length}/${view.configured} nodes`,
      ],
      [
        'committed',
        committed === null
          ? 'unknown'
          : `${committed.height} ${short(committed.digest)}, on ${committed.nodes.length}/${view.configured} nodes`,
      ],
      ['margin', marginText(view.margin, view.quorum)],
      ...open.slice(0, 5).map((one): [string, Cell] => ['open', `${one.height} ${one.class}`]),
    ],
    tables: [
      {
        columns: [
          { key: 'node' },
          { key: 'state' },
          { key: 'holder' },
          { key: 'ttl', align: 'right' },
          { key: 'epoch', align: 'right' },
          { key: 'entries', align: 'right' },
          { key: 'indexed', align: 'right' },
          { key: 'head', align: 'right' },
          { key: 'lag', align: 'right' },
          { key: 'rtt', align: 'right' },
          { key: 'url' },
          { key: 'version', wide: true },
          { key: 'note', wide: true },
        ],
        rows: nodes.map((row) => ({
          node: row.id,
          state: row.state,
          holder: row.holder,
          ttl: row.ttlMs === null ? null : seconds(row.ttlMs),
          epoch: row.epoch,
          entries: row.entries,
          indexed: row.indexed,
          head: row.head,
          lag: row.lag,
          rtt: row.rttMs === null ? null : `${row.rttMs}ms`,
          url: row.url,
          version: row.redisVersion,
          note: row.note,
        })),
      },
    ],
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

export function fuelColumns(nodes: readonly string[]): Column[] {
  return [
    { key: 'height', align: 'right' },
    { key: 'class' },
    { key: 'copies' },
    { key: 'epoch', align: 'right' },
    { key: 'age', align: 'right' },
    ...nodes.map((id): Column => ({ key: id, label: id })),
    { key: 'also', wide: true },
    { key: 'digest', wide: true },
    { key: 'bytes', align: 'right', wide: true },
    { key: 'note', wide: true },
  ];
}

export function fuelCells(row: FuelRow, now: number): Record<string, Cell> {
  const cells = Object.fromEntries(
    row.cells.map(({ node, mark, entries }) => {
      const [only] = entries;
      return [
        node,
        entries.length === 1 && only !== undefined && row.epoch !== null && only.epoch !== row.epoch
          ? `${mark}@${only.epoch}`
          : mark,
      ];
    }),
  );
  return {
    height: row.height,
    class: row.class,
    copies: `${row.copies}/${row.n}`,
    epoch: row.epoch,
    age: row.timestamp === null ? null : seconds(now - row.timestamp),
    ...cells,
    also: row.also.join(' '),
    digest: row.digest,
    bytes: row.bytes,
    note: row.same ? '' : row.note,
  };
}

export function fuelRowData(row: FuelRow, now: number): Record<string, unknown> {
  return { ...row, ageMs: row.timestamp === null ? null : Math.max(0, now - row.timestamp) };
}

/** `now`: ages are relative to it. `ids`: the columns of nodes. */
export function fuelMatrixResult(
  { matrix, rows, summary }: { matrix: FuelMatrix; rows: readonly FuelRow[]; summary: FuelSummary },
  options: Pick<FuelOptions, 'leaseKey' | 'quorum' | 'target'>,
  { now, ids }: { now: number; ids: readonly string[] },
): Result {
  const { next, ...verdict } = summary.verdict(options.target);
  const data = rows.map((row) => fuelRowData(row, now));
  const unread = matrix.nodes.filter((node) => !node.answered).map((node) => node.id);
  return {
    data: {
      dialect: DIALECT,
      leaseKey: options.leaseKey,
      range: rangeData(matrix.range),
      classes: summary.classes,
      heights: data,
      next,
      nodes: matrix.rowsOfNodes.map((row) => ({
        id: row.id,
        state: row.state,
        read: !unread.includes(row.id),
        entries: row.entries,
        indexed: row.indexed,
        epoch: row.epoch,
        note: row.note,
      })),
    },
    verdict,
    next,
    items: data,
    warnings: unread.map((id) => `${id} could not be read: what it holds is unknown`),
    facts: [
      [
        'heights',
        matrix.range === null ? 'none' : `${matrix.heights} held, ${matrix.range.from} to ${matrix.range.to}`,
      ],
      ...matrix.rowsOfNodes
        .filter((row) => row.note !== '' && row.noteCode !== 'NODE_UNLEASED')
        .map((row): [string, Cell] => [row.id, `${row.state}: ${row.note}`]),
    ],
    tables: [{ columns: fuelColumns(ids), rows: rows.map((row) => fuelCells(row, now)) }],
    ...(rows.length === 0
      ? {}
      : {
          text: [
            ...rows
              .filter((row) => row.class !== 'committed' && row.class !== 'trimmed')
              .slice(0, 20)
              .map((row) => row.note),
            FUEL_LEGEND,
          ].join('\n'),
        }),
    meta: metaOf(matrix.probes, unread.length, options.quorum),
  };
}

export function fuelVerifyResult(
  verified: FuelVerified,
  options: Pick<FuelOptions, 'leaseKey' | 'quorum' | 'target'>,
): Result {
  const { nodes, violations, total, range, heights, normal, undetermined } = verified;
  const tail = options.target === '' ? '' : ` ${options.target}`;
  const unread = nodes.filter((node) => !node.verified).map((node) => node.id);
  const read = nodes.length - unread.length;
  const first = violations.find((one) => one.code === 'UNWINNABLE_CONFLICT') ?? violations[0];
  const stuck = first?.code === 'UNWINNABLE_CONFLICT';
  const verdict =
    first !== undefined
      ? {
          verdict: stuck ? ('CRIT' as const) : ('WARN' as const),
          reason:
            `${total} ${total === 1 ? 'finding' : 'findings'}: ` +
            `${first.node === '' ? '' : `${first.node}: `}${first.witness}`,
          reasonCode: stuck ? first.code : 'VIOLATIONS',
        }
      : read < options.quorum || undetermined > 0
        ? {
            verdict: 'UNKNOWN' as const,
            reason:
              `only ${read} of ${nodes.length} nodes could be ` +
              `read${undetermined === 0 ? '' : `, and ${undetermined} heights cannot be judged`}; nothing else ` +
              'was found',
            reasonCode: read < options.quorum ? 'NO_QUORUM' : 'UNDETERMINED',
          }
        : {
            verdict: 'OK' as const,
            reason:
              `nothing found on ${read} of ${nodes.length} nodes` +
              (range === null ? ', which hold no entry' : `, ${heights} heights from ${range.from} to ${range.to}`) +
              (unread.length === 0 ? '' : `; ${unread.join(', ')} could not be read`),
            reasonCode: 'OK',
          };
  const next =
    first === undefined
      ? []
      : first.height === null
        ? [`seq status${tail}`]
        : [`seq stream inspect --height ${first.height}${tail}`];
  return {
    data: {
      dialect: DIALECT,
      leaseKey: options.leaseKey,
      range: rangeData(range),
      compared: heights,
      total,
      violations,
      undetermined,
      normal,
      nodes,
      next,
    },
    verdict,
    next,
    items: violations,
    warnings: unread.map((id) => `${id} could not be read: nothing of it is verified`),
    facts: [
      [
        'normal here',
        `${normal.duplicates} heights twice with the same bytes, ${normal.unindexed} not in an index, ` +
          `${normal.orphans} with other bytes beside the committed ones, ${normal.leftBehind} below a ` +
          'quorum under the head',
      ],
    ],
    tables: [
      {
        columns: [
          { key: 'node' },
          { key: 'entries', align: 'right' },
          { key: 'verified' },
          { key: 'violations', align: 'right' },
        ],
        rows: nodes.map((node) => ({ ...node, node: node.id, verified: node.verified ? 'yes' : 'no' })),
      },
      {
        columns: [{ key: 'node' }, { key: 'height', align: 'right' }, { key: 'code' }, { key: 'witness' }],
        rows: violations.map((one) => ({ ...one, node: one.node === '' ? 'between' : one.node })),
      },
    ],
    meta: metaOf(verified.probes, unread.length, options.quorum),
  };
}

const KIND: Record<string, string> = {
  lacks: 'lacks it',
  other: 'bytes differ',
  duplicate: 'holds it and more',
  unknown: 'cannot be told',
};

export function fuelDiffResult(
  diff: FuelDiff,
  on: readonly string[],
  options: Pick<FuelOptions, 'leaseKey' | 'quorum' | 'target'>,
): Result {
  const { differences, total, compared, range } = diff;
  const tail = options.target === '' ? '' : ` ${options.target}`;
  const what = on.length === 1 ? `${on[0]} and what is committed` : `${on[0]} and ${on[1]}`;
  const [first] = differences;
  const differ = differences.find((one) => one.kind !== 'unknown');
  const untold = diff.untold === 0 ? '' : `${diff.untold} of ${compared} heights could not be compared`;
  const verdict =
    total === 0
      ? {
          verdict: 'OK' as const,
          reason: compared === 0 ? `${what}: nothing to compare` : `${what} hold the same bytes at ${compared} heights`,
          reasonCode: 'OK',
        }
      : total === diff.untold
        ? {
            verdict: 'UNKNOWN' as const,
            reason: `${what}: ${untold}, the highest is ${first?.height}: ${first?.node}: ${KIND['unknown']}`,
            reasonCode: 'NOT_COMPARED',
          }
        : {
            verdict: 'WARN' as const,
            reason:
              `${what} differ at ${total - diff.untold} of ${compared} heights` +
              (differ === undefined ? '' : `, the highest is ${differ.height}: ${differ.node}: ${KIND[differ.kind]}`) +
              (untold === '' ? '' : `; ${untold}`),
            reasonCode: 'DIFFERENT',
          };
  const next = first === undefined ? [] : [`seq stream inspect --height ${first.height}${tail}`];
  return {
    data: {
      dialect: DIALECT,
      leaseKey: options.leaseKey,
      on,
      against: on.length === 1 ? 'committed' : on[1],
      range: rangeData(range),
      compared,
      total,
      differences,
      next,
    },
    verdict,
    next,
    items: differences,
    tables: [
      {
        columns: DIFFERENCE_COLUMNS,
        rows: differences.map(({ height, node, kind, has, wanted }) => ({
          height,
          node,
          kind,
          has: has.map(short).join(' '),
          wanted: wanted.map(short).join(' '),
        })),
      },
    ],
    meta: metaOf(diff.probes, 0, options.quorum),
  };
}

function metaOf(probes: readonly FuelProbe[], unread: number, quorum: number) {
  return {
    nodesAsked: probes.length,
    nodesAnswered: Math.min(probes.length - unread, probes.filter((one) => one.reply.outcome === 'accepted').length),
    quorum,
  };
}
