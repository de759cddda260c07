// One sequencer: follows, promotes, leads, steps down, follows again (docs/PROTOCOL.md sections 5–7). Joins the parts; the rules are theirs.
// Whatever happens to a tenure, the process is a warm follower again at once, without a restart.
import { genesisHash } from '../chain/block.js';
import { itemCountOf } from '../chain/items.js';
import { quorumOf, usableLeaseMs, type Limits, type Timing } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import type { EmitEvent } from '../events.js';
import type { ChainStore, Clock, ClusterIdentity, CommittedBlock, Item, NodePort, Producer, Random, SequencerApi, SequencerStatus, SubmitOutcome } from '../ports.js';
import type { LedgerAnomaly } from '../protocol/ledger.js';
import type { TenureEnd, TenureSettings } from '../protocol/tenure-state.js';
import type { Block, Epoch, Height, LeaderRequest } from '../protocol/words.js';
import { whereTheyPart } from './chain-difference.js';
import { catchUpFromPeers, type CatchUpOptions } from './catch-up.js';
import { Delivery } from './delivery.js';
import { Follower, seenHeads } from './follower.js';
import type { Inbox } from './inbox.js';
import { localChain } from './local-chain.js';
import { admittedViews, leaderOf, look, recoveredTo, stateOf, votesOf, type Look } from './look.js';
import { Moves } from './moves.js';
import { Presences } from './presences.js';
import { Production } from './production.js';
import { carryOutOrder } from './repair-request.js';
import { admitPlan, answerRequest, reportDamage, standsOn, urlOfPlan } from './requests.js';
import { Setbacks } from './setbacks.js';
import { TenureDriver, type TenureHooks } from './tenure-driver.js';
import { windowMargin, type WindowMargin } from './window-margin.js';
import { RetainedWindow, type MemoryFact } from './window.js';

/** Heights that a promotion may read by itself; the tail brings a follower closer than that on its own. */
const MAX_ADOPT = 8;
/** Commits whose latency a leader's presence sums up. */
const COMMITS_TOLD = 16;
/** Blocks whose size and pace a leader's presence sums up. */
const BLOCKS_TOLD = 32;
/** Candidates of equal standing try one after the other, this far apart, so that they do not split the votes. */
const STAGGER_MS = 15;
/** Longer than a report stands on the nodes. */
const REPORT_EVERY_MS = 12_000;
/** How long a leader that stops looks for its successor, and how often. */
const SUCCESSOR_LIMIT_MS = 400;
const SUCCESSOR_LOOK_MS = 5;
/** Until then nobody can have taken over, and asking costs those who do. */
const SUCCESSOR_FIRST_MS = 8;
/** What a leader that has stopped still has to tell the nodes waits until its successor has had its turn there. */
const AFTER_RELEASE_MS = 30;
/** Payload that a follower holds of one node at most, when every block is as large as allowed. */
const FOLLOW_BYTES = 16 * 1024 * 1024;

export interface SequencerOptions {
  id: string;
  nodes: readonly NodePort[];
  identity: ClusterIdentity;
  store: ChainStore;
  inbox: Inbox;
  producer: Producer;
  clock: Clock;
  random: Random;
  timing: Timing;
  limits: Limits;
  /** Bytes of items that fit into one block of this producer. */
  maxItemsBytes: number;
  eager: boolean;
  /** Re-admit nodes that lost their memory, when leading. */
  readmit: boolean;
  /** 0 promotes first; each step waits one more turn. */
  priority: number;
  version: string;
  url: string;
  pid: number;
  configDigest: string;
  extra: Record<string, string>;
  emit: EmitEvent;
  /** Named peers (--peer); those that show themselves in presence records are asked too. */
  peers: readonly string[];
  peerToken?: string;
  peerCa?: string;
  /** How blocks that the nodes have trimmed are brought; over HTTP from peers' feeds unless said otherwise. */
  catchUp?: (options: CatchUpOptions) => Promise<void>;
}

export class Sequencer implements SequencerApi {
  private role: SequencerStatus['role'] = 'follower';
  /** Commit latencies of the newest blocks of this tenure, ms. */
  private commits: readonly number[] = [];
  private readonly quorum: number;
  private readonly delivery: Delivery;
  private readonly follower: Follower;
  private readonly production: Production;
  private readonly presences: Presences;
  private driver: TenureDriver | null = null;
  private tenure: Promise<void> | null = null;
  private handover: string | undefined;
  private leader: SequencerStatus['leader'] = null;
  private nodeStates: SequencerStatus['nodes'];
  private seenHeight = 0;
  private why = 'has not looked at the nodes yet';
  private ready = false;
  private notBefore = 0;
  private freeSince: number | null = null;
  private catchingUp = false;
  private anomalies = 0;
  private renewals: { count: number; at: number }[];
  private readonly handled: string[] = [];
  /** Who asked for the repair that is under way; '' when none is. */
  private repairing = '';
  private reading = false;
  /** It stops, and looks for its successor. */
  private seeking = false;
  private readonly setbacks: Setbacks;
  private readonly moves: Moves;
  private readonly window: RetainedWindow;
  private margin: WindowMargin = 'inside';
  /** Per node: the incarnation that is known to be damaged. */
  private damaged: ({ incarnation: string; why: string } | null)[];
  /** Per node: when its damage was last reported to a leader. */
  private readonly reported: number[];
  private readonly ended = new AbortController();
  private stopping: Promise<void> | null = null;
  private watchers: (() => void)[] = [];
  /** Submissions that wait for somebody to lead, in the order they came. */
  private readonly heirs = new Set<(status: SequencerStatus) => void>();
  private turnedAt: number;
  private readonly startedAtMs: number;
  private stopHints: (() => void)[] = [];
  private settleFailure!: (error: SeqError) => void;
  /** Resolves with the reason when this sequencer cannot go on by itself. */
  readonly failure: Promise<SeqError>;

  constructor(private readonly options: SequencerOptions) {
    const { nodes, clock, store, timing, limits, inbox, producer } = options;
    this.quorum = quorumOf(nodes.length);
    this.turnedAt = clock.now();
    this.startedAtMs = clock.wall();
    this.nodeStates = nodes.map((node) => ({ id: node.id, state: 'unknown', why: 'not asked yet' }));
    this.damaged = nodes.map(() => null);
    this.reported = nodes.map(() => -Infinity);
    this.moves = new Moves(nodes, options.identity.cluster);
    this.setbacks = new Setbacks({ firstMs: timing.retryMs, mostMs: Math.max(5000, 2 * timing.ttlMs) });
    this.renewals = nodes.map(() => ({ count: 0, at: -Infinity }));
    this.failure = new Promise((resolve) => (this.settleFailure = resolve));
    this.delivery = new Delivery({ store, deliver: (block) => this.deliver(block), onFailure: (error) => this.fail('STORE_FAILED', 'the local store could not take a committed block', error) });
    this.follower = new Follower({
      nodes, quorum: this.quorum, ttlMs: timing.ttlMs, nodeTimeoutMs: timing.nodeTimeoutMs, pollMs: timing.pollMs, pollJitterMs: timing.pollJitterMs,
      readLimit: Math.max(4, Math.min(128, Math.floor(FOLLOW_BYTES / limits.maxBlockBytes))), clock, random: options.random,
      head: () => store.head(), apply: (block, epoch) => this.followed(block, epoch),
      onLook: (seen, at) => this.looked(seen, at), onAnomaly: (anomaly) => this.anomaly(anomaly),
      onDamaged: (node, incarnation, why) => this.foundDamage(node, incarnation, why), onFailure: (error) => this.fail('BUG', 'following cannot go on', error),
    });
    this.production = new Production({
      producer, inbox, clock, blockTimeMs: timing.blockTimeMs, nodeTimeoutMs: timing.nodeTimeoutMs, eager: options.eager,
      maxBlockBytes: limits.maxBlockBytes, maxItemsBytes: options.maxItemsBytes,
      parentTimestamp: () => store.head().timestamp,
      caughtUp: () => (producer.needsChain ? this.delivery.drained() : this.delivery.room()),
      syncing: () => this.delivery.syncing(),
      onProposed: (block, items) => options.emit({ type: 'proposed', height: block.height, hash: block.hash, epoch: this.driver?.state.epoch ?? 0, items }),
    });
    this.window = new RetainedWindow({
      limits, spare: nodes.length - this.quorum, head: () => store.head().height,
      blocksIn: ({ retainBlocks, retainBytes }) => store.head().height - store.windowFloor({ blocks: retainBlocks, bytes: retainBytes }),
      changed: (change) => options.emit({ type: 'window', ...change }),
    });
    this.presences = new Presences({ nodes, clock, timing, presence: () => this.presence(), onMemory: (facts, askedAt) => this.heedMemory(facts, askedAt) });
    producer.onFailure((why) => {
      options.emit({ type: 'producer', state: 'failed', why });
      this.driver?.stepdown('PRODUCER_FAILED', why);
    });
  }

  start(): void {
    const { id, identity, store, emit, nodes } = this.options;
    emit({ type: 'started', id, cluster: identity.cluster, lane: identity.lane, height: store.head().height });
    this.stopHints = nodes.map((node) => node.onHint((hint) => {
      if (hint === 'request' && this.driver) void this.fetchRequest(node);
    }));
    this.presences.start();
    this.follower.start();
    this.turn();
  }

  /** Steps down (releasing, to `to` if named), answers what waits, and closes nothing that it was given. */
  async stop(code: string, reason: string): Promise<void> {
    this.stopping ??= (async () => {
      const { inbox, emit } = this.options;
      // First of all: whoever takes over waits for nothing but the release.
      this.driver?.stepdown(code, reason);
      this.setRole('stopping', reason);
      inbox.stop(reason);
      this.ended.abort();
      this.follower.stop();
      const led = this.tenure !== null;
      await this.tenure;
      this.seeking = led;
      const seen = this.seeSuccessor();
      await this.delivery.drained();
      for (const stop of this.stopHints) stop();
      if (led) await this.pause(AFTER_RELEASE_MS);
      await this.presences.stop();
      if (this.heirs.size > 0) await seen;
      this.seeking = false;
      this.ready = false;
      this.tellLeadership();
      this.wakeWatchers();
      emit({ type: 'stopped', code, reason });
    })();
    return this.stopping;
  }

  /** What waits here for the next leader goes there as soon as one is seen; nothing else holds up the way out. */
  private async seeSuccessor(): Promise<void> {
    const { nodes, clock, timing, id } = this.options;
    const startedAt = clock.now();
    await this.pause(SUCCESSOR_FIRST_MS);
    while (this.seeking && clock.now() - startedAt < Math.min(timing.ttlMs, SUCCESSOR_LIMIT_MS)) {
      const looked = await look(nodes, this.quorum, timing.nodeTimeoutMs, clock);
      if (!this.seeking) return;
      this.notice(looked);
      if (this.leader && this.leader.id !== id) return;
      await this.pause(SUCCESSOR_LOOK_MS);
    }
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.options.clock.after(ms, resolve));
  }

  // --- what others see -----------------------------------------------------------------------------------------------------------

  status(): SequencerStatus {
    const { id, identity, store, clock, inbox } = this.options;
    const { height, hash } = this.delivery;
    const leads = this.role === 'leader' && this.driver !== null;
    // Leading and yet not producing is a state of its own, with its reason.
    const stalled = leads ? this.production.stalled : '';
    return {
      id, role: this.role, cluster: identity.cluster, lane: identity.lane,
      height, hash,
      epoch: leads ? this.driver!.state.epoch : 0, leaseMs: leads ? this.driver!.leaseMs() : 0,
      leader: leads ? { id, epoch: this.driver!.state.epoch, url: this.options.url } : this.leader,
      seenHeight: Math.max(this.seenHeight, store.head().height), ready: leads ? stalled === '' : this.ready, why: leads ? stalled : this.why,
      nodes: this.nodeStates, inbox: inbox.status(), startedAtMs: this.startedAtMs, loopAgeMs: clock.now() - this.turnedAt,
    };
  }

  submit(items: Item[]): Promise<SubmitOutcome[]> {
    return this.options.inbox.offer(items);
  }

  onLeadership(listener: (status: SequencerStatus) => void): () => void {
    this.heirs.add(listener);
    return () => void this.heirs.delete(listener);
  }

  private tellLeadership(): void {
    if (this.heirs.size === 0) return;
    const status = this.status();
    for (const listener of [...this.heirs]) listener(status);
  }

  async confirmHead(): ReturnType<SequencerApi['confirmHead']> {
    const { driver } = this;
    if (this.role !== 'leader' || !driver || driver.leaseMs() === 0) return { confirmed: false, why: this.leader ? `${this.leader.id} leads, not this sequencer` : 'this sequencer does not lead' };
    const head = await driver.confirm();
    if (!head) return { confirmed: false, why: `fewer than ${this.quorum} nodes confirmed epoch ${driver.state.epoch} in time` };
    return { confirmed: true, height: head.height, hash: head.hash, epoch: driver.state.epoch };
  }

  block(height: Height): CommittedBlock | undefined {
    return height <= this.delivery.height ? this.options.store.get(height) : undefined;
  }

  async *follow(from: Height, signal: AbortSignal): AsyncIterable<CommittedBlock> {
    for (let height = Math.max(1, from); !signal.aborted; ) {
      const block = this.block(height);
      if (block) {
        yield block;
        height++;
      } else if (height <= this.delivery.height) {
        throw new SeqError({
          code: 'NOT_FOUND', exit: EXIT.notFound, message: `block ${height} is not in this sequencer's store`, why: 'the store begins above it',
          changed: 'nothing', next: ['ask another sequencer'],
        });
      } else {
        if (this.stopping) return;
        await new Promise<void>((resolve) => {
          const done = () => {
            signal.removeEventListener('abort', done);
            resolve();
          };
          signal.addEventListener('abort', done, { once: true });
          this.watchers.push(done);
        });
      }
    }
  }

  // --- following -----------------------------------------------------------------------------------------------------------------

  private followed(block: Block, epoch: Epoch): Promise<void> | undefined {
    this.anomalies = 0;
    this.take(block, epoch, 'follower', 0);
    return this.delivery.room();
  }

  private take(block: Block, epoch: Epoch, by: 'leader' | 'follower', commitMs: number): void {
    this.delivery.take({ ...block, epoch });
    this.seenHeight = Math.max(this.seenHeight, block.height);
    if (by === 'leader') this.commits = [...this.commits.slice(1 - COMMITS_TOLD), commitMs];
    this.options.emit({ type: 'committed', height: block.height, hash: block.hash, epoch, by, items: itemCountOf(block.data), bytes: block.data.byteLength, commitMs });
  }

  private async deliver(block: CommittedBlock): Promise<void> {
    this.options.inbox.settle(block);
    this.delivery.reached(block);
    this.options.emit({ type: 'stored', height: block.height });
    this.wakeWatchers();
    await this.options.producer.committed(block);
  }

  private looked(seen: Look, at: number): void {
    const { nodes, id, clock, producer, random } = this.options;
    if (this.role !== 'follower' || this.tenure || this.stopping) return;
    this.notice(seen);
    // Found anew it costs a read for each retained block; kept up it costs the new ones only. A leader needs it for its first block.
    this.options.store.windowFloor({ blocks: this.options.limits.retainBlocks, bytes: this.options.limits.retainBytes });
    this.repeatReports(seen);
    const moved = this.moves.learn(seen);
    for (const node of moved) this.options.emit({ type: 'node', node, state: 'moved', why: `its server is ${nodes.find((one) => one.id === node)!.url} now` });
    // What the old server said counts for nothing: looked at again.
    if (moved.length > 0) return this.follower.lookAfter(0);
    const next = recoveredTo(seen, this.quorum, this.options.identity.cluster);
    if (next !== null) return this.fail('CLUSTER_RECOVERED', `this cluster was recovered: it is ${next} now, this sequencer was started in ${this.options.identity.cluster}`);
    const { votes, why } = votesOf(seen, nodes, id, undefined, at);
    const head = this.options.store.head().height;
    const heads = seenHeads(seen, head);
    this.heedMargin(head, heads);
    const producing = producer.ready();
    this.ready = false;
    const answering = admittedViews(seen).length;
    if (answering < this.quorum) {
      this.why = `${answering} of the ${this.quorum} nodes needed answer and are admitted: ${why}`;
    } else if (heads.floor > head) {
      this.why = `its store ends at ${head}, below the nodes' window (floor ${heads.floor}): it needs a peer`;
      void this.catchUp(seen);
    } else if (heads.head - head > MAX_ADOPT) {
      this.why = `its store is ${heads.head - head} blocks behind`;
      this.follower.lookAfter(20);
    } else if (!producing.ready) {
      this.why = `its producer is not ready: ${producing.why}`;
    } else if (this.setbacks.holdsAt(clock.now(), stateOf(seen))) {
      this.why = this.setbacks.why(clock.now());
    } else {
      this.ready = true;
      this.why = '';
    }
    if (votes.length < this.quorum) {
      this.freeSince = null;
      if (this.ready) this.why = why;
      return;
    }
    if (!this.ready) return;
    const now = clock.now();
    this.freeSince ??= now;
    const turn = Math.max(this.notBefore, this.freeSince + this.presences.rank(seen, id, this.options.priority) * STAGGER_MS);
    if (now < turn) return this.follower.lookAfter(turn - now + random.unit() * 2);
    this.tenure = this.hold(votes).finally(() => {
      this.tenure = null;
      this.driver = null;
    });
  }

  private notice(seen: Look): void {
    const known = this.leader;
    const leader = leaderOf(seen, this.quorum);
    this.leader = leader ? { id: leader.id, epoch: leader.epoch, url: leader.url } : null;
    this.seenHeight = Math.max(this.seenHeight, seenHeads(seen, 0).head);
    this.nodeStates = seen.replies.map((reply, i) => {
      const { id } = this.options.nodes[i]!;
      if (!reply) return this.nodeStates[i]!; // the look was closed once a quorum had answered: nothing new is known of this one
      if (reply.outcome === 'unknown') return { id, state: 'unknown', why: `no answer at ${reply.step}: ${reply.cause}` };
      if (reply.outcome === 'refused') return { id, state: 'refused', why: reply.reason };
      return { id, state: reply.value.admission, why: reply.value.admissionWhy };
    });
    for (const state of this.nodeStates) this.sayNode(state.id, state.state, state.why);
    if (known?.id !== this.leader?.id || known?.epoch !== this.leader?.epoch || known?.url !== this.leader?.url) this.tellLeadership();
  }

  private readonly saidNode = new Map<string, string>();
  private sayNode(node: string, state: string, why: string): void {
    const text = `${state} ${why}`;
    if (this.saidNode.get(node) === text) return;
    this.saidNode.set(node, text);
    this.options.emit({ type: 'node', node, state, why });
  }

  private async catchUp(seen: Look): Promise<void> {
    const { store, emit, url, peers, peerToken, peerCa } = this.options;
    if (this.catchingUp) return;
    this.catchingUp = true;
    try {
      const views = admittedViews(seen).filter((view) => view.head > store.head().height);
      const target = views.sort((a, b) => a.floor - b.floor)[0];
      if (!target) return;
      const shown = views.flatMap((view) => view.sequencers.filter((one) => one.height >= target.floor).map((one) => one.url));
      await (this.options.catchUp ?? catchUpFromPeers)({
        head: () => store.head(), to: { height: target.floor, hash: target.floorHash },
        peers: [...new Set([...peers, ...shown])].filter((one) => one !== '' && one !== url),
        ...(peerToken === undefined ? {} : { token: peerToken }), ...(peerCa === undefined ? {} : { ca: peerCa }), signal: this.ended.signal,
        apply: (block) => {
          if (block.height <= store.head().height) return undefined; // the nodes brought it meanwhile
          this.take(block, block.epoch, 'follower', 0);
          return this.delivery.room();
        },
      });
    } catch (error) {
      emit({ type: 'alarm', code: error instanceof SeqError ? error.code : 'CATCH_UP_FAILED', reason: error instanceof Error ? error.message : String(error) });
    } finally {
      this.catchingUp = false;
    }
  }

  /** Said once, and to the leader until it is done: it sets the node aside and fills it anew as soon as q others can do without it. */
  private foundDamage(node: number, incarnation: string, why: string): void {
    if (this.damaged[node]?.incarnation === incarnation) return;
    this.damaged[node] = { incarnation, why };
    this.options.emit({ type: 'alarm', code: 'DAMAGED_ENTRY', node: this.options.nodes[node]!.id, reason: why });
    this.reported[node] = -Infinity;
    this.report(node);
  }

  /** A report may be lost, or come to a leader that has just been succeeded: repeated while the node shows the same memory. */
  private report(node: number): void {
    const { nodes, id, random, clock } = this.options;
    const known = this.damaged[node];
    if (!known || !this.leader || this.leader.id === id || clock.now() - this.reported[node]! < REPORT_EVERY_MS) return;
    this.reported[node] = clock.now();
    void reportDamage(nodes, { node: nodes[node]!.id, ...known }, this.leader, id, random.hex(8));
  }

  private repeatReports(seen: Look): void {
    seen.replies.forEach((reply, i) => {
      const known = this.damaged[i];
      if (!known || reply?.outcome !== 'accepted' || reply.value.incarnation === '') return;
      if (reply.value.incarnation === known.incarnation) this.report(i);
      else this.damaged[i] = null;
    });
  }

  /** What the nodes prove may look wrong for one look, read across a repair; the same thing many looks in a row is real. */
  private anomaly(anomaly: LedgerAnomaly): void {
    if (anomaly.kind === 'not-retained') return;
    if (++this.anomalies < 20) return;
    this.anomalies = 0;
    this.options.emit({ type: 'alarm', code: anomaly.kind === 'conflict' ? 'CONFLICT' : 'CHAIN_MISMATCH', reason: anomaly.why, height: anomaly.height });
    if (anomaly.kind === 'chain-mismatch') void this.contradicted(`at height ${anomaly.height}: ${anomaly.why} (${anomaly.nodes.join(', ')})`);
  }

  /** Ends with the first height at which this store and the nodes differ, as far as they say. */
  private async contradicted(reason: string): Promise<void> {
    const { nodes, store, timing, clock } = this.options;
    const where = await whereTheyPart(nodes, store, timing.nodeTimeoutMs, clock);
    this.fail('CHAIN_MISMATCH', where === '' ? reason : `${reason}; ${where}`);
  }

  // --- a tenure ------------------------------------------------------------------------------------------------------------------

  /** Promotes and leads until the tenure ends; renewed terms are one tenure to everybody else. */
  private async hold(firstVotes: { node: number; epoch: Epoch }[]): Promise<void> {
    const { id, nodes, clock, random, emit, inbox, producer, timing } = this.options;
    this.freeSince = null;
    const startedAt = clock.now();
    let votes = firstVotes;
    let previousOwner: string | undefined;
    let end: TenureEnd;
    let everLed = false;
    const from = this.options.store.head().height;
    let lastEpoch = 0;
    let renewedFor = '';
    let released: Promise<void> | undefined;
    this.handover = undefined;
    for (;;) {
      const owner = `${id}/${random.hex(8)}`;
      this.driver = new TenureDriver(nodes, clock, this.options.store, this.chain(), this.settings(owner, previousOwner), this.hooks(() => {
        if (everLed) emit({ type: 'term-renewed', from: lastEpoch, to: this.driver!.state.epoch, reason: renewedFor });
        else this.setRole('leader', 'claimed a quorum');
        everLed = true;
        this.leader = null; // whoever was seen last leads no more
        inbox.open();
        this.tellLeadership();
      }, ({ code }) => {
        if (code !== 'RENEW') released = this.release();
      }));
      const running = this.driver.run(votes);
      // The nodes have the question; what follows is said while they answer.
      if (!everLed) this.setRole('promoting', 'the lease is free');
      if (this.stopping) this.driver.stepdown('STOPPED', 'this sequencer is stopping');
      end = await running;
      this.noteDamage();
      if (end.code !== 'RENEW') break;
      this.production.stop();
      this.noteRenewal();
      lastEpoch = this.driver.state.epoch;
      renewedFor = end.reason;
      const seen = await look(nodes, this.quorum, timing.nodeTimeoutMs, clock);
      const again = votesOf(seen, nodes, id, owner);
      if (again.votes.length < this.quorum) {
        end = { code: 'RENEWAL_FAILED', reason: `the term could not be renewed: ${again.why}` };
        break;
      }
      votes = await this.liftEpoch(seen, again.votes, owner);
      previousOwner = owner;
    }
    this.production.stop();
    const { driver } = this;
    released ??= this.release();
    inbox.abandon(`the tenure ended: ${end.reason}`);
    if (everLed) producer.revoked(end.reason);
    const { epoch } = driver.state;
    if (everLed) emit({ type: 'tenure-ended', epoch, code: end.code, reason: end.reason, heldMs: Math.round(clock.now() - startedAt) });
    else emit({ type: 'promotion-failed', code: end.code, reason: end.reason });
    if (!this.stopping) this.setRole('follower', end.reason);
    this.why = end.reason;
    await released;
    if (end.code === 'CHAIN_MISMATCH') return this.contradicted(end.reason);
    if (this.stopping) return;
    // A lost election retries soon; a producer that failed waits one block time, without the lease (never asleep on it).
    const pauseMs = everLed ? timing.blockTimeMs : timing.retryMs + random.unit() * timing.retryJitterMs;
    this.notBefore = clock.now() + pauseMs;
    if (this.setbacks.note(end, this.options.store.head().height > from, clock.now())) emit({ type: 'alarm', code: 'HELD_BACK', reason: this.setbacks.why(clock.now()) });
    setTimeoutFree(clock, () => {
      if (this.stopping || this.role !== 'follower') return;
      this.follower.start();
      this.follower.lookAfter(Math.max(0, this.notBefore - clock.now()));
    });
  }

  private release(): Promise<void> {
    const { handover } = this;
    return this.driver!.release(handover === undefined ? undefined : { to: handover, ttlMs: this.options.timing.ttlMs });
  }

  /**
   * A node that lost its memory but not its epoch takes nothing below it (I3), and has no vote that would lift the new term above it: one of
   * the voters is raised to it for us first. Nothing is lost if that fails: the node stays out until the next renewal.
   */
  private async liftEpoch(seen: Look, votes: { node: number; epoch: Epoch }[], owner: string): Promise<typeof votes> {
    const { nodes, timing } = this.options;
    const forgetful = seen.replies.flatMap((reply) => (reply?.outcome === 'accepted' && ['wiped', 'restarted', 'damaged', 'admitting'].includes(reply.value.admission) ? [reply.value.epoch] : []));
    const highestSeen = Math.max(...votes.map((vote) => vote.epoch));
    const value = Math.max(0, ...forgetful);
    const lifted = votes[0]!;
    if (value <= highestSeen + 1) return votes;
    const reply = await nodes[lifted.node]!.call({ script: 'raise_epoch', value, ofOwner: owner, highestSeen, mayDepose: false }, timing.nodeTimeoutMs);
    return reply.outcome === 'accepted' ? votes.map((vote) => (vote === lifted ? { ...vote, epoch: reply.value.epoch } : vote)) : votes;
  }

  private hooks(onLeading: () => void, onEnded: (end: TenureEnd) => void): TenureHooks {
    const { store, emit } = this.options;
    return {
      leading: onLeading,
      ended: onEnded,
      ready: (height, parent) => this.production.ready(this.driver!, height, parent),
      committed: (block, epoch, commitMs) => {
        // Already in the store: a block of ours that the nodes had lost, or that another leader committed under us.
        if (block.height > store.head().height) this.take(block, epoch, 'leader', commitMs);
      },
      adopted: (blocks) => {
        for (const block of blocks) this.take(block, 0, 'leader', 0);
      },
      request: (request) => void this.request(request),
      node: (node, state, why) => {
        this.nodeStates = this.nodeStates.map((known) => (known.id === node ? { id: node, state, why } : known));
        this.sayNode(node, state, why);
      },
      alarm: (code, reason, node, height) => {
        if (code === 'OOM' && node !== undefined) this.window.refused(node);
        emit({ type: 'alarm', code, reason, ...(node ? { node } : {}), ...(height ? { height } : {}) });
      },
      backfilled: (node, from, to) => emit({ type: 'backfill', node, from, to, head: this.driver?.state.committed.height ?? 0 }),
    };
  }

  private settings(owner: string, previousOwner: string | undefined): TenureSettings {
    const { nodes, timing } = this.options;
    return {
      owner, ...(previousOwner === undefined ? {} : { previousOwner }), nodes: nodes.length, quorum: this.quorum, ttlMs: timing.ttlMs,
      usableLeaseMs: usableLeaseMs(timing.ttlMs), nodeTimeoutMs: timing.nodeTimeoutMs, graceMs: 3, retryMs: 5,
      regainMs: Math.min(timing.pollMs, timing.ttlMs / 3), maxAdopt: MAX_ADOPT, readmit: this.options.readmit, moves: this.moves.text,
      damaged: this.damaged,
      renewNotBefore: this.renewals.map(({ count, at }) => (count === 0 ? 0 : at + Math.min(1000 * 2 ** (count - 1), 60_000))),
    };
  }

  /** What a tenure found damaged, or found mended, is known to the next one. */
  private noteDamage(): void {
    this.damaged = this.driver!.state.nodes.map(({ damage, incarnation }, i) => {
      if (damage) return { incarnation: damage.incarnation, why: damage.why };
      const known = this.damaged[i]!;
      return known && incarnation !== '' && incarnation !== known.incarnation ? null : known;
    });
  }

  private noteRenewal(): void {
    const now = this.options.clock.now();
    this.driver!.state.nodes.forEach((track, i) => {
      if (!track.wantsRenewal) return;
      const { count, at } = this.renewals[i]!;
      this.renewals[i] = { count: now - at > 120_000 ? 1 : count + 1, at: now };
    });
  }

  private async fetchRequest(node: NodePort): Promise<void> {
    const reply = await node.call({ script: 'inspect' }, this.options.timing.nodeTimeoutMs);
    if (reply.outcome === 'accepted' && reply.value.request) await this.request(reply.value.request);
  }

  private async request(request: LeaderRequest): Promise<void> {
    const { driver } = this;
    if (!driver || request.epoch !== driver.state.epoch || this.handled.includes(request.id)) return;
    if (!await this.standsOnQuorum(request) || this.driver !== driver || this.handled.includes(request.id)) return;
    this.handled.push(request.id);
    if (this.handled.length > 64) this.handled.shift();
    const outcome = request.kind === 'stepdown' ? 'done' : request.kind === 'admit' ? this.admitAnew(request)
      : request.kind === 'replace' ? this.replaceNode(request) : request.kind === 'repair' ? await this.repair(request, driver) : 'refused: this leader does not carry out such requests';
    this.options.emit({ type: 'request', id: request.id, kind: request.kind, outcome, by: request.by });
    await answerRequest(this.options.nodes, request, outcome, this.options.id, this.options.clock);
    if (request.kind === 'stepdown') {
      this.handover = request.to || undefined;
      driver.stepdown('REQUESTED', `${request.by} asked for it: ${request.reason}`);
    }
  }

  /** A request that one node shows is acted on when q nodes show it: it may be on its way to the others still. Every later write reminds us. */
  private async standsOnQuorum(request: LeaderRequest): Promise<boolean> {
    const { nodes, timing, clock } = this.options;
    if (this.reading) return false;
    this.reading = true;
    try {
      for (let attempt = 0; attempt < 4; attempt++) {
        if (attempt > 0) await new Promise<void>((resolve) => clock.after(timing.nodeTimeoutMs / 4, resolve));
        if (standsOn(admittedViews(await look(nodes, this.quorum, timing.nodeTimeoutMs, clock)), request) >= this.quorum) return true;
      }
      return false;
    } finally {
      this.reading = false;
    }
  }

  private admitAnew(request: LeaderRequest): string {
    const node = this.options.nodes.findIndex((one) => one.id === request.to);
    const plan = admitPlan(request.plan);
    if (node < 0 || !plan) return `refused: ${node < 0 ? `there is no node ${request.to}` : 'the request does not say which memory is meant'}`;
    if (!this.options.readmit) return 'refused: this leader was started with --no-readmit';
    const track = this.driver!.state.nodes[node]!;
    if (track.incarnation !== plan.incarnation) return `refused: ${request.to} bears the memory ${track.incarnation || 'of nobody'}, not ${plan.incarnation}`;
    this.driver!.feed({ type: 'damaged', now: this.options.clock.now(), node, ...plan });
    return 'taken';
  }

  /** One at a time: a second operator is told that the first one's is under way. */
  private async repair(request: LeaderRequest, driver: TenureDriver): Promise<string> {
    if (this.repairing !== '') return `refused: a repair asked for by ${this.repairing} is under way`;
    this.repairing = request.by;
    try {
      const { nodes, store, clock } = this.options;
      return await carryOutOrder(request, { driver, nodes, store, clock });
    } finally {
      this.repairing = '';
    }
  }

  /** The server that the node was must be out of it before another one is it: what still counts here was not retired. */
  private replaceNode(request: LeaderRequest): string {
    const { nodes, readmit, emit } = this.options;
    const node = nodes.findIndex((one) => one.id === request.to);
    const url = urlOfPlan(request.plan);
    if (node < 0 || url === null) return `refused: ${node < 0 ? `there is no node ${request.to}` : 'the request names no address'}`;
    if (!readmit) return 'refused: this leader was started with --no-readmit';
    const { state } = this.driver!;
    const { standing, failures } = state.nodes[node]!;
    const counts = standing === 'ours' && failures === 0;
    if (this.moves.urlOf(request.to) === url || (counts && nodes[node]!.url === url)) return 'taken';
    if (counts) return `refused: ${request.to} at ${nodes[node]!.url} counts still`;
    const busy = nodes.find((_, i) => i !== node && state.nodes[i]!.admission !== null);
    if (busy) return `refused: ${busy.id} is being admitted, and nodes are changed one at a time`;
    const others = state.nodes.filter((track, i) => i !== node && track.standing === 'ours' && !track.unnoted).length;
    if (others < this.quorum) return `refused: ${others} of the ${this.quorum} other nodes needed count`;
    this.moves.move(request.to, url, request.epoch);
    emit({ type: 'node', node: request.to, state: 'moved', why: `its server is ${url} now` });
    this.driver!.moved(node, this.moves.text);
    return 'taken';
  }

  private heedMargin(mine: Height, heads: { head: Height; floor: Height }): void {
    const before = this.margin;
    this.margin = windowMargin(before, mine, heads);
    if (before !== 'inside' || this.margin === 'inside') return;
    const reason = this.margin === 'outside' ? `its store ends at ${mine}, below the nodes' window (floor ${heads.floor}): only a peer can bring what is between`
      : `its store is ${heads.head - mine} blocks behind, and the nodes will have trimmed what it needs next ${mine - heads.floor} blocks from now`;
    this.options.emit({ type: 'alarm', code: this.margin === 'outside' ? 'WINDOW_LOST' : 'WINDOW_CLOSING', reason });
  }

  /** Only what counts for this tenure: a node that is not ours may be full of what was set aside there. */
  private heedMemory(facts: MemoryFact[], askedAt: Height): void {
    const { driver } = this;
    if (this.role !== 'leader' || !driver || driver.state.phase !== 'leading') return;
    const ours = new Set(this.options.nodes.filter((_, i) => driver.state.nodes[i]!.standing === 'ours').map((node) => node.id));
    this.window.learn(facts.filter((fact) => ours.has(fact.node) || this.window.refusedBy(fact.node)), askedAt);
  }

  // --- housekeeping --------------------------------------------------------------------------------------------------------------

  private chain() {
    return localChain(this.options.store, this.genesis(), () => this.window.limits(), () => this.delivery.height, (height, hash) => this.follower.seen(height, hash));
  }

  private genesis(): string {
    const { cluster, lane } = this.options.identity;
    return genesisHash(cluster.slice(0, cluster.lastIndexOf('.')), lane);
  }

  private setRole(to: SequencerStatus['role'], reason: string): void {
    const from = this.role;
    if (from === to) return;
    this.role = to;
    if (to === 'leader') {
      this.commits = [];
      this.window.reset();
      this.margin = 'inside';
    }
    if (to === 'promoting' || to === 'stopping') this.follower.stop();
    this.options.emit({ type: 'role', from, to, epoch: this.driver?.state.epoch ?? 0, reason });
    if (to !== 'stopping') this.presences.announceSoon();
    // A leader takes items in a moment later, and says so itself.
    if (to !== 'leader') this.tellLeadership();
  }

  /** Median and greatest commit latency of the last blocks led, for those who only look at the nodes; '' when there are none. */
  private commitLatency(): Record<string, string> {
    const sorted = this.role === 'leader' ? [...this.commits].sort((a, b) => a - b) : [];
    const told = (ms: number | undefined) => (ms === undefined ? '' : ms.toFixed(2));
    return { commitMs: told(sorted[Math.floor((sorted.length - 1) / 2)]), commitMaxMs: told(sorted.at(-1)) };
  }

  private presence() {
    const { id, version, url, pid, configDigest, extra, priority, clock } = this.options;
    const { ready, why, epoch } = this.status();
    return {
      id, role: this.role, height: this.delivery.height, version, url, pid, configDigest,
      extra: { ...extra, ...this.commitLatency(), ready: ready ? 'yes' : 'no', why, priority: String(priority), epoch: String(epoch), seenAtMs: String(clock.wall()), ...this.retention() },
    };
  }

  /** What the nodes keep, where that is less than it should be, or soon too little for this store. */
  private retention(): Record<string, string> {
    const { shortage } = this.window;
    const { retainBlocks } = this.options.limits;
    return {
      ...(this.role === 'leader' ? this.newestBlocks() : {}),
      ...(this.role === 'leader' && shortage ? { window: String(shortage.blocks), windowWhy: `${shortage.blocks} of ${retainBlocks} blocks are kept on the nodes: ${shortage.why}` } : {}),
      ...(this.role === 'follower' && this.margin !== 'inside' ? { margin: this.margin } : {}),
    };
  }

  /** Size and pace of the newest blocks: what a forecast of memory and disk needs. */
  private newestBlocks(): Record<string, string> {
    const { store } = this.options;
    const { height } = store.head();
    const [first, last] = [store.header(Math.max(1, height - BLOCKS_TOLD + 1)), store.header(height)];
    if (!first || !last || last.height === first.height) return {};
    let bytes = 0;
    for (let at = first.height + 1; at <= last.height; at++) bytes += store.header(at)?.size ?? 0;
    const count = last.height - first.height;
    return { blockBytes: String(Math.round(bytes / count)), blockEveryMs: String(Math.max(1, Math.round((last.timestamp - first.timestamp) / count))) };
  }

  private wakeWatchers(): void {
    for (const wake of this.watchers.splice(0)) wake();
  }

  private turn(): void {
    this.turnedAt = this.options.clock.now();
    if (!this.stopping) this.options.clock.after(500, () => this.turn());
  }

  private fail(code: string, reason: string, cause?: unknown): void {
    const detail = cause instanceof Error ? `${reason}: ${cause.message}` : reason;
    this.options.emit({ type: 'halted', code, reason: detail });
    if (code === 'CLUSTER_RECOVERED') {
      return this.settleFailure(new SeqError({
        code, exit: EXIT.precondition, message: detail, why: 'no tenure of the old generation may act any more, so that nothing of it can reach the recovered nodes',
        changed: 'nothing', next: ['start this sequencer again: its store is as it was'],
      }));
    }
    this.settleFailure(cause instanceof SeqError ? cause : new SeqError({
      code, exit: code === 'CHAIN_MISMATCH' ? EXIT.precondition : EXIT.bug, message: detail,
      why: code === 'CHAIN_MISMATCH' ? 'this store and the cluster hold different chains; one of them is not this cluster\'s history' : 'the process cannot go on safely',
      changed: 'nothing', next: ['seq status', 'keep the store directory; start with an empty one to follow the cluster'], cause,
    }));
  }
}

/** Runs at the clock's next turn: the caller's promise has settled by then. */
function setTimeoutFree(clock: Clock, run: () => void): void {
  clock.after(0, run);
}
