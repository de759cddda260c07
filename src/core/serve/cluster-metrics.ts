// What the nodes show at the time of a scrape, judged as `seq status` judges it: findings, and the figures of each
// node. The sequencer's own events cannot tell this, because a follower asks nodes rarely and a leader asks only what
// it needs. Several scrapes at a time share one reading.
import { Counter, Gauge, type Registry } from 'prom-client';

/** What is known of one node. null: it did not answer, or did not say. */
export interface NodeReading {
  id: string;
  latencyMs: number | null;
  lagBlocks: number | null;
  epoch: number | null;
  /** It may vote. */
  admitted: boolean;
  /** Connections that were lost since this process started. */
  lostConnections: number;
  /** How far its clock is ahead of the median of the nodes' clocks. */
  clockAheadMs: number | null;
  usedMemoryBytes: number | null;
  /** null: no limit, or not known. */
  maxMemoryBytes: number | null;
}

/** One reading of the whole cluster. */
export interface ClusterReading {
  verdict: string;
  /** All of them, not only the worst one. */
  findings: readonly { code: string; verdict: string }[];
  nodes: readonly NodeReading[];
  quorum: number;
  /** How many more nodes may fail. */
  margin: number;
  /** The epoch and the turn of the newest configuration that the nodes know. */
  configuration: { epoch: number; turn: number } | null;
  /** How far the clock of this sequencer is ahead of that median. */
  clockAheadMs: number | null;
  storeFreeBytes: number | null;
}

const VERDICTS = ['OK', 'WARN', 'CRIT', 'UNKNOWN'];
/** However many scrapers there are, the nodes are asked no more often. */
const EVERY_MS = 1000;

export class ClusterMetrics {
  readonly #gauges;
  readonly #reconnects: Counter;
  #reading: Promise<ClusterReading | null> | undefined;
  #readAt = -Infinity;

  constructor(
    registry: Registry,
    private readonly read: () => Promise<ClusterReading>,
  ) {
    const registers = [registry];
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name: `seq_${name}`, help, labelNames, registers });
    this.#reconnects = new Counter({
      name: 'seq_node_reconnects_total',
      help: 'Connections to the node that this process lost',
      labelNames: ['node'],
      registers,
    });
    this.#gauges = {
      verdict: gauge('verdict', '1 for the verdict on the cluster, as seq status gives it', ['verdict']),
      finding: gauge('finding', '1 for each code that seq status finds now', ['code', 'verdict']),
      quorum: gauge('quorum', 'Nodes that must agree'),
      margin: gauge('margin', 'Nodes that may still fail; negative: nodes that are missing'),
      configuration: gauge('configuration_version', 'Newest configuration of the members, by its parts', ['part']),
      up: gauge('node_up', '1 when the node answered just now', ['node']),
      admitted: gauge('node_admitted', '1 when the node may vote', ['node']),
      latency: gauge('node_latency_seconds', 'Round trip of one question to the node', ['node']),
      lag: gauge('node_lag_blocks', 'Committed blocks that the node lacks', ['node']),
      epoch: gauge('node_epoch', 'Fencing epoch of the node', ['node']),
      clock: gauge(
        'node_clock_difference_seconds',
        "How far the node's clock is ahead of the median of the nodes' clocks",
        ['node'],
      ),
      used: gauge('node_memory_used_bytes', "Memory of the node's server", ['node']),
      most: gauge('node_memory_limit_bytes', "maxmemory of the node's server", ['node']),
      ownClock: gauge(
        'clock_difference_seconds',
        "How far this sequencer's clock is ahead of the median of the nodes' clocks",
      ),
      free: gauge('store_free_bytes', "Free space on the disk of this sequencer's store"),
      failed: gauge('reading_failed', '1 when the nodes could not be read for this scrape'),
    };
  }

  /** Asks the nodes, and shows what they answered. What is not known has no sample. */
  async update(nowMs: number): Promise<void> {
    if (nowMs - this.#readAt >= EVERY_MS) {
      this.#readAt = nowMs;
      this.#reading = this.read().catch(() => null);
    }
    this.show((await this.#reading) ?? null);
  }

  private show(reading: ClusterReading | null): void {
    const show = this.#gauges;
    for (const gauge of Object.values(show)) gauge.reset();
    this.#reconnects.reset();
    // An unset gauge without labels would read 0, and 0 is an answer.
    const set = (gauge: Gauge, value: number | null, node: string) => {
      if (value !== null) gauge.set({ node }, value);
    };
    const setOwn = (gauge: Gauge, value: number | null | undefined) => {
      if (value === null || value === undefined) gauge.remove();
      else gauge.set(value);
    };
    setOwn(show.failed, reading === null ? 1 : 0);
    setOwn(show.quorum, reading?.quorum);
    setOwn(show.margin, reading?.margin);
    setOwn(show.ownClock, seconds(reading?.clockAheadMs ?? null));
    setOwn(show.free, reading?.storeFreeBytes);
    if (reading === null) return;
    for (const verdict of VERDICTS) show.verdict.set({ verdict }, verdict === reading.verdict ? 1 : 0);
    for (const { code, verdict } of reading.findings) show.finding.set({ code, verdict }, 1);
    if (reading.configuration !== null)
      for (const [part, value] of Object.entries(reading.configuration)) show.configuration.set({ part }, value);
    for (const node of reading.nodes) {
      show.up.set({ node: node.id }, node.latencyMs === null ? 0 : 1);
      show.admitted.set({ node: node.id }, node.admitted ? 1 : 0);
      this.#reconnects.inc({ node: node.id }, node.lostConnections);
      set(show.latency, seconds(node.latencyMs), node.id);
      set(show.lag, node.lagBlocks, node.id);
      set(show.epoch, node.epoch, node.id);
      set(show.clock, seconds(node.clockAheadMs), node.id);
      set(show.used, node.usedMemoryBytes, node.id);
      set(show.most, node.maxMemoryBytes, node.id);
    }
  }
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1000;
}
