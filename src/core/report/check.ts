// One question about the cluster, one of four answers, with the numbers behind it (docs/PROTOCOL.md sections 8 and 9).
// Pure. A silent node counts as lost. It is no reason for UNKNOWN. UNKNOWN is only for a question that the answers of
// the other nodes do not settle.
import { restartSafety } from '../view/restart-safety.js';
import type { ClusterView, Finding, NodeProbe, ReasonCode } from '../view/cluster-view.js';
import type { CheckAnswer, CheckName, Metric, Thresholds } from '../view/check-answer.js';
import { epochsOf } from '../view/epochs.js';
import { saidByAll, VERDICT_RANK } from '../view/standstill.js';
import type { Stray } from '../stream/strays.js';
import { MatrixSummary, type MatrixRow } from '../stream/matrix.js';

export interface Seen {
  view: ClusterView;
  probes: readonly NodeProbe[];
  /** The newest heights. Empty unless the stream is checked. */
  rows: readonly MatrixRow[];
  /** Entries outside the nodes' records. Empty unless the stream is checked. */
  strays: readonly Stray[];
  target: string;
}

/**
 * Which check speaks for which finding of the one judge (view/verdict.ts). Each finding has its check, so that `check
 * all` never says less than `seq status`. `own`: the check has limits of its own, which the operator sets.
 */
const SPEAKS: Record<Exclude<ReasonCode, 'OK'>, CheckName | 'own'> = {
  WRONG_CLUSTER: 'quorum',
  LANE_REMOVED: 'quorum',
  CLUSTER_MIXED: 'quorum',
  SAME_SERVER: 'quorum',
  TWO_LEADERS: 'leader',
  NOT_INITIALISED: 'quorum',
  NO_QUORUM: 'quorum',
  NODE_DENIED: 'quorum',
  LEADER_UNKNOWN: 'leader',
  NO_LEADER: 'leader',
  LEADER_STALLED: 'leader',
  LEADER_SILENT: 'leader',
  LEASE_CLOSING: 'leader',
  LOCK_STUCK: 'leader',
  NO_STANDBY: 'leader',
  HELD: 'leader',
  CONFIG_DRIFT: 'leader',
  CONFLICT: 'stream',
  NODES_SET_BACK: 'stream',
  DIVERGED: 'stream',
  NODE_ORPHAN: 'stream',
  PENDING_BLOCK: 'stream',
  NODE_FENCED: 'epoch',
  EPOCH_BEHIND: 'epoch',
  NODE_LAGGING: 'own',
  NODE_DOWN: 'own',
  NODE_REFUSED: 'own',
  NODE_NOT_ADMITTED: 'own',
  NODE_UNLEASED: 'own',
  NODE_FOREIGN: 'nodes',
  NOT_MEMBER: 'nodes',
  CLOCK_OFF: 'nodes',
  RETENTION_NARROWED: 'nodes',
  RETENTION_CLOSING: 'lag',
  RETENTION_LOST: 'lag',
  STORE_DAMAGED: 'stream',
};

export function judgeCheck(check: CheckName, seen: Seen, limits: Thresholds): CheckAnswer {
  const answer = { leader: leader, quorum, epoch, stream, lag, nodes }[check](seen, limits);
  const { findings } = seen.view;
  // Whatever its own question is, no check says OK while nothing can be committed.
  const spoken = saidByAll(seen.view) ?? findings.find(({ code }) => code !== 'OK' && SPEAKS[code] === check);
  if (spoken === undefined || VERDICT_RANK[spoken.verdict] < VERDICT_RANK[answer.verdict]) return { check, ...answer };
  // Of two answers that say "unknown", the one of the judge says what helps.
  if (spoken.verdict === answer.verdict && answer.verdict !== 'UNKNOWN') return { check, ...answer };
  return { check, ...answerOf(spoken), metrics: answer.metrics };
}

type Answer = Omit<CheckAnswer, 'check'>;

function answerOf({ verdict, reason, code, next }: Finding): Answer {
  return { verdict, reason, reasonCode: code, metrics: [], next };
}

const metric = (name: string, value: number, more: Partial<Metric> = {}): Metric => ({
  name,
  value,
  of: '',
  unit: '',
  warn: null,
  crit: null,
  ...more,
});

function votersOf(view: ClusterView): number {
  return view.nodes.filter((n) => n.admitted).length;
}

/** The view's finding with one of these codes, unchanged. */
function findingOf(view: ClusterView, codes: readonly string[]): Answer | null {
  const found = view.findings.find((finding) => codes.includes(finding.code));
  return found === undefined ? null : answerOf(found);
}

function noQuorum({ view }: Seen): Answer | null {
  if (votersOf(view) >= view.quorum) return null;
  return (
    findingOf(view, [
      'LANE_REMOVED',
      'WRONG_CLUSTER',
      'CLUSTER_MIXED',
      'NOT_INITIALISED',
      'NO_QUORUM',
      'NODE_DENIED',
    ]) ?? {
      verdict: 'CRIT',
      reason: `${votersOf(view)} of ${view.configured} nodes can vote, ${view.quorum} are needed`,
      reasonCode: 'NO_QUORUM',
      metrics: [],
      next: view.next,
    }
  );
}

function leader(seen: Seen): Answer {
  const { view } = seen;
  const metrics =
    view.leader === null
      ? [metric('leader', 0)]
      : [metric('leader', 1), metric('epoch', view.leader.epoch), metric('lease', view.leader.ttlMs, { unit: 'ms' })];
  const bad =
    noQuorum(seen) ??
    view.findings
      .filter(({ code }) => code === 'SAME_SERVER' || (code !== 'OK' && SPEAKS[code] === 'leader'))
      .map(answerOf)[0];
  if (bad !== undefined) return { ...bad, metrics };
  const { id = '', epoch: at = 0 } = view.leader ?? {};
  return { verdict: 'OK', reason: `${id} leads under epoch ${at}`, reasonCode: 'OK', metrics, next: [] };
}

function quorum(seen: Seen, limits: Thresholds): Answer {
  const { view } = seen;
  const metrics = [
    metric('margin', view.margin, { warn: limits.marginWarn, crit: limits.marginCrit }),
    metric('voters', votersOf(view)),
    metric('answered', view.answered),
    metric('configured', view.configured),
  ];
  const bad = noQuorum(seen);
  if (bad !== null) return { ...bad, metrics };
  const text =
    `${votersOf(view)} of ${view.configured} nodes can vote, ${view.quorum} are needed: ` +
    (view.margin < 0
      ? view.nodes.some((n) => n.admitted && n.lockStuck !== '')
        ? 'the locks of some never expire'
        : 'some of them are behind'
      : view.margin === 0
        ? 'no node may be lost'
        : `${view.margin} more may be lost`);
  const verdict = view.margin < limits.marginCrit ? 'CRIT' : view.margin < limits.marginWarn ? 'WARN' : 'OK';
  return {
    verdict,
    reason: text,
    reasonCode: verdict === 'OK' ? 'OK' : 'MARGIN_LOW',
    metrics,
    next: verdict === 'OK' ? [] : view.next,
  };
}

function epoch(seen: Seen): Answer {
  const { view, probes, target } = seen;
  const epochs = epochsOf(view, probes);
  const above = epochs.rows.filter((row) => row.standing === 'above').map((row) => row.id);
  const below = epochs.rows.filter((row) => row.standing === 'below').map((row) => row.id);
  const metrics = [metric('epoch', epochs.reference), metric('above', above.length), metric('below', below.length)];
  const tail = target === '' ? '' : ` ${target}`;
  const bad = noQuorum(seen);
  if (bad !== null) return { ...bad, metrics };
  if (view.leader !== null && above.length > view.configured - view.quorum) {
    return {
      verdict: 'CRIT',
      reason: `${above.join(', ')} are above the epoch ${epochs.reference} of ${view.leader.id}: a quorum refuses it`,
      reasonCode: 'NODE_FENCED',
      metrics,
      next: [`seq epoch show${tail}`],
    };
  }
  if (view.leader !== null && above.length > 0)
    return {
      verdict: 'WARN',
      reason: `${above.join(', ')}: epoch above ${epochs.reference}, that of ${view.leader.id}`,
      reasonCode: 'NODE_FENCED',
      metrics,
      next: [`seq epoch show${tail}`],
    };
  if (below.length > 0)
    return {
      verdict: 'WARN',
      reason: `${below.join(', ')}: epoch below ${epochs.reference}`,
      reasonCode: 'EPOCH_BEHIND',
      metrics,
      next: [`seq epoch heal${tail}`],
    };
  return {
    verdict: 'OK',
    reason:
      `${epochs.rows.filter((row) => row.standing === 'same').length} of ${view.configured} nodes are ` +
      `at epoch ${epochs.reference}`,
    reasonCode: 'OK',
    metrics,
    next: [],
  };
}

function stream(seen: Seen): Answer {
  const { view, rows, strays, target } = seen;
  const summary = new MatrixSummary();
  for (const row of rows) summary.add(row);
  const metrics = [
    metric('height', view.committed?.height ?? 0),
    metric('heights_checked', rows.length),
    metric('conflicts', Math.max(view.conflicts.length, summary.classes['conflict'] ?? 0)),
    metric('pending', view.pending === null ? 0 : 1),
    metric('strays', strays.length),
  ];
  const found = findingOf(view, ['CONFLICT']) ?? noQuorum(seen) ?? findingOf(view, ['PENDING_BLOCK', 'NODE_ORPHAN']);
  if (found?.verdict === 'CRIT') return { ...found, metrics };
  const { next, ...told } = summary.verdict(view, target, strays);
  // A head between two writes is no fault of the stream. Nor is a node that is one block behind, or silent.
  const harmless =
    told.verdict === 'WARN' && ['PENDING', 'UNDER_REPLICATED', 'NODE_DOWN', 'ORPHAN'].includes(told.reasonCode);
  if (told.verdict !== 'OK' && !harmless) return { ...told, metrics, next };
  if (found !== null) return { ...found, metrics };
  return {
    verdict: 'OK',
    reason: `height ${view.committed?.height ?? 0} is committed; the newest ${rows.length} heights hold together`,
    reasonCode: 'OK',
    metrics,
    next: [],
  };
}

function lag(seen: Seen, limits: Thresholds): Answer {
  const { view, target } = seen;
  const { lagWarn: warn, lagCrit: crit } = limits;
  const lags = [
    ...view.nodes.flatMap((n) => (n.lag === null ? [] : [{ id: n.id, lag: n.lag, what: 'node' }])),
    ...view.sequencers.flatMap((s) => (s.lag === null ? [] : [{ id: s.id, lag: s.lag, what: 'sequencer' }])),
  ];
  const metrics = lags.map((one) => metric(`${one.what}_lag`, one.lag, { of: one.id, warn, crit }));
  const bad = noQuorum(seen);
  if (bad !== null) return { ...bad, metrics };
  const worst = lags.reduce<{ id: string; lag: number }>((a, b) => (b.lag > a.lag ? b : a), { id: '', lag: 0 });
  const verdict = worst.lag >= crit ? 'CRIT' : worst.lag >= warn ? 'WARN' : 'OK';
  const closing = verdict === 'CRIT' ? null : findingOf(view, ['RETENTION_LOST', 'RETENTION_CLOSING']);
  if (closing !== null) return { ...closing, metrics };
  if (verdict === 'OK')
    return {
      verdict,
      reason: worst.lag === 0 ? 'nobody is behind' : `${worst.id} is ${worst.lag} behind`,
      reasonCode: 'OK',
      metrics,
      next: [],
    };
  const behind = lags
    .filter((one) => one.lag >= warn)
    .map((one) => `${one.id} is ${one.lag} blocks behind`)
    .join(', ');
  return {
    verdict,
    reason: behind,
    reasonCode: 'NODE_LAGGING',
    metrics,
    next: [`seq status -o wide${target === '' ? '' : ` ${target}`}`],
  };
}

function nodes(seen: Seen, limits: Thresholds): Answer {
  const { view } = seen;
  const bad = view.nodes.filter((n) => n.state !== 'OK');
  const metrics = [
    metric('nodes_not_ok', bad.length, {
      warn: limits.nodesWarn,
      crit: limits.nodesCrit === Number.MAX_SAFE_INTEGER ? null : limits.nodesCrit,
    }),
    ...view.nodes.flatMap((n) => (n.rttMs === null ? [] : [metric('rtt', n.rttMs, { of: n.id, unit: 'ms' })])),
  ];
  const lost = noQuorum(seen);
  if (lost !== null) return { ...lost, metrics };
  const narrowed = bad.length === 0 ? findingOf(view, ['RETENTION_NARROWED']) : null;
  if (narrowed !== null) return { ...narrowed, metrics };
  if (bad.length === 0)
    return {
      verdict: 'OK',
      reason: `all ${view.configured} nodes are in order; restart: ${restartSafety(view).why}`,
      reasonCode: 'OK',
      metrics,
      next: [],
    };
  const verdict = bad.length >= limits.nodesCrit ? 'CRIT' : bad.length >= limits.nodesWarn ? 'WARN' : 'OK';
  const found = view.findings.find((finding) => finding.nodes.includes((bad[0] as { id: string }).id));
  return {
    verdict,
    reason: bad.map((n) => `${n.id} ${n.state}: ${n.note}`).join('; '),
    reasonCode: verdict === 'OK' ? 'OK' : (found?.code ?? 'NODE_DOWN'),
    metrics,
    next: found?.next ?? [],
  };
}

/** The answer that a pager should report first. Of equally bad ones it is the one that `seq status` reports. */
export function worstOf(answers: readonly CheckAnswer[], status = ''): CheckAnswer {
  const rank = ({ verdict, reasonCode }: CheckAnswer) => 2 * VERDICT_RANK[verdict] + Number(reasonCode === status);
  return answers.reduce((a, b) => (rank(b) > rank(a) ? b : a));
}
