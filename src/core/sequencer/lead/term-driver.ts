// Runs one term. It carries out the effects of the pure reducer (protocol/term.ts) on real nodes, and passes the
// answers back, one at a time. It decides nothing itself. It releases the locks when the term has ended, unless the
// term is being renewed (docs/PROTOCOL.md section 6.7).
import { tellAll } from '../../nodes/ask-all.js';
import type { BackfillBatch, ChainStore, Clock, NodePort } from '../../ports.js';
import { calm } from '../../protocol/admission.js';
import type { MembersChange } from '../../protocol/configuration.js';
import { configurationOf } from '../../protocol/members.js';
import { counts } from '../../protocol/node-progress.js';
import { batchSize } from '../../protocol/fill-pace.js';
import type { Standing } from '../../protocol/node-progress.js';
import { LinkRates } from './link-rates.js';
import { mayExtend } from '../../protocol/leading.js';
import { nextWake, step } from '../../protocol/term.js';
import {
  newTerm,
  type Effect,
  type LocalChain,
  type TermEvent,
  type TermSettings,
  type TermState,
} from '../../protocol/term-state.js';
import type { StepdownCode, TermAlarmCode, TermEnd } from '../../protocol/term-codes.js';
import type { Block, Epoch, Hash, Height, LeaderRequest } from '../../protocol/types.js';

const RELEASE_LIMIT_MS = 100;

/** What the rest of the engine does for a term. All hooks are synchronous and called in protocol order. */
export interface TermHooks {
  leading(epoch: Epoch): void;
  ready(height: Height, parent: Hash): void;
  /** This term committed a block. It must be visible in the store when the hook returns. */
  committed(block: Block, epoch: Epoch, commitMs: number, copies: number): void;
  /**
   * Blocks that were committed before, learnt from the nodes. They must be visible in the store when the hook returns.
   */
  adopted(blocks: Block[]): void;
  request(request: LeaderRequest): void;
  node(id: string, state: Standing, why: string): void;
  alarm(code: TermAlarmCode, reason: string, node?: string, height?: Height): void;
  backfilled(node: string, from: Height, head: Height): void;
  /** The term has ended at this very moment. It writes nothing more. */
  ended?(end: TermEnd): void;
}

export interface TermDriverOptions {
  nodes: readonly NodePort[];
  clock: Clock;
  /** The source of payloads. */
  store: ChainStore;
  /** The same chain as the protocol sees it. */
  chain: LocalChain;
  settings: TermSettings;
  hooks: TermHooks;
  /** What is known of the links to the nodes. */
  rates?: LinkRates;
}

export class TermDriver {
  readonly state: TermState;
  private readonly queue: TermEvent[] = [];
  private draining = false;
  private wakeAt = Infinity;
  private cancelWake: () => void = () => {};
  private awaited: { height: Height; resolve: () => void }[] = [];
  private settle!: (end: TermEnd) => void;
  private readonly done: Promise<TermEnd>;

  private readonly nodes: readonly NodePort[];
  private readonly clock: Clock;
  private readonly store: ChainStore;
  private readonly chain: LocalChain;
  private readonly hooks: TermHooks;
  private readonly rates: LinkRates;

  constructor({ nodes, clock, store, chain, settings, hooks, rates }: TermDriverOptions) {
    this.nodes = nodes;
    this.clock = clock;
    this.store = store;
    this.chain = chain;
    this.hooks = hooks;
    this.rates = rates ?? new LinkRates(settings.ttlMs / 2);
    this.state = newTerm(settings, chain);
    this.done = new Promise((resolve) => (this.settle = resolve));
  }

  /**
   * Promotes with the answers of the pre-vote and runs until the term ends. The locks are still held then: see
   * `release`.
   */
  async run(votes: { node: number; epoch: Epoch }[]): Promise<TermEnd> {
    this.feed({ type: 'start', now: this.clock.now(), votes });
    return this.done;
  }

  feed(event: TermEvent): void {
    this.takeOpened();
    this.queue.push(event);
    if (this.draining) return;
    this.draining = true;
    try {
      for (let next = this.queue.shift(); next; next = this.queue.shift()) {
        for (const effect of step(this.state, next, this.chain)) this.carryOut(effect);
      }
    } finally {
      this.draining = false;
    }
    this.wakeAwaited();
    this.armWake();
  }

  /** A member was opened: the term asks it from now on. */
  opened(): void {
    this.feed({ type: 'tick', now: this.clock.now() });
  }

  /** Nodes are opened at any time. The term has one more then, the last one. */
  private takeOpened(): void {
    const { state } = this;
    const known = this.queue.filter(({ type }) => type === 'opened').length + state.nodes.length;
    for (const { id } of this.nodes.slice(known)) this.queue.push({ type: 'opened', now: this.clock.now(), id });
  }

  propose(block: Block): void {
    this.feed({ type: 'proposal', now: this.clock.now(), block });
  }

  /** Extends the lease without a block. False: a block is needed now. */
  extend(): boolean {
    if (!mayExtend(this.state)) return false;
    this.feed({ type: 'extend', now: this.clock.now() });
    return true;
  }

  stepdown(code: StepdownCode, reason: string): void {
    this.feed({ type: 'stepdown', now: this.clock.now(), code, reason });
  }

  /**
   * An operator found damage that the node itself cannot see. The node's stream is set aside and filled anew (section
   * 8).
   */
  damaged(node: number, incarnation: string, why: string): void {
    this.feed({ type: 'damaged', now: this.clock.now(), node, incarnation, why });
  }

  /** An operator asked to repair a node now. */
  fix(node: number): void {
    this.feed({ type: 'fix', now: this.clock.now(), node });
  }

  /** An operator put another server, at this address, in the node's place. */
  replaced(node: number, url: string): void {
    this.feed({ type: 'replaced', now: this.clock.now(), node, url });
  }

  /** An operator asked for another set of members, or for other agreed settings. */
  change(change: MembersChange, node: number): void {
    this.feed({ type: 'change', now: this.clock.now(), change, node });
  }

  /** How many ms of the lease may still be relied on. 0 when the lease has ended or this sequencer does not lead. */
  leaseMs(): number {
    const { phase, leaseDeadline } = this.state;
    return phase === 'leading' || phase === 'settling' ? Math.max(0, leaseDeadline - this.clock.now()) : 0;
  }

  /**
   * Proves on q nodes, after the call, that this term is still the newest (a repeated claim, section 4). Returns the
   * committed head, or null when the proof fails. A node may show more than is known to be committed: a block whose
   * acknowledgements are still on their way. A follower may have read that block from the nodes already. So its outcome
   * is awaited, at most as long as the lease.
   */
  async confirm(): Promise<{ height: Height; hash: Hash } | null> {
    const { owner, quorum, nodeTimeoutMs } = this.state.settings;
    const epoch = this.state.epoch;
    let accepted = 0;
    let head = 0;
    await new Promise<void>((resolve) => {
      let waiting = this.nodes.length;
      const settled = (shown: Height | null): void => {
        if (shown !== null && accepted < quorum) {
          accepted++;
          head = Math.max(head, shown);
        }
        if (accepted >= quorum || --waiting === 0) resolve();
      };
      this.nodes.forEach((node, i) => {
        const progress = this.state.nodes[i];
        if (!progress || !counts(progress)) return settled(null);
        const { incarnation } = progress;
        void node
          .call({ script: 'claim', owner, epoch, ...configurationOf(this.state) }, nodeTimeoutMs)
          .then((reply) =>
            settled(reply.outcome === 'accepted' && reply.incarnation === incarnation ? reply.value.head : null),
          );
      });
    });
    if (accepted < quorum) return null;
    await new Promise<void>((resolve) => {
      this.awaited.push({ height: head, resolve });
      this.wakeAwaited();
    });
    return this.state.phase === 'ended' ? null : this.state.committed;
  }

  /** Releases every lock with this term's token (or the renewed term's token) on every node, each within 100 ms. */
  async release(handover?: { to: string; ttlMs: number }): Promise<void> {
    const owners = [this.state.settings.owner, this.state.settings.previousOwner].filter(
      (owner) => owner !== undefined,
    );
    const locks = this.nodes.flatMap((node) => owners.map((owner) => ({ node, owner })));
    await tellAll(locks, ({ node, owner }) =>
      node.call({ script: 'release_lock', owner, ...(handover ? { handover } : {}) }, RELEASE_LIMIT_MS),
    );
  }

  private carryOut(effect: Effect): void {
    switch (effect.type) {
      case 'call': {
        const node = this.nodes[effect.node]!;
        const limitMs = this.state.settings.nodeTimeoutMs + this.rates.extraMs(node, effect.bytes);
        // The server has no scripts yet. It loads them while it is filled: the commits wait for what comes after.
        if (effect.call.script === 'begin_admission') void node.prepare?.(limitMs);
        const sentAt = this.clock.now();
        void node.call(effect.call, limitMs).then((reply) => {
          const now = this.clock.now();
          this.rates.learn(node, effect.bytes, reply, now - sentAt);
          this.feed({ type: 'reply', now, node: effect.node, id: effect.id, reply });
        });
        return;
      }
      case 'backfill':
        // A store that reads its blocks from elsewhere fetches them first. A store that has them causes no wait.
        if (this.store.prefetch)
          void this.store.prefetch(effect.from, effect.to).then(() => {
            if (this.state.phase !== 'ended') this.backfill(effect);
          });
        else this.backfill(effect);
        return;
      case 'read': {
        const count = effect.to - effect.from + 1;
        // Up to maxAdopt blocks of any size. The real bound is what remains of the lease.
        const limitMs = Math.max(this.state.settings.nodeTimeoutMs, (this.state.leaseDeadline - this.clock.now()) / 2);
        void this.nodes[effect.node]!.read(
          { from: effect.from, to: effect.to, limit: count + 1, data: true },
          limitMs,
        ).then((reply) => this.feed({ type: 'read', now: this.clock.now(), node: effect.node, id: effect.id, reply }));
        return;
      }
      case 'load': {
        const block = this.store.get(effect.height);
        if (block) this.queue.push({ type: 'proposal', now: this.clock.now(), block });
        else
          this.queue.push({
            type: 'stepdown',
            now: this.clock.now(),
            code: 'STORE_HOLE',
            reason: `the store has no block ${effect.height} to propose again`,
          });
        return;
      }
      case 'adopted':
        return this.hooks.adopted(effect.blocks);
      case 'leading':
        return this.hooks.leading(effect.epoch);
      case 'ready':
        return this.hooks.ready(effect.height, effect.parent);
      case 'committed':
        return this.hooks.committed(effect.block, effect.epoch, this.clock.now() - effect.startedAt, effect.copies);
      case 'request':
        return this.hooks.request(effect.request);
      case 'node':
        return this.hooks.node(this.nodes[effect.node]!.id, effect.standing, effect.why);
      case 'alarm':
        return this.hooks.alarm(
          effect.code,
          effect.reason,
          effect.node === undefined ? undefined : this.nodes[effect.node]!.id,
          effect.height,
        );
      case 'ended':
        this.cancelWake();
        this.wakeAt = Infinity;
        this.hooks.ended?.(effect.end);
        return this.settle(effect.end);
    }
  }

  private backfill(effect: Extract<Effect, { type: 'backfill' }>): void {
    const { owner, ttlMs, nodeTimeoutMs } = this.state.settings;
    const node = this.nodes[effect.node]!;
    const blocks: BackfillBatch['blocks'] = [];
    let bytes = 0;
    const most = batchSize(calm(this.state, this.clock.now()), this.state.nodes[effect.node]!.admission?.pace);
    for (
      let height = effect.from;
      height <= effect.to && blocks.length < most.blocks && (bytes < most.bytes || blocks.length === 0);
      height++
    ) {
      const block = this.store.get(height);
      if (!block) break;
      const known = block.epoch > 0 && block.epoch < this.state.epoch && !effect.stampOwnEpoch;
      blocks.push({ block, entryEpoch: known ? block.epoch : this.state.epoch });
      bytes += block.data.byteLength;
    }
    const batch: BackfillBatch = {
      owner,
      epoch: this.state.epoch,
      ttlMs,
      mode: 'repair',
      blocks,
      ...(effect.nonce === undefined ? {} : { nonce: effect.nonce }),
      ...(effect.challenge === undefined ? {} : { challenge: effect.challenge }),
    };
    const sent = blocks.map(({ block }) => ({
      height: block.height,
      hash: block.hash,
      parent: block.parent,
      timestamp: block.timestamp,
    }));
    const limitMs = nodeTimeoutMs + 2 * this.rates.extraMs(node, bytes) + blocks.length / 10;
    const sentAt = this.clock.now();
    const answered = blocks.length === 0 ? Promise.resolve([]) : node.backfill(batch, limitMs);
    void answered.then((replies) => {
      const last = replies.at(-1);
      if (last !== undefined) this.rates.learn(node, bytes, last, this.clock.now() - sentAt);
      this.feed({
        type: 'backfilled',
        now: this.clock.now(),
        node: effect.node,
        id: effect.id,
        replies,
        from: sent,
        bytes,
      });
      if (replies.at(-1)?.outcome === 'accepted')
        this.hooks.backfilled(node.id, effect.from, sent[replies.length - 1]!.height);
    });
  }

  private wakeAwaited(): void {
    if (this.awaited.length === 0) return;
    const { committed, phase } = this.state;
    const settled = this.awaited.filter(({ height }) => height <= committed.height || phase === 'ended');
    this.awaited = this.awaited.filter((one) => !settled.includes(one));
    for (const { resolve } of settled) resolve();
  }

  /** One lazy timer. It is set anew only when something is due before the time it waits for. */
  private armWake(): void {
    const now = this.clock.now();
    const due = nextWake(this.state, now);
    if (due >= this.wakeAt) return;
    this.cancelWake();
    this.wakeAt = due;
    this.cancelWake = this.clock.after(Math.max(0, due - now), () => {
      this.wakeAt = Infinity;
      this.feed({ type: 'tick', now: this.clock.now() });
    });
  }
}
