// What do the answers of all nodes add up to: who leads, what is committed, how many more nodes may fail, what to do
// next? Pure: the same answers give the same view for `seq status`, `watch`, `check` and `wait`. All counts are over
// the members of the cluster's configuration (membership.ts). A node without an answer has a row and counts as lost. It
// never counts as a "no", or as empty. docs/PROTOCOL.md sections 1, 7, 8 and 9.
import { quorumOf } from '../config.js';
import { isOfRemovedLane } from '../generation.js';
import { shownBy } from '../protocol/copies.js';
import {
  MAX_EPOCH_LEAP,
  sequencerOf,
  type EntriesRead,
  type NodeReply,
  type NodeView,
  type Owner,
} from '../protocol/types.js';
import type { ClusterView, LeaderRow, NodeProbe, NodeRow, SummarizeOptions } from './cluster-view.js';
import { copiedNodes } from './copied-node.js';
import { membershipOf } from './membership.js';
import { offClocks } from './off-clocks.js';
import { otherLeaderOf } from './other-leader.js';
import { leaseTiming, whyStuck } from './lease.js';
import { absentSequencers, mergePresence, type SequencerRow } from './presence.js';
import { proveCommitted, type Committed, type Conflict, type Pending } from './proof.js';
import { judge } from './verdict.js';

export function summarize(probed: readonly NodeProbe[], options: SummarizeOptions = {}): ClusterView {
  const { configuration, members: probes, strangers } = membershipOf(probed, options.expectedCluster);
  const configured = probes.length;
  const quorum = quorumOf(configured);
  const answers = probes.flatMap((o) =>
    o.reply.outcome === 'accepted' ? [{ id: o.id, view: o.reply.value, headEntry: o.headEntry }] : [],
  );
  const own = answers.filter((a) => !isForeign(a.view, options.expectedCluster));
  const admitted = own.filter((a) => a.view.admission === 'admitted');
  const silent = probes.filter((o) => o.reply.outcome === 'unknown').length;

  const proof = proveCommitted(
    own
      .filter((a) => a.view.admission === 'admitted' || a.view.admission === 'restarted')
      .map((a) => ({
        id: a.id,
        admitted: a.view.admission === 'admitted',
        facts: a.view,
        shown: configuration && shownBy(a.view),
        headEntry: headEntryOf(a.headEntry, a.view),
      })),
    { configured, silent },
  );
  const sequencers = mergePresence(
    own.map((a) => a.view),
    proof.committed?.height ?? null,
  );
  // Nobody renews a stuck lock, so whoever it names does not lead.
  const running = admitted.filter((a) => whyStuck(a.view.lock, sequencers) === '');
  const { leader, known: leaderKnown } = findLeader(running, sequencers, {
    configured,
    quorum,
    unanswered: configured - answers.length,
  });
  const lagAgainst = options.earlier?.committed ?? proof.committed;
  const rows = probes.map((o) =>
    nodeRow(o, options.expectedCluster, {
      lagAgainst,
      committed: proof.committed,
      conflicts: proof.conflicts,
      leader,
      sequencers,
    }),
  );
  const healthy = rows.filter((r) => r.admitted && (r.lag ?? 0) === 0 && r.lockStuck === '').length;
  const pending = proof.pending !== null && isSettledPending(proof.pending, options.earlier) ? proof.pending : null;

  const facts = {
    cluster: mostNamed(own.map((a) => a.view.cluster)),
    configured,
    answered: answers.length,
    quorum,
    margin: healthy - quorum,
    leader,
    leaderKnown,
    committed: proof.committed,
    pending,
    conflicts: proof.conflicts,
    hold: onQuorum(
      admitted.map((a) => a.view.hold),
      quorum,
      (h) => h.by,
    ),
    handover: onQuorum(
      admitted.map((a) => a.view.handover),
      quorum,
      (h) => h.to,
    ),
    nodes: [
      ...rows,
      ...strangers.map((o) =>
        strangerRow(o, options.expectedCluster, configuration?.members.map(({ id }) => id) ?? []),
      ),
    ],
    sequencers,
    absent: absentSequencers(own.map((a) => a.view)),
  };
  return {
    ...judge(
      {
        ...facts,
        retired: answers.filter(({ view }) => isOfRemovedLane(view)).map(({ id }) => id),
        copied: copiedNodes(probes, facts.cluster),
        otherLeader: otherLeaderOf({ strangers, members: probes }, facts.cluster, leader?.id ?? ''),
        clusters: answers.map((a) => ({ id: a.id, cluster: a.view.cluster })),
        clocks: offClocks(
          probes.filter((o) => own.some(({ id }) => id === o.id)),
          quorum,
        ),
      },
      options,
    ),
    ...facts,
  };
}

function isForeign(view: NodeView, expectedCluster: string | undefined): boolean {
  if (view.admission === 'foreign') return true;
  return (
    expectedCluster !== undefined && expectedCluster !== '' && view.cluster !== '' && view.cluster !== expectedCluster
  );
}

function headEntryOf(read: NodeReply<EntriesRead> | undefined, view: NodeView) {
  if (read === undefined || read.outcome !== 'accepted') return null;
  // The node may have written more between the two reads. Only the entry that its head facts name proves anything about
  // them.
  return read.value.entries.find((e) => e.height === view.head && e.hash === view.headHash) ?? null;
}

/**
 * The owner whose lock stands on q admitted nodes, under its own claim, at one epoch. A sequencer whose promotion still
 * runs is not a leader yet.
 */
function findLeader(
  admitted: { id: string; view: NodeView }[],
  sequencers: readonly SequencerRow[],
  { configured, quorum, unanswered }: { configured: number; quorum: number; unanswered: number },
): { leader: LeaderRow | null; known: boolean } {
  const byOwner = new Map<Owner, { id: string; view: NodeView; pttlMs: number }[]>();
  for (const { id, view } of admitted) {
    if (view.lock === null || view.claimant !== view.lock.owner) continue;
    byOwner.set(view.lock.owner, [...(byOwner.get(view.lock.owner) ?? []), { id, view, pttlMs: view.lock.pttlMs }]);
  }
  for (const [owner, held] of byOwner) {
    const epoch = Math.max(...held.map((h) => h.view.epoch));
    const holding = held.filter((h) => h.view.epoch === epoch);
    if (holding.length < quorum) continue;
    const ttls = holding.map((h) => h.pttlMs).sort((a, b) => b - a);
    const id = sequencerOf(owner);
    const left = ttls[quorum - 1] ?? 0;
    const { ttlMs } = leaseTiming(id, sequencers);
    return {
      leader: {
        id,
        epoch,
        owner,
        ttlMs: left,
        renewedMs: ttlMs === null ? null : Math.max(0, ttlMs - left),
        nodes: holding.map((h) => h.id),
      },
      known: true,
    };
  }
  // No owner holds q nodes. The nodes without an answer could still make one of the holders a leader.
  const most = Math.max(0, ...[...byOwner.values()].map((held) => held.length));
  const couldBe = most + unanswered >= quorum && unanswered > 0 && configured > 0;
  return { leader: null, known: !couldBe };
}

/**
 * The row of a stranger. It is shown so that nobody takes its silence or its data for the cluster's. It counts for
 * nothing.
 */
function strangerRow(o: NodeProbe, expectedCluster: string | undefined, members: readonly string[]): NodeRow {
  const row = nodeRow(o, expectedCluster, {
    lagAgainst: null,
    committed: null,
    conflicts: [],
    leader: null,
    sequencers: [],
  });
  const note = `it is no member of the cluster, whose nodes are ${members.join(', ')}`;
  return {
    ...row,
    state: 'STRANGER',
    admitted: false,
    lag: null,
    note: row.note === '' ? note : `${note}; ${row.note}`,
  };
}

function nodeRow(
  o: NodeProbe,
  expectedCluster: string | undefined,
  {
    lagAgainst,
    committed,
    conflicts,
    leader,
    sequencers,
  }: {
    lagAgainst: Committed | null;
    committed: Committed | null;
    conflicts: Conflict[];
    leader: LeaderRow | null;
    sequencers: readonly SequencerRow[];
  },
): NodeRow {
  const blank = {
    id: o.id,
    url: o.url,
    admitted: false,
    admission: null,
    holder: null,
    owner: null,
    ttlMs: null,
    lockStuck: '',
    epoch: null,
    floor: null,
    head: null,
    headEpoch: null,
    headHash: null,
    lag: null,
    diverged: null,
    rttMs: o.rttMs,
    cluster: '',
    runId: '',
    info: {},
  };
  if (o.reply.outcome === 'unknown') {
    const { step, cause, limitMs } = o.reply;
    const limit = limitMs === undefined ? '' : ` within ${limitMs} ms`;
    const message = `no answer at ${step}${limit}: ${cause}`;
    return {
      ...blank,
      state: 'DOWN',
      error: { step, limitMs: limitMs ?? null, code: 'NO_ANSWER', message },
      note: message,
    };
  }
  if (o.reply.outcome === 'refused') {
    const { reason, detail } = o.reply;
    const message = `${reason}${(detail.message ?? detail.why) ? `: ${detail.message ?? detail.why}` : ''}`;
    const grant = detail.grant === undefined ? {} : { grant: detail.grant };
    const error = { step: null, limitMs: null, code: reason, message, ...grant };
    return { ...blank, state: 'REFUSED', error, note: message };
  }
  const view = o.reply.value;
  const foreign = isForeign(view, expectedCluster);
  const admitted = !foreign && view.admission === 'admitted';
  const lag = admitted && lagAgainst !== null ? Math.max(0, lagAgainst.height - view.head) : null;
  const row = {
    ...blank,
    admitted,
    admission: view.admission,
    holder: view.lock === null ? null : sequencerOf(view.lock.owner),
    owner: view.lock?.owner ?? null,
    ttlMs: view.lock?.pttlMs ?? null,
    lockStuck: admitted ? whyStuck(view.lock, sequencers) : '',
    epoch: view.epoch,
    floor: view.floor,
    head: view.head,
    headEpoch: view.headEpoch,
    headHash: view.headHash,
    lag,
    diverged: admitted && (lag ?? 0) > 0 ? divergedAt(o, view) : null,
    error: null,
    cluster: view.cluster,
    runId: view.runId,
    info: view.info,
  };
  // Somebody made the server a replica by hand, or a failover did. Everything else about the node follows from that.
  const replica = view.info['role'] === 'slave' ? 'its server is a replica and takes no writes' : '';
  const said = (note: string): string => [note, replica].filter(Boolean).join('; ');
  if (foreign)
    return {
      ...row,
      state: 'FOREIGN',
      note: said(view.admissionWhy || `it belongs to cluster ${view.cluster}, not ${expectedCluster}`),
    };
  if (view.admission === 'pristine') return { ...row, state: 'EMPTY', note: said('it holds no key of this chain') };
  if (!admitted) return { ...row, state: 'OUT', note: said(notAdmitted(view, leader)) };
  const disputed = conflicts.some((one) => one.height === view.head && one.nodes.includes(o.id));
  const wrong = said(admittedNote(view, row, committed, disputed, leader));
  // A healthy node that was busy for a moment: told, and no alarm.
  const late = o.firstTry === undefined ? '' : `answered at the second try (${o.firstTry})`;
  return { ...row, state: wrong === '' ? 'OK' : 'WARN', note: [wrong, late].filter(Boolean).join('; ') };
}

/** The committed block at the node's own head, when another node has shown that it is another block. */
function divergedAt({ chainAtHead }: NodeProbe, view: NodeView): NodeRow['diverged'] {
  if (chainAtHead?.outcome !== 'accepted') return null;
  const there = chainAtHead.value.entries.find((entry) => entry.height === view.head);
  if (there === undefined || there.hash === view.headHash) return null;
  return { height: view.head, has: view.headHash, committed: there.hash, epoch: there.epoch };
}

function notAdmitted(view: NodeView, leader: LeaderRow | null): string {
  const why = view.admissionWhy === '' ? '' : ` (${view.admissionWhy})`;
  switch (view.admission) {
    case 'restarted':
      return `its server restarted${why}: what it promised before is no longer sure`;
    case 'wiped':
      return `its record is gone${why}: it lost its memory`;
    case 'damaged':
      return view.strayConfig === undefined
        ? `its keys disagree with its record${why}`
        : `${view.admissionWhy}; somebody wrote it by hand: delete that field`;
    case 'admitting':
      return leader === null
        ? `its re-admission was begun and not finished${why}: only a leader can go on with it, and nobody leads`
        : `the leader is re-admitting it${why}`;
    default:
      return `a bootstrap is unfinished on it${why}`;
  }
}

function admittedNote(
  view: NodeView,
  row: Pick<NodeRow, 'lag' | 'diverged' | 'lockStuck'>,
  committed: Committed | null,
  disputed: boolean,
  leader: LeaderRow | null,
): string {
  // This is the cause of everything else that can be said about this node.
  if (leader !== null && view.epoch > leader.epoch + MAX_EPOCH_LEAP)
    return (
      `no term has reached its epoch ${view.epoch} (the leader's is ${leader.epoch}): somebody wrote it by hand; ` +
      'delete its epoch key, and the leader re-admits it'
    );
  const lag = row.lag ?? 0;
  const { diverged } = row;
  if (diverged !== null)
    return (
      `DIVERGED: at height ${diverged.height} it holds block ${diverged.has.slice(0, 16)}, the committed one is ` +
      `${diverged.committed.slice(0, 16)}`
    );
  if (lag > 0) {
    const behind = `${lag} ${lag === 1 ? 'block' : 'blocks'} behind the committed head`;
    return row.lockStuck === '' ? behind : `${behind}; ${row.lockStuck}`;
  }
  if (committed?.hash && view.head > view.floor && view.head === committed.height && view.headHash !== committed.hash) {
    // No leader replaces a block that was made under the same epoch. That would be a choice between the two blocks.
    if (disputed)
      return `holds another block at height ${view.head} under the same epoch (a conflict; nothing replaces it)`;
    return `holds another block at height ${view.head} than the committed one (an orphan; the leader replaces it)`;
  }
  if (leader !== null && view.epoch > leader.epoch)
    return (
      `its epoch ${view.epoch} is above the leader's ${leader.epoch}: it refuses the leader until the ` +
      'term is renewed'
    );
  if (row.lockStuck !== '') return row.lockStuck;
  if (leader !== null && view.lock === null) return 'its lock is free: the leader has not taken it again yet';
  if (leader !== null && view.lock !== null && view.lock.owner !== leader.owner)
    return `its lock is held by ${sequencerOf(view.lock.owner)}, not by the leader`;
  if (leader !== null && view.epoch < leader.epoch)
    return `its epoch ${view.epoch} is below the leader's ${leader.epoch}: the leader has not claimed it yet`;
  return '';
}

/** An uncommitted head is normal between two writes. It is reported when it stays the same in two probes. */
function isSettledPending(pending: Pending, earlier: SummarizeOptions['earlier']): boolean {
  return (
    earlier === undefined ||
    (earlier.pending !== null && earlier.pending.height === pending.height && earlier.pending.hash === pending.hash)
  );
}

function mostNamed(names: string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) if (name !== '') counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? '';
}

/** hold and handover count when they stand on q nodes (section 2). The longest remaining time among them is shown. */
function onQuorum<T extends { pttlMs: number }>(
  marks: (T | null)[],
  quorum: number,
  key: (mark: T) => string,
): (Omit<T, 'pttlMs'> & { ttlMs: number; nodes: number }) | null {
  const groups = new Map<string, T[]>();
  for (const mark of marks) if (mark !== null) groups.set(key(mark), [...(groups.get(key(mark)) ?? []), mark]);
  for (const group of groups.values()) {
    if (group.length < quorum) continue;
    const { pttlMs, ...rest } = group.reduce((a, b) => (b.pttlMs > a.pttlMs ? b : a));
    return { ...rest, ttlMs: pttlMs, nodes: group.length };
  }
  return null;
}
