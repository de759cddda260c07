// The numbers of one sequencer for Prometheus, prefix `seq_`, in a registry of its own. Counters come from SeqEvent.
// The present state (role, lease, inbox) is read from status() at scrape time, so that a gauge is never older than the
// scrape.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { SeqEvent } from '../events.js';
import type { SequencerStatus } from '../ports.js';

const ROLES = ['follower', 'promoting', 'leader', 'stopping'] as const;

export class Metrics {
  readonly #registry = new Registry();
  readonly #counters;
  readonly #gauges;
  readonly #commit: Histogram;

  constructor() {
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
    };
    this.#gauges = {
      info: gauge('info', 'Constant 1, who this is', ['id', 'cluster', 'lane']),
      height: gauge('committed_height', 'Highest committed height known'),
      stored: gauge('store_height', 'Highest block in the local store, synced'),
      role: gauge('role', '1 for the role this sequencer has', ['role']),
      epoch: gauge('epoch', 'Epoch of the term held, 0 without one'),
      lease: gauge('lease_ms', 'Lease validity left as this process counts it, ms'),
      ready: gauge('ready', '1 when it could lead'),
      inboxItems: gauge('inbox_items', 'Items waiting for a block'),
      inboxBytes: gauge('inbox_bytes', 'Bytes waiting for a block'),
      inboxLimit: gauge('inbox_limit_bytes', 'Bytes the inbox takes before it answers busy'),
      node: gauge('node_state', '1 for the state each node is in', ['node', 'state']),
      loopAge: gauge('loop_age_ms', 'Time since the main loop last turned, ms'),
      memory: gauge('resident_memory_bytes', 'Resident memory of the process'),
      started: gauge('start_time_seconds', 'When it started, seconds since the epoch of Unix'),
      feeds: gauge('feeds', 'Live feeds being served'),
    };
    this.#commit = new Histogram({
      name: 'seq_commit_seconds',
      help: 'From proposal to acceptance by a quorum, blocks of this leader',
      registers,
      buckets: [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    });
  }

  observe(event: SeqEvent): void {
    const count = this.#counters;
    switch (event.type) {
      case 'committed':
        count.blocks.inc({ by: event.by });
        count.items.inc(event.items);
        count.bytes.inc(event.bytes);
        if (event.by === 'leader') this.#commit.observe(event.commitMs / 1000);
        break;
      case 'role':
        if (event.to === 'leader') count.elections.inc({ result: 'won' });
        break;
      case 'promotion-failed':
        count.elections.inc({ result: 'failed' });
        break;
      case 'leadership-ended':
        count.stepdowns.inc({ code: event.code });
        break;
      case 'term-renewed':
        count.renewals.inc();
        break;
      case 'alarm':
        count.alarms.inc({ code: event.code });
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

  submitted(outcome: string, items: number): void {
    this.#counters.submissions.inc({ outcome }, items);
  }

  async render(status: SequencerStatus, feeds: number): Promise<{ type: string; text: string }> {
    const show = this.#gauges;
    show.info.set({ id: status.id, cluster: status.cluster, lane: status.lane }, 1);
    show.height.set(Math.max(status.height, status.seenHeight));
    show.stored.set(status.height);
    for (const role of ROLES) show.role.set({ role }, role === status.role ? 1 : 0);
    show.epoch.set(status.epoch);
    show.lease.set(Math.max(0, status.leaseMs));
    show.ready.set(status.ready ? 1 : 0);
    show.inboxItems.set(status.inbox.items);
    show.inboxBytes.set(status.inbox.bytes);
    show.inboxLimit.set(status.inbox.limitBytes);
    show.node.reset();
    for (const node of status.nodes) show.node.set({ node: node.id, state: node.state }, 1);
    show.loopAge.set(status.loopAgeMs);
    show.memory.set(process.memoryUsage.rss());
    show.started.set(status.startedAtMs / 1000);
    show.feeds.set(feeds);
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }
}
