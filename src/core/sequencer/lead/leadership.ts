// From a promotion to the end of the lead (docs/PROTOCOL.md sections 5 and 6): term after term for as long as the
// term is renewed, one lead to everybody else. The lock is released the moment the last one has ended, before
// anything that follows from it.
import { usableLeaseMs, type Timing } from '../../config.js';
import type { EmitEvent } from '../../events.js';
import type { ChainStore, Clock, NodePort, Producer, Random } from '../../ports.js';
import type { LocalChain, TermEnd, TermSettings } from '../../protocol/term-state.js';
import type { Block, Epoch, LeaderRequest } from '../../protocol/types.js';
import type { DamageReports } from './damage-reports.js';
import { probe, votesOf } from '../../nodes/probe.js';
import type { NodeAddresses } from './node-addresses.js';
import type { BlockBuilder } from './block-builder.js';
import type { Renewals } from './term-renewal.js';
import type { Inbox } from './inbox.js';
import { TermDriver, type TermHooks } from './term-driver.js';
import type { Retention } from './retention.js';

/** Heights that a promotion may read by itself; the tail brings a follower closer than that on its own. */
export const MAX_ADOPT = 8;

/** What a leadership needs of what its sequencer is given (sequencer/options.ts). */
export interface LeadershipOptions {
  id: string;
  nodes: readonly NodePort[];
  store: ChainStore;
  inbox: Inbox;
  producer: Producer;
  clock: Clock;
  random: Random;
  timing: Timing;
  /** Re-admit nodes that lost their memory. */
  readmit: boolean;
  emit: EmitEvent;
}

export interface LeadershipParts {
  quorum: number;
  blockBuilder: BlockBuilder;
  damage: DamageReports;
  renewals: Renewals;
  addresses: NodeAddresses;
  retention: Retention;
  chain(): LocalChain;
  stopping(): boolean;
  promoting(): void;
  /** It leads; `first`: it did not before. */
  leads(first: boolean): void;
  take(block: Block, epoch: Epoch, commitMs: number): void;
  request(request: LeaderRequest): void;
  node(id: string, state: string, why: string): void;
  /** It leads no more, and has said so. */
  over(reason: string): void;
}

export class Leadership {
  /** The term under way, or null. */
  driver: TermDriver | null = null;
  private handover: string | undefined;

  constructor(
    private readonly options: LeadershipOptions,
    private readonly parts: LeadershipParts,
  ) {}

  /** Steps down in favour of one sequencer, or of anybody. */
  handOver(driver: TermDriver, to: string, reason: string): void {
    this.handover = to || undefined;
    driver.stepdown('REQUESTED', reason);
  }

  /** Promotes and leads until the end; resolves when the locks are released. */
  async hold(firstVotes: { node: number; epoch: Epoch }[]): Promise<{ end: TermEnd; everLed: boolean }> {
    const { id, nodes, clock, random, emit, inbox, producer, timing } = this.options;
    const { parts } = this;
    const startedAt = clock.now();
    let votes = firstVotes;
    let previousOwner: string | undefined;
    let end: TermEnd;
    let everLed = false;
    let lastEpoch = 0;
    let renewedFor = '';
    let released: Promise<void> | undefined;
    let driver: TermDriver;
    this.handover = undefined;
    for (;;) {
      const owner = `${id}/${random.hex(8)}`;
      const term =
        (driver =
        this.driver =
          new TermDriver(
            nodes,
            clock,
            this.options.store,
            parts.chain(),
            this.settings(owner, previousOwner),
            this.hooks(
              () => {
                if (everLed) emit({ type: 'term-renewed', from: lastEpoch, to: term.state.epoch, reason: renewedFor });
                const first = !everLed;
                everLed = true;
                parts.leads(first);
              },
              ({ code }) => {
                if (code !== 'RENEW') released = this.release(term);
              },
            ),
          ));
      const running = driver.run(votes);
      // The nodes have the question; what follows is said while they answer.
      if (!everLed) parts.promoting();
      if (parts.stopping()) driver.stepdown('STOPPED', 'this sequencer is stopping');
      end = await running;
      parts.damage.learn(driver.state.nodes);
      if (end.code !== 'RENEW') break;
      parts.blockBuilder.stop();
      parts.renewals.note(driver.state.nodes);
      lastEpoch = driver.state.epoch;
      renewedFor = end.reason;
      const seen = await probe(nodes, parts.quorum, timing.nodeTimeoutMs, clock);
      const again = votesOf(seen, nodes, id, owner);
      if (again.votes.length < parts.quorum) {
        end = { code: 'RENEWAL_FAILED', reason: `the term could not be renewed: ${again.why}` };
        break;
      }
      votes = await parts.renewals.liftEpoch(seen, again.votes, owner);
      previousOwner = owner;
    }
    parts.blockBuilder.stop();
    released ??= this.release(driver);
    inbox.abandon(`the term ended: ${end.reason}`);
    if (everLed) producer.revoked(end.reason);
    const { epoch } = driver.state;
    if (everLed)
      emit({
        type: 'leadership-ended',
        epoch,
        code: end.code,
        reason: end.reason,
        heldMs: Math.round(clock.now() - startedAt),
      });
    else emit({ type: 'promotion-failed', code: end.code, reason: end.reason });
    parts.over(end.reason);
    await released;
    return { end, everLed };
  }

  private release(driver: TermDriver): Promise<void> {
    const { handover } = this;
    return driver.release(handover === undefined ? undefined : { to: handover, ttlMs: this.options.timing.ttlMs });
  }

  private hooks(onLeading: () => void, onEnded: (end: TermEnd) => void): TermHooks {
    const { store, emit } = this.options;
    const { parts } = this;
    return {
      leading: onLeading,
      ended: onEnded,
      ready: (height, parent) => parts.blockBuilder.ready(this.driver!, height, parent),
      committed: (block, epoch, commitMs) => {
        // Already in the store: a block of ours that the nodes had lost, or that another leader committed under us.
        if (block.height > store.head().height) parts.take(block, epoch, commitMs);
      },
      adopted: (blocks) => {
        for (const block of blocks) parts.take(block, 0, 0);
      },
      request: (request) => parts.request(request),
      node: (node, state, why) => parts.node(node, state, why),
      alarm: (code, reason, node, height) => {
        if (code === 'OOM' && node !== undefined) parts.retention.refused(node);
        emit({ type: 'alarm', code, reason, ...(node ? { node } : {}), ...(height ? { height } : {}) });
      },
      backfilled: (node, from, to) =>
        emit({ type: 'backfill', node, from, to, head: this.driver?.state.committed.height ?? 0 }),
    };
  }

  private settings(owner: string, previousOwner: string | undefined): TermSettings {
    const { nodes, timing } = this.options;
    const { quorum, addresses, damage, renewals } = this.parts;
    return {
      owner,
      ...(previousOwner === undefined ? {} : { previousOwner }),
      nodes: nodes.length,
      quorum,
      ttlMs: timing.ttlMs,
      usableLeaseMs: usableLeaseMs(timing.ttlMs),
      nodeTimeoutMs: timing.nodeTimeoutMs,
      graceMs: 3,
      retryMs: 5,
      regainMs: Math.min(timing.pollMs, timing.ttlMs / 3),
      maxAdopt: MAX_ADOPT,
      readmit: this.options.readmit,
      moves: addresses.text,
      damaged: damage.known,
      renewNotBefore: renewals.notBefore(),
    };
  }
}
