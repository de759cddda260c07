// A sequencer's probe of all nodes: which nodes answer, which are free, what do they hold? This is the pre-vote of
// docs/PROTOCOL.md section 5. Only nodes that *say* that they are admitted and free count. A node without an answer is
// not "free".
import { clusterNamed, familyOf, generationOf, isOfRemovedLane } from '../generation.js';
import type { Clock, NodePort } from '../ports.js';
import { memberOf, quorumFor, type Configuration } from '../protocol/configuration.js';
import { quorumOf } from '../protocol/quorum.js';
import { MAX_EPOCH_LEAP, sequencerOf, type NodeReply, type NodeView } from '../protocol/types.js';

export interface ProbeResult {
  sentAt: number;
  at: number;
  /** One per node, in the configured order. null = no answer before the probe was closed. */
  replies: (NodeReply<NodeView> | null)[];
  /** When each answer came. */
  heardAt: (number | null)[];
}

/**
 * Asks every node at once. The probe closes when all nodes have answered. It also closes a little after a quorum has
 * answered, so a hanging node delays nothing. `asks`: the indexes of the nodes that count. The others are not asked.
 */
export async function probe(
  nodes: readonly NodePort[],
  quorum: number,
  limitMs: number,
  clock: Clock,
  asks: (node: number) => boolean = () => true,
): Promise<ProbeResult> {
  const startedAt = clock.now();
  const replies: ProbeResult['replies'] = nodes.map(() => null);
  const heardAt: ProbeResult['heardAt'] = nodes.map(() => null);
  await new Promise<void>((resolve) => {
    const asked = nodes.flatMap((node, i) => (asks(i) ? [{ node, i }] : []));
    let waiting = asked.length;
    let answered = 0;
    let cancel = () => {};
    if (waiting === 0) resolve();
    asked.forEach(({ node, i }) => {
      void node.call({ script: 'inspect', brief: true }, limitMs).then((reply) => {
        replies[i] = reply;
        heardAt[i] = clock.now();
        if (reply.outcome === 'accepted') answered++;
        if (--waiting === 0) {
          cancel();
          resolve();
        } else if (answered === quorum) {
          cancel = clock.after(2 + 2 * (clock.now() - startedAt), resolve);
        }
      });
    });
  });
  return { sentAt: startedAt, at: clock.now(), replies: [...replies], heardAt: [...heardAt] };
}

export interface Votes {
  votes: { node: number; epoch: number }[];
  /** Why fewer than all nodes are free, for people: one reason per node, the most important first. */
  why: string;
}

export interface VoteRules {
  /** The token of a term that is being renewed. Its own lock counts as free, and neither hold nor handover stops it. */
  own?: string;
  /** When the promotion would begin, by the probe's clock. A lock that has expired since the probe counts as free. */
  at?: number;
  /**
   * Whose memories count (I13). null: no node has shown a configuration, so nobody knows whose vote counts. Absent:
   * memories are not compared.
   */
  configuration?: Configuration | null;
}

const UNKNOWN_MEMBERS = 'no node that answers knows the members of the cluster';
const UNCONFIGURED =
  'version 0.1.0 made this cluster, and no node knows its members. While all nodes answer, start one sequencer with ' +
  'the list of all nodes and --adopt-nodes';

/** Whether an admitted node answers that knows no configuration: version 0.1.0 admitted it. */
export function unconfigured(seen: ProbeResult): boolean {
  return seen.replies.some(
    (reply) => reply?.outcome === 'accepted' && reply.value.admission === 'admitted' && reply.value.config === '',
  );
}

/** The nodes that would let `id` promote itself. */
export function votesOf(seen: ProbeResult, nodes: readonly NodePort[], id: string, rules: VoteRules = {}): Votes {
  const { own, at = seen.at, configuration } = rules;
  if (configuration === null) return { votes: [], why: unconfigured(seen) ? UNCONFIGURED : UNKNOWN_MEMBERS };
  const votes: Votes['votes'] = [];
  const reasons: string[] = [];
  seen.replies.forEach((reply, node) => {
    const name = nodes[node]!.id;
    if (configuration && !memberOf(configuration, name)) reasons.push(`${name} is no member of the cluster`);
    else if (reply === null) reasons.push(`${name} did not answer in time`);
    else if (reply.outcome === 'unknown') reasons.push(`${name}: no answer at ${reply.step} (${reply.cause})`);
    else if (reply.outcome === 'refused') reasons.push(`${name}: ${reply.reason}`);
    else {
      const view = reply.value;
      const mine = own !== undefined && view.lock?.owner === own;
      const member = configuration && memberOf(configuration, name);
      if (view.admission !== 'admitted') reasons.push(`${name} is not admitted (${view.admission})`);
      else if (member && member.memory !== view.incarnation)
        reasons.push(
          `${name} has another memory (${view.incarnation}) than the one that counts (${member.memory || 'none'})`,
        );
      else if (view.lock && !mine && !(view.lock.pttlMs >= 0 && at - seen.at > view.lock.pttlMs))
        reasons.push(`${name} is held by ${view.lock.owner}`);
      else if (!mine && view.hold) reasons.push(`${name} is on hold by ${view.hold.by}: ${view.hold.reason}`);
      else if (!mine && view.handover && view.handover.to !== id)
        reasons.push(`${name} is handed over to ${view.handover.to}`);
      else votes.push({ node, epoch: view.epoch });
    }
  });
  const near = withinReach(votes, configuration ? quorumFor(configuration) : quorumOf(nodes.length));
  for (const { node, epoch } of votes)
    if (epoch > near) reasons.push(`${nodes[node]!.id} has an epoch that nobody can have reached, ${epoch}`);
  return { votes: votes.filter(({ epoch }) => epoch <= near), why: reasons.join('; ') };
}

/**
 * Why `id` could not be promoted even when every running lease had ended: '' when q nodes would have it then. A lock
 * that outlasts every lease that is announced, or never expires, is no running lease (docs/PROTOCOL.md section 9).
 */
export function blockedBy(
  seen: ProbeResult,
  nodes: readonly NodePort[],
  id: string,
  { configuration, ttlMs, quorum }: { configuration: Configuration | null; ttlMs: number; quorum: number },
): string {
  const announced = admittedViews(seen).flatMap((view) =>
    view.sequencers.map(({ extra }) => Number(extra['ttlMs']) || 0),
  );
  const longest = Math.max(ttlMs, ...announced);
  const replies = seen.replies.map((reply) => {
    if (reply?.outcome !== 'accepted' || reply.value.lock === null) return reply;
    const { pttlMs } = reply.value.lock;
    const runs = pttlMs >= 0 && pttlMs <= longest + Math.max(50, longest / 100);
    return runs ? { ...reply, value: { ...reply.value, lock: null } } : reply;
  });
  const { votes, why } = votesOf({ ...seen, replies }, nodes, id, { configuration });
  return votes.length < quorum ? why : '';
}

/**
 * The highest epoch that a vote may have. This bound never makes a quorum of votes smaller. Every vote raises the new
 * term above the vote's own epoch. So an epoch that was written by hand must not use up the remaining numbers.
 */
function withinReach(votes: Votes['votes'], quorum: number): number {
  const epochs = votes.map(({ epoch }) => epoch).sort((a, b) => a - b);
  return (epochs[quorum - 1] ?? Infinity) + MAX_EPOCH_LEAP;
}

/** The views of admitted nodes. */
export function admittedViews(seen: Pick<ProbeResult, 'replies'>): NodeView[] {
  return seen.replies.flatMap((reply) =>
    reply?.outcome === 'accepted' && reply.value.admission === 'admitted' ? [reply.value] : [],
  );
}

/** The state of the nodes' memories as text. While it stays the same, what failed because of it will fail again. */
export function stateOf(seen: ProbeResult): string {
  return seen.replies
    .map((reply) => {
      if (reply?.outcome !== 'accepted') return '-';
      const { admission, incarnation, head, headEpoch, headHash } = reply.value;
      return `${admission} ${incarnation} ${head}-${headEpoch} ${headHash}`;
    })
    .join(' | ');
}

/**
 * ms until q nodes will have a free lock, if nothing renews the locks. `unknownMs` is used for nodes that did not say.
 * A lock in its last millisecond still counts as held.
 */
export function untilFreeMs(seen: ProbeResult, quorum: number, unknownMs: number): number {
  const left = seen.replies.map((reply) => {
    if (reply?.outcome !== 'accepted') return unknownMs;
    const { lock } = reply.value;
    return lock === null ? 0 : lock.pttlMs < 0 ? unknownMs : Math.max(1, lock.pttlMs);
  });
  left.sort((a, b) => a - b);
  return Math.max(0, left[quorum - 1] ?? unknownMs);
}

/** The leader that a quorum of locks shows, or null. `url` comes from its presence record. */
export function leaderOf(
  seen: ProbeResult,
  quorum: number,
): { id: string; owner: string; epoch: number; url: string } | null {
  const holders = new Map<string, { count: number; epoch: number }>();
  const urls = new Map<string, string>();
  for (const reply of seen.replies) {
    if (reply?.outcome !== 'accepted') continue;
    for (const presence of reply.value.sequencers) if (presence.url) urls.set(presence.id, presence.url);
    const owner = reply.value.lock?.owner;
    if (owner === undefined) continue;
    const known = holders.get(owner) ?? { count: 0, epoch: 0 };
    holders.set(owner, { count: known.count + 1, epoch: Math.max(known.epoch, reply.value.epoch) });
  }
  for (const [owner, { count, epoch }] of holders) {
    if (count >= quorum) return { id: sequencerOf(owner), owner, epoch, url: urls.get(sequencerOf(owner)) ?? '' };
  }
  return null;
}

/** The later generation that a quorum shows (`seq cluster recover`). null: this generation continues. */
export function recoveredTo(seen: ProbeResult, quorum: number, cluster: string): string | null {
  const later = seen.replies.flatMap((reply) => {
    // A mark alone may come from a recovery that was broken off. Until a recovery is finished, it may still ask this
    // sequencer's store.
    if (reply?.outcome !== 'accepted' || reply.value.pending !== '') return [];
    // A node that left the cluster since was a node of the later generation, too.
    const shown = clusterNamed(reply.value.cluster);
    return familyOf(shown) === familyOf(cluster) && generationOf(shown) > generationOf(cluster) ? [shown] : [];
  });
  return later.length >= quorum ? (later.sort().at(-1) as string) : null;
}

/** The nodes that have given the lane up (`seq lane rm`), when too few are left for a quorum. [] otherwise. */
export function laneRemovedOn(
  seen: ProbeResult,
  nodes: readonly { id: string }[],
  quorum: number,
  members: number,
): string[] {
  const retired = seen.replies.flatMap((reply, i) =>
    reply?.outcome === 'accepted' && isOfRemovedLane(reply.value) ? [nodes[i]!.id] : [],
  );
  return members - retired.length < quorum ? retired : [];
}
