// How does one sequencer process live, die and start again? It is the real engine on simulated ports. Each life ends
// and the next one begins on the same store. A dead life gets and does nothing more, from the very outside call at
// which it died. A paused life gets everything at once when it wakes.
import { Inbox } from '../../src/core/sequencer/lead/inbox.js';
import { Sequencer } from '../../src/core/sequencer/sequencer.js';
import type { CatchUpOptions } from '../../src/core/sequencer/follow/catch-up.js';
import type { Limits, Timing } from '../../src/core/config.js';
import type { ChainStore, Clock } from '../../src/core/ports.js';
import { batchProducer, largestItem } from '../../src/core/produce/batch.js';
import { CLUSTER, IDENTITY } from '../support/virtual-cluster.js';
import { MemoryStore, type MemoryStoreOptions } from '../support/memory-store.js';
import { Prng } from './random.js';
import type { ProcessPlan } from './scenario.js';
import { Link, SimPort, type Life, type SimNode, type Wire } from './wire.js';

export interface ProcessHooks {
  /** Fetches blocks that the nodes have trimmed from the stores of other processes. */
  catchUp(who: SimProcess, options: CatchUpOptions): Promise<void>;
  /** Called at a fatal error. */
  fatalError(who: SimProcess, why: string): void;
  died(who: SimProcess): void;
  /** `<id>.<generation>` as the nodes show it to a process that starts. */
  clusterNow(): string;
  /** Points the links to the servers that the process's own settings name. */
  addresses(who: SimProcess): void;
  /** Whether the process may start with an edited node list: '' = yes, else why not. */
  mayStart(who: SimProcess, list: EditedList): string;
}

/** A node list that somebody edited. */
export interface EditedList {
  /** The only nodes on the list. null: all nodes. */
  only: readonly string[] | null;
  strangers: readonly Link[];
  /** Nobody could tell at the start that the strangers are no members. */
  raced: boolean;
}

/** When a node list prevents a start, the process tries again after this time, as a supervisor would. */
const START_AGAIN_MS = 500;
const NEVER = new Promise<never>(() => {});
const HISTORY_EVENTS = new Set([
  'role',
  'promotion-failed',
  'leadership-ended',
  'term-renewed',
  'committed',
  'alarm',
  'fatal-error',
  'request',
  'stopped',
  'started',
]);

export class OneLife implements Life {
  alive = true;
  paused = false;
  private fuse = Infinity;
  private held: (() => void)[] = [];
  onDeath: () => void = () => {};
  constructor(private readonly clock: Wire['clock']) {}

  touch(): boolean {
    if (this.alive && --this.fuse <= 0) this.die();
    return this.alive;
  }

  dieAfter(calls: number): void {
    this.fuse = Math.min(this.fuse, calls);
  }

  die(): void {
    if (!this.alive) return;
    this.alive = false;
    this.held = [];
    this.onDeath();
  }

  deliver(work: () => void): void {
    if (!this.alive) return;
    if (this.paused) this.held.push(work);
    else work();
  }

  resume(): void {
    this.paused = false;
    for (const work of this.held.splice(0)) this.clock.after(0, () => this.deliver(work));
  }
}

export class SimProcess {
  readonly id: string;
  private life: OneLife | null = null;
  /** The cluster and generation that the present life was started for. */
  cluster = IDENTITY.cluster;
  private lives = 0;
  sequencer: Sequencer | null = null;
  store: MemoryStore;
  private storeOptions: MemoryStoreOptions;
  wallOffsetMs: number;
  /** How many pauses are in effect. */
  pauses = 0;
  /** Nodes for which the process's own settings name another server. */
  readonly elsewhere = new Map<string, SimNode>();
  list: EditedList | null = null;
  /** The nodes on its list when it starts. null: all. It finds the others through the configuration. */
  listed: readonly string[] | null = null;
  private startingAgain = false;

  constructor(
    readonly plan: ProcessPlan,
    private readonly seed: number,
    private readonly wire: Wire,
    readonly links: Link[],
    private readonly limits: Limits,
    private readonly hooks: ProcessHooks,
  ) {
    this.id = plan.id;
    this.wallOffsetMs = plan.wallOffsetMs;
    this.storeOptions = { cluster: CLUSTER, lane: IDENTITY.lane, clock: wire.clock, syncMs: plan.syncMs };
    this.store = new MemoryStore(this.storeOptions);
  }

  get up(): boolean {
    return this.life?.alive === true;
  }

  setSync(ms: number): void {
    this.storeOptions.syncMs = ms;
  }

  emptyStore(): void {
    this.storeOptions = { ...this.storeOptions };
    this.store = new MemoryStore(this.storeOptions);
  }

  start(): void {
    const { wire, plan, limits } = this;
    const why = this.list === null ? '' : this.hooks.mayStart(this, this.list);
    if (why !== '') return this.startLater();
    const life = new OneLife(wire.clock);
    this.life = life;
    const identity = { ...IDENTITY, cluster: this.hooks.clusterNow() };
    this.cluster = identity.cluster;
    this.hooks.addresses(this);
    this.pauses = 0;
    life.onDeath = () => {
      this.store.crash();
      this.sequencer = null;
      this.hooks.died(this);
    };
    const clock: Clock = {
      now: () => wire.clock.now(),
      wall: () => wire.clock.wall() + this.wallOffsetMs,
      after: (ms, run) => (life.touch() ? wire.clock.after(ms, () => life.deliver(run)) : () => {}),
    };
    const store = this.facade(life);
    const timing: Timing = {
      ttlMs: plan.ttlMs,
      blockTimeMs: plan.blockTimeMs,
      nodeTimeoutMs: plan.nodeTimeoutMs,
      retryMs: 2 * plan.nodeTimeoutMs,
      retryJitterMs: plan.nodeTimeoutMs,
      pollMs: plan.pollMs,
      pollJitterMs: 0.4 * plan.pollMs,
    };
    const open = (link: Link): SimPort =>
      new SimPort(wire, link, life, { ...wire.identity, cluster: identity.cluster });
    const inbox = new Inbox({
      store,
      clock,
      maxItems: 1000,
      maxBytes: 1024 * 1024,
      maxItemBytes: largestItem(limits.maxBlockBytes),
      retryAfterMs: 100,
      unknownAfterMs: 2 * plan.ttlMs,
    });
    const sequencer = new Sequencer({
      id: plan.id,
      nodes: [...this.links.filter((link) => this.isTold(link.node.id)), ...(this.list?.strangers ?? [])].map(open),
      openNode: async ({ id, url }) => {
        const known = this.links.find((link) => link.node.id === id);
        const there = wire.servers.get(url);
        if (known === undefined && there === undefined) throw new Error(`nothing answers at ${url}`);
        const link = known ?? new Link(this.id, there!);
        if (known === undefined) this.links.push(link);
        return open(link);
      },
      identity,
      store,
      inbox,
      clock,
      timing,
      limits,
      random: new Prng(this.seed, `${plan.id}/${this.lives++}`),
      producer: batchProducer({ maxBlockBytes: limits.maxBlockBytes }),
      maxItemsBytes: largestItem(limits.maxBlockBytes),
      eager: plan.eager,
      rests: plan.rests ?? false,
      priority: plan.priority,
      readmit: true,
      version: 'sim',
      url: `http://${plan.id}`,
      pid: 1,
      extra: { ttlMs: String(plan.ttlMs), blockTimeMs: String(plan.blockTimeMs) },
      peers: [],
      catchUp: (options) => (life.alive ? this.hooks.catchUp(this, options) : NEVER),
      emit: (event) => {
        if (life.alive) wire.play?.told(plan.id, event);
        if (life.alive && HISTORY_EVENTS.has(event.type))
          wire.history.entries.push({ is: 'event', t: wire.clock.now(), who: plan.id, event });
      },
    });
    this.sequencer = sequencer;
    void sequencer.failure.then((error) => {
      if (life.alive) this.hooks.fatalError(this, `${error.code}: ${error.message}`);
    });
    sequencer.start();
  }

  private isTold(id: string): boolean {
    return (this.list?.only ?? this.listed)?.includes(id) ?? true;
  }

  private startLater(): void {
    if (this.startingAgain) return;
    this.startingAgain = true;
    this.wire.clock.after(START_AGAIN_MS, () => {
      this.startingAgain = false;
      if (!this.up && !this.wire.over) this.start();
    });
  }

  /** The process dies at its `calls`-th outside call from now on. 1 = the next one. */
  dieAfter(calls: number): void {
    this.life?.dieAfter(calls);
  }

  kill(): void {
    this.life?.die();
  }

  pause(): void {
    this.pauses++;
    if (this.life) this.life.paused = true;
  }

  resume(): void {
    if (this.pauses === 0 || --this.pauses > 0) return;
    this.life?.resume();
  }

  wake(): void {
    this.pauses = 0;
    if (this.life?.paused) this.life.resume();
  }

  private facade(life: OneLife): ChainStore {
    const { store } = this;
    return {
      head: () => store.head(),
      get: (height) => store.get(height),
      header: (height) => store.header(height),
      append: (block) => {
        if (!life.touch()) return NEVER;
        const synced = store.append(block);
        return new Promise((resolve) => void synced.then(() => life.deliver(resolve)));
      },
      receipt: (key) => store.receipt(key),
      retainedFloor: (limits) => store.retainedFloor(limits),
      close: () => store.close(),
    };
  }
}
