// Probes every node at its own pace, so that a node that hangs delays only its own row. At most five commands per
// second and node, for any interval, any number of lanes, and however often a key asks. Read-only.
import { familyOf, generationOf } from '../core/generation.js';
import { bounded } from '../core/nodes/ask-all.js';
import type { NodeProbe } from '../core/view/cluster-view.js';
import { bothTries, headsBehind, isLate } from '../core/view/inspect.js';
import type { Clock, NodePort } from '../core/ports.js';
import type { NodeView } from '../core/protocol/types.js';
import { wantedEntries, wantedPinned } from './model-entries.js';
import type { WatchInput } from './model.js';
import { wantsEntries } from './layout.js';
import type { WatchState } from './model-state.js';

export interface PollOptions {
  nodes: readonly NodePort[];
  /**
   * Opens the nodes again and asks them for their cluster and its members. Returns null while nothing is found. Called
   * while the cluster is unknown, when the nodes show a later generation of it, and when its members have changed.
   */
  rediscover?: () => Promise<readonly NodePort[] | null>;
  /** The nodes' cluster is known already. */
  identified?: boolean;
  /** The operator named the cluster: a later generation is not followed. */
  fixed?: boolean;
  limitMs: number;
  /** The nodes are files: no load to limit, and time does not advance. */
  still?: boolean;
  clock: Clock;
  state(): WatchState;
  dispatch(input: WatchInput): void;
  /** Shared by the lanes of one cluster, because they are on the same nodes. */
  budget?: Budget;
  /** False while another lane is on the screen. Then it probes only for the verdict, and less often. */
  shown?: () => boolean;
  /** The pause between two probes. Absent: the pause from the state. */
  everyMs?: () => number;
  /** Called for a bug while probing; nodes never cause one. */
  onError?: (error: unknown) => void;
}

/** A probe is shown when all nodes have answered, or after this time. A later answer is shown with the next probe. */
const SETTLE_MS = 150;
const REDISCOVER_MS = 2000;

const COMMANDS_PER_SECOND = 5;

/** How many commands each node was sent within the last second. */
export class Budget {
  private readonly sent = new Map<string, number[]>();

  /** False: the limit is reached, do not send now. */
  spend(url: string, now: number): boolean {
    const recent = (this.sent.get(url) ?? []).filter((at) => now - at < 1000);
    if (recent.length >= COMMANDS_PER_SECOND) return false;
    this.sent.set(url, [...recent, now]);
    return true;
  }
}

export class Poller {
  private readonly asking = new Set<string>();
  /** Nodes that are asked for the second time at this moment. */
  private readonly retrying = new Set<string>();
  /** Nodes that were late, where the budget had no room for the second try. The next probe is that try. */
  private readonly late = new Map<string, NodeProbe>();
  private readonly budget: Budget;
  private cancel: () => void = () => undefined;
  private stopped = false;
  private started = false;
  private nodes: readonly NodePort[];
  private identified: boolean;
  /** The cluster, as the nodes named it last. */
  private cluster = '';
  /** Nodes that were no members when the nodes were opened. Null: not known yet. */
  private strangers: ReadonlySet<string> | null = null;
  private triedAt = -Infinity;

  constructor(private readonly options: PollOptions) {
    this.nodes = options.nodes;
    this.budget = options.budget ?? new Budget();
    this.identified = options.identified ?? options.rediscover === undefined;
  }

  /** One probe. Resolves when every node has answered or the time is over, and the state contains it. */
  async poll(): Promise<void> {
    const { clock, dispatch, limitMs } = this.options;
    await this.findIdentity();
    const calls = this.nodes.map((node) => this.ask(node));
    await this.settle(calls, SETTLE_MS);
    // The second try decides whether a node is down. That is known soon, and not only with the next probe.
    if (this.retrying.size > 0) await this.settle(calls, limitMs);
    if (!this.stopped) dispatch({ type: 'settled', at: clock.now(), wall: clock.wall() });
  }

  private async settle(calls: readonly Promise<void>[], limitMs: number): Promise<void> {
    let timeUp: () => void = () => undefined;
    const patience = new Promise<void>((resolve) => {
      timeUp = this.options.clock.after(limitMs, resolve);
    });
    await Promise.race([Promise.all(calls), patience]);
    timeUp();
  }

  /** Opens the connections, then probes twice: the first verdict needs both. */
  async first(): Promise<void> {
    await this.findIdentity();
    const { nodes } = this;
    // While this program was loading it may have kept the nodes waiting. A connection that is slow because of us must
    // not affect the verdict.
    await Promise.all(
      nodes.map(async (node) => {
        for (let tries = 0; tries < 2 && !this.stopped; tries += 1)
          if ((await this.inspect(node)).outcome !== 'unknown') return;
      }),
    );
    await this.poll();
    // A node that takes longer than a probe waits has no outcome yet. Without an outcome there is no verdict.
    const { clock, limitMs, state } = this.options;
    const until = clock.now() + 2 * limitMs + 100;
    while (!this.stopped && clock.now() < until && state().data.nodes.some((node) => node.probe === null)) {
      await new Promise<void>((resolve) => {
        clock.after(10, resolve);
      });
    }
    if (state().data.polls === 0 && !this.stopped)
      this.options.dispatch({ type: 'settled', at: clock.now(), wall: clock.wall() });
    await this.poll();
  }

  start(): void {
    this.started = true;
    const tick = (): void => {
      if (this.stopped) return;
      this.cancel = this.options.clock.after(this.everyMs(), tick);
      this.poll().catch((error: unknown) => this.options.onError?.(error));
    };
    this.cancel = this.options.clock.after(this.everyMs(), tick);
  }

  /** Call it after the interval has changed. */
  restart(): void {
    if (!this.started || this.stopped) return;
    this.cancel();
    this.start();
  }

  stop(): void {
    this.stopped = true;
    this.cancel();
  }

  private async ask(node: NodePort): Promise<void> {
    const { clock, limitMs, dispatch, state } = this.options;
    if (this.asking.has(node.id) || !this.spend(node)) return;
    this.asking.add(node.id);
    try {
      const probe = await this.askTwice(node);
      // The nodes may have been opened again meanwhile. Then this connection is closed, which says nothing of the node.
      if (probe === null || this.stopped || !this.nodes.includes(node)) return;
      const { reply } = probe;
      dispatch({ type: 'probed', probe, askedAt: probe.askedAt ?? clock.now(), at: clock.now() });
      if (reply.outcome !== 'accepted') return;
      const track = state().data.nodes.find((one) => one.id === node.id);
      await this.readPinned(node, reply.value);
      await this.readChainAtHeads(node);
      const { view } = state().data;
      const unclear = view?.committed?.hash === null || (view?.pending ?? null) !== null;
      const wanted = (this.options.shown?.() ?? true) && wantsEntries(state());
      if (track === undefined || !(unclear || wanted)) return;
      const range = wantedEntries(track.entries, reply.value);
      if (range === null || !this.spend(node)) return;
      const read = await bounded(
        node.read({ ...range, limit: range.to - range.from + 1, data: false }, limitMs),
        limitMs,
        clock,
      );
      if (!this.stopped) dispatch({ type: 'entries', id: node.id, range, read });
    } finally {
      this.asking.delete(node.id);
    }
  }

  /**
   * A node that answered and now lets its time run out may only be busy for this moment. As in `seq status`, it is
   * asked once more before anything is concluded. Null: there is no room for that in the budget.
   */
  private async askTwice(node: NodePort): Promise<NodeProbe | null> {
    const before = this.late.get(node.id);
    this.late.delete(node.id);
    const first = await this.probe(node);
    if (before !== undefined) return bothTries(before, first);
    const known = this.options.state().data.nodes.find((one) => one.id === node.id)?.probe?.reply.outcome;
    if (!isLate(first.reply) || known === undefined || known === 'unknown') return first;
    if (!this.spend(node)) {
      this.late.set(node.id, first);
      return null;
    }
    this.retrying.add(node.id);
    try {
      return bothTries(first, await this.probe(node));
    } finally {
      this.retrying.delete(node.id);
    }
  }

  private async probe(node: NodePort): Promise<NodeProbe> {
    const { clock, still } = this.options;
    const askedAt = clock.now();
    const reply = await this.inspect(node);
    const took = Math.round((clock.now() - askedAt) * 10) / 10;
    return {
      id: node.id,
      url: node.url,
      reply,
      rttMs: reply.outcome === 'unknown' || still === true ? null : took,
      askedAt,
    };
  }

  /** Reads the height that is open as a detail, when it is older than the entries that are kept. */
  private async readPinned(node: NodePort, view: NodeView): Promise<void> {
    const { clock, limitMs, dispatch, state } = this.options;
    const { detail } = state().ui;
    const track = state().data.nodes.find((one) => one.id === node.id);
    if (detail?.of !== 'height' || track === undefined || this.options.shown?.() === false) return;
    const range = wantedPinned(track.entries, track.pinned, view, detail.height);
    if (range === null || !this.spend(node)) return;
    const read = await bounded(
      node.read({ ...range, limit: range.to - range.from + 1, data: false }, limitMs),
      limitMs,
      clock,
    );
    if (!this.stopped) dispatch({ type: 'entries', id: node.id, range, read, pinned: true });
  }

  /** As `seq status` does: where another node is behind, and this one is not, what does the chain have at its head? */
  private async readChainAtHeads(node: NodePort): Promise<void> {
    const { clock, limitMs, dispatch, state } = this.options;
    const { view, nodes } = state().data;
    if (view === null) return;
    for (const { id, head, source } of headsBehind(view)) {
      const known = nodes.find((one) => one.id === id)?.chainAtHead?.height === head;
      if (known || source !== node.id || !this.spend(node)) continue;
      const read = await bounded(node.read({ from: head, to: head, limit: 1, data: false }, limitMs), limitMs, clock);
      if (!this.stopped) dispatch({ type: 'chain-at-head', id, height: head, read });
    }
  }

  /** Without the identity, every node of this cluster would count as another cluster's. */
  private async findIdentity(): Promise<void> {
    const { clock, dispatch, rediscover } = this.options;
    const later = this.laterGeneration();
    const members = this.identified && later === '' && this.membersChanged();
    if (rediscover === undefined || (this.identified && later === '' && !members)) return;
    if (clock.now() - this.triedAt < REDISCOVER_MS) return;
    this.triedAt = clock.now();
    // The probes show what is wrong with the nodes. Here an error only means that the identity is not known yet.
    const found = await rediscover().catch(() => null);
    if (found === null || this.stopped) return;
    this.identified = true;
    this.strangers = null;
    this.nodes = found;
    const nodes = found.map(({ id, url }) => ({ id, url }));
    dispatch({ type: 'nodes', nodes, at: clock.now(), later, members });
  }

  /** `seq cluster recover` gave the cluster a later generation: for the old name, all its nodes are foreign. */
  private laterGeneration(): string {
    const { view } = this.options.state().data;
    if (view === null || this.options.fixed === true) return '';
    if (view.cluster !== '') this.cluster = view.cluster;
    const shown = view.nodes.filter(
      ({ state, cluster }) =>
        state === 'FOREIGN' &&
        familyOf(cluster) === familyOf(this.cluster) &&
        generationOf(cluster) > generationOf(this.cluster),
    );
    return shown.length >= view.quorum ? (shown[0]?.cluster ?? '') : '';
  }

  /** `seq cluster resize`: the nodes name a member that nobody asks here, or leave one out that is asked. */
  private membersChanged(): boolean {
    const { view } = this.options.state().data;
    if (view === null) return false;
    const strangers = view.nodes.filter(({ state }) => state === 'STRANGER').map(({ id }) => id);
    const before = (this.strangers ??= new Set(strangers));
    return (
      strangers.some((id) => !before.has(id)) ||
      view.nodes.some(({ id, state }) => state !== 'STRANGER' && !this.nodes.some((node) => node.id === id))
    );
  }

  private inspect(node: NodePort) {
    const { limitMs, clock } = this.options;
    return bounded(node.call({ script: 'inspect' }, limitMs), limitMs, clock);
  }

  private spend({ url }: NodePort): boolean {
    return this.options.still === true || this.budget.spend(url, this.options.clock.now());
  }

  private everyMs(): number {
    return this.options.everyMs?.() ?? this.options.state().ui.intervalMs;
  }
}
