// Which alert does each code raise: how bad it is, which page of docs/RUNBOOKS.md is about it, and which command comes
// first. The compiler holds the findings against the codes of `seq status`, so that no code is without its alert.
import type { ReasonCode } from '../../core/view/cluster-view.js';

export type Severity = 'critical' | 'warning';

export interface FindingAlert {
  /** 'either': a finding of this code is CRIT in one situation and WARN in another. */
  severity: Severity | 'either';
  /** Title of the page in docs/RUNBOOKS.md. null: `seq explain` says all there is. */
  page: string | null;
  /** The flags of the cluster are added. */
  next: string;
}

const see = (page: string | null, severity: FindingAlert['severity'], next = 'seq status'): FindingAlert => ({
  severity,
  page,
  next,
});

const MEMORY_LOST = 'A node was wiped, or restored from an old dump';

/** The findings of `seq status`: the metric `seq_finding` has their codes. */
export const FINDING_ALERTS = {
  WRONG_CLUSTER: see(null, 'critical'),
  LANE_REMOVED: see(null, 'critical', 'seq lane ls'),
  CLUSTER_MIXED: see(null, 'critical', 'seq config show'),
  SAME_SERVER: see(null, 'critical', 'seq config show'),
  TWO_LEADERS: see(null, 'critical', 'seq node list'),
  CONFLICT: see('A conflict', 'critical', 'seq repair plan'),
  NODES_SET_BACK: see('A quorum lost its memory', 'critical', 'seq status -o wide'),
  NOT_INITIALISED: see('A quorum lost its memory', 'critical'),
  NO_QUORUM: see('No quorum', 'critical'),
  LEADER_UNKNOWN: see('No quorum', 'critical'),
  NO_LEADER: see('No leader', 'critical'),
  LEADER_STALLED: see('No leader', 'critical', 'seq stepdown'),
  LEADER_SILENT: see('No leader', 'either'),
  LEASE_CLOSING: see('Flapping', 'warning'),
  LOCK_STUCK: see('No leader', 'either', 'seq stepdown --revoke'),
  NO_STANDBY: see('Planned maintenance of a sequencer', 'warning', 'seq status -o wide'),
  NODE_DOWN: see('A slow or hanging node', 'warning'),
  NODE_REFUSED: see('A slow or hanging node', 'warning'),
  NODE_DENIED: see(null, 'critical', 'seq doctor'),
  NODE_NOT_ADMITTED: see(MEMORY_LOST, 'warning'),
  NODE_FOREIGN: see(null, 'warning', 'seq config show'),
  NOT_MEMBER: see(null, 'warning', 'seq config show'),
  NODE_LAGGING: see('A slow or hanging node', 'warning'),
  NODE_FENCED: see('A wrong epoch', 'warning', 'seq epoch show'),
  EPOCH_BEHIND: see('A wrong epoch', 'warning', 'seq epoch show'),
  NODE_UNLEASED: see('A slow or hanging node', 'warning'),
  NODE_ORPHAN: see('A divergent node', 'warning', 'seq stream diff'),
  DIVERGED: see('A divergent node', 'warning', 'seq repair plan'),
  PENDING_BLOCK: see('A pending block', 'warning', 'seq stream inspect --limit 3'),
  HELD: see('No leader', 'warning', 'seq resume'),
  CONFIG_DRIFT: see(null, 'warning', 'seq status -o wide'),
  CLOCK_OFF: see('A clock was wrong', 'warning', 'seq doctor'),
  RETENTION_NARROWED: see('A node is out of memory', 'warning', 'seq doctor'),
  RETENTION_CLOSING: see('A node is out of memory', 'warning', 'seq status -o wide'),
  RETENTION_LOST: see('A node is out of memory', 'warning', 'seq status -o wide'),
  STORE_DAMAGED: see(null, 'warning', 'seq doctor'),
} satisfies Record<Exclude<ReasonCode, 'OK'>, FindingAlert>;

/** What has no finding, because one process tells it, or because no process is left to tell anything. */
export interface OtherAlert {
  /** The alert has this name behind `Seq`. */
  name: string;
  /** The code that `seq explain` knows. '': there is none, or the series has it as its label `code`. */
  code: string;
  severity: Severity;
  page: string | null;
  next: string;
  /** One sentence. Absent: the meaning of the code. */
  summary?: string;
  /** `JOB` stands for the label that selects the sequencers. */
  expr: string;
  for: string;
}

/** It happened within the last five minutes. A counter would not do: its first step comes with the series itself. */
const happened = (timestamp: string, labels: string) =>
  `time() - max by (cluster, lane, code) (${timestamp}{JOB${labels}}) < 300`;

/** A term that ends for one of these reasons ends as it should. */
const GOOD_ENDS = ['STOPPED', 'SIGTERM', 'SIGINT', 'SIGHUP', 'INTERRUPTED', 'REQUESTED', 'REPAIRED', 'RECONFIGURED'];

export const OTHER_ALERTS: readonly OtherAlert[] = [
  {
    name: 'Unknown',
    code: 'UNKNOWN',
    severity: 'critical',
    page: 'No leader',
    next: 'seq status',
    summary: 'No sequencer tells what the nodes hold: whether the cluster writes is not known.',
    expr: 'absent(seq_reading_failed{JOB} == 0)',
    for: '15s',
  },
  {
    name: 'SequencerDown',
    code: '',
    severity: 'warning',
    page: 'Planned maintenance of a sequencer',
    next: 'seq status -o wide',
    summary: 'The sequencer {{ $labels.instance }} does not answer.',
    expr: 'up{JOB} == 0',
    for: '30s',
  },
  {
    name: 'Flapping',
    code: '',
    severity: 'warning',
    page: 'Flapping',
    next: 'seq history --limit 10',
    summary: 'Leadership changed three times or more within ten minutes.',
    expr: 'sum by (cluster, lane) (increase(seq_elections_total{JOB,result="won"}[10m])) > 2.5',
    for: '0s',
  },
  {
    name: 'TermEnded',
    code: '',
    severity: 'warning',
    page: 'Flapping',
    next: 'seq explain {{ $labels.code }}',
    summary: 'A term of leadership ended by {{ $labels.code }}.',
    expr: happened('seq_stepdown_timestamp_seconds', `,code!~"${GOOD_ENDS.join('|')}"`),
    for: '0s',
  },
  {
    name: 'OutOfMemory',
    code: 'OOM',
    severity: 'warning',
    page: 'A node is out of memory',
    next: 'seq doctor',
    expr: happened('seq_alarm_timestamp_seconds', ',code="OOM"'),
    for: '0s',
  },
  {
    name: 'MemoryFull',
    code: 'OOM',
    severity: 'warning',
    page: 'A node is out of memory',
    next: 'seq doctor',
    summary: 'More than nine tenths of the memory of {{ $labels.node }} are used.',
    expr: 'max by (cluster, lane, node) (seq_node_memory_used_bytes{JOB} / seq_node_memory_limit_bytes{JOB}) > 0.9',
    for: '30s',
  },
  {
    name: 'DamagedEntry',
    code: 'DAMAGED_ENTRY',
    severity: 'warning',
    page: 'A divergent node',
    next: 'seq stream verify',
    expr: happened('seq_alarm_timestamp_seconds', ',code="DAMAGED_ENTRY"'),
    for: '0s',
  },
  {
    name: 'StreamDamaged',
    code: '',
    severity: 'warning',
    page: 'A divergent node',
    next: 'seq stream verify',
    summary: 'The stream of a node has a violation: seq check stream found it.',
    expr: 'max by (cluster) (seq_check_status{check="stream"}) > 0 < 3',
    for: '0s',
  },
  {
    name: 'Alarm',
    code: '',
    severity: 'warning',
    page: null,
    next: 'seq explain {{ $labels.code }}',
    summary: 'A sequencer raised the alarm {{ $labels.code }}.',
    expr: happened('seq_alarm_timestamp_seconds', ',code!~"OOM|DAMAGED_ENTRY"'),
    for: '0s',
  },
  {
    name: 'InboxFull',
    code: 'BUSY',
    severity: 'warning',
    page: null,
    next: 'seq status -o wide',
    summary: 'More than four fifths of the inbox wait for a block on {{ $labels.instance }}.',
    expr: 'seq_inbox_bytes{JOB} / seq_inbox_limit_bytes{JOB} > 0.8',
    for: '30s',
  },
  {
    name: 'StoreDiskFull',
    code: 'STORE_WRITE_FAILED',
    severity: 'warning',
    page: null,
    next: 'seq doctor',
    summary: 'Less than 1 GiB is free for the store of {{ $labels.instance }}.',
    expr: 'seq_store_free_bytes{JOB} < 1073741824',
    for: '30s',
  },
];
