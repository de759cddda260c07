// The state of a cluster: one word, one sentence, one stable code, and the next command. Pure. CRIT: the cluster does
// not write, or an invariant is broken. WARN: it writes, but it needs an operator. UNKNOWN: too few nodes answered.
// Findings are in the order in which they must be repaired. docs/PROTOCOL.md sections 8 and 9.
import { reachCommand } from './reach-command.js';
import { MAX_EPOCH_LEAP, serverOf } from '../protocol/types.js';
import { NO_TERM_MADE_IT } from '../protocol/configuration.js';
import { deleteConfiguration, deleteEpoch } from './epochs.js';
import { wrongClockText } from '../nodes/node-clocks.js';
import { inWords, isLate, leaseTiming } from './lease.js';
import { DENIED, deniedNext } from './no-answer.js';
import type { OffClock } from './off-clocks.js';
import type { ClusterView, Finding, LeaderRow, NodeRow, ReasonCode, SummarizeOptions } from './cluster-view.js';

type Facts = Omit<ClusterView, 'verdict' | 'reason' | 'reasonCode' | 'next' | 'findings'> & {
  clusters: { id: string; cluster: string }[];
  clocks: readonly OffClock[];
};

export function judge(
  facts: Facts,
  options: SummarizeOptions,
): Pick<ClusterView, 'verdict' | 'reason' | 'reasonCode' | 'next' | 'findings'> {
  const target = options.target ? ` ${options.target}` : '';
  const whole = clusterFindings(facts, target, options);
  // When the cluster itself is missing, a line for each node would only repeat that.
  const explained = whole.some(
    (f) => f.code === 'NOT_INITIALISED' || f.code === 'WRONG_CLUSTER' || f.code === 'CLUSTER_MIXED',
  );
  const findings = explained
    ? whole
    : [...whole, ...nodeFindings(facts, target, options), ...softFindings(facts, target, options)];
  const order = { CRIT: 0, UNKNOWN: 1, WARN: 2 };
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

function clusterFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const { quorum, configured, answered } = facts;
  const nodes = facts.nodes.filter((n) => n.state !== 'STRANGER');
  const found: Finding[] = [];
  const crit = (code: ReasonCode, reason: string, ids: string[], next: string[]) =>
    found.push({ verdict: 'CRIT', code, reason, nodes: ids, next });

  for (const ids of sameServer(facts.nodes)) {
    crit('SAME_SERVER', `${list(ids)} are one server (the same run id): its vote would count twice`, ids, [
      'give every --node a server of its own',
    ]);
  }
  for (const conflict of facts.conflicts) {
    crit('CONFLICT', `height ${conflict.height}: ${conflict.why}`, conflict.nodes, [
      `seq stream inspect --from ${conflict.height} --to ${conflict.height}${target}`,
    ]);
  }
  const foreign = nodes.filter((n) => n.state === 'FOREIGN');
  const names = new Map<string, string[]>();
  for (const { id, cluster } of facts.clusters)
    if (cluster !== '') names.set(cluster, [...(names.get(cluster) ?? []), id]);
  if (answered > 0 && foreign.length === answered) {
    crit(
      'WRONG_CLUSTER',
      `every node that answered belongs to another cluster: ${list(foreign.map((n) => `${n.id}: ${n.note}`))}`,
      foreign.map((n) => n.id),
      [`seq status ${foreign.map((n) => `--node ${n.id}=${n.url}`).join(' ')}`],
    );
    return found;
  }
  if (names.size > 1 && Math.max(...[...names.values()].map((ids) => ids.length)) < quorum) {
    crit(
      'CLUSTER_MIXED',
      'the nodes belong to different clusters: ' +
        `${list([...names].map(([name, ids]) => `${ids.join(', ')} to ${name}`))}`,
      [...names.values()].flat(),
      ['name the nodes of one cluster only: seq config show'],
    );
    return found;
  }

  const empty = nodes.filter((n) => n.state === 'EMPTY');
  const bootstrap = nodes.filter((n) => n.admission === 'bootstrap');
  if (answered >= quorum && empty.length + bootstrap.length === answered) {
    crit(
      'NOT_INITIALISED',
      bootstrap.length > 0
        ? `the bootstrap of this cluster was broken off: ${list(bootstrap.map((n) => n.id))} show its nonce`
        : `${answered === configured ? 'all' : answered} of ${configured} nodes are empty: this cluster ` +
            'was never initialised',
      [...empty, ...bootstrap].map((n) => n.id),
      [`seq cluster init${target}`],
    );
    return found;
  }

  const admitted = nodes.filter((n) => n.admitted);
  if (admitted.length < quorum) {
    const silent = nodes.filter((n) => n.state === 'DOWN' || n.state === 'REFUSED');
    const out = nodes.filter((n) => !n.admitted && n.state !== 'DOWN' && n.state !== 'REFUSED');
    const parts = [
      ...(['DOWN', 'REFUSED'] as const).flatMap((state) => {
        const ids = silent.filter((n) => n.state === state).map((n) => n.id);
        return ids.length === 0 ? [] : [`${list(ids)} ${state === 'DOWN' ? 'did not answer' : 'refused to answer'}`];
      }),
      ...(out.length > 0 ? [`${list(out.map((n) => n.id))} ${out.length === 1 ? 'is' : 'are'} not admitted`] : []),
    ];
    const enoughWithSilent = admitted.length + silent.length >= quorum;
    const denied = silent.filter((n) => DENIED.has(n.error?.code ?? ''));
    // They answer, and refuse us: whether they can vote is not known. The sequencers may have the right password.
    if (admitted.length + denied.length >= quorum) {
      found.push({
        verdict: 'UNKNOWN',
        code: 'NODE_DENIED',
        reason:
          `${list(denied.map((n) => n.id))} ${denied.length === 1 ? 'refuses' : 'refuse'} us ` +
          `(${[...new Set(denied.map((n) => n.note))].join('; ')}): whether a quorum can vote is not known`,
        nodes: denied.map((n) => n.id),
        next: deniedNext(denied),
      });
      return found;
    }
    crit(
      'NO_QUORUM',
      `${admitted.length} of ${configured} nodes can vote, ${quorum} are needed: ${parts.join('; ')}`,
      [...silent, ...out].map((n) => n.id),
      enoughWithSilent ? silent.map((n) => reach(n, options)) : [`seq cluster recover --dry-run${target}`],
    );
    return found;
  }

  if (facts.leader === null && !facts.leaderKnown) {
    const silent = nodes.filter((n) => n.state === 'DOWN' || n.state === 'REFUSED');
    found.push({
      verdict: 'UNKNOWN',
      code: 'LEADER_UNKNOWN',
      nodes: silent.map((n) => n.id),
      next: silent.map((n) => reach(n, options)),
      reason:
        `too few nodes answered to say whether there is a leader: ${list(silent.map((n) => n.id))} may ` +
        'hold a lock',
    });
  } else if (facts.leader === null && admitted.filter((n) => n.lockStuck === '').length < quorum) {
    const stuck = admitted.filter((n) => n.lockStuck !== '');
    crit(
      'LOCK_STUCK',
      `nobody can lead: ${list([...new Set(stuck.map((n) => n.lockStuck))])} (on ${list(stuck.map((n) => n.id))}), ` +
        'so nobody renews it and nobody may take it',
      stuck.map((n) => n.id),
      [`seq stepdown --revoke${target}`],
    );
  } else if (facts.leader === null) {
    const holders = [...new Set(admitted.flatMap((n) => (n.holder === null ? [] : [n.holder])))];
    // The record of one that was stopped, or that died, is there for a while.
    const running = facts.sequencers.filter((one) => one.alive && one.role !== 'stopping');
    if (facts.hold !== null)
      crit(
        'NO_LEADER',
        `nobody leads: ${facts.hold.by} holds promotion (${facts.hold.reason})`,
        [],
        [`seq resume${target}`],
      );
    else if (holders.length > 0)
      crit(
        'NO_LEADER',
        `nobody leads: ${list(holders)} ${holders.length === 1 ? 'holds' : 'hold'} fewer than ${quorum} ` +
          `locks (${holders.some((id) => isAlive(facts, id)) ? 'a promotion under way, or ' : ''}a lease running out)`,
        [],
        othersAlive(facts, '')
          ? [`seq status --watch${target}`]
          : known(options.startSequencers?.(), `seq run --id ${holders[0] ?? 'seq-a'}${target}`),
      );
    else if (running.length === 0)
      crit(
        'NO_LEADER',
        'nobody leads: no sequencer is running',
        [],
        known(options.startSequencers?.(), `seq run --id seq-a${target}`),
      );
    else {
      const reasons = running.filter((s) => !s.ready && s.why !== '').map((s) => `${s.id}: ${s.why}`);
      crit(
        'NO_LEADER',
        `nobody leads: every lock is free, ${list(running.map((s) => s.id))} ` +
          `${running.length === 1 ? 'is' : 'are'} running${reasons.length > 0 ? ` (${reasons.join('; ')})` : ''}`,
        [],
        [`seq status --watch${target}`],
      );
    }
  } else {
    const own = facts.sequencers.find((s) => s.id === facts.leader?.id);
    if (own !== undefined && !own.ready) {
      crit(
        'LEADER_STALLED',
        `${own.id} leads and cannot produce: ${own.why || 'it says it is not ready'}`,
        [],
        [`seq stepdown${target}`],
      );
    }
    if (facts.leader !== null) found.push(...leaseFindings(facts, facts.leader, target, options));
  }
  return found;
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

/** Who would take over? Only asked where the cluster has, or had within a day, more than one sequencer. */
function standbyFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const { leader, sequencers, absent } = facts;
  if (leader === null || sequencers.length === 0) return [];
  const others = sequencers.filter((one) => one.id !== leader.id);
  const gone = absent.filter((one) => one.id !== leader.id);
  if (others.length + gone.length === 0) return [];
  if (others.some((one) => one.alive && one.ready && one.role !== 'stopping')) return [];
  const reasons = [
    ...others.map((one) =>
      one.role === 'stopping'
        ? `${one.id} is stopping`
        : !one.alive
          ? `${one.id} announces nothing${one.seenMs === null ? '' : ` for ${inWords(one.seenMs)}`}`
          : `${one.id} is not ready (${one.why || 'it does not say why'})`,
    ),
    ...gone.map((one) => `${one.id} was last seen ${inWords(one.seenMs)} ago`),
  ];
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
        return warn('NODE_REFUSED', `${n.id} refuses: ${n.note}`, reach(n, options));
      case 'FOREIGN':
        return warn('NODE_FOREIGN', `${n.id}: ${n.note}`, `seq config show${target}`);
      case 'STRANGER':
        return warn('NOT_MEMBER', `${n.id}: ${n.note}`, `seq config show${target}`);
      case 'EMPTY':
        return warn('NODE_NOT_ADMITTED', `${n.id} is not admitted: ${n.note}`, `seq node admit --on ${n.id}${target}`);
      case 'OUT':
        if (n.note.includes(NO_TERM_MADE_IT))
          return warn('NODE_NOT_ADMITTED', `${n.id} is not admitted: ${n.note}`, deleteConfiguration(n.url));
        return warn(
          'NODE_NOT_ADMITTED',
          `${n.id} is not admitted: ${n.note}`,
          // Only a leader admits. While nobody leads, what stands in the way of a leader comes first.
          facts.leader === null || n.admission === 'admitting'
            ? `seq status --watch${target}`
            : `seq node admit --on ${n.id}${target}`,
        );
      case 'WARN':
        if (facts.leader !== null && n.epoch !== null && n.epoch > facts.leader.epoch + MAX_EPOCH_LEAP)
          return warn('NODE_FENCED', `${n.id}: ${n.note}`, deleteEpoch(n.url));
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

function softFindings(facts: Facts, target: string, options: SummarizeOptions): Finding[] {
  const found: Finding[] = standbyFindings(facts, target, options);
  const { pending, hold } = facts;
  if (pending !== null) {
    found.push({
      verdict: 'WARN',
      code: 'PENDING_BLOCK',
      nodes: pending.nodes,
      next: [`seq stream inspect --from ${pending.height} --to ${pending.height}${target}`],
      reason:
        `height ${pending.height} is pending: ${pending.nodes.length} of ${facts.configured} hold it ` +
        `under epoch ${pending.epoch}, ${facts.quorum} are needed` +
        (pending.mayBeCommitted ? '; a node that did not answer may hold it too' : ''),
    });
  }
  if (hold !== null && facts.leader !== null) {
    found.push({
      verdict: 'WARN',
      code: 'HELD',
      nodes: [],
      next: [`seq resume${target}`],
      reason:
        `${hold.by} holds promotion for ${Math.ceil(hold.ttlMs / 1000)} s more (${hold.reason}): nobody ` +
        `takes over if ${facts.leader.id} fails`,
    });
  }
  for (const s of facts.sequencers) {
    if (s.retentionWhy !== '' && s.id === facts.leader?.id)
      found.push({
        verdict: 'WARN',
        code: 'RETENTION_NARROWED',
        nodes: [],
        next: [`seq doctor${target}`],
        reason: `${s.id}: ${s.retentionWhy}`,
      });
    if (s.storeDamaged !== '')
      found.push({
        verdict: 'WARN',
        code: 'STORE_DAMAGED',
        nodes: [],
        next: [`seq doctor${target}`],
        reason: `${s.id}: its store is damaged at height ${s.storeDamaged}; no node and no peer had the block yet`,
      });
    if (s.margin === 'falling') {
      found.push({
        verdict: 'WARN',
        code: 'RETENTION_CLOSING',
        nodes: [],
        next: [`seq status --watch${target}`],
        reason: `${s.id} is ${s.lagBlocks ?? '?'} blocks behind and about to fall below what the nodes retain`,
      });
    } else if (s.margin === 'outside') {
      found.push({
        verdict: 'WARN',
        code: 'RETENTION_LOST',
        nodes: [],
        next: [`seq status --watch${target}`],
        reason:
          `${s.id} is ${s.lagBlocks ?? '?'} blocks behind, below what the nodes retain: it needs the feed ` +
          'of another sequencer',
      });
    }
  }
  for (const { node, sequencer, aheadMs } of facts.clocks) {
    found.push({
      verdict: 'WARN',
      code: 'CLOCK_OFF',
      nodes: node === undefined ? [] : [node],
      next: [`seq doctor${target}`],
      reason: wrongClockText(`the clock of ${node ?? `sequencer ${sequencer}`}`, aheadMs),
    });
  }
  const digests = new Map<string, string[]>();
  for (const s of facts.sequencers)
    if (s.configDigest !== '') digests.set(s.configDigest, [...(digests.get(s.configDigest) ?? []), s.id]);
  if (digests.size > 1) {
    found.push({
      verdict: 'WARN',
      code: 'CONFIG_DRIFT',
      nodes: [],
      next: [`seq status -o wide${target}`],
      reason:
        'the sequencers run with different configurations: ' +
        `${list([...digests].map(([digest, ids]) => `${ids.join(', ')} with ${digest.slice(0, 8)}`))}`,
    });
  }
  return found;
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

function reach(node: NodeRow, options: SummarizeOptions): string {
  return options.startCommand?.(node.id) ?? reachCommand(node.url, node.note);
}

function known(commands: readonly string[] | undefined, otherwise: string): string[] {
  return commands === undefined || commands.length === 0 ? [otherwise] : [...commands];
}

/** `a`, `a and b`, `a, b and c`. */
function list(words: string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}
