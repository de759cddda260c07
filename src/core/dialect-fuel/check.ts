// The checks over the nodes of the fuel dialect. They have the same questions, answers and numbers as the checks of our
// own protocol (report/check.ts), but follow the dialect's rules (docs/FUEL.md). Pure, except for the reading at the
// top.
import type { CheckAnswer, CheckName, Metric, Thresholds } from '../view/check-answer.js';
import { FuelSummary, openFuelMatrix, type FuelRow } from './matrix.js';
import { viewFuel, type FuelProbe, type FuelOptions, type FuelView } from './probe.js';

interface FuelSeen {
  view: FuelView;
  probes: readonly FuelProbe[];
  rows: readonly FuelRow[];
  target: string;
}

export async function checkFuel(
  options: FuelOptions,
  checks: readonly CheckName[],
  limits: Thresholds,
  depth: number,
): Promise<{ view: FuelView; answers: CheckAnswer[] }> {
  const { view, probes } = await viewFuel(options);
  const rows: FuelRow[] = [];
  if (checks.includes('stream') && view.answered > 0) {
    const matrix = await openFuelMatrix(options, { limit: depth });
    for await (const row of matrix.rows) rows.push(row);
    options.signal?.throwIfAborted();
  }
  return {
    view,
    answers: checks.map((check) => judgeFuel(check, { view, probes, rows, target: options.target }, limits)),
  };
}

type Answer = Omit<CheckAnswer, 'check'>;
const metric = (name: string, value: number, more: Partial<Metric> = {}): Metric => ({
  name,
  value,
  of: '',
  unit: '',
  warn: null,
  crit: null,
  ...more,
});

function judgeFuel(check: CheckName, seen: FuelSeen, limits: Thresholds): CheckAnswer {
  return { check, ...{ leader, quorum, epoch, stream, lag, nodes }[check](seen, limits) };
}

function finding(view: FuelView, codes: readonly string[]): Answer | null {
  const found = view.findings.find((one) => codes.includes(one.code));
  return found === undefined
    ? null
    : { verdict: found.verdict, reason: found.reason, reasonCode: found.code, metrics: [], next: found.next };
}

function leader({ view }: FuelSeen): Answer {
  const held = view.leader;
  const metrics =
    held === null
      ? [metric('leader', 0)]
      : [metric('leader', 1), metric('epoch', Number(held.epoch ?? 0n)), metric('lease', held.ttlMs, { unit: 'ms' })];
  const bad = finding(view, ['NO_QUORUM', 'NO_SUCH_KEYS', 'NO_LEADER', 'LEADER_UNKNOWN']);
  if (bad !== null) return { ...bad, metrics };
  return {
    verdict: 'OK',
    reason: `${held?.owner ?? ''} holds the lease on ${held?.nodes.length ?? 0} of ${view.configured} nodes`,
    reasonCode: 'OK',
    metrics,
    next: [],
  };
}

function quorum({ view }: FuelSeen, limits: Thresholds): Answer {
  const metrics = [
    metric('margin', view.margin, { warn: limits.marginWarn, crit: limits.marginCrit }),
    metric('answered', view.answered),
    metric('configured', view.configured),
  ];
  const bad = finding(view, ['NO_QUORUM']);
  if (bad !== null) return { ...bad, metrics };
  const verdict = view.margin < limits.marginCrit ? 'CRIT' : view.margin < limits.marginWarn ? 'WARN' : 'OK';
  const reason =
    `${view.answered} of ${view.configured} nodes answer, ${view.quorum} are needed: ` +
    `${view.margin <= 0 ? 'no node may be lost' : `${view.margin} more may be lost`}`;
  return {
    verdict,
    reason,
    reasonCode: verdict === 'OK' ? 'OK' : 'MARGIN_LOW',
    metrics,
    next: verdict === 'OK' ? [] : view.next,
  };
}

/** Counters differ between nodes in normal operation. A node whose counter is above the leader's refuses the leader. */
function epoch({ view }: FuelSeen): Answer {
  const own = view.leader?.epoch ?? null;
  const above =
    own === null ? [] : view.nodes.filter((row) => row.epoch !== null && row.epoch > own).map((row) => row.id);
  const metrics = [metric('epoch', Number(own ?? 0n)), metric('above', above.length)];
  const bad = finding(view, ['NO_QUORUM', 'NO_SUCH_KEYS']);
  if (bad !== null) return { ...bad, metrics };
  if (above.length > 0) {
    return {
      verdict: above.length > view.configured - view.quorum ? 'CRIT' : 'WARN',
      reasonCode: 'NODE_FENCED',
      metrics,
      next: view.next,
      reason:
        `${above.join(', ')}: the counter is above ${own}, the leader's epoch: ` +
        `${above.length > view.configured - view.quorum ? 'a quorum refuses it' : 'writes are refused there'}`,
    };
  }
  return {
    verdict: 'OK',
    reason:
      own === null
        ? 'nobody holds the lease, so no epoch is in force'
        : `no counter is above ${own}, the leader's epoch`,
    reasonCode: 'OK',
    metrics,
    next: [],
  };
}

function stream({ view, rows, target }: FuelSeen): Answer {
  const summary = new FuelSummary();
  for (const row of rows) summary.add(row);
  const { classes } = summary;
  const metrics = [
    metric('height', view.committed?.height ?? 0),
    metric('heights_checked', rows.length),
    metric('conflicts', (classes['winnable-conflict'] ?? 0) + (classes['unwinnable-conflict'] ?? 0)),
    metric('repairable', classes['repairable'] ?? 0),
    metric('shadowed', classes['shadowed'] ?? 0),
  ];
  const bad = finding(view, ['NO_QUORUM', 'NO_SUCH_KEYS']);
  if (bad !== null) return { ...bad, metrics };
  const { next, ...told } = summary.verdict(target);
  // The view keeps only what both probes found. A block that is being written is not in it.
  const open = finding(view, ['UNWINNABLE_CONFLICT', 'WINNABLE_CONFLICT', 'REPAIRABLE', 'UNDETERMINED']);
  if (told.verdict === 'WARN' && told.reasonCode === 'REPAIRABLE' && open === null)
    return {
      verdict: 'OK',
      reason:
        `height ${view.committed?.height ?? 'none'} is committed; one block is on its way, or was left ` +
        'behind below it',
      reasonCode: 'OK',
      metrics,
      next: [],
    };
  if (told.verdict !== 'OK') return { ...told, metrics, next };
  return {
    verdict: 'OK',
    reason:
      `height ${view.committed?.height ?? 'none'} is committed; in the newest ${rows.length} heights ` +
      'no bytes stand against each other',
    reasonCode: 'OK',
    metrics,
    next: [],
  };
}

function lag({ view, target }: FuelSeen, { lagWarn: warn, lagCrit: crit }: Thresholds): Answer {
  const lags = view.nodes.flatMap((row) => (row.lag === null ? [] : [{ id: row.id, lag: row.lag }]));
  const metrics = lags.map((one) => metric('node_lag', one.lag, { of: one.id, warn, crit }));
  const bad = finding(view, ['NO_QUORUM', 'NO_SUCH_KEYS']);
  if (bad !== null) return { ...bad, metrics };
  const worst = lags.reduce<{ id: string; lag: number }>((a, b) => (b.lag > a.lag ? b : a), { id: '', lag: 0 });
  const verdict = worst.lag >= crit ? 'CRIT' : worst.lag >= warn ? 'WARN' : 'OK';
  const reason =
    worst.lag === 0
      ? 'nobody is behind'
      : `the newest entries of ${worst.id} end ${worst.lag} below the committed height`;
  return {
    verdict,
    reason,
    reasonCode: verdict === 'OK' ? 'OK' : 'NODE_LAGGING',
    metrics,
    next: verdict === 'OK' ? [] : [`seq stream diff --on ${worst.id}${target === '' ? '' : ` ${target}`}`],
  };
}

function nodes({ view }: FuelSeen, limits: Thresholds): Answer {
  const bad = view.nodes.filter((row) => row.state !== 'OK');
  const metrics = [
    metric('nodes_not_ok', bad.length, {
      warn: limits.nodesWarn,
      crit: limits.nodesCrit === Number.MAX_SAFE_INTEGER ? null : limits.nodesCrit,
    }),
    ...view.nodes.flatMap((row) => (row.rttMs === null ? [] : [metric('rtt', row.rttMs, { of: row.id, unit: 'ms' })])),
  ];
  const lost = finding(view, ['NO_QUORUM']);
  if (lost !== null) return { ...lost, metrics };
  if (bad.length === 0)
    return { verdict: 'OK', reason: `all ${view.configured} nodes are in order`, reasonCode: 'OK', metrics, next: [] };
  const verdict = bad.length >= limits.nodesCrit ? 'CRIT' : bad.length >= limits.nodesWarn ? 'WARN' : 'OK';
  const found = view.findings.find((one) => one.nodes.includes(bad[0]?.id ?? ''));
  return {
    verdict,
    reason: bad.map((row) => `${row.id} ${row.state}: ${row.note}`).join('; '),
    reasonCode: verdict === 'OK' ? 'OK' : (bad[0]?.noteCode ?? 'NODE_DOWN'),
    metrics,
    next: verdict === 'OK' ? [] : (found?.next ?? []),
  };
}
