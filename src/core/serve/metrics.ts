// The numbers of one sequencer for Prometheus, prefix `seq_`, in a registry of its own. Counters come from SeqEvent.
// The present state (role, lease, inbox) is read from status() at scrape time, so that a gauge is never older than the
// scrape. Every sample has the labels `cluster` and `lane`, so that one rule serves several clusters.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { SeqEvent } from '../events.js';
import type { SequencerStatus } from '../ports.js';
import { ClusterMetrics, type ClusterReading } from './cluster-metrics.js';

const ROLES = ['follower', 'promoting', 'leader', 'stopping'] as const;
/** From a part of a millisecond to some seconds: commits, syncs of the store, requests, phases of a takeover. */
export const BUCKETS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** A follower that catches up commits faster than its store syncs. Beyond this, syncs are not measured. */
const MOST_UNSYNCED = 1024;

export interface MetricsOptions {
  /** Of the program. */
  version?: string;
  /** Reads the nodes, for the figures of each node and for the findings. Absent: those are not shown. */
  readCluster?: () => Promise<ClusterReading>;
}

/** What the HTTP server tells its metrics, and asks of them. */
export interface ServerMetrics {
  observe(event: SeqEvent): void;
  submitted(outcome: string, items: number): void;
  answered(answer: { route: string; method: string; status: number; ms: number | null }): void;
  render(status: SequencerStatus, feeds: number): Promise<{ type: string; text: string }>;
}

export class Metrics implements ServerMetrics {
  readonly #registry = new Registry();
  readonly #counters;
  readonly #gauges;
  readonly #times;
  readonly #cluster: ClusterMetrics | undefined;
  readonly #version: string;
  /** When each block that is not synced yet was committed, by height. */
  readonly #unsynced = new Map<number, number>();
  /** Noted while a takeover runs, and counted at the next scrape: nothing waits for a histogram meanwhile. */
  #phases: { phase: 'claim' | 'first_block'; seconds: number }[] = [];
  #promotingAt: number | null = null;
  #leadingAt: number | null = null;

  constructor(options: MetricsOptions = {}) {
    this.#version = options.version ?? '';
    const registers = [this.#registry];
    const counter = (name: string, help: string, labelNames: string[] = []) =>
      new Counter({ name: `seq_${name}`, help, labelNames, registers });
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name: `seq_${name}`, help, labelNames, registers });
    this.#counters = {
      blocks: counter('committed_blocks_total', 'Blocks committed, by the part this sequencer had in it', ['by']),
      items: counter('committed_items_total', 'Items in committed blocks'),
      bytes: counter('committed_bytes_total', 'Payload bytes of committed blocks'),
      elections: counter('elections_total', 'Promotions tried by this sequencer', ['result']),
      stepdowns: counter('stepdowns_total', 'Terms of this sequencer that ended', ['code']),
      renewals: counter('term_renewals_total', 'Terms renewed to regain a node'),
      alarms: counter('alarms_total', 'Alarms raised', ['code']),
      producer: counter('producer_failures_total', 'Failures of the producer'),
      backfilled: counter('backfilled_blocks_total', 'Blocks copied to a node that lacked them', ['node']),
      submissions: counter('submissions_total', 'Submitted items over HTTP, by outcome', ['outcome']),
      requests: counter('http_requests_total', 'HTTP requests that were answered', ['route', 'method', 'status']),
    };
    this.#gauges = {
      info: gauge('info', 'Constant 1, who this is', ['id']),
      build: gauge('build_info', 'Constant 1, what runs', ['version', 'node_version']),
      height: gauge('committed_height', 'Highest committed height known'),
      stored: gauge('store_height', 'Highest block in the local store, synced'),
      role: gauge('role', '1 for the role this sequencer has', ['role']),
      epoch: gauge('epoch', 'Epoch of the term held, 0 without one'),
      lease: gauge('lease_seconds', 'Lease validity left as this process counts it'),
      ready: gauge('ready', '1 when it could lead'),
      inboxItems: gauge('inbox_items', 'Items waiting for a block'),
      inboxBytes: gauge('inbox_bytes', 'Bytes waiting for a block'),
      inboxLimit: gauge('inbox_limit_bytes', 'Bytes the inbox takes before it answers busy'),
      node: gauge('node_state', '1 for the state each node is in', ['node', 'state']),
      loopAge: gauge('loop_age_seconds', 'Time since the main loop last turned'),
      memory: gauge('resident_memory_bytes', 'Resident memory of the process'),
      started: gauge('start_time_seconds', 'When it started, seconds since the epoch of Unix'),
      alarmAt: gauge('alarm_timestamp_seconds', 'When this alarm was last raised, seconds since the epoch of Unix', [
        'code',
      ]),
      stepdownAt: gauge('stepdown_timestamp_seconds', 'When a term last ended so, seconds since the epoch of Unix', [
        'code',
      ]),
      feeds: gauge('feeds', 'Live feeds being served'),
    };
    // The first promotion must be a step from 0, not a series that begins with 1.
    for (const result of ['won', 'failed']) this.#counters.elections.inc({ result }, 0);
    const histogram = (name: string, help: string, labelNames: string[] = []) =>
      new Histogram({ name: `seq_${name}`, help, labelNames, registers, buckets: BUCKETS });
    this.#times = {
      commit: histogram('commit_seconds', 'From proposal to acceptance by a quorum, blocks of this leader'),
      sync: histogram('store_sync_seconds', 'From the commit of a block to its sync in the local store'),
      takeover: histogram(
        'takeover_seconds',
        'Phases of taking over: claim (from the promotion until it leads), first_block (until its first commit)',
        ['phase'],
      ),
      request: histogram('http_request_seconds', 'Time until an HTTP request was answered', ['route']),
    };
    if (options.readCluster) this.#cluster = new ClusterMetrics(this.#registry, options.readCluster);
  }

  observe(event: SeqEvent): void {
    const count = this.#counters;
    switch (event.type) {
      case 'committed':
        count.blocks.inc({ by: event.by });
        count.items.inc(event.items);
        count.bytes.inc(event.bytes);
        if (event.by === 'leader') this.#times.commit.observe(event.commitMs / 1000);
        if (this.#unsynced.size < MOST_UNSYNCED) this.#unsynced.set(event.height, performance.now());
        if (this.#leadingAt !== null) {
          this.#phases.push({ phase: 'first_block', seconds: (performance.now() - this.#leadingAt) / 1000 });
          this.#leadingAt = null;
        }
        break;
      case 'stored':
        this.#synced(event.height);
        break;
      case 'role':
        this.#changed(event.to);
        if (event.to === 'leader') count.elections.inc({ result: 'won' });
        break;
      case 'promotion-failed':
        count.elections.inc({ result: 'failed' });
        break;
      case 'leadership-ended':
        count.stepdowns.inc({ code: event.code });
        this.#gauges.stepdownAt.set({ code: event.code }, Date.now() / 1000);
        break;
      case 'term-renewed':
        count.renewals.inc();
        break;
      case 'alarm':
        count.alarms.inc({ code: event.code });
        this.#gauges.alarmAt.set({ code: event.code }, Date.now() / 1000);
        break;
      case 'producer':
        if (event.state === 'failed') count.producer.inc();
        break;
      case 'backfill':
        count.backfilled.inc({ node: event.node }, Math.max(0, event.to - event.from + 1));
        break;
      default:
        break;
    }
  }

  #synced(height: number): void {
    const committedAt = this.#unsynced.get(height);
    if (committedAt === undefined) return;
    this.#unsynced.delete(height);
    this.#times.sync.observe((performance.now() - committedAt) / 1000);
  }

  #changed(to: string): void {
    const now = performance.now();
    if (to === 'leader' && this.#promotingAt !== null)
      this.#phases.push({ phase: 'claim', seconds: (now - this.#promotingAt) / 1000 });
    this.#promotingAt = to === 'promoting' ? now : null;
    this.#leadingAt = to === 'leader' ? now : null;
  }

  submitted(outcome: string, items: number): void {
    this.#counters.submissions.inc({ outcome }, items);
  }

  /**
   * `route` is the pattern of the path, never the path itself: heights must not become labels. `ms` is null for a feed,
   * which ends when its reader leaves.
   */
  answered({ route, method, status, ms }: { route: string; method: string; status: number; ms: number | null }): void {
    this.#counters.requests.inc({ route, method, status });
    if (ms !== null) this.#times.request.observe({ route }, ms / 1000);
  }

  async render(status: SequencerStatus, feeds: number): Promise<{ type: string; text: string }> {
    await this.#cluster?.update(performance.now());
    for (const { phase, seconds } of this.#phases.splice(0)) this.#times.takeover.observe({ phase }, seconds);
    const lane = status.lane === '' ? {} : { lane: status.lane };
    this.#registry.setDefaultLabels({ cluster: status.cluster, ...lane });
    const show = this.#gauges;
    show.info.set({ id: status.id }, 1);
    show.build.set({ version: this.#version, node_version: process.version }, 1);
    show.height.set(Math.max(status.height, status.seenHeight));
    show.stored.set(status.height);
    for (const role of ROLES) show.role.set({ role }, role === status.role ? 1 : 0);
    show.epoch.set(status.epoch);
    show.lease.set(Math.max(0, status.leaseMs) / 1000);
    show.ready.set(status.ready ? 1 : 0);
    show.inboxItems.set(status.inbox.items);
    show.inboxBytes.set(status.inbox.bytes);
    show.inboxLimit.set(status.inbox.limitBytes);
    show.node.reset();
    for (const node of status.nodes) show.node.set({ node: node.id, state: node.state }, 1);
    show.loopAge.set(status.loopAgeMs / 1000);
    show.memory.set(process.memoryUsage.rss());
    show.started.set(status.startedAtMs / 1000);
    show.feeds.set(feeds);
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}
