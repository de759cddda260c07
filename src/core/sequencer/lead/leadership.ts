// Runs one leadership, from a promotion to the release of the locks (docs/PROTOCOL.md sections 5 and 6). It runs term
// after term for as long as the term is renewed; to everybody else that is one leadership. When the last term ends, the
// lock is released first, before any follow-up work.
import { usableLeaseMs, type Timing } from '../../config.js';
import type { EmitEvent } from '../../events.js';
import type { ChainStore, Clock, NodePort, Producer, Random } from '../../ports.js';
import { newest } from '../../protocol/configuration.js';
import type { Standing } from '../../protocol/node-progress.js';
import { notedChange, votesUnder } from '../../protocol/reconfigure.js';
import type { TermEnd } from '../../protocol/term-codes.js';
import type { LocalChain, TermSettings } from '../../protocol/term-state.js';
import type { Block, Epoch, LeaderRequest } from '../../protocol/types.js';
import type { DamageReports } from './damage-reports.js';
import { probe, votesOf, type ProbeResult } from '../../nodes/probe.js';
import type { Membership } from './membership.js';
import type { BlockBuilder } from './block-builder.js';
import type { Renewals } from './term-renewal.js';
import type { Inbox } from './inbox.js';
import { LinkRates } from './link-rates.js';
import { TermDriver, type TermHooks } from './term-driver.js';
import type { Retention } from './retention.js';

/** Most heights that a promotion reads by itself. A follower's tail brings it closer than that. */
export const MAX_ADOPT = 8;

/** The parts of the sequencer's options that a leadership needs (sequencer/options.ts). */
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
  blockBuilder: BlockBuilder;
  damage: DamageReports;
  renewals: Renewals;
  membership: Membership;
  retention: Retention;
  chain(): LocalChain;
  stopping(): boolean;
  promoting(): void;
  /** This sequencer leads. `first`: it did not lead before. */
  leads(first: boolean): void;
  take(block: Block, epoch: Epoch, commitMs: number): void;
  request(request: LeaderRequest): void;
  node(id: string, state: Standing, why: string): void;
  /** This sequencer no longer leads, and has announced it. */
  over(reason: string): void;
}

/** State of one leadership over all its terms. */
interface Course {
  startedAt: number;
  /** At least one of its terms has led. */
  led: boolean;
  /** The term before this one, and why it was renewed. */
  renewed: { owner: string; epoch: Epoch; reason: string } | null;
  /** Set as soon as the locks are being released. */
  released: Promise<void> | undefined;
}

export class Leadership {
  private current: TermDriver | null = null;
  private handover: string | undefined;
  private readonly rates: LinkRates;

  constructor(
    private readonly options: LeadershipOptions,
    private readonly parts: LeadershipParts,
  ) {
    this.rates = new LinkRates(options.timing.ttlMs / 2);
  }

  /** The term under way, or null. */
  get driver(): TermDriver | null {
    return this.current;
  }

  /** Steps down in favour of one sequencer, or of any sequencer. */
  handOver(driver: TermDriver, to: string, reason: string): void {
    this.handover = to || undefined;
    driver.stepdown('REQUESTED', reason);
  }

  /** The work that follows the last leadership is done. There is no term any more. */
  forget(): void {
    this.current = null;
  }

  /** Promotes and leads until the end. Resolves when the locks are released. */
  async hold(firstVotes: { node: number; epoch: Epoch }[]): Promise<{ end: TermEnd; everLed: boolean }> {
    const course: Course = {
      startedAt: this.options.clock.now(),
      led: false,
      renewed: null,
      released: undefined,
    };
    this.handover = undefined;
    let votes: typeof firstVotes | null = firstVotes;
    let driver: TermDriver;
    let end: TermEnd;
    do {
      driver = this.current = this.newTerm(course);
      end = await this.runTerm(driver, votes, course);
      if (end.code !== 'RENEW') break;
      const renewal = await this.renew(driver, end.reason, course);
      votes = renewal.votes;
      end = renewal.end ?? end;
    } while (votes !== null);
    await this.conclude(driver, end, course);
    return { end, everLed: course.led };
  }

  private newTerm(course: Course): TermDriver {
    const { id, nodes, clock, store, random, emit } = this.options;
    const { parts } = this;
    const owner = `${id}/${random.hex(8)}`;
    const driver: TermDriver = new TermDriver({
      nodes,
      clock,
      store,
      rates: this.rates,
      chain: parts.chain(),
      settings: this.settings(owner, course.renewed?.owner),
      hooks: this.hooks(
        () => {
          const { led, renewed } = course;
          if (led && renewed)
            emit({ type: 'term-renewed', from: renewed.epoch, to: driver.state.epoch, reason: renewed.reason });
          course.led = true;
          parts.leads(!led);
        },
        ({ code }) => {
          if (code !== 'RENEW') course.released = this.release(driver);
        },
      ),
    });
    return driver;
  }

  /** One term, from its promotion to its end. */
  private async runTerm(driver: TermDriver, votes: { node: number; epoch: Epoch }[], course: Course): Promise<TermEnd> {
    const { parts } = this;
    const running = driver.run(votes);
    // The nodes have the question already. Report the promotion while they answer.
    if (!course.led) parts.promoting();
    if (parts.stopping()) driver.stepdown('STOPPED', 'this sequencer is stopping');
    const end = await running;
    parts.damage.learn(driver.state.nodes);
    if (end.learnt) parts.membership.take(newest(parts.membership.configuration, end.learnt));
    return end;
  }

  /** Gets the votes for the next term. Null, and the end of this leadership, when too few nodes vote. */
  private async renew(
    driver: TermDriver,
    reason: string,
    course: Course,
  ): Promise<{ votes: { node: number; epoch: Epoch }[] | null; end?: TermEnd }> {
    const { id, nodes } = this.options;
    const { parts } = this;
    const { owner } = driver.state.settings;
    parts.blockBuilder.stop();
    parts.renewals.note(driver.state.nodes);
    course.renewed = { owner, epoch: driver.state.epoch, reason };
    const { membership } = parts;
    // What the nodes have noted is in force. The next block waits for no probe then: `promote_leader` checks everything
    // itself, and a node that shows another epoch than this term's refuses it.
    const noted = notedChange(driver.state);
    membership.take(newest(membership.configuration, noted));
    if (noted !== null && membership.configuration === noted) return { votes: votesUnder(driver.state, noted) };
    const seen = await this.probeMembers();
    const { configuration } = membership;
    const again = votesOf(seen, nodes, id, { own: owner, configuration });
    if (again.votes.length < membership.quorum)
      return {
        votes: null,
        end: { code: 'RENEWAL_FAILED', reason: `the term could not be renewed: ${again.why}` },
      };
    return { votes: await parts.renewals.liftEpoch(seen, again.votes, owner, configuration) };
  }

  /** Learns the configuration. If another set of nodes counts now, it asks those. */
  private async probeMembers(): Promise<ProbeResult> {
    const { nodes, clock, timing } = this.options;
    const { membership } = this.parts;
    for (;;) {
      const { members } = membership;
      const seen = await probe(nodes, membership.quorum, timing.nodeTimeoutMs, clock, membership.asks);
      membership.learn(seen);
      if (membership.members === members) return seen;
    }
  }

  /** The locks are released first. Reports and answers follow while the nodes release the locks. */
  private async conclude(driver: TermDriver, end: TermEnd, course: Course): Promise<void> {
    const { clock, emit, inbox, producer } = this.options;
    const { parts } = this;
    parts.blockBuilder.stop();
    course.released ??= this.release(driver);
    if (end.code === 'STORE_STALLED') inbox.abandonUnsynced(end.reason);
    else inbox.abandon(`the term ended: ${end.reason}`);
    if (course.led) producer.revoked(end.reason);
    const { code, reason } = end;
    const { epoch } = driver.state;
    if (course.led)
      emit({ type: 'leadership-ended', epoch, code, reason, heldMs: Math.round(clock.now() - course.startedAt) });
    else emit({ type: 'promotion-failed', code, reason });
    parts.over(reason);
    await course.released;
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
      ready: (height, parent) => parts.blockBuilder.ready(this.current!, height, parent),
      committed: (block, epoch, commitMs) => {
        // The store may hold this block already: the nodes had lost it, or another leader committed it meanwhile.
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
        emit({ type: 'backfill', node, from, to, head: this.current?.state.committed.height ?? 0 }),
    };
  }

  private settings(owner: string, previousOwner: string | undefined): TermSettings {
    const { nodes, timing } = this.options;
    const { membership, damage, renewals } = this.parts;
    const { configuration } = membership;
    return {
      owner,
      ...(previousOwner === undefined ? {} : { previousOwner }),
      nodes: nodes.length,
      quorum: membership.quorum,
      ttlMs: timing.ttlMs,
      usableLeaseMs: usableLeaseMs(timing.ttlMs),
      nodeTimeoutMs: timing.nodeTimeoutMs,
      graceMs: 3,
      retryMs: 5,
      regainMs: Math.min(timing.pollMs, timing.ttlMs / 3),
      maxAdopt: MAX_ADOPT,
      readmit: this.options.readmit,
      ...(configuration === null ? {} : { configuration }),
      ids: nodes.map((node) => node.id),
      damaged: damage.known,
      renewNotBefore: renewals.notBefore(),
    };
  }
}
