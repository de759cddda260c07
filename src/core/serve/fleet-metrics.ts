// The numbers of a process that runs many lanes, for Prometheus. Totals over all lanes, and how many lanes have which
// role. There is no label for each lane: a thousand lanes would be a thousand series of everything.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { SeqEvent } from '../events.js';
import { countLanes, type LaneDirectory } from './lanes.js';
import { BUCKETS, type ServerMetrics } from './metrics.js';

export interface FleetMetricsOptions {
  id: string;
  cluster: string;
  version: string;
  directory: LaneDirectory;
}

export class FleetMetrics implements ServerMetrics {
  readonly #registry = new Registry();
  readonly #counters;
  readonly #gauges;
  readonly #times;

  constructor(private readonly options: FleetMetricsOptions) {
    const registers = [this.#registry];
    const counter = (name: string, help: string, labelNames: string[] = []) =>
      new Counter({ name: `seq_${name}`, help, labelNames, registers });
    const gauge = (name: string, help: string, labelNames: string[] = []) =>
      new Gauge({ name: `seq_${name}`, help, labelNames, registers });
    const histogram = (name: string, help: string, labelNames: string[] = []) =>
      new Histogram({ name: `seq_${name}`, help, labelNames, registers, buckets: BUCKETS });
    this.#counters = {
      blocks: counter('committed_blocks_total', 'Blocks committed, by the part this sequencer had in it', ['by']),
      items: counter('committed_items_total', 'Items in committed blocks'),
      bytes: counter('committed_bytes_total', 'Payload bytes of committed blocks'),
      elections: counter('elections_total', 'Promotions tried by this sequencer', ['result']),
      stepdowns: counter('stepdowns_total', 'Terms of this sequencer that ended', ['code']),
      alarms: counter('alarms_total', 'Alarms raised', ['code']),
      failures: counter('lane_failures_total', 'Lanes that ended with an error and were tried again'),
      submissions: counter('submissions_total', 'Submitted items over HTTP, by outcome', ['outcome']),
      requests: counter('http_requests_total', 'HTTP requests that were answered', ['route', 'method', 'status']),
    };
    this.#gauges = {
      info: gauge('info', 'Constant 1, who this is', ['id']),
      build: gauge('build_info', 'Constant 1, what runs', ['version', 'node_version']),
      lanes: gauge('lanes', 'Lanes of this process, by role', ['role']),
      wanted: gauge('lanes_wanted', 'Lanes that should run in this process'),
      ready: gauge('lanes_ready', 'Lanes that this sequencer leads or could lead'),
      inboxItems: gauge('inbox_items', 'Items waiting for a block'),
      inboxBytes: gauge('inbox_bytes', 'Bytes waiting for a block'),
      memory: gauge('resident_memory_bytes', 'Resident memory of the process'),
      feeds: gauge('feeds', 'Live feeds being served'),
    };
    this.#times = {
      commit: histogram('commit_seconds', 'From proposal to acceptance by a quorum, blocks of this leader'),
      request: histogram('http_request_seconds', 'Time until an HTTP request was answered', ['route']),
    };
  }

  observe(event: SeqEvent): void {
    const count = this.#counters;
    if (event.type === 'committed') {
      count.blocks.inc({ by: event.by });
      count.items.inc(event.items);
      count.bytes.inc(event.bytes);
      if (event.by === 'leader') this.#times.commit.observe(event.commitMs / 1000);
    } else if (event.type === 'role' && event.to === 'leader') count.elections.inc({ result: 'won' });
    else if (event.type === 'promotion-failed') count.elections.inc({ result: 'failed' });
    else if (event.type === 'leadership-ended') count.stepdowns.inc({ code: event.code });
    else if (event.type === 'alarm') count.alarms.inc({ code: event.code });
    else if (event.type === 'fatal-error') count.failures.inc();
  }

  submitted(outcome: string, items: number): void {
    this.#counters.submissions.inc({ outcome }, items);
  }

  answered({ route, method, status, ms }: { route: string; method: string; status: number; ms: number | null }): void {
    this.#counters.requests.inc({ route, method, status });
    if (ms !== null) this.#times.request.observe({ route }, ms / 1000);
  }

  async render(_status: unknown, feeds: number): Promise<{ type: string; text: string }> {
    const { id, cluster, version, directory } = this.options;
    this.#registry.setDefaultLabels({ cluster });
    const counts = countLanes(directory);
    const show = this.#gauges;
    show.info.set({ id }, 1);
    show.build.set({ version, node_version: process.version }, 1);
    for (const role of ['leader', 'follower', 'promoting'] as const) show.lanes.set({ role }, counts[role]);
    show.wanted.set(counts.wanted);
    show.ready.set(counts.ready);
    show.inboxItems.set(counts.inboxItems);
    show.inboxBytes.set(counts.inboxBytes);
    show.memory.set(process.memoryUsage.rss());
    show.feeds.set(feeds);
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}
