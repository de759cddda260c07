// The state of a cluster: one word, one sentence, one stable code, and the next command. Pure. CRIT: the cluster does
// not write, or an invariant is broken. WARN: it writes, but it needs an operator. UNKNOWN: too few nodes answered.
// Findings are in the order in which they must be repaired. docs/PROTOCOL.md sections 8 and 9.
import { producerText } from '../protocol/producers.js';
import { isHanging, reachCommand } from './reach-command.js';
import { MAX_EPOCH_LEAP, serverOf } from '../protocol/types.js';
import { NO_TERM_MADE_IT } from '../protocol/configuration.js';
import { clusterNamed, familyOf, generationOf } from '../generation.js';
import { deleteConfiguration, deleteEpoch, forgetRecord, restoreCluster } from './epochs.js';
import { wrongClockText } from '../nodes/node-clocks.js';
import { inWords, isLate, leaseTiming } from './lease.js';
import { DENIED, deniedNext, grantOn } from './no-answer.js';
import type { CopiedNode } from './copied-node.js';
import type { OffClock } from './off-clocks.js';
import type { OtherLeader } from './other-leader.js';
import type { ClusterView, Finding, LeaderRow, NodeRow, ReasonCode, SummarizeOptions } from './cluster-view.js';
import type { AbsentSequencer, SequencerRow } from './presence.js';

type Facts = Omit<ClusterView, 'verdict' | 'reason' | 'reasonCode' | 'next' | 'findings'> & {
  clusters: { id: string; cluster: string }[];
  clocks: readonly OffClock[];
  otherLeader: OtherLeader | null;
  copied: readonly CopiedNode[];
  /** Members whose memory was retired because the lane was removed. */
  retired: string[];
};

export function judge(
  facts: Facts,
  options: SummarizeOptions,
): Pick<ClusterView, 'verdict' | 'reason' | 'reasonCode' | 'next' | 'findings'> {
  const target = options.target ? ` ${options.target}` : '';
  const whole = clusterFindings(facts, target, options);
  // When the cluster itself is missing, a line for each node would only repeat that.
  const explained = whole.some(
    ({ code }) =>
      code === 'NOT_INITIALISED' || code === 'WRONG_CLUSTER' || code === 'CLUSTER_MIXED' || code === 'LANE_REMOVED',
  );
  const findings = explained
    ? whole
    : [
        ...whole,
        ...leaderFirst(facts, whole, nodeFindings(facts, target, options)),
        ...softFindings(facts, target, options),
      ];
  const order = { CRIT: 0, UNKNOWN: 1, WARN: 2 };
  if (options.complete !== undefined) for (const finding of findings) finding.next = finding.next.map(options.complete);
  findings.sort((a, b) => order[a.verdict] - order[b.verdict]);
  const worst = findings[0];
  if (worst !== undefined)
    return { verdict: worst.verdict, reason: worst.reason, reasonCode: worst.code, next: worst.next, findings };
  const { leader, committed, margin } = facts;
  const reason = [
    `${leader?.id ?? 'nobody'} leads under epoch ${leader?.epoch ?? 0}, height ` +
      `${committed?.height ?? 0} is committed, ` +
      `${facts.configured} of ${facts.configured} nodes agree`,
    ...(margin < 1 ? ['no node may be lost'] : []),
    ...(facts.sequencers.length === 1 ? ['no other sequencer is known'] : []),
  ];
  return {
    verdict: 'OK',
    reason: reason.join('; '),
    reasonCode: 'OK',
    next: [],
    findings,
  };
}

/** What is wrong with the cluster as a whole. A cluster that cannot be judged further has one finding that says so. */
function clusterFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const broken = [...sharedServers(facts), ...conflictFindings(facts, target), ...secondLeader(facts, target)];
  const unfit =
    removedLane(facts) ?? otherCluster(facts) ?? notInitialised(facts, target) ?? noQuorum(facts, target, options);
  if (unfit !== null) return [...broken, unfit];
  return [...broken, ...setBackFindings(facts, target, options), ...leaderFindings(facts, target, options)];
}

function crit(code: ReasonCode, reason: string, nodes: string[], next: string[]): Finding {
  return { verdict: 'CRIT', code, reason, nodes, next };
}

function members({ nodes }: Facts): NodeRow[] {
  return nodes.filter((n) => n.state !== 'STRANGER');
}

const isSilent = ({ state }: NodeRow): boolean => state === 'DOWN' || state === 'REFUSED';
const idsOf = (nodes: readonly NodeRow[]): string[] => nodes.map((n) => n.id);

function sharedServers({ nodes }: Facts): Finding[] {
  return sameServer(nodes).map((ids) =>
    crit('SAME_SERVER', `${list(ids)} are one server (the same run id): its vote would count twice`, ids, [
      'give every --node a server of its own',
    ]),
  );
}

function conflictFindings({ conflicts }: Facts, target: string): Finding[] {
  return conflicts.map(({ height, why, nodes }) =>
    crit('CONFLICT', `height ${height}: ${why}`, nodes, [
      `seq stream inspect --from ${height} --to ${height}${target}`,
    ]),
  );
}

/** A sequencer announces only what q nodes held. Asked after that, q nodes must show it. */
function setBackFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const { earlier } = options;
  const admitted = members(facts).filter((n) => n.admitted);
  const head = Math.max(0, ...admitted.map((n) => n.head ?? 0));
  const { id, height } = earlier?.announced ?? { id: '', height: 0 };
  if (height <= head) return [];
  const own = facts.sequencers.find((one) => one.id === id);
  const able = own?.alive === true && own.ready;
  const start = known(options.startSequencers?.(id), `seq run --id ${id}${target}`);
  return [
    crit(
      'NODES_SET_BACK',
      `${id} has announced block ${height}, and no node has a block above ${head}: the nodes were set back in time; ` +
        (own?.alive === true && !own.ready
          ? `${id} has to lead, and cannot: ${own.why || 'it does not say why'}`
          : `${able ? '' : `start ${id} again with its store: `}it leads, and writes back what its store has`),
      idsOf(admitted),
      [
        ...(own?.alive === true ? [] : start),
        `seq wait --for height=${height} --timeout 1m${target}`,
        `if the store of ${id} is lost: stop ${id}; the others go on then, without the blocks above ${head}`,
      ],
    ),
  ];
}

/** Another holder leads listed nodes that are no members, by a configuration of their own. */
function secondLeader({ otherLeader }: Facts, target: string): Finding[] {
  if (otherLeader === null) return [];
  const { id, nodes, members: theirs } = otherLeader;
  return [
    crit(
      'TWO_LEADERS',
      `${id} leads ${list(nodes)} of the same cluster as one of the nodes ${list(theirs)}: two chains are written`,
      nodes,
      [`stop sequencer ${id}: its list of nodes is not the one of this cluster`, `seq node list${target}`],
    ),
  ];
}

/** Too few nodes are left that could ever lead the lane again. */
function removedLane(facts: Facts): Finding | null {
  const { retired, configured, quorum } = facts;
  if (configured - retired.length >= quorum) return null;
  return crit('LANE_REMOVED', `the lane was removed: ${list(retired)} have given it up for good`, retired, [
    'name another lane (--lane): seq lane ls lists them',
  ]);
}

/** The nodes belong to another cluster, or to several. */
function otherCluster(facts: Facts): Finding | null {
  const foreign = members(facts).filter((n) => n.state === 'FOREIGN');
  if (facts.answered > 0 && foreign.length === facts.answered)
    return crit(
      'WRONG_CLUSTER',
      `every node that answered belongs to another cluster: ${list(foreign.map((n) => `${n.id}: ${n.note}`))}`,
      idsOf(foreign),
      [`seq status ${foreign.map((n) => `--node ${n.id}=${n.url}`).join(' ')}`],
    );
  const names = new Map<string, string[]>();
  for (const { id, cluster } of facts.clusters)
    if (cluster !== '') names.set(cluster, [...(names.get(cluster) ?? []), id]);
  if (names.size < 2 || Math.max(...[...names.values()].map((ids) => ids.length)) >= facts.quorum) return null;
  return crit(
    'CLUSTER_MIXED',
    'the nodes belong to different clusters: ' +
      `${list([...names].map(([name, ids]) => `${ids.join(', ')} to ${name}`))}`,
    [...names.values()].flat(),
    ['name the nodes of one cluster only: seq config show'],
  );
}

function notInitialised(facts: Facts, target: string): Finding | null {
  const { answered, configured, quorum } = facts;
  const nodes = members(facts);
  const empty = nodes.filter((n) => n.state === 'EMPTY');
  const bootstrap = nodes.filter((n) => n.admission === 'bootstrap');
  const [, lane = ''] = / --lane (\S+)/.exec(target) ?? [];
  if (answered < quorum || empty.length + bootstrap.length !== answered) return null;
  return crit(
    'NOT_INITIALISED',
    bootstrap.length > 0
      ? `the bootstrap of this cluster was broken off: ${list(idsOf(bootstrap))} show its nonce`
      : `${answered === configured ? 'all' : answered} of ${configured} nodes ` +
          (lane === '' ? 'are empty: this cluster was never initialised' : laneUnknown(lane)),
    idsOf([...empty, ...bootstrap]),
    lane === '' || bootstrap.length > 0
      ? [`seq cluster init${target}`]
      : [`seq lane ls${target.replace(/ --lane \S+/, '')}`, `seq lane add ${lane}${target.replace(/ --lane \S+/, '')}`],
  );
}

/** Other lanes of the cluster may stand on the same servers. */
function laneUnknown(lane: string): string {
  return `hold nothing of lane ${lane}: it was never added, or its name is wrong`;
}

function noQuorum(facts: Facts, target: string, options: SummarizeOptions): Finding | null {
  const { configured, quorum } = facts;
  const nodes = members(facts);
  const admitted = nodes.filter((n) => n.admitted);
  if (admitted.length >= quorum) return null;
  const silent = nodes.filter(isSilent);
  const denied = silent.filter((n) => DENIED.has(n.error?.code ?? ''));
  // They answer, and refuse us: whether they can vote is not known. The sequencers may have the right password.
  if (admitted.length + denied.length >= quorum) return quorumDenied(denied);
  const out = nodes.filter((n) => !n.admitted && !isSilent(n));
  const parts = [
    ...(['DOWN', 'REFUSED'] as const).flatMap((state) => {
      const ids = idsOf(silent.filter((n) => n.state === state));
      return ids.length === 0 ? [] : [`${list(ids)} ${state === 'DOWN' ? 'did not answer' : 'refused to answer'}`];
    }),
    ...(out.length > 0 ? [`${list(idsOf(out))} ${out.length === 1 ? 'is' : 'are'} not admitted`] : []),
  ];
  const enoughWithSilent = admitted.length + silent.length >= quorum;
  // Before anything is recovered: what somebody wrote by hand is undone, and these nodes are as they were.
  const undone = out.map((n) => undoByHand(facts, n, target)).filter((command) => command !== '');
  if (!enoughWithSilent && admitted.length + undone.length >= quorum)
    return crit(
      'NO_QUORUM',
      `${admitted.length} of ${configured} nodes can vote, ${quorum} are needed: ${parts.join('; ')}; somebody wrote ` +
        'into their records by hand, and the commands undo it',
      idsOf(out),
      undone,
    );
  return crit(
    'NO_QUORUM',
    `${admitted.length} of ${configured} nodes can vote, ${quorum} are needed: ${parts.join('; ')}`,
    idsOf([...silent, ...out]),
    enoughWithSilent
      ? silent.map((n) => (n.state === 'REFUSED' ? letIn : reach)(n, options))
      : [`seq cluster recover --dry-run${target}`],
  );
}

/** The command that undoes what somebody wrote into the record of this node. '' when nothing is seen of that. */
function undoByHand(facts: Facts, n: NodeRow, target: string): string {
  if (isMisnamed(facts, n)) return restoreCluster(n.url, target, facts.cluster);
  return n.state === 'OUT' && n.note.includes(NO_TERM_MADE_IT) ? deleteConfiguration(n.url, target) : '';
}

/** Its record names this cluster in a generation that no recovery can have written. */
function isMisnamed({ cluster }: Facts, n: NodeRow): boolean {
  return isOfFamily(cluster, n) && generationOf(cluster) > 0 && generationOf(n.cluster) === 0;
}

function isOfFamily(cluster: string, n: NodeRow): boolean {
  return n.state === 'FOREIGN' && n.cluster === clusterNamed(n.cluster) && familyOf(n.cluster) === familyOf(cluster);
}

function quorumDenied(denied: readonly NodeRow[]): Finding {
  return {
    verdict: 'UNKNOWN',
    code: 'NODE_DENIED',
    reason:
      `${list(idsOf(denied))} ${denied.length === 1 ? 'refuses' : 'refuse'} us ` +
      `(${[...new Set(denied.map((n) => n.note))].join('; ')}): whether a quorum can vote is not known`,
    nodes: idsOf(denied),
    next: deniedNext(denied),
  };
}

/** Who leads, and does it do its work? */
function leaderFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const { leader } = facts;
  if (leader !== null)
    return [...stalledLeader(facts, leader, target), ...leaseFindings(facts, leader, target, options)];
  if (!facts.leaderKnown) return [leaderUnknown(facts, options)];
  return [stuckLocks(facts, target) ?? nobodyLeads(facts, target, options)];
}

function stalledLeader({ sequencers }: Facts, leader: LeaderRow, target: string): Finding[] {
  const own = sequencers.find((s) => s.id === leader.id);
  if (own === undefined || own.ready) return [];
  return [
    crit(
      'LEADER_STALLED',
      `${own.id} leads and cannot produce: ${own.why || 'it says it is not ready'}`,
      [],
      [`seq stepdown${target}`],
    ),
  ];
}

function leaderUnknown(facts: Facts, options: SummarizeOptions): Finding {
  const silent = members(facts).filter(isSilent);
  return {
    verdict: 'UNKNOWN',
    code: 'LEADER_UNKNOWN',
    nodes: idsOf(silent),
    next: silent.map((n) => reach(n, options)),
    reason: `too few nodes answered to say whether there is a leader: ${list(idsOf(silent))} may hold a lock`,
  };
}

/** Locks that never expire, on so many nodes that no quorum is left to take. */
function stuckLocks(facts: Facts, target: string): Finding | null {
  const admitted = members(facts).filter((n) => n.admitted);
  const stuck = admitted.filter((n) => n.lockStuck !== '');
  if (admitted.length - stuck.length >= facts.quorum) return null;
  return crit(
    'LOCK_STUCK',
    `nobody can lead: ${list([...new Set(stuck.map((n) => n.lockStuck))])} (on ${list(idsOf(stuck))}), ` +
      'so nobody renews it and nobody may take it',
    idsOf(stuck),
    [`seq stepdown --revoke${target}`],
  );
}

function nobodyLeads(facts: Facts, target: string, options: SummarizeOptions): Finding {
  const { hold, quorum, sequencers } = facts;
  const noLeader = (why: string, next: string[]): Finding => crit('NO_LEADER', `nobody leads: ${why}`, [], next);
  if (hold !== null) return noLeader(`${hold.by} holds promotion (${hold.reason})`, [`seq resume${target}`]);
  const holders = [...new Set(members(facts).flatMap((n) => (!n.admitted || n.holder === null ? [] : [n.holder])))];
  if (holders.length > 0)
    return noLeader(
      `${list(holders)} ${holders.length === 1 ? 'holds' : 'hold'} fewer than ${quorum} ` +
        `locks (${holders.some((id) => isAlive(facts, id)) ? 'a promotion under way, or ' : ''}a lease running out)`,
      othersAlive(facts, '')
        ? [`seq status --watch${target}`]
        : known(options.startSequencers?.(), `seq run --id ${holders[0] ?? 'seq-a'}${target}`),
    );
  // The record of one that was stopped, or that died, is there for a while.
  const running = sequencers.filter((one) => one.alive && one.role !== 'stopping');
  if (running.length === 0) {
    const told = [...sequencers.map(whyUnable), ...facts.absent.map(lastSeen)];
    // Where nobody ever ran the default lane, the lanes of the cluster may be what is used.
    const lanes = facts.committed?.height === 0 && !/ --lane /.test(target) ? [`seq lane ls${target}`] : [];
    const ids = [...sequencers, ...facts.absent].map(({ id }) => `seq run --id ${id}${target}`);
    return noLeader(
      `no sequencer is running${told.length === 0 ? '' : ` (${told.join('; ')})`}`,
      known(options.startSequencers?.(), ...(ids.length === 0 ? [`seq run --id seq-a${target}`, ...lanes] : ids)),
    );
  }
  const reasons = running.filter((s) => !s.ready && s.why !== '').map((s) => `${s.id}: ${s.why}`);
  return noLeader(
    `every lock is free, ${list(running.map((s) => s.id))} ` +
      `${running.length === 1 ? 'is' : 'are'} running${reasons.length > 0 ? ` (${reasons.join('; ')})` : ''}`,
    [`seq status --watch${target}`],
  );
}

/** Does the leader do what a leader does: renew its lease with every block, and announce itself? */
function leaseFindings(
  { sequencers, absent }: Facts,
  leader: LeaderRow,
  target: string,
  options: SummarizeOptions,
): Finding[] {
  const own = sequencers.find((one) => one.id === leader.id);
  const timing = leaseTiming(leader.id, sequencers);
  const late = leader.renewedMs !== null && isLate(leader.renewedMs, timing);
  const left = `${inWords(leader.ttlMs)} are left`;
  const canFollow = sequencers.some((one) => one.id !== leader.id && one.alive && one.ready && one.role !== 'stopping');
  const next = canFollow
    ? [`seq status --watch${target}`]
    : known(options.startSequencers?.(), `seq run --id ${leader.id}${target}`);
  if (own?.alive !== true) {
    const gone = absent.find((one) => one.id === leader.id);
    const since = gone === undefined ? '' : ` for ${inWords(gone.seenMs)}`;
    const silent = `${leader.id} holds the lease and announces nothing${since}`;
    if (leader.renewedMs !== null && !late)
      return [
        {
          verdict: 'WARN',
          code: 'LEADER_SILENT',
          reason: `${silent}, but the lease was renewed ${inWords(leader.renewedMs)} ago`,
          nodes: [],
          next: [`seq doctor${target}`],
        },
      ];
    return [
      {
        verdict: 'CRIT',
        code: 'LEADER_SILENT',
        reason:
          `${silent}` +
          (leader.renewedMs === null
            ? ', and no sequencer says how long a lease is'
            : `, and has not renewed the lease for ${inWords(leader.renewedMs)}`) +
          `: nothing is committed until the lease ends (${left})`,
        nodes: [],
        next,
      },
    ];
  }
  if (!late) return [];
  return [
    {
      verdict: 'WARN',
      code: 'LEASE_CLOSING',
      reason:
        `${leader.id} has not renewed its lease for ${inWords(leader.renewedMs ?? 0)}, and a block is due every ` +
        `${inWords(timing.blockTimeMs)}: ${left}`,
      nodes: [],
      next,
    },
  ];
}

function isAlive({ sequencers }: Facts, id: string): boolean {
  return sequencers.some((one) => one.id === id && one.alive);
}

function othersAlive({ sequencers }: Facts, id: string): boolean {
  return sequencers.some((one) => one.id !== id && one.alive && one.role !== 'stopping');
}

function whyUnable({ id, role, alive, seenMs, why }: SequencerRow): string {
  if (role === 'stopping') return `${id} is stopping`;
  if (!alive) return `${id} announces nothing${seenMs === null ? '' : ` for ${inWords(seenMs)}`}`;
  return `${id} is not ready (${why || 'it does not say why'})`;
}

function lastSeen({ id, seenMs }: AbsentSequencer): string {
  return `${id} was last seen ${inWords(seenMs)} ago`;
}

/** Who would take over? Only asked where the cluster has, or had within a day, more than one sequencer. */
function standbyFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const { leader, sequencers, absent } = facts;
  if (leader === null || sequencers.length === 0) return [];
  const others = sequencers.filter((one) => one.id !== leader.id);
  const gone = absent.filter((one) => one.id !== leader.id);
  if (others.length + gone.length === 0) return [];
  if (others.some((one) => one.alive && one.ready && one.role !== 'stopping')) return [];
  const reasons = [...others.map(whyUnable), ...gone.map(lastSeen)];
  const dead = [...others.filter((one) => !one.alive), ...gone][0];
  return [
    {
      verdict: 'WARN',
      code: 'NO_STANDBY',
      reason: `nobody would take over if ${leader.id} fails: ${reasons.join('; ')}`,
      nodes: [],
      next:
        dead === undefined
          ? [`seq status -o wide${target}`]
          : known(options.startSequencers?.(dead.id), `seq run --id ${dead.id}${target}`),
    },
  ];
}

/** Only a leader admits. While nobody leads, what stands in the way of a leader comes first. */
function leaderFirst({ leader }: Facts, [first]: readonly Finding[], found: Finding[]): Finding[] {
  if (leader !== null || first === undefined) return found;
  return found.map((one) =>
    one.code === 'NODE_NOT_ADMITTED' && one.next[0]?.startsWith('seq ') ? { ...one, next: [...first.next] } : one,
  );
}

function nodeFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  return facts.nodes.flatMap((n): Finding[] => {
    const warn = (code: ReasonCode, reason: string, next: string): Finding[] => [
      { verdict: 'WARN', code, reason, nodes: [n.id], next: [next] },
    ];
    switch (n.state) {
      case 'OK':
        return [];
      case 'DOWN':
        return warn('NODE_DOWN', `${n.id}: ${n.note}`, reach(n, options));
      case 'REFUSED':
        return warn('NODE_REFUSED', `${n.id} refuses: ${n.note}`, letIn(n, options));
      case 'FOREIGN':
        return [foreignFinding(facts, n, target)];
      case 'STRANGER':
        return warn('NOT_MEMBER', `${n.id}: ${n.note}`, `seq config show${target}`);
      case 'EMPTY':
        return warn('NODE_NOT_ADMITTED', `${n.id} is not admitted: ${n.note}`, `seq node admit --on ${n.id}${target}`);
      case 'OUT':
        if (n.note.includes(NO_TERM_MADE_IT))
          return warn('NODE_NOT_ADMITTED', `${n.id} is not admitted: ${n.note}`, deleteConfiguration(n.url, target));
        return warn(
          'NODE_NOT_ADMITTED',
          `${n.id} is not admitted: ${n.note}`,
          n.admission === 'admitting' ? `seq status --watch${target}` : `seq node admit --on ${n.id}${target}`,
        );
      case 'WARN':
        if (facts.leader !== null && n.epoch !== null && n.epoch > facts.leader.epoch + MAX_EPOCH_LEAP)
          return warn('NODE_FENCED', `${n.id}: ${n.note}`, deleteEpoch(n.url, target));
        if (n.diverged !== null) return [divergedFinding(facts, n, target)];
        if (n.lockStuck !== '')
          return facts.leader === null
            ? []
            : warn('LOCK_STUCK', `${n.id}: ${n.note}`, `seq stepdown --revoke${target}`);
        if ((n.lag ?? 0) > 0)
          return warn('NODE_LAGGING', `${n.id} is ${n.note}`, `seq stream diff --on ${n.id}${target}`);
        if (facts.leader !== null && n.epoch !== null && n.epoch > facts.leader.epoch)
          return warn('NODE_FENCED', `${n.id}: ${n.note}`, `seq epoch show${target}`);
        if (facts.conflicts.some((one) => one.height === n.head && one.nodes.includes(n.id))) return [];
        if (n.head === facts.committed?.height && n.headHash !== facts.committed?.hash && facts.committed?.hash) {
          return warn('NODE_ORPHAN', `${n.id} ${n.note}`, `seq stream diff --on ${n.id}${target}`);
        }
        if (facts.leader !== null && n.owner === facts.leader.owner && (n.epoch ?? 0) < facts.leader.epoch)
          return warn('EPOCH_BEHIND', `${n.id}: ${n.note}`, `seq epoch heal${target}`);
        return warn('NODE_UNLEASED', `${n.id}: ${n.note}`, `seq status --watch${target}`);
    }
  });
}

/** A copy of another node is emptied by hand. Any other data is not ours to touch: the address may be wrong. */
function foreignFinding(facts: Facts, n: NodeRow, target: string): Finding {
  const { id, url, note } = n;
  const copy = facts.copied.find((one) => one.id === id);
  const others = members(facts).filter((one) => one.admitted).length;
  // Another generation of this cluster. What counts stands on the others: it has nothing that is missing there.
  if (copy === undefined && isOfFamily(facts.cluster, n) && n.cluster !== facts.cluster && others >= facts.quorum) {
    const byHand = isMisnamed(facts, n) ? ', which no recovery can have written' : '';
    const reason =
      `${id}: ${note}${byHand}; the others are ${facts.cluster}; ` +
      'once it has forgotten that, the leader fills it anew';
    return warning('NODE_FOREIGN', reason, [id], forgetRecord(url, target));
  }
  if (copy === undefined) return warning('NODE_FOREIGN', `${id}: ${note}`, [id], `seq config show${target}`);
  const reason =
    `${id} holds a copy of ${copy.of}: ${note}; once it has forgotten that` +
    `${copy.isReplica ? ', and is a master again,' : ''} the leader fills it anew`;
  const next = [...(copy.isReplica ? [`redis-cli -u ${url} replicaof no one`] : []), forgetRecord(url, target)];
  return { ...warning('NODE_FOREIGN', reason, [id], ''), next };
}

/** What does not stop the cluster and still needs an operator. */
function softFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  return [
    ...standbyFindings(facts, target, options),
    ...pendingFindings(facts, target),
    ...holdFindings(facts, target),
    ...facts.sequencers.flatMap((one) => sequencerFindings(one, facts.leader, target)),
    ...clockFindings(facts, target),
    ...driftFindings(facts, target),
  ];
}

function warning(code: ReasonCode, reason: string, nodes: string[], next: string): Finding {
  return { verdict: 'WARN', code, reason, nodes, next: [next] };
}

function pendingFindings({ pending, configured, quorum }: Facts, target: string): Finding[] {
  if (pending === null) return [];
  const { height, nodes, epoch, mayBeCommitted } = pending;
  const reason =
    `height ${height} is pending: ${nodes.length} of ${configured} hold it under epoch ${epoch}` +
    (nodes.length >= quorum
      ? ', from before the present members were noted: the next leader writes it again under its own epoch'
      : `, ${quorum} are needed${mayBeCommitted ? '; a node that did not answer may hold it too' : ''}`);
  return [warning('PENDING_BLOCK', reason, nodes, `seq stream inspect --from ${height} --to ${height}${target}`)];
}

function holdFindings({ hold, leader }: Facts, target: string): Finding[] {
  if (hold === null || leader === null) return [];
  const reason =
    `${hold.by} holds promotion for ${Math.ceil(hold.ttlMs / 1000)} s more (${hold.reason}): nobody ` +
    `takes over if ${leader.id} fails`;
  return [warning('HELD', reason, [], `seq resume${target}`)];
}

/** What a sequencer says of its retained range and of its store. */
function sequencerFindings(s: SequencerRow, leader: LeaderRow | null, target: string): Finding[] {
  const found: Finding[] = [];
  const behind = `${s.id} is ${s.lag ?? '?'} blocks behind`;
  const doctor = `seq doctor${target}`;
  const watch = `seq status --watch${target}`;
  if (s.retentionWhy !== '' && s.id === leader?.id)
    found.push(warning('RETENTION_NARROWED', `${s.id}: ${s.retentionWhy}`, [], doctor));
  if (s.storeDamaged !== '') {
    const damaged = `its store is damaged at height ${s.storeDamaged}; no node and no peer had the block yet`;
    found.push(warning('STORE_DAMAGED', `${s.id}: ${damaged}`, [], doctor));
  }
  if (s.margin === 'falling') {
    found.push(warning('RETENTION_CLOSING', `${behind} and about to fall below what the nodes retain`, [], watch));
  } else if (s.margin === 'outside') {
    const lost = 'below what the nodes retain: it needs the feed of another sequencer';
    found.push(warning('RETENTION_LOST', `${behind}, ${lost}`, [], watch));
  }
  return found;
}

function clockFindings({ clocks }: Facts, target: string): Finding[] {
  return clocks.map(({ node, sequencer, aheadMs }) =>
    warning(
      'CLOCK_OFF',
      wrongClockText(`the clock of ${node ?? `sequencer ${sequencer}`}`, aheadMs),
      node === undefined ? [] : [node],
      `seq doctor${target}`,
    ),
  );
}

function driftFindings({ sequencers }: Facts, target: string): Finding[] {
  const drift = (what: string, of: (one: SequencerRow) => string, text: (value: string) => string): Finding[] => {
    const groups = new Map<string, string[]>();
    for (const s of sequencers) if (of(s) !== '') groups.set(of(s), [...(groups.get(of(s)) ?? []), s.id]);
    if (groups.size < 2) return [];
    const running = list([...groups].map(([value, ids]) => `${ids.join(', ')} with ${text(value)}`));
    return [warning('CONFIG_DRIFT', `the sequencers run with ${what}: ${running}`, [], `seq doctor${target}`)];
  };
  return [
    ...drift(
      'different lists of nodes',
      (one) => one.configDigest,
      (digest) => digest.slice(0, 8),
    ),
    ...drift('different producers', (one) => one.producer, producerText),
  ];
}

/** A leader replaces an uncommitted block of an earlier epoch by itself. It never replaces one of the same epoch. */
function divergedFinding(facts: Facts, n: NodeRow, target: string): Finding {
  const replaced = n.diverged !== null && (n.headEpoch ?? 0) < n.diverged.epoch && facts.leader !== null;
  return {
    verdict: 'WARN',
    code: 'DIVERGED',
    reason: `${n.id}: ${n.note}${replaced ? '; the leader replaces it' : ''}`,
    nodes: [n.id],
    next: [replaced ? `seq status --watch${target}` : `seq repair plan${target}`],
  };
}

function sameServer(nodes: readonly NodeRow[]): string[][] {
  const byRun = new Map<string, string[]>();
  for (const n of nodes) {
    const run = serverOf(n.runId);
    if (run !== '') byRun.set(run, [...(byRun.get(run) ?? []), n.id]);
  }
  return [...byRun.values()].filter((ids) => ids.length > 1);
}

/** A node that refuses answers well: what helps depends on its word. */
function letIn(node: NodeRow, options: SummarizeOptions): string {
  const code = node.error?.code;
  if (code === 'NOPERM') return grantOn(node.url, node.error?.grant);
  if (code !== undefined && DENIED.has(code)) return deniedNext([node])[0] as string;
  return code === undefined ? reach(node, options) : `seq explain ${code}`;
}

/** A server that takes connections and does not answer lets `redis-cli` wait for ever. */
function reach(node: NodeRow, options: SummarizeOptions): string {
  const target = options.target ? ` ${options.target}` : '';
  return (
    options.startCommand?.(node.id) ??
    (isHanging(node.note)
      ? `seq node list --on ${node.id} --node-timeout 5s${target}`
      : reachCommand(node.url, node.note))
  );
}

function known(commands: readonly string[] | undefined, ...otherwise: string[]): string[] {
  return commands === undefined || commands.length === 0 ? otherwise : [...commands];
}

/** `a`, `a and b`, `a, b and c`. */
function list(words: string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
