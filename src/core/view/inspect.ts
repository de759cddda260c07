// Probes every node and computes the state of the cluster (docs/PROTOCOL.md section 9). It asks all nodes in parallel,
// each with its own deadline. A node that misses the deadline gets a second try. Heads differ for a moment while a
// block is written. A second probe, shortly after, tells such a moment from a real problem.
import { bounded } from '../nodes/ask-all.js';
import type { Clock, NodePort } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import { shownBy } from '../protocol/copies.js';
import { highestAnnounced, type Announced } from '../nodes/announced.js';
import { admittedViews } from '../nodes/probe.js';
import type { Height, NodeReply, NodeView } from '../protocol/types.js';
import { markForeign } from './cluster-name.js';
import { membershipOf } from './membership.js';
import { summarize } from './model.js';
import type { ClusterView, NodeProbe, SummarizeOptions } from './cluster-view.js';
import { proveCommitted } from './proof.js';

export interface InspectOptions extends SummarizeOptions {
  nodes: readonly NodePort[];
  /** Limit for each call (nodeTimeout). */
  limitMs: number;
  clock: Clock;
  /** Answers of a probe just before this one. A node that did not answer then gets its second try here. */
  known?: ReadonlyMap<string, NodeReply<NodeView>>;
  /** Always probes twice. The second round trip is measured on open connections, without the handshake. */
  twice?: boolean;
  /** Leaves out what the servers say of themselves (INFO): one of many lanes on the same servers. */
  brief?: boolean;
}

export async function inspectCluster(options: InspectOptions): Promise<ClusterView> {
  return (await inspectWithProbes(options)).view;
}

/** The view of the cluster, together with the nodes' answers. */
export async function inspectWithProbes(options: InspectOptions): Promise<{ view: ClusterView; probes: NodeProbe[] }> {
  const first = markForeign(await secondTry(await probeNodes(options), options), options.expectedCluster);
  const view = summarize(first, options);
  const announced = announcedTo(first, view.quorum);
  const setBack = announced.height > Math.max(0, ...view.nodes.map((n) => (n.admitted ? (n.head ?? 0) : 0)));
  const open = view.pending !== null || view.committed?.hash === null;
  const unsettled = setBack || open || view.nodes.some((n) => (n.lag ?? 0) > 0);
  if (!unsettled && !options.twice) return { view, probes: first };
  const answering = new Set(first.filter((o) => o.reply.outcome === 'accepted').map((o) => o.id));
  const again = await probeNodes({
    ...options,
    nodes: options.nodes.filter((n) => answering.has(n.id)),
    known: undefined,
  });
  const latest = first.map((o) => again.find((a) => a.id === o.id && a.reply.outcome === 'accepted') ?? o);
  const second = await addHeadEntries(markForeign(latest, options.expectedCluster), options);
  const earlier = { ...options, earlier: { committed: view.committed, pending: view.pending, announced } };
  const now = summarize(second, earlier);
  const compared = await addChainAtHeads(second, now, options);
  return { view: compared === second ? now : summarize(compared, earlier), probes: compared };
}

/** The highest block that a sequencer has announced to q of these nodes. */
export function announcedTo(probes: readonly NodeProbe[], quorum: number): Announced {
  return highestAnnounced(admittedViews({ replies: probes.map(({ reply }) => reply) }), quorum);
}

/**
 * A node that let its time run out may only have been busy for that moment. It is asked once more before anything is
 * concluded, and both tries are told. A node that hangs costs two limits, at the same time as all others that hang.
 */
async function secondTry(probes: NodeProbe[], options: InspectOptions): Promise<NodeProbe[]> {
  const late = new Set(probes.filter(({ reply }) => isLate(reply) || isVague(reply)).map(({ id }) => id));
  if (late.size === 0) return probes;
  const nodes = options.nodes.filter((node) => late.has(node.id));
  const again = new Map((await probeNodes({ ...options, nodes, known: undefined })).map((probe) => [probe.id, probe]));
  return probes.map((before) => {
    const now = again.get(before.id);
    if (now !== undefined && isVague(before.reply)) return now.reply.outcome === 'unknown' ? before : now;
    if (now === undefined || before.reply.outcome !== 'unknown') return before;
    return bothTries(before, now);
  });
}

/** The probe that counts of two tries, with what there is to tell of the other one. The first one was late. */
export function bothTries(first: NodeProbe, second: NodeProbe): NodeProbe {
  const { reply } = first;
  if (reply.outcome !== 'unknown') return second;
  // Not asked again: the connection waits after its failed attempt.
  if (second.reply.outcome === 'unknown' && second.reply.retryInMs !== undefined) return first;
  return isLate(second.reply)
    ? { ...first, reply: { ...reply, cause: `${reply.cause}, twice` } }
    : { ...second, firstTry: describeReply(reply) };
}

/** Its time ran out. A connection that was refused says more than that, and is not tried again. */
export function isLate(reply: NodeReply<unknown>): boolean {
  return reply.outcome === 'unknown' && reply.cause === 'no answer';
}

/** Denied, and there was no time to ask which right is missing. */
function isVague(reply: NodeReply<unknown>): boolean {
  return reply.outcome === 'refused' && reply.reason === 'NOPERM' && reply.detail.grant === undefined;
}

/** One inspect per node. Resolves when the last node has answered or its time is up. */
export async function probeNodes({
  nodes,
  limitMs,
  clock,
  known,
  brief = false,
}: Pick<InspectOptions, 'nodes' | 'limitMs' | 'clock' | 'known' | 'brief'>): Promise<NodeProbe[]> {
  return Promise.all(
    nodes.map(async (node) => {
      const before = known?.get(node.id);
      if (before?.outcome === 'unknown') return { id: node.id, url: node.url, reply: before, rttMs: null };
      const startedAt = clock.now();
      const reply = await bounded(node.call({ script: 'inspect', brief }, limitMs), limitMs, clock);
      const rttMs =
        node.recordedRttMs !== undefined
          ? node.recordedRttMs
          : reply.outcome === 'unknown'
            ? null
            : Math.round((clock.now() - startedAt) * 10) / 10;
      return { id: node.id, url: node.url, reply, rttMs, askedAt: startedAt };
    }),
  );
}

/** Reads the header of each head above the committed one. Its parent names the committed block. */
async function addHeadEntries(
  probes: NodeProbe[],
  { nodes, limitMs, clock, expectedCluster }: InspectOptions,
): Promise<NodeProbe[]> {
  const { configuration, members } = membershipOf(probes, expectedCluster);
  const views = members.flatMap((o) => (o.reply.outcome === 'accepted' ? [{ id: o.id, view: o.reply.value }] : []));
  const proof = proveCommitted(
    views.map(({ id, view }) => ({
      id,
      admitted: view.admission === 'admitted',
      facts: view,
      shown: configuration && shownBy(view),
      headEntry: null,
    })),
    { configured: members.length, silent: 0 },
  );
  if (!proof.wantsHeadEntries) return probes;
  return Promise.all(
    probes.map(async (o) => {
      const node = nodes.find((n) => n.id === o.id);
      if (node === undefined || o.reply.outcome !== 'accepted') return o;
      const { head, floor } = o.reply.value;
      if (head === floor || head !== (proof.committed?.height ?? 0) + 1) return o;
      const headEntry = await bounded(
        node.read({ from: head, to: head, limit: 1, data: false }, limitMs),
        limitMs,
        clock,
      );
      return { ...o, headEntry };
    }),
  );
}

/** A node that is behind may have another block at its head. A node with the committed head says what belongs there. */
async function addChainAtHeads(
  probes: NodeProbe[],
  view: ClusterView,
  { nodes, limitMs, clock }: InspectOptions,
): Promise<NodeProbe[]> {
  const behind = headsBehind(view);
  if (behind.length === 0) return probes;
  return Promise.all(
    probes.map(async (probe) => {
      const row = behind.find(({ id }) => id === probe.id);
      const node = nodes.find(({ id }) => id === row?.source);
      if (row === undefined || node === undefined) return probe;
      const { head } = row;
      const chainAtHead = await bounded(
        node.read({ from: head, to: head, limit: 1, data: false }, limitMs),
        limitMs,
        clock,
      );
      return { ...probe, chainAtHead };
    }),
  );
}

/** The nodes that are behind, and for each a node with the committed head that still has the block at that height. */
export function headsBehind({ nodes }: ClusterView): { id: string; head: Height; source: string }[] {
  const whole = nodes.filter((row) => row.admitted && row.lag === 0);
  return nodes.flatMap(({ id, admitted, lag, head, floor }) => {
    if (!admitted || (lag ?? 0) === 0 || head === null || head <= (floor ?? 0)) return [];
    const source = whole.find((row) => (row.floor ?? head) < head);
    return source === undefined ? [] : [{ id, head, source: source.id }];
  });
}
