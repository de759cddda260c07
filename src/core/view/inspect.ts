// Looks at every node once and says what the cluster is (docs/PROTOCOL.md section 9). All nodes in parallel, each
// with its own deadline: a node that hangs costs nodeTimeout and nothing else. Where heads are between two writes a
// second, short look tells haste from trouble.
import { bounded } from '../nodes/ask-all.js';
import type { Clock, NodePort } from '../ports.js';
import type { NodeReply, NodeView } from '../protocol/types.js';
import { markForeign } from './cluster-name.js';
import { membershipOf } from './membership.js';
import { summarize } from './model.js';
import type { ClusterView, NodeProbe, SummarizeOptions } from './cluster-view.js';
import { proveCommitted } from './proof.js';

export interface InspectOptions extends SummarizeOptions {
  nodes: readonly NodePort[];
  /** Per call (nodeTimeout). */
  limitMs: number;
  clock: Clock;
  /** What a round just before this one brought: a node that did not answer then is not waited for a second time. */
  known?: ReadonlyMap<string, NodeReply<NodeView>>;
  /** Looks twice in any case: the second round trip is measured on open connections, without the handshake. */
  twice?: boolean;
}

export async function inspectCluster(options: InspectOptions): Promise<ClusterView> {
  return (await inspectWithProbes(options)).view;
}

/** The view together with what the nodes said. */
export async function inspectWithProbes(options: InspectOptions): Promise<{ view: ClusterView; probes: NodeProbe[] }> {
  const first = markForeign(await probeNodes(options), options.expectedCluster);
  const view = summarize(first, options);
  const unsettled = view.pending !== null || view.committed?.hash === null || view.nodes.some((n) => (n.lag ?? 0) > 0);
  if (!unsettled && !options.twice) return { view, probes: first };
  const answering = new Set(first.filter((o) => o.reply.outcome === 'accepted').map((o) => o.id));
  const again = await probeNodes({
    ...options,
    nodes: options.nodes.filter((n) => answering.has(n.id)),
    known: undefined,
  });
  const latest = first.map((o) => again.find((a) => a.id === o.id && a.reply.outcome === 'accepted') ?? o);
  const second = await addHeadEntries(markForeign(latest, options.expectedCluster), options);
  return {
    view: summarize(second, { ...options, earlier: { committed: view.committed, pending: view.pending } }),
    probes: second,
  };
}

/** One inspect per node. Resolves when the last has answered or run out of time. */
export async function probeNodes({
  nodes,
  limitMs,
  clock,
  known,
}: Pick<InspectOptions, 'nodes' | 'limitMs' | 'clock' | 'known'>): Promise<NodeProbe[]> {
  return Promise.all(
    nodes.map(async (node) => {
      const before = known?.get(node.id);
      if (before?.outcome === 'unknown') return { id: node.id, url: node.url, reply: before, rttMs: null };
      const startedAt = clock.now();
      const reply = await bounded(node.call({ script: 'inspect' }, limitMs), limitMs, clock);
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

/** Reads the head's header where no quorum shares a head: its parent names the committed block. */
async function addHeadEntries(
  probes: NodeProbe[],
  { nodes, limitMs, clock, expectedCluster }: InspectOptions,
): Promise<NodeProbe[]> {
  const { members } = membershipOf(probes, expectedCluster);
  const views = members.flatMap((o) => (o.reply.outcome === 'accepted' ? [{ id: o.id, view: o.reply.value }] : []));
  const proof = proveCommitted(
    views.map(({ id, view }) => ({ id, admitted: view.admission === 'admitted', facts: view, headEntry: null })),
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
