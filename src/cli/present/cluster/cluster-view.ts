// ClusterView → Result: verdict, facts, nodes, sequencers, next. Pure. The names in `data` are a contract
// (schemas/status.json).
import { serverName } from '../../../core/server-name.js';
import type { ClusterView, NodeRow } from '../../../core/view/cluster-view.js';
import { restartSafety } from '../../../core/view/restart-safety.js';
import type { SequencerRow } from '../../../core/view/presence.js';
import type { Column, Result, Table } from '../result.js';

/** `only`: the nodes that are shown (`--on`); the verdict is over all of them. */
export function statusResult(view: ClusterView, only?: ReadonlySet<string>): Result {
  const nodes = view.nodes.filter((n) => only === undefined || only.has(n.id));
  const { leader, committed, pending, hold, margin } = view;
  return {
    data: {
      cluster: view.cluster,
      quorum: view.quorum,
      margin: view.margin,
      leader,
      leaderKnown: view.leaderKnown,
      committed,
      pending,
      conflicts: view.conflicts,
      hold,
      handover: view.handover,
      findings: view.findings,
      next: view.next,
      nodes: nodes.map(nodeData),
      sequencers: view.sequencers,
      absent: view.absent,
      restart: restartSafety(view),
    },
    verdict: view,
    facts: [
      ['cluster', view.cluster],
      [
        'leader',
        leader === null
          ? view.leaderKnown
            ? 'nobody'
            : 'unknown'
          : `${leader.id}, epoch ${leader.epoch}, ${seconds(leader.ttlMs)} left, on ` +
            `${leader.nodes.length}/${view.configured} nodes`,
      ],
      [
        'committed',
        committed === null
          ? 'unknown'
          : `${committed.height}${committed.hash === null ? '' : ` ${committed.hash.slice(0, 16)}`}`,
      ],
      ['margin', marginText(margin, view.quorum)],
      ['restart', restartSafety(view).why],
      ...(pending === null
        ? []
        : [['pending', `${pending.height} on ${pending.nodes.length}/${view.configured}`] as [string, string]]),
      ...(hold === null
        ? []
        : [['hold', `by ${hold.by} for ${seconds(hold.ttlMs)} (${hold.reason})`] as [string, string]]),
    ],
    tables: [nodeTable(nodes), sequencerTable(view, view.leader?.id)],
    next: view.next,
    warnings: view.findings.slice(1).map((f) => f.reason),
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

/** The same view, nodes only (`seq node list`). */
export function nodeListResult(view: ClusterView, only: ReadonlySet<string>): Result {
  const rows = view.nodes.filter((n) => only.has(n.id));
  return {
    data: { cluster: view.cluster, quorum: view.quorum, margin: view.margin, nodes: rows.map(nodeData) },
    tables: [nodeTable(rows, true)],
    items: rows.map(nodeData),
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

export function marginText(margin: number, quorum: number): string {
  if (margin > 0) return `may lose ${margin} more ${margin === 1 ? 'node' : 'nodes'}`;
  return margin === 0
    ? `no node may be lost (${quorum} are needed)`
    : `${-margin} ${margin === -1 ? 'node is' : 'nodes are'} missing for a quorum of ${quorum}`;
}

function nodeData(n: NodeRow) {
  const { info, ...row } = n;
  return {
    ...row,
    redisVersion: info['redis_version'] ?? '',
    uptimeSeconds: info['uptime_in_seconds'] === undefined ? null : Number(info['uptime_in_seconds']),
  };
}

function nodeTable(nodes: readonly NodeRow[], alone = false): Table {
  const columns: Column[] = [
    { key: 'node' },
    { key: 'state' },
    { key: 'admitted' },
    { key: 'holder' },
    { key: 'ttl', align: 'right', wide: alone },
    { key: 'epoch', align: 'right' },
    { key: 'floor', align: 'right', wide: alone },
    { key: 'head', align: 'right' },
    { key: 'lag', align: 'right' },
    { key: 'rtt', align: 'right', wide: alone },
    { key: 'url', wide: !alone },
    { key: 'version', wide: true },
    { key: 'headHash', label: 'HEAD HASH', wide: true },
    { key: 'note', wide: true },
  ];
  const answered = (n: NodeRow) => n.admission !== null;
  return {
    columns,
    rows: nodes.map((n) => ({
      node: n.id,
      state: n.state,
      admitted: answered(n) ? (n.admitted ? 'yes' : `no (${n.admission})`) : '?',
      holder: answered(n) ? n.holder : '?',
      ttl: n.ttlMs === null ? null : n.ttlMs < 0 ? 'never' : seconds(n.ttlMs),
      epoch: answered(n) ? n.epoch : '?',
      floor: answered(n) ? n.floor : '?',
      head: answered(n) ? n.head : '?',
      lag: answered(n) ? n.lag : '?',
      rtt: n.rttMs === null ? '?' : `${n.rttMs}ms`,
      url: n.url,
      version: answered(n) ? serverName(n.info) : '?',
      headHash: n.headHash,
      note: n.note,
    })),
  };
}

/**
 * A role is the sequencer's last report. A leader that was killed still shows as leader although it leads no more (the
 * live screen does the same).
 */
function sequencerTable({ sequencers, absent }: ClusterView, leader: string | undefined): Table {
  return {
    columns: [
      { key: 'sequencer' },
      { key: 'role' },
      { key: 'height', align: 'right' },
      { key: 'lag', align: 'right' },
      { key: 'seen', align: 'right' },
      { key: 'version' },
      { key: 'url' },
      { key: 'pid', wide: true },
      { key: 'host', wide: true },
      { key: 'config', wide: true },
      { key: 'why', wide: true },
    ],
    rows: [...sequencers.map((s) => sequencerRow(s, leader)), ...absent.map(absentRow)],
  };
}

/** Nobody knows what became of it. */
function absentRow({ id, seenMs }: ClusterView['absent'][number]) {
  return { sequencer: id, role: 'gone', seen: seconds(seenMs) };
}

function sequencerRow(s: SequencerRow, leader: string | undefined) {
  return {
    sequencer: s.id,
    role: s.role === 'leader' && s.id !== leader ? 'leader?' : s.role,
    height: s.height,
    lag: s.lag,
    seen: s.seenMs === null ? null : seconds(s.seenMs),
    version: s.version,
    url: s.url,
    pid: s.pid,
    host: s.host,
    config: s.configDigest.slice(0, 8),
    why: s.ready ? '' : s.why,
  };
}

export function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1000).toFixed(1)}s`;
}
