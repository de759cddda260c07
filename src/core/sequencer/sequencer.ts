// One sequencer: it follows, promotes, leads, steps down and follows again (docs/PROTOCOL.md sections 5–7). This file
// joins the parts. The rules are in the parts. When a term ends, for whatever reason, the process is a warm follower
// again at once, without a restart.
import type { ErrorCode } from '../error-codes.js';
import { genesisHash } from '../chain/block.js';
import { itemCountOf } from '../chain/items.js';
import type { SeqError } from '../errors.js';
import type { StopCode } from '../events.js';
import { familyOf } from '../generation.js';
import { pause } from '../nodes/pause.js';
import type { CommittedBlock, Item, NodePort, SequencerApi, SequencerStatus, SubmitOutcome } from '../ports.js';
import type { LedgerAnomaly } from '../protocol/ledger.js';
import { stepdownCode } from '../protocol/term-codes.js';
import type { Block, Epoch, Height } from '../protocol/types.js';
import { ClockWatch } from './clock-watch.js';
import { ChainTime, timesOf, type HeardTime } from './lead/chain-time.js';
import { BlockFeed } from './block-feed.js';
import { RecentBlockTimes } from './block-times.js';
import { BringUp } from './follow/bring-up.js';
import { whereTheyPart } from '../stream/divergence.js';
import { DiskWatch } from './disk-watch.js';
import { DamageReports } from './lead/damage-reports.js';
import { CommitPipeline } from './commit-pipeline.js';
import { linkPace } from './follow/link-pace.js';
import { Follower } from './follow/follower.js';
import { fatalError } from './fatal-error.js';
import { LeaderRequests } from './leader-requests.js';
import { localChain } from './local-chain.js';
import {
  blockedBy,
  laneRemovedOn,
  probe,
  recoveredTo,
  unconfigured,
  votesOf,
  type ProbeResult,
} from '../nodes/probe.js';
import { Membership } from './lead/membership.js';
import { NodeAddresses } from './lead/node-addresses.js';
import { nodeListDigest, OwnPresence } from './own-presence.js';
import { Presences } from './presence.js';
import { StoreRepairs } from './store-repairs.js';
import { BlockBuilder } from './lead/block-builder.js';
import { Eligibility } from './follow/eligibility.js';
import { LaneProducer } from './lead/lane-producer.js';
import { Leadership } from './lead/leadership.js';
import { Renewals } from './lead/term-renewal.js';
import type { SequencerOptions } from './options.js';
import { RetryBackoff } from './lead/retry-backoff.js';
import { ClusterState } from './follow/cluster-state.js';
import { describeTwin, Twin } from './twin.js';
import { Retention, type MemoryFact } from './lead/retention.js';

/** Equally eligible candidates try one after the other, this far apart, so that they do not split the votes. */
const STAGGER_MS = 15;
/** A lane that waits for a slot to be promoted asks again after this long, and up to twice as long. */
const SLOT_AGAIN_MS = 250;
/** How long a leader that stops waits to see its successor, and how often it probes. */
const SUCCESSOR_LIMIT_MS = 400;
const SUCCESSOR_PROBE_MS = 5;
/** Before this time nobody can have taken over, and a probe would delay the successor. */
const SUCCESSOR_FIRST_MS = 8;
/** A leader that has stopped writes its last record this much later, so that it does not delay its successor. */
const AFTER_RELEASE_MS = 30;
/** A sync may take as long as a lease, and at least this long: a busy disk is no disk that hangs. */
const SYNC_LIMIT_MS = 1000;
/** How many polls apart a node is sought at its other address. */
const ADDRESS_POLLS = 4;
const KEYS_IN_DOUBT = 'its store makes anew what it remembers of keys';
/** A follower holds at most this much payload of one node, when every block is as large as allowed. */
const FOLLOW_BYTES = 16 * 1024 * 1024;

export type { SequencerOptions } from './options.js';

export class Sequencer implements SequencerApi {
  private role: SequencerStatus['role'] = 'follower';
  private readonly pipeline: CommitPipeline;
  private readonly follower: Follower;
  private readonly blockBuilder: BlockBuilder;
  private readonly presences: Presences;
  private term: Promise<void> | null = null;
  private readonly clusterState: ClusterState;
  private readonly chainTime: ChainTime;
  private readonly clocks: ClockWatch;
  private readonly leadership: Leadership;
  private readonly eligibility: Eligibility;
  private notBefore = 0;
  /** Why it could not be promoted although it is ready. */
  private blocked = '';
  private freeSince: number | null = null;
  private anomalies = 0;
  /** It is stopping and waits to see its successor. */
  private awaitingSuccessor = false;
  private readonly backoff: RetryBackoff;
  private readonly membership: Membership;
  private readonly addresses: NodeAddresses;
  private readonly retention: Retention;
  private readonly damage: DamageReports;
  private readonly renewals: Renewals;
  private readonly requests: LeaderRequests;
  private readonly bringUp: BringUp;
  private readonly feed: BlockFeed;
  private readonly times: RecentBlockTimes;
  private readonly own: OwnPresence;
  private readonly twin: Twin;
  private readonly storeRepairs: StoreRepairs;
  private readonly disk: DiskWatch;
  private readonly laneProducer: LaneProducer | null;
  private readonly ended = new AbortController();
  private stopping: Promise<void> | null = null;
  /** Submissions that wait for somebody to lead, in the order they came. */
  private readonly successorWaiters = new Set<(status: SequencerStatus) => void>();
  private turnedAt: number;
  private readonly startedAtMs: number;
  private stopHints: (() => void)[] = [];
  private settleFailure!: (error: SeqError) => void;
  /** Resolves with the reason when this sequencer cannot go on by itself. */
  readonly failure: Promise<SeqError>;

  private toldUnconfigured = false;
  /** Another lane of this process may be promoted. */
  private releaseSlot: () => void = () => {};

  constructor(private readonly options: SequencerOptions) {
    const { nodes, clock, store, timing, limits, producer, emit } = options;
    this.turnedAt = clock.now();
    this.startedAtMs = clock.wall();
    this.times = new RecentBlockTimes(() => clock.wall());
    this.failure = new Promise((resolve) => (this.settleFailure = resolve));
    // A part that needs a later one is given a function, which is called only when all of them are there.
    this.membership = this.makeMembership();
    this.addresses = this.makeAddresses();
    this.chainTime = new ChainTime(() => this.membership.quorum);
    this.clocks = new ClockWatch(emit);
    this.clusterState = new ClusterState(nodes, this.membership, emit);
    this.backoff = new RetryBackoff({ firstMs: timing.retryMs, mostMs: Math.max(5000, 2 * timing.ttlMs) });
    this.damage = new DamageReports({ ...options, leader: () => this.clusterState.leader });
    this.disk = this.makeDiskWatch();
    this.laneProducer = this.makeLaneProducer();
    this.eligibility = this.makeEligibility();
    this.renewals = new Renewals(options);
    this.requests = this.makeRequests();
    this.own = new OwnPresence(store, limits);
    this.twin = new Twin({ id: options.id, instance: options.instance ?? '', startedAtMs: this.startedAtMs });
    this.feed = new BlockFeed({ store, reached: () => this.pipeline.height, over: () => this.stopping !== null });
    this.bringUp = this.makeBringUp();
    this.storeRepairs = this.makeStoreRepairs();
    this.pipeline = this.makePipeline();
    this.follower = this.makeFollower();
    this.blockBuilder = this.makeBlockBuilder();
    this.retention = this.makeRetention();
    this.presences = this.makePresences();
    this.leadership = this.makeLeadership();
    producer.onFailure((why) => {
      emit({ type: 'producer', state: 'failed', why });
      this.leadership.driver?.stepdown('PRODUCER_FAILED', why);
    });
  }

  private makeMembership(): Membership {
    const { nodes, identity, openNode, adoptNodes = true } = this.options;
    return new Membership({
      nodes,
      cluster: identity.cluster,
      ...(openNode === undefined ? {} : { open: openNode }),
      adopts: adoptNodes,
      changed: () => {
        this.follower.restart();
        this.presences.announceSoon();
      },
      opened: (id) => this.memberOpened(id),
    });
  }

  private makeAddresses(): NodeAddresses {
    const { nodes, clock, identity, timing, emit } = this.options;
    return new NodeAddresses({
      ...{ nodes, clock, emit },
      cluster: identity.cluster,
      everyMs: ADDRESS_POLLS * timing.pollMs,
      nodeTimeoutMs: timing.nodeTimeoutMs,
      configuration: () => this.membership.configuration,
    });
  }

  private makeDiskWatch(): DiskWatch {
    const { clock, store, timing } = this.options;
    return new DiskWatch({
      clock,
      boundMs: Math.max(timing.ttlMs, SYNC_LIMIT_MS),
      ...(store.checkDisk === undefined ? {} : { check: () => store.checkDisk!() }),
      over: () => this.ended.signal.aborted,
      changed: () => this.diskChanged(),
    });
  }

  private makeLaneProducer(): LaneProducer | null {
    const { agreedProducer, store } = this.options;
    if (agreedProducer === undefined) return null;
    return new LaneProducer({ ...agreedProducer, store, configuration: () => this.membership.configuration });
  }

  private makeEligibility(): Eligibility {
    const { id, clock, store, producer, emit } = this.options;
    return new Eligibility({
      id,
      quorum: () => this.membership.quorum,
      producer,
      backoff: this.backoff,
      clock,
      emit,
      disk: () => this.disk.why || (store.keysInDoubt === true ? KEYS_IN_DOUBT : ''),
      height: () => store.head().height,
      pace: (seen) =>
        linkPace(
          this.membership.nodes.map(({ reading }) => reading),
          seen,
        ),
      needsPeer: (seen) => void this.bringUp.from(seen),
      isBehind: () => this.follower.probeAfter(20),
    });
  }

  private makeRequests(): LeaderRequests {
    return new LeaderRequests({
      ...this.options,
      membership: this.membership,
      driver: () => this.leadership.driver,
      stepdown: (driver, { to, by, reason }) => this.leadership.handOver(driver, to, `${by} asked for it: ${reason}`),
    });
  }

  private makeBringUp(): BringUp {
    return new BringUp(this.options, this.ended.signal, (block) => {
      this.take(block, block.epoch, 'follower', 0);
      return this.pipeline.room();
    });
  }

  private makeStoreRepairs(): StoreRepairs {
    const { nodes, clock, timing } = this.options;
    const { membership } = this;
    return new StoreRepairs(
      this.options,
      () => membership.nodes,
      () => probe(nodes, membership.quorum, timing.nodeTimeoutMs, clock, membership.asks),
      this.ended.signal,
    );
  }

  private makePipeline(): CommitPipeline {
    return new CommitPipeline({
      store: this.options.store,
      deliver: (block) => this.deliver(block),
      syncing: (height, synced) => this.disk.follow(height, synced),
      onFailure: (error) => this.fail('STORE_FAILED', 'the local store could not take a committed block', error),
    });
  }

  private makeFollower(): Follower {
    const { nodes, clock, store, timing, limits, random } = this.options;
    return new Follower({
      nodes,
      membership: this.membership,
      ttlMs: timing.ttlMs,
      nodeTimeoutMs: timing.nodeTimeoutMs,
      pollMs: timing.pollMs,
      pollJitterMs: timing.pollJitterMs,
      readLimit: Math.max(4, Math.min(128, Math.floor(FOLLOW_BYTES / limits.maxBlockBytes))),
      clock,
      random,
      counts: (node, incarnation) => this.membership.counts(nodes[node]!.id, incarnation),
      head: () => store.head(),
      apply: (block, epoch) => this.followed(block, epoch),
      onProbe: (seen, at) => this.probed(seen, at),
      onAnomaly: (anomaly) => this.anomaly(anomaly),
      onDamaged: (node, incarnation, why) => this.damage.found(node, incarnation, why),
      onCut: (node, why) => this.options.emit({ type: 'alarm', code: 'READS_CUT', node: nodes[node]!.id, reason: why }),
      onFailure: (error) => this.fail('BUG', 'following cannot go on', error),
    });
  }

  private makeBlockBuilder(): BlockBuilder {
    const { clock, store, timing, limits, inbox, producer, eager, rests = false, maxItemsBytes, emit } = this.options;
    return new BlockBuilder({
      producer,
      inbox,
      clock,
      blockTimeMs: timing.blockTimeMs,
      nodeTimeoutMs: timing.nodeTimeoutMs,
      eager,
      rests,
      maxBlockBytes: limits.maxBlockBytes,
      maxItemsBytes,
      timestamp: () => this.chainTime.next(store.head().timestamp, clock.now()),
      caughtUp: () => (producer.needsChain ? this.pipeline.drained() : this.pipeline.room()),
      syncing: () => this.pipeline.syncing(),
      onProposed: ({ height, hash }, items) => {
        this.times.proposed({ height, hash });
        emit({ type: 'proposed', height, hash, epoch: this.leadership.driver?.state.epoch ?? 0, items });
      },
    });
  }

  private makeRetention(): Retention {
    const { store, limits, emit } = this.options;
    return new Retention({
      limits,
      spare: () => this.membership.nodes.length - this.membership.quorum,
      head: () => store.head().height,
      blocksIn: ({ retainBlocks, retainBytes }) =>
        store.head().height - store.retainedFloor({ blocks: retainBlocks, bytes: retainBytes }),
      changed: (change) => emit({ type: 'window', ...change }),
    });
  }

  private makePresences(): Presences {
    const { clock, timing } = this.options;
    return new Presences({
      nodes: () => this.membership.nodes,
      clock,
      timing,
      presence: () => this.presence(),
      onMemory: (facts, askedAt) => this.heedMemory(facts, askedAt),
      onTime: (heard) => this.hear(heard),
    });
  }

  private makeLeadership(): Leadership {
    return new Leadership(this.options, {
      blockBuilder: this.blockBuilder,
      damage: this.damage,
      renewals: this.renewals,
      membership: this.membership,
      retention: this.retention,
      chain: () => this.chain(),
      stopping: () => this.stopping !== null,
      promoting: () => this.setRole('promoting', 'the lease is free'),
      leads: (first) => this.nowLeads(first),
      take: (block, epoch, commitMs) => this.lead(block, epoch, commitMs),
      request: (request) => void this.requests.take(request),
      node: (node, state, why) => this.clusterState.stands(node, state, why),
      over: (reason) => {
        if (!this.stopping) this.setRole('follower', reason);
        this.eligibility.ended(reason);
      },
    });
  }

  /** `first`: it did not lead before. */
  private nowLeads(first: boolean): void {
    this.releaseSlot();
    if (this.refuseOtherProducer(true)) return;
    if (first) {
      this.chainTime.began();
      this.setRole('leader', 'claimed a quorum');
    }
    this.clusterState.leadsItself();
    this.options.inbox.open(this.leadership.driver?.state.epoch ?? 0);
    this.tellLeadership();
  }

  start(): void {
    const { id, identity, store, emit, nodes } = this.options;
    emit({ type: 'started', id, cluster: identity.cluster, lane: identity.lane, height: store.head().height });
    for (const node of nodes) this.heedRequests(node);
    this.presences.start();
    this.follower.start();
    if (this.options.seeksNodes !== false) this.addresses.start();
    void this.storeRepairs.scrub();
    this.turn();
  }

  private heedRequests(node: NodePort): void {
    const stop = node.onHint((hint) => {
      if (hint === 'request' && this.leadership.driver) void this.requests.fetch(node);
    });
    this.stopHints.push(stop);
  }

  /** A member that this process was not told of: it is followed and asked like the others from now on. */
  private memberOpened(id: string): void {
    const node = this.options.nodes.find((one) => one.id === id)!;
    this.options.emit({ type: 'node', node: id, state: 'member', why: `a member of the cluster, at ${node.url}` });
    if (this.stopping) return;
    this.heedRequests(node);
    this.leadership.driver?.opened();
    this.follower.restart();
  }

  /** Steps down (releasing, to `to` if named), answers what waits, and closes nothing that it was given. */
  async stop(code: StopCode, reason: string): Promise<void> {
    this.stopping ??= (async () => {
      const { inbox, emit } = this.options;
      // This comes first: the successor waits only for the release.
      this.leadership.driver?.stepdown(stepdownCode(code, 'BUG'), reason);
      this.setRole('stopping', reason);
      inbox.stop(reason);
      this.ended.abort();
      this.follower.stop();
      this.addresses.stop();
      const led = this.term !== null;
      await this.term;
      this.awaitingSuccessor = led;
      const seen = this.seeSuccessor();
      await this.drained();
      for (const stop of this.stopHints) stop();
      if (led) await pause(this.options.clock, AFTER_RELEASE_MS);
      await this.presences.stop();
      if (this.successorWaiters.size > 0) await seen;
      this.awaitingSuccessor = false;
      this.eligibility.stopped();
      this.tellLeadership();
      this.feed.wake();
      emit({ type: 'stopped', code, reason });
    })();
    return this.stopping;
  }

  /** What was committed is on disk, as far as the disk syncs. Its blocks are on the nodes. */
  private async drained(): Promise<void> {
    const over = new AbortController();
    const all = this.pipeline.drained().then(() => over.abort());
    while (!over.signal.aborted && !this.disk.stalled)
      await Promise.race([all, pause(this.options.clock, SYNC_LIMIT_MS, over.signal)]);
    over.abort();
  }

  /** Probes until it sees the next leader, which gets the submissions that wait here. Only they delay the stop. */
  private async seeSuccessor(): Promise<void> {
    const { nodes, clock, timing, id } = this.options;
    const startedAt = clock.now();
    await pause(clock, SUCCESSOR_FIRST_MS);
    while (this.awaitingSuccessor && clock.now() - startedAt < Math.min(timing.ttlMs, SUCCESSOR_LIMIT_MS)) {
      const probed = await probe(nodes, this.membership.quorum, timing.nodeTimeoutMs, clock, this.membership.asks);
      if (!this.awaitingSuccessor) return;
      this.learn(probed);
      if (this.clusterState.leader && this.clusterState.leader.id !== id) return;
      await pause(clock, SUCCESSOR_PROBE_MS);
    }
  }

  // --- what others see
  // -----------------------------------------------------------------------------------------------------------

  status(): SequencerStatus {
    const { id, identity, store, clock, inbox } = this.options;
    const { height, hash } = this.pipeline;
    const leads = this.role === 'leader' && this.leadership.driver !== null;
    // A leader that does not produce is a state of its own, with its reason.
    const stalled = leads ? this.disk.why || this.blockBuilder.stalled : '';
    return {
      id,
      role: this.role,
      cluster: identity.cluster,
      lane: identity.lane,
      height,
      hash,
      epoch: leads ? this.leadership.driver!.state.epoch : 0,
      leaseMs: leads ? this.leadership.driver!.leaseMs() : 0,
      leader: leads
        ? { id, epoch: this.leadership.driver!.state.epoch, url: this.options.url }
        : this.clusterState.leader,
      seenHeight: Math.max(this.clusterState.height, store.head().height),
      ready: leads ? stalled === '' : this.eligibility.ready,
      why: leads ? stalled : this.eligibility.why,
      blocked: leads ? '' : this.blocked,
      nodes: this.clusterState.nodes,
      inbox: inbox.status(),
      startedAtMs: this.startedAtMs,
      loopAgeMs: clock.now() - this.turnedAt,
    };
  }

  submit(items: Item[]): Promise<SubmitOutcome[]> {
    return this.options.inbox.offer(items);
  }

  onLeadership(listener: (status: SequencerStatus) => void): () => void {
    this.successorWaiters.add(listener);
    return () => void this.successorWaiters.delete(listener);
  }

  private tellLeadership(): void {
    if (this.successorWaiters.size === 0) return;
    const status = this.status();
    for (const listener of [...this.successorWaiters]) listener(status);
  }

  async confirmHead(): ReturnType<SequencerApi['confirmHead']> {
    const { driver } = this.leadership;
    if (this.role !== 'leader' || !driver || driver.leaseMs() === 0)
      return {
        confirmed: false,
        why: this.clusterState.leader
          ? `${this.clusterState.leader.id} leads, not this sequencer`
          : 'this sequencer does not lead',
      };
    const head = await driver.confirm();
    if (!head)
      return {
        confirmed: false,
        why: `fewer than ${this.membership.quorum} nodes confirmed epoch ${driver.state.epoch} in time`,
      };
    return { confirmed: true, height: head.height, hash: head.hash, epoch: driver.state.epoch };
  }

  block(height: Height): CommittedBlock | undefined {
    return this.feed.proven(height);
  }

  receipt(key: string): ReturnType<SequencerApi['receipt']> {
    return this.options.store.receipt(key);
  }

  blockTimes(height: Height): ReturnType<SequencerApi['blockTimes']> {
    return this.times.at(height);
  }

  follow(from: Height, signal: AbortSignal): AsyncIterable<CommittedBlock> {
    return this.feed.follow(from, signal);
  }

  // --- following
  // -----------------------------------------------------------------------------------------------------------------

  private followed(block: Block, epoch: Epoch): Promise<void> | undefined {
    this.anomalies = 0;
    this.take(block, epoch, 'follower', 0);
    return this.pipeline.room();
  }

  private take(block: Block, epoch: Epoch, by: 'leader' | 'follower', commitMs: number): void {
    this.times.committed(block);
    this.pipeline.take({ ...block, epoch });
    this.clusterState.reached(block.height);
    if (by === 'leader') this.own.committed(commitMs);
    this.options.emit({
      type: 'committed',
      height: block.height,
      hash: block.hash,
      epoch,
      by,
      items: itemCountOf(block.data),
      bytes: block.data.byteLength,
      commitMs,
    });
  }

  /** As `take`, for a block that its own term has committed or adopted. */
  private lead(block: Block, epoch: Epoch, commitMs: number): void {
    this.take(block, epoch, 'leader', commitMs);
    if (this.leadership.driver) this.laneProducer?.note(this.leadership.driver);
  }

  /** True: it ends, because its lane has another producer. */
  private refuseOtherProducer(atHead: boolean): boolean {
    const why = this.laneProducer?.conflict(atHead) ?? '';
    if (why === '') return false;
    this.leadership.driver?.stepdown('STOPPED', why);
    this.fail('SETTINGS_DIFFER', why);
    return true;
  }

  private async deliver(block: CommittedBlock): Promise<void> {
    this.times.synced(block.height);
    this.options.inbox.settle(block);
    this.pipeline.reached(block);
    this.options.emit({ type: 'stored', height: block.height });
    this.feed.wake();
    await this.options.producer.committed(block);
  }

  /** Receipts wait for this disk. Whoever leads elsewhere can give them. */
  private diskChanged(): void {
    const { why, stalled } = this.disk;
    if (this.stopping) return;
    if (stalled) {
      this.options.emit({ type: 'alarm', code: 'STORE_STALLED', reason: why });
      this.eligibility.prevented(why);
      this.leadership.driver?.stepdown('STORE_STALLED', why);
    } else void this.follower.probeNow();
    this.presences.announceSoon();
  }

  /** After every probe: learn from it, then see whether this sequencer is to promote, and whether now. */
  private probed(seen: ProbeResult, at: number): void {
    const { id, nodes } = this.options;
    if (this.role !== 'follower' || this.term || this.stopping) return;
    this.learn(seen);
    const twin = this.twin.conflict(seen);
    if (twin !== null) return this.fail('DUPLICATE_ID', describeTwin(twin), twin);
    this.keepFloorKnown();
    this.damage.repeat(seen);
    // The old server's answer does not count. Probe again.
    if (this.followMovedNodes(seen)) return this.follower.probeAfter(0);
    const next = recoveredTo(seen, this.membership.quorum, this.options.identity.cluster);
    if (next !== null)
      return this.fail(
        'CLUSTER_RECOVERED',
        `this cluster was recovered: it is ${next} now, this sequencer was started in ${this.options.identity.cluster}`,
      );
    const removedOn = laneRemovedOn(seen, nodes, this.membership.quorum, this.membership.nodes.length);
    if (removedOn.length > 0)
      return this.fail('LANE_REMOVED', `this lane was removed: ${removedOn.join(', ')} have given it up for good`);
    const { configuration } = this.membership;
    const { votes, why } = votesOf(seen, nodes, id, { at, configuration });
    const couldNot = !this.eligibility.ready;
    this.eligibility.judge(seen, why);
    // Whoever looks for a successor reads the record. It must not wait for the next poll.
    if (couldNot && this.eligibility.ready) this.presences.announceSoon();
    if (this.refuseOtherProducer(this.eligibility.ready)) return;
    this.tellUnconfigured(seen, why);
    const { quorum } = this.membership;
    this.blocked = blockedBy(seen, nodes, id, { configuration, ttlMs: this.options.timing.ttlMs, quorum });
    if (votes.length < this.membership.quorum) {
      this.freeSince = null;
      return this.eligibility.notFree(why);
    }
    if (this.eligibility.ready) this.promoteInTurn(seen, votes);
  }

  /** Once: nobody can lead a cluster that does not know its members. */
  private tellUnconfigured(seen: ProbeResult, why: string): void {
    if (this.membership.configuration !== null || this.toldUnconfigured || !unconfigured(seen)) return;
    this.toldUnconfigured = true;
    this.options.emit({ type: 'alarm', code: 'NOT_CONFIGURED', reason: why });
  }

  /**
   * The first computation of the floor reads a header for each retained block. Later ones read the new headers only. A
   * leader needs the floor for its first block, so a follower keeps it computed.
   */
  private keepFloorKnown(): void {
    const { store, limits } = this.options;
    store.retainedFloor({ blocks: limits.retainBlocks, bytes: limits.retainBytes });
  }

  /** True when a node turned out to be at another address. */
  private followMovedNodes(seen: ProbeResult): boolean {
    const { nodes, emit } = this.options;
    const moved = this.membership.learn(seen);
    for (const node of moved) {
      const { url } = nodes.find((one) => one.id === node)!;
      emit({ type: 'node', node, state: 'moved', why: `its server is ${url} now` });
    }
    return moved.length > 0;
  }

  /** Equally eligible followers try one after the other, so that they do not split the votes. */
  private promoteInTurn(seen: ProbeResult, votes: { node: number; epoch: Epoch }[]): void {
    const { id, clock, random, priority, turnKey } = this.options;
    const now = clock.now();
    this.freeSince ??= now;
    const rank = this.presences.rank(seen, id, priority, turnKey);
    const turn = Math.max(this.notBefore, this.freeSince + rank * STAGGER_MS);
    if (now < turn) return this.follower.probeAfter(turn - now + random.unit() * 2);
    // It asks again when there is a slot, and in any case soon: whoever was told of one may not need it any more.
    const release = this.slotOr(() => this.follower.probeAfter(0));
    if (release === null) return this.follower.probeAfter(SLOT_AGAIN_MS + random.unit() * SLOT_AGAIN_MS);
    this.releaseSlot = release;
    this.term = this.leadOnce(votes).finally(() => {
      this.releaseSlot();
      this.term = null;
      this.leadership.forget();
    });
  }

  private slotOr(free: () => void): (() => void) | null {
    const { slot } = this.options;
    return slot === undefined ? () => {} : slot(free);
  }

  private learn(seen: ProbeResult): void {
    this.hear(timesOf(seen, this.options.nodes));
    if (this.clusterState.learn(seen)) this.tellLeadership();
  }

  private hear(heard: readonly HeardTime[]): void {
    const { clock } = this.options;
    for (const one of heard) this.chainTime.hear(one);
    if (heard.length > 0) this.clocks.learn(this.chainTime.wrong(clock.wall(), clock.now()));
  }

  /**
   * One read may see a repair half done, and so find an anomaly that is none. Many reads in a row with the same result
   * are real.
   */
  private anomaly(anomaly: LedgerAnomaly): void {
    if (anomaly.kind === 'not-retained') return;
    if (++this.anomalies < 20) return;
    this.anomalies = 0;
    this.options.emit({
      type: 'alarm',
      code: anomaly.kind === 'conflict' ? 'CONFLICT' : 'CHAIN_MISMATCH',
      reason: anomaly.why,
      height: anomaly.height,
    });
    if (anomaly.kind === 'chain-mismatch')
      void this.contradicted(`at height ${anomaly.height}: ${anomaly.why} (${anomaly.nodes.join(', ')})`);
  }

  /** Ends with the first height at which this store and the nodes differ, as far as they say. */
  private async contradicted(reason: string): Promise<void> {
    const { nodes, store, timing, clock } = this.options;
    const where = await whereTheyPart(nodes, store, timing.nodeTimeoutMs, clock);
    this.fail('CHAIN_MISMATCH', where === '' ? reason : `${reason}; ${where}`);
  }

  // --- a term
  // ------------------------------------------------------------------------------------------------------------------

  /** One leadership, and what follows it. However it ended, this is a warm follower again. */
  private async leadOnce(votes: { node: number; epoch: Epoch }[]): Promise<void> {
    const { clock, random, emit, timing, store } = this.options;
    this.freeSince = null;
    const from = store.head().height;
    const { end, everLed } = await this.leadership.hold(votes);
    if (end.code === 'CHAIN_MISMATCH') return this.contradicted(end.reason);
    if (this.stopping) return;
    // A lost election retries soon. A failed producer waits one block time, and it gives the lease back before it
    // waits.
    const pauseMs = everLed ? timing.blockTimeMs : timing.retryMs + random.unit() * timing.retryJitterMs;
    this.notBefore = clock.now() + pauseMs;
    if (this.backoff.note(end, store.head().height > from, clock.now()))
      emit({ type: 'alarm', code: 'RETRY_BACKOFF', reason: this.backoff.why(clock.now()) });
    // At the clock's next turn this promise has settled.
    clock.after(0, () => {
      if (this.stopping || this.role !== 'follower') return;
      this.follower.start();
      this.follower.probeAfter(Math.max(0, this.notBefore - clock.now()));
    });
  }

  /** Only claimed nodes count for this term. Another node may be full of data that was set aside there. */
  private heedMemory(facts: MemoryFact[], askedAt: Height): void {
    const { driver } = this.leadership;
    if (this.role !== 'leader' || !driver || driver.state.phase !== 'leading') return;
    const claimed = new Set(
      this.options.nodes.filter((_, i) => driver.state.nodes[i]?.standing === 'claimed').map((node) => node.id),
    );
    this.retention.learn(
      facts.filter((fact) => claimed.has(fact.node) || this.retention.refusedBy(fact.node)),
      askedAt,
    );
  }

  // --- housekeeping
  // --------------------------------------------------------------------------------------------------------------

  private chain() {
    return localChain(
      this.options.store,
      this.genesis(),
      () => this.retention.limits(),
      () => this.pipeline.height,
      (height, hash) => this.follower.seen(height, hash),
    );
  }

  private genesis(): string {
    const { cluster, lane } = this.options.identity;
    return genesisHash(familyOf(cluster), lane);
  }

  private setRole(to: SequencerStatus['role'], reason: string): void {
    const from = this.role;
    if (from === to) return;
    this.role = to;
    if (to === 'leader') {
      this.own.led();
      this.retention.reset();
      this.eligibility.led();
    }
    if (to === 'promoting' || to === 'stopping') this.follower.stop();
    this.options.emit({ type: 'role', from, to, epoch: this.leadership.driver?.state.epoch ?? 0, reason });
    if (to !== 'stopping') this.presences.announceSoon();
    // A leader takes items in a moment later, and then reports it itself.
    if (to !== 'leader') this.tellLeadership();
  }

  private presence() {
    const { id, version, url, pid, extra, priority, clock } = this.options;
    const { ready, why, epoch } = this.status();
    return {
      id,
      role: this.role,
      height: this.pipeline.height,
      version,
      url,
      pid,
      // The nodes that count now: a change of the members reaches those who run, whatever list they were started with.
      configDigest: nodeListDigest(this.membership.nodes),
      extra: {
        ...extra,
        ready: ready ? 'yes' : 'no',
        why,
        priority: String(priority),
        epoch: String(epoch),
        seenAtMs: String(clock.wall()),
        ...this.clocks.facts(),
        ...this.twin.facts(),
        ...this.storeRepairs.facts(),
        ...this.own.facts(this.role === 'leader', this.retention.shortage, this.eligibility.margin),
      },
    };
  }

  private turn(): void {
    this.turnedAt = this.options.clock.now();
    if (!this.stopping) this.options.clock.after(500, () => this.turn());
  }

  private fail(code: ErrorCode, reason: string, cause?: unknown): void {
    const detail = cause instanceof Error ? `${reason}: ${cause.message}` : reason;
    this.options.emit({ type: 'fatal-error', code, reason: detail });
    this.settleFailure(fatalError(code, detail, cause));
  }
}
