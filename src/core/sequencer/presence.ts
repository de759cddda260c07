// Presence records say which sequencers exist, not which one leads (docs/PROTOCOL.md section 2). They also give the
// order in which equally eligible followers try to promote.
import { tellAll } from '../nodes/ask-all.js';
import type { Timing } from '../config.js';
import type { Clock, NodePort } from '../ports.js';
import type { Height, Presence } from '../protocol/types.js';
import type { ProbeResult } from '../nodes/probe.js';
import type { HeardTime } from './lead/chain-time.js';
import type { MemoryFact } from './lead/retention.js';

/** A new role is announced this much later, so that the announcement does not delay the first block of a term. */
const SOON_MS = 30;

export interface PresencesOptions {
  nodes(): readonly NodePort[];
  clock: Clock;
  timing: Timing;
  presence(): Omit<Presence, 'pttlMs'>;
  /** Gets the memory figures of the nodes that took a record. */
  onMemory(facts: MemoryFact[], askedAt: Height): void;
  /** What their clocks showed. */
  onTime(heard: HeardTime[]): void;
}

export class Presences {
  private cancel: () => void = () => {};
  private stopped = false;

  constructor(private readonly options: PresencesOptions) {}

  start(): void {
    this.announceNow();
  }

  /** Announces at once and then every poll. It does not wait for answers: no rule depends on a presence record. */
  announceNow(): void {
    this.cancel();
    if (this.stopped) return;
    void this.announce(this.ttlMs());
    this.cancel = this.options.clock.after(this.options.timing.pollMs, () => this.announceNow());
  }

  /** Announces a moment later, after the work that is under way. */
  announceSoon(): void {
    this.cancel();
    if (!this.stopped) this.cancel = this.options.clock.after(SOON_MS, () => this.announceNow());
  }

  /** Writes a last record, which expires soon. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.cancel();
    await this.announce(this.ttlMs());
  }

  /**
   * How many ready followers come before `id`: lower priority number first, then by key, which is the id unless it is
   * said otherwise. Only those that are there count: a priority is an order among them, and no wait of its own.
   */
  rank(seen: ProbeResult, id: string, priority: number, keyOf: (id: string) => string = (one) => one): number {
    const ahead = new Set<string>();
    const own = keyOf(id);
    for (const reply of seen.replies) {
      if (reply?.outcome !== 'accepted') continue;
      for (const other of reply.value.sequencers) {
        if (other.id === id || other.role === 'leader' || other.role === 'stopping' || other.extra.ready !== 'yes')
          continue;
        const theirs = Number(other.extra.priority ?? 0);
        if (theirs < priority || (theirs === priority && keyOf(other.id) < own)) ahead.add(other.id);
      }
    }
    return ahead.size;
  }

  private async announce(ttlMs: number): Promise<void> {
    const { timing, clock } = this.options;
    const nodes = this.options.nodes();
    const said = this.options.presence();
    // A reader learns from it how old the record is: what is left of this time says when it was written.
    const presence = { ...said, extra: { ...said.extra, recordTtlMs: String(ttlMs) } };
    const sentAt = clock.now();
    const times: HeardTime[] = [];
    const replies = await tellAll(nodes, async (node) => {
      const reply = await node.call({ script: 'announce', presence, ttlMs }, timing.nodeTimeoutMs);
      if (reply.outcome === 'accepted')
        times.push({ node: node.id, timeMs: reply.value.timeMs, sentAt, heardAt: clock.now() });
      return reply;
    });
    this.options.onTime(times);
    this.options.onMemory(
      replies.flatMap((reply, i) => (reply.outcome === 'accepted' ? [{ node: nodes[i]!.id, ...reply.value }] : [])),
      presence.height,
    );
  }

  private ttlMs(): number {
    return Math.max(3000, 4 * this.options.timing.pollMs);
  }
}
