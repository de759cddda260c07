// How many blocks does a leader keep on the nodes? As many as configured, or fewer while the nodes run short of memory
// (docs/PROTOCOL.md section 6). All nodes hold the same blocks, so they fill up together. A full node still takes
// blocks, but it cannot be filled anew. Each narrowing step frees about a fifth, and must have worked before the next
// step. Widening needs clear room. localChain still bounds what is trimmed.
import type { Limits } from '../../config.js';
import type { Height } from '../../protocol/types.js';

export interface RetentionOptions {
  limits: Limits;
  /** Nodes that may be lost. When more nodes are full, the range may shrink to what the protocol needs. */
  spare(): number;
  head(): Height;
  /** Blocks in the range that these limits give now. */
  blocksIn(limits: Limits): number;
  changed(change: { from: number; to: number; of: number; why: string }): void;
}

export interface MemoryFact {
  node: string;
  usedMemory: number;
  maxMemory: number;
}

/** Shares of maxmemory: too full, the target, enough room to widen. */
const FULL = 0.9;
const AIM = 0.8;
const ROOM = 0.7;
/** Blocks kept for followers while a quorum has enough memory itself. */
const KEPT = 16;
/** The protocol must be able to append above a block, and to supersede it. That needs two blocks. */
const LEAST = 2;
/**
 * The first refusal of a node that is being filled may come from set-aside data on it. A new start deletes that data.
 */
const REFUSALS = 2;

export class Retention {
  private narrowed: number | null = null;
  /** The head when it was narrowed. The freed memory shows only after the next blocks. */
  private narrowedAt = -1;
  private readonly refusals = new Map<string, number>();
  private refusedNow = new Set<string>();
  private short: string[] = [];

  constructor(private readonly options: RetentionOptions) {}

  limits(): Limits {
    const { limits } = this.options;
    return this.narrowed === null ? limits : { ...limits, retainBlocks: this.narrowed };
  }

  /** Null while every configured block is kept. */
  get shortage(): { blocks: number; why: string } | null {
    return this.narrowed === null ? null : { blocks: this.narrowed, why: this.short.join(', ') };
  }

  /** A new term starts without the state of the term before. */
  reset(): void {
    this.narrowed = null;
    this.narrowedAt = -1;
    this.refusals.clear();
    this.refusedNow.clear();
    this.short = [];
  }

  /** A node refused something for lack of memory. */
  refused(node: string): void {
    const times = (this.refusals.get(node) ?? 0) + 1;
    this.refusals.set(node, times);
    if (times >= REFUSALS) this.refusedNow.add(node);
  }

  /** True when a refusal of this node still stands and nothing was done about it yet. */
  refusedBy(node: string): boolean {
    return this.refusedNow.has(node);
  }

  /** One round of memory facts. The nodes were asked when the head was `askedAt`. */
  learn(facts: readonly MemoryFact[], askedAt: Height): void {
    const { limits, spare, head, blocksIn, changed } = this.options;
    const limited = facts.filter(({ maxMemory }) => maxMemory > 0);
    const shareOf = (fact: MemoryFact): number =>
      Math.max(fact.usedMemory / fact.maxMemory, this.refusedNow.has(fact.node) ? 1 : 0);
    const worst = Math.max(0, ...limited.map(shareOf));
    const full = limited.filter((fact) => shareOf(fact) > FULL);
    const have = blocksIn(this.limits());
    if (full.length > 0) {
      if (askedAt <= this.narrowedAt + 1) return;
      const least = full.length > spare() ? LEAST : KEPT;
      const to = Math.max(least, Math.min(have - 1, Math.floor((have * AIM) / worst)));
      this.refusedNow.clear();
      this.short = full.map((fact) => `${fact.node} uses ${Math.round(100 * shareOf(fact))} % of its maxmemory`);
      if (to >= have) return;
      this.narrowed = to;
      this.narrowedAt = head();
      return changed({ from: have, to, of: limits.retainBlocks, why: this.short.join(', ') });
    }
    if (this.narrowed === null || worst >= ROOM || facts.length === 0) return;
    const to = Math.floor((have * AIM) / Math.max(worst, 0.05));
    const all = to >= blocksIn(limits);
    if (!all && to < this.narrowed * 1.25) return;
    const from = this.narrowed;
    this.narrowed = all ? null : to;
    changed({
      from,
      to: all ? limits.retainBlocks : to,
      of: limits.retainBlocks,
      why: 'the nodes have memory to spare',
    });
  }
}
