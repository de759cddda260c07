// What a running sequencer tells a scraper about the nodes: it asks them once, as `seq status` does, and judges the
// answers by the same rules. So an alert and `seq status` never contradict each other. It runs at a scrape and at no
// other time.
import { medianClock, readingOf } from '../../core/nodes/node-clocks.js';
import type { SequencerApi } from '../../core/ports.js';
import { newest } from '../../core/protocol/configuration.js';
import type { NodeProbe, NodeRow } from '../../core/view/cluster-view.js';
import { inspectWithProbes } from '../../core/view/inspect.js';
import type { ClusterReading, NodeReading } from '../../core/serve/cluster-metrics.js';
import type { Cluster } from './open-cluster.js';

/** `facts`: this sequencer's presence record, for the space on its disk. */
export function clusterReader(
  cluster: Cluster,
  sequencer: Pick<SequencerApi, 'status'>,
  facts: Record<string, string>,
): () => Promise<ClusterReading> {
  const { clock } = cluster;
  return async () => {
    // A sequencer keeps the connections of a node that was removed. Such a node is no member, and nobody's concern.
    const members = new Set(sequencer.status().nodes.map(({ id }) => id));
    const nodes = cluster.nodes.filter(({ id }) => members.has(id));
    const { view, probes } = await inspectWithProbes({
      nodes,
      limitMs: cluster.nodeTimeoutMs,
      clock,
      expectedCluster: cluster.identity.cluster,
    });
    const clocks = clockReadings(probes);
    const median = medianClock(clocks.values(), view.quorum);
    const ahead = (ms: number | undefined) => (median === null || ms === undefined ? null : ms - median.ms);
    const configuration = newest(
      ...probes
        .map(({ reply }) => (reply.outcome === 'accepted' ? reply.value.config : ''))
        .filter((one) => one !== ''),
    );
    return {
      verdict: view.verdict,
      findings: view.findings.map(({ code, verdict }) => ({ code, verdict })),
      nodes: view.nodes.map((row) => ({
        ...nodeReading(row),
        lostConnections: nodes.find(({ id }) => id === row.id)?.connectionGeneration ?? 0,
        clockAheadMs: ahead(clocks.get(row.id)?.ms),
      })),
      quorum: view.quorum,
      margin: view.margin,
      configuration: configuration?.version ?? null,
      clockAheadMs: ahead(clock.wall() - clock.now()),
      storeFreeBytes: numberOf(facts['storeFreeBytes']),
    };
  };
}

function nodeReading(row: NodeRow): Omit<NodeReading, 'lostConnections' | 'clockAheadMs'> {
  const limit = numberOf(row.info['maxmemory']);
  return {
    id: row.id,
    latencyMs: row.rttMs,
    lagBlocks: row.lag,
    epoch: row.epoch,
    admitted: row.admitted,
    usedMemoryBytes: numberOf(row.info['used_memory']),
    maxMemoryBytes: limit === 0 ? null : limit,
  };
}

/** Each node's clock against the monotonic clock of this process. */
function clockReadings(probes: readonly NodeProbe[]) {
  return new Map(
    probes.flatMap(({ id, reply, rttMs, askedAt }) =>
      reply.outcome !== 'accepted' || reply.value.admission === 'foreign' || rttMs === null || askedAt === undefined
        ? []
        : [[id, readingOf(reply.value.timeMs, askedAt, askedAt + rttMs)] as const],
    ),
  );
}

function numberOf(text: string | undefined): number | null {
  const number = text === undefined || text === '' ? NaN : Number(text);
  return Number.isFinite(number) ? number : null;
}
