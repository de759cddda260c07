// Following (docs/PROTOCOL.md section 7): tails every node, applies proven committed blocks in order, and reports when
// the lease has ended. Arriving blocks are the heartbeat. The failure detector only decides who tries when (I9). A node
// counts only after it has shown that it is admitted. Its calls and its tail may reach two servers. So every answer of
// the tail must come from the memory that the probe has shown (I7).
import { usableLeaseMs } from '../../config.js';
import type { Clock, NodePort, Random } from '../../ports.js';
import { committedPrefix, type LedgerAnomaly } from '../../protocol/ledger.js';
import { parseConfiguration, type Configuration } from '../../protocol/configuration.js';
import type { Block, Entry, Epoch, Hash, Height, NodeView } from '../../protocol/types.js';
import { pause } from '../../nodes/pause.js';
import { admittedViews, leaderOf, probe, untilFreeMs, type ProbeResult } from '../../nodes/probe.js';
import { PayloadSource } from './payload-source.js';

/** When one node reports that the lock is gone, the other nodes have this long to report it, too. */
const TOLD_MS = 2;
/** The nodes are probed once more at most this long before a lease ends, never before its holder's own deadline. */
const EVE_MS = 5;

export interface FollowerOptions {
  nodes: readonly NodePort[];
  /** The quorum of the members, and which of the nodes are members. */
  membership: { quorum: number; asks(node: number): boolean };
  ttlMs: number;
  nodeTimeoutMs: number;
  pollMs: number;
  pollJitterMs: number;
  /** Entries read from one node at a time. */
  readLimit: number;
  clock: Clock;
  random: Random;
  /** Whether this memory of the node is the one that the configuration names (I13). */
  counts(node: number, incarnation: string): boolean;
  /** The local store's head. */
  head(): { height: Height; hash: Hash };
  /** Takes the next committed block; resolves when more may come (back-pressure). */
  apply(block: Block, epoch: Epoch): Promise<void> | undefined;
  /**
   * Called after every probe: the orchestrator decides whether to promote. `at` is the time at which the locks are
   * judged: they have run on since the probe.
   */
  onProbe(seen: ProbeResult, at: number): void;
  onAnomaly(anomaly: LedgerAnomaly): void;
  /** Entries that are not what their hashes say, on a node that counts. */
  onDamaged(node: number, incarnation: string, why: string): void;
  /** Reads of a node are cut off. Called once until they pass again. */
  onCut(node: number, why: string): void;
  /** A bug, or a store that failed: following cannot go on. */
  onFailure(error: unknown): void;
}

interface View {
  admitted: boolean;
  incarnation: string;
  generation: number;
  entries: Map<string, Entry>;
  lastId: string;
  /** Of the entries read here. */
  highestEpoch: Epoch;
  /** Answers of the tail in a row that came from another memory than the probe has shown. */
  strange: number;
  /** The configuration that the node showed last. Null: it has shown none. */
  configuration: Configuration | null;
  /**
   * When the node showed it, entries up to this epoch were on it already. Entries of a later epoch do not count yet.
   */
  shownEpoch: Epoch;
  /** The node is being asked for it. */
  asking: boolean;
  /** It was told that reads are cut off. */
  cut: boolean;
  /** Wakes the tail loop when the view changed. */
  changed: () => void;
}

export class Follower {
  private active = false;
  private life = 0;
  private views: View[] = [];
  private stopHints: (() => void)[] = [];
  private cancelPoll: () => void = () => {};
  private cancelLease: () => void = () => {};
  private probing: Promise<void> | null = null;
  private probeAgain = false;
  private applying = false;
  private lastProbe: ProbeResult | null = null;
  /** Nodes that have said since that the lock went; those where it was given back. */
  private readonly gone = new Set<number>();
  private readonly released = new Set<number>();
  private cancelTold: () => void = () => {};
  private readonly source: PayloadSource;

  constructor(private readonly options: FollowerOptions) {
    this.source = new PayloadSource(() => options.head().height);
  }

  start(): void {
    if (this.active) return;
    this.active = true;
    this.life++;
    this.views = this.options.nodes.map(() => ({
      admitted: false,
      incarnation: '',
      generation: -1,
      entries: new Map(),
      lastId: '',
      highestEpoch: 0,
      strange: 0,
      configuration: null,
      shownEpoch: 0,
      asking: false,
      cut: false,
      changed: () => {},
    }));
    this.lastProbe = null;
    this.source.reset();
    this.stopHints = this.options.nodes.map((node, i) =>
      node.onHint((hint) => {
        if (hint !== 'request') this.lockWent(i, hint === 'released');
      }),
    );
    this.options.nodes.forEach((_, i) => void this.tail(i, this.life));
    void this.probeNow();
  }

  stop(): void {
    this.active = false;
    this.cancelPoll();
    this.cancelLease();
    this.forgetTold();
    for (const stop of this.stopHints) stop();
    for (const view of this.views) view.changed();
  }

  /** Another set of nodes counts. */
  restart(): void {
    if (!this.active) return;
    this.stop();
    this.start();
  }

  /** Probes all nodes and tells the orchestrator. All requests during a probe together cause one more probe. */
  async probeNow(): Promise<void> {
    if (this.probing) {
      this.probeAgain = true;
      return this.probing;
    }
    this.probing = this.probeOnce().finally(() => {
      this.probing = null;
      if (this.probeAgain && this.active) {
        this.probeAgain = false;
        void this.probeNow();
      }
    });
    return this.probing;
  }

  /** Probes again after `ms`, unless something else causes an earlier probe. */
  probeAfter(ms: number): void {
    this.arm(ms, () => void this.probeNow());
  }

  /**
   * A block as a node showed it, with its hash checked. It is kept until the store has a block of that height, whoever
   * leads.
   */
  seen(height: Height, hash: Hash): Block | undefined {
    for (const view of this.views) {
      for (const entry of view.entries.values()) {
        if (entry.height === height && entry.hash === hash && entry.data)
          return { height, hash, parent: entry.parent, timestamp: entry.timestamp, data: entry.data };
      }
    }
    return undefined;
  }

  private async probeOnce(): Promise<void> {
    if (!this.active) return;
    const { nodes, membership, nodeTimeoutMs, pollMs, pollJitterMs, clock, random, ttlMs } = this.options;
    this.cancelPoll();
    // The connection generation is read before the probe. An answer over a newer connection counts only at the next
    // probe.
    const generations = nodes.map((node) => node.connectionGeneration);
    const epochs = this.views.map((view) => view.highestEpoch);
    const { life } = this;
    const seen = await probe(nodes, membership.quorum, nodeTimeoutMs, clock, membership.asks);
    if (!this.active || this.life !== life) return;
    this.cancelPoll = clock.after(pollMs + random.unit() * pollJitterMs, () => void this.probeNow());
    seen.replies.forEach((reply, i) => {
      if (reply)
        this.noteAdmission(i, reply.outcome === 'accepted' ? reply.value : null, generations[i]!, epochs[i] ?? 0);
    });
    const freeMs = untilFreeMs(seen, membership.quorum, ttlMs);
    if (freeMs > 0) this.armLease(clock.now() + freeMs + 1, freeMs <= this.eveMs ? seen : undefined);
    this.advance();
    this.lastProbe = seen;
    this.chooseSource(seen);
    this.options.onProbe(seen, seen.at);
  }

  /** Far behind, the payloads come from one node: all of them over one link would take several times as long. */
  private chooseSource(seen: ProbeResult): void {
    const mine = this.options.head().height;
    const usable = this.views.map(({ admitted }, i) => {
      const reply = seen.replies[i];
      if (!admitted || reply?.outcome !== 'accepted' || reply.value.floor > mine) return null;
      return reply.value.head;
    });
    if (this.source.choose(usable)) for (const view of this.views) view.changed();
  }

  private noteAdmission(i: number, view: NodeView | null, generation: number, epoch: Epoch): void {
    const known = this.views[i];
    if (!known) return; // it was opened while the others were probed
    const admitted =
      view?.admission === 'admitted' &&
      this.options.nodes[i]!.connectionGeneration === generation &&
      this.options.counts(i, view.incarnation);
    if (view && (view.incarnation !== known.incarnation || generation !== known.generation)) {
      known.entries.clear(); // Another memory or connection: earlier entries prove nothing about it.
      known.lastId = '';
    } else if (view && view.head > Math.max(view.floor, this.options.head().height) && known.lastId !== '') {
      // A backfilled id may be lower than one that was superseded. So a head that should have been read, and was not,
      // is read again.
      const read = [...known.entries.values()];
      if (
        !read.some((entry) => entry.height === view.head && entry.hash === view.headHash) &&
        read.some((entry) => entry.height >= view.head)
      ) {
        known.entries.clear();
        known.lastId = '';
      }
    }
    if (view) {
      known.incarnation = view.incarnation;
      known.generation = generation;
      known.configuration = parseConfiguration(view.config);
      known.shownEpoch = Math.max(epoch, view.headEpoch);
    }
    if (known.admitted !== admitted) {
      known.admitted = admitted;
      known.changed();
    }
  }

  /**
   * Entries of an epoch that this node has not shown before count only by the configuration that the node knows since
   * (I10): the term of that epoch may count by more members than this follower knows of.
   */
  private async showConfiguration(i: number, view: View): Promise<void> {
    if (view.asking) return;
    view.asking = true;
    const { nodes, nodeTimeoutMs } = this.options;
    const { connectionGeneration } = nodes[i]!;
    const epoch = view.highestEpoch;
    const reply = await nodes[i]!.call({ script: 'inspect', brief: true }, nodeTimeoutMs);
    view.asking = false;
    if (!this.active || this.views[i] !== view || reply.outcome !== 'accepted') return; // the next probe shows it
    this.noteAdmission(i, reply.value, connectionGeneration, epoch);
    this.advance();
    if (view.highestEpoch > view.shownEpoch) void this.showConfiguration(i, view);
  }

  private async tail(i: number, life: number): Promise<void> {
    const { nodes, readLimit, pollMs, ttlMs, clock } = this.options;
    const node = nodes[i]!;
    const view = this.views[i]!;
    const here = () => this.active && this.life === life;
    while (here()) {
      if (!view.admitted || view.entries.size >= readLimit || !this.source.reads(i)) {
        await this.viewChange(view, pollMs);
        this.forget(view);
        continue;
      }
      // What the store has got meanwhile, from other nodes or a peer, is not read again.
      if (view.lastId !== '' && Number(view.lastId.split('-', 1)[0]) < this.options.head().height) view.lastId = '';
      const after = view.lastId;
      const reply = await node.tail(after || `${this.options.head().height + 1}-0`, Math.min(pollMs, ttlMs), readLimit);
      if (!here()) return;
      if (reply.outcome !== 'accepted') {
        this.source.failed(i);
        this.tellCut(i, view);
        // A read that is cut off again and again must not become a connection for each attempt.
        const pauseMs = node.reading?.pauseMs ?? 0;
        if (pauseMs > 0) await pause(clock, pauseMs);
        if (!here()) return;
      } else if (reply.value.lastId === '') this.source.failed(i);
      if (node.connectionGeneration !== view.generation) {
        view.admitted = false; // The connection was lost meanwhile. Only a new probe can tell which memory this is.
        void this.probeNow();
        continue;
      }
      if (reply.outcome !== 'accepted') {
        await this.viewChange(view, pollMs);
        continue;
      }
      if (reply.incarnation !== view.incarnation) {
        // Re-admitted, restarted, or another server. Nothing of it counts before a probe shows the same memory again.
        view.admitted = false;
        view.entries.clear();
        view.lastId = '';
        // When the answers disagree time after time, the next poll is early enough.
        if (view.strange++ === 0) void this.probeNow();
        else await this.viewChange(view, pollMs);
        continue;
      }
      view.strange = 0;
      if (reply.value.lastId === '') continue;
      if (view.lastId === after) view.lastId = reply.value.lastId; // otherwise it was sent back to the start meanwhile
      const bad = reply.value.damaged[0];
      if (bad) this.options.onDamaged(i, reply.incarnation, `${bad.id}: ${bad.why}`);
      for (const entry of reply.value.entries) {
        view.entries.set(`${entry.height}-${entry.epoch}`, entry);
        view.highestEpoch = Math.max(view.highestEpoch, entry.epoch);
      }
      // Only an accepted write renews the lease (I8).
      if (reply.value.entries.length > 0) this.armLease(clock.now() + ttlMs + 1);
      if (view.highestEpoch > view.shownEpoch) void this.showConfiguration(i, view);
      this.advance();
    }
  }

  private tellCut(i: number, view: View): void {
    const trouble = this.options.nodes[i]!.reading?.trouble ?? '';
    if (trouble !== '' && !view.cut) this.options.onCut(i, trouble);
    view.cut = trouble !== '';
  }

  /** Applies every proven block, one at a time, so that back-pressure holds. */
  private advance(): void {
    if (this.applying) return;
    this.applying = true;
    this.applyAll()
      .finally(() => (this.applying = false))
      .catch((error: unknown) => this.options.onFailure(error));
  }

  private async applyAll(): Promise<void> {
    for (;;) {
      if (!this.active) return;
      const { nodes, head, membership } = this.options;
      const members = nodes.filter((_, i) => membership.asks(i)).length;
      const followed = this.views.map(({ admitted, incarnation, configuration, shownEpoch, entries }, i) => ({
        id: nodes[i]!.id,
        admitted: admitted && membership.asks(i),
        entries: [...entries.values()].filter(({ epoch }) => epoch <= shownEpoch),
        shown: configuration && { configuration, incarnation, epoch: shownEpoch },
      }));
      const { committed, anomalies } = committedPrefix(followed, members, head());
      for (const next of committed) {
        // A peer delivered it while this loop waited for room. Compute the proven blocks again.
        if (next.height !== head().height + 1) break;
        const entry = this.entryOf(next.height, next.hash);
        if (!entry?.data) return;
        const { height, hash, parent, timestamp, data } = entry;
        const applied = this.options.apply({ height, hash, parent, timestamp, data }, next.epoch);
        if (applied) await applied;
        if (!this.active) return;
      }
      for (const view of this.views) this.forget(view);
      if (this.source.caughtUp()) for (const view of this.views) view.changed();
      if (committed.length === 0) {
        for (const anomaly of anomalies) this.options.onAnomaly(anomaly);
        return;
      }
    }
  }

  private entryOf(height: Height, hash: Hash): Entry | undefined {
    for (const view of this.views) {
      if (!view.admitted) continue;
      for (const entry of view.entries.values()) if (entry.height === height && entry.hash === hash) return entry;
    }
    return undefined;
  }

  private forget(view: View): void {
    const { height } = this.options.head();
    let removed = false;
    for (const [id, entry] of view.entries) {
      if (entry.height <= height) {
        view.entries.delete(id);
        removed = true;
      }
    }
    if (removed) view.changed();
  }

  private viewChange(view: View, limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        cancel();
        view.changed = () => {};
        resolve();
      };
      const cancel = this.options.clock.after(limitMs, finish);
      view.changed = finish;
    });
  }

  /**
   * Probes just before the lease can end, when its holder has given up by its own clock. The answers still hold at the
   * end of the lease, unless somebody writes, which is seen here. So the promotion need not wait for one more probe.
   */
  private armLease(at: number, eve?: ProbeResult): void {
    const now = this.options.clock.now();
    if (!eve && at - this.eveMs > now) this.arm(at - this.eveMs - now, () => void this.probeNow());
    else if (!eve) this.arm(at - now, () => void this.probeNow());
    else this.armAt(at, () => this.leaseOver(eve));
  }

  private leaseOver(eve: ProbeResult): void {
    this.options.onProbe(eve, this.options.clock.now());
    void this.probeNow();
  }

  /**
   * A leader that gives its lock back reports it on every node. Once all nodes have reported it, another probe could
   * show nothing more. So the promotion does not wait for one more round trip. If something else has changed,
   * `promote_leader` refuses.
   */
  private lockWent(i: number, released: boolean): void {
    const first = this.gone.size === 0;
    this.gone.add(i);
    if (released) this.released.add(i);
    if (first) this.cancelTold = this.options.clock.after(TOLD_MS, () => this.allTold());
    // A node with keyspace events reports it twice. The second report arrives together with the first.
    if (this.views.every((view, at) => !view.admitted || this.gone.has(at)))
      void Promise.resolve().then(() => this.allTold());
  }

  private allTold(): void {
    if (this.gone.size === 0) return;
    const freed = this.freedProbe();
    this.forgetTold();
    if (freed) this.options.onProbe(freed, freed.at);
    void this.probeNow();
  }

  /**
   * The last probe, without the leader's lock on the nodes that reported its release. Null when something else may have
   * changed, too.
   */
  private freedProbe(): ProbeResult | null {
    const { lastProbe, released } = this;
    const { clock } = this.options;
    const { quorum } = this.options.membership;
    const leader = lastProbe && leaderOf(lastProbe, quorum);
    if (!leader || released.size < quorum || this.views.some((view) => view.highestEpoch > leader.epoch)) return null;
    const replies = lastProbe.replies.map((reply, i) =>
      reply?.outcome === 'accepted' && released.has(i) && reply.value.lock?.owner === leader.owner
        ? { ...reply, value: { ...reply.value, lock: null } }
        : reply,
    );
    return { ...lastProbe, at: clock.now(), replies };
  }

  private forgetTold(): void {
    this.cancelTold();
    this.gone.clear();
    this.released.clear();
  }

  private arm(ms: number, run: () => void): void {
    this.cancelLease();
    this.cancelLease = this.options.clock.after(Math.max(0, ms), run);
  }

  /** Runs at this time: never earlier, and hardly later. */
  private armAt(at: number, run: () => void): void {
    const { clock } = this.options;
    this.cancelLease();
    this.cancelLease = clock.at?.(at, run) ?? clock.after(Math.max(0, at - clock.now()), run);
  }

  private get eveMs(): number {
    return Math.min(EVE_MS, this.options.ttlMs - usableLeaseMs(this.options.ttlMs));
  }
}

/**
 * The greatest head among admitted nodes that answered. Also the lowest floor of those that hold more than `mine`: 0
 * when no node does.
 */
export function seenHeads(seen: ProbeResult, mine: Height): { head: Height; floor: Height } {
  let head = 0;
  let floor = Infinity;
  for (const view of admittedViews(seen)) {
    head = Math.max(head, view.head);
    // A node that lags shows a low floor, but no block that could be fetched from it.
    if (view.head > mine) floor = Math.min(floor, view.floor);
  }
  return { head, floor: floor === Infinity ? 0 : floor };
}
