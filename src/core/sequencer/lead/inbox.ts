// Holds submitted items on their way into a block: bounded, de-duplicated, each answered exactly once. It decides what
// a submitter may be told and when (docs/PROTOCOL.md sections 3 and 6). `committed`: the block is committed and synced
// (I10). `refused`: the item can be in no block. `unknown`: everything else. Every wait has a bound.
import { encodedItemSize, itemDigest, keyProblem } from '../../chain/items.js';
import { invariant } from '../../errors.js';
import type { ChainStore, Clock, CommittedBlock, Item, Receipt, SubmitOutcome } from '../../ports.js';
import type { Epoch, Hash, Height } from '../../protocol/types.js';

export interface InboxOptions {
  store: Pick<ChainStore, 'head' | 'header' | 'receipt'>;
  clock: Clock;
  /** Most items that wait for an answer, proposed ones included. */
  maxItems: number;
  maxBytes: number;
  /** Largest item that fits into a block by itself, as encoded (key and lengths included). */
  maxItemBytes: number;
  /** Why the producer takes an item in no block; null when it may. */
  refusal?(item: Item): string | null;
  /** A refusal for lack of room suggests this delay. */
  retryAfterMs: number;
  /** After the end of a term, its proposed items wait this long for their outcome. */
  unknownAfterMs: number;
}

interface Entry {
  item: Item;
  size: number;
  /** '' for an item without a key. */
  digest: string;
  answer: (outcome: SubmitOutcome) => void;
  /** Submissions of the same key and bytes that came while this one waited. They get the same answer. */
  joined: ((outcome: SubmitOutcome) => void)[];
  answered: boolean;
}

interface Proposal {
  height: Height;
  hash: Hash;
  /** The epoch of the term that made the block. */
  epoch: Epoch;
  entries: Entry[];
  cancelTimer: () => void;
}

type Closed = { reason: 'not-leader' | 'stopping'; why: string };

export class Inbox {
  private queue: Entry[] = [];
  private proposals: Proposal[] = [];
  private readonly byKey = new Map<string, Entry>();
  /** Receipts that wait for the sync of a committed block, by its height. */
  private readonly unsynced = new Map<Height, ((instead?: SubmitOutcome) => void)[]>();
  private settledHeight: Height;
  private count = 0;
  private bytes = 0;
  private queueBytes = 0;
  /** The epoch of the term that leads here. 0: none does. */
  private epoch: Epoch = 0;
  private closed: Closed | null = { reason: 'not-leader', why: 'this sequencer has not led yet' };
  /**
   * How many items at the front of the queue may be in the block that is being built. 0 once the term that asked is
   * gone.
   */
  private peeked = 0;
  private readonly listeners: (() => void)[] = [];

  constructor(private readonly options: InboxOptions) {
    this.settledHeight = options.store.head().height;
  }

  /** A term begins to lead. The inbox accepts items from now on. */
  open(epoch: Epoch): void {
    this.epoch = epoch;
    this.closed = null;
  }

  /** Items that no block holds yet. */
  get queued(): number {
    return this.queue.length;
  }

  /** Encoded bytes of the items that no block holds yet. */
  get queuedBytes(): number {
    return this.queueBytes;
  }

  status(): { items: number; bytes: number; limitBytes: number } {
    return { items: this.count, bytes: this.bytes, limitBytes: this.options.maxBytes };
  }

  /** Calls back whenever items were queued. */
  onWork(listener: () => void): void {
    this.listeners.push(listener);
  }

  /**
   * Resolves when the outcome of every item is known. The outcomes have the order of the items. Throws RangeError for a
   * key that keyProblem refuses.
   */
  offer(items: readonly Item[]): Promise<SubmitOutcome[]> {
    for (const { key } of items) {
      const problem = key === undefined ? null : keyProblem(key);
      if (problem !== null) throw new RangeError(problem);
    }
    const before = this.queue.length;
    // Once one item found no room, no later item is accepted, so that a submitter's order survives its retry.
    let full = false;
    const outcomes = items.map((item) => {
      if (full) return this.busy();
      const outcome = this.take(item);
      full = outcome === 'full';
      return outcome === 'full' ? this.busy() : outcome;
    });
    if (this.queue.length > before) for (const listener of this.listeners) listener();
    return Promise.all(outcomes.map((one) => Promise.resolve(one)));
  }

  /**
   * Items for the next block, from the front, at most `maxItems` and `maxBytes` as encoded. They stay queued until
   * `propose`.
   */
  peek(maxBytes: number, maxItems: number): Item[] {
    let bytes = 0;
    let count = 0;
    while (count < this.queue.length && count < maxItems) {
      const { size } = this.queue[count]!;
      if (bytes + size > maxBytes) {
        if (count > 0) break;
        // An item that fits into no block would block all later ones.
        this.queueBytes -= size;
        this.finish(this.queue.shift()!, {
          outcome: 'refused',
          reason: 'too-large',
          why: `the item takes ${size} bytes of a block that holds ${maxBytes}`,
        });
        continue;
      }
      bytes += size;
      count++;
    }
    this.peeked = count;
    return this.queue.slice(0, count).map((entry) => entry.item);
  }

  /**
   * The first `taken` items of the last `peek` are in the block that is about to be written. If the term was abandoned
   * since, this marks nothing and returns false: the caller must not write that block.
   */
  propose(block: { height: Height; hash: Hash }, taken: number): boolean {
    if (this.closed !== null) return false;
    invariant(taken <= this.peeked, `I2: block ${block.height} takes ${taken} items of ${this.peeked} offered`);
    this.peeked = 0;
    if (taken > 0) {
      const entries = this.queue.slice(0, taken);
      this.queue = this.queue.slice(taken);
      for (const { size } of entries) this.queueBytes -= size;
      this.proposals.push({
        height: block.height,
        hash: block.hash,
        epoch: this.epoch,
        entries,
        cancelTimer: () => {},
      });
    }
    return true;
  }

  /** Call this for every block in order, whoever made the block, once it is committed and synced. */
  settle(block: CommittedBlock): void {
    this.settledHeight = Math.max(this.settledHeight, block.height);
    const decided = this.proposals.filter((proposal) => proposal.height <= block.height);
    if (decided.length > 0) this.proposals = this.proposals.filter((proposal) => proposal.height > block.height);
    for (const proposal of decided) {
      proposal.cancelTimer();
      const there = proposal.height === block.height ? block : this.options.store.header(proposal.height);
      const fate = (entry: Entry, index: number): SubmitOutcome => {
        if (there === undefined)
          return { outcome: 'unknown', why: `the store does not say which block is at height ${proposal.height}` };
        if (there.hash === proposal.hash)
          return this.committed(
            entry,
            this.answered({ height: there.height, index, epoch: Math.max(there.epoch, proposal.epoch) }),
          );
        return this.elsewhere(entry) ?? notLeader(`another block was committed at height ${proposal.height}`);
      };
      proposal.entries.forEach((entry, index) => this.finish(entry, fate(entry, index)));
    }
    for (const [height, waiting] of this.unsynced) {
      if (height > block.height) continue;
      this.unsynced.delete(height);
      for (const tell of waiting) tell();
    }
  }

  /**
   * The term is gone. Items in no block are refused (safe to send again). Items in a proposed block wait until that
   * height is decided. They are `unknown` when it is not decided in time.
   */
  abandon(why: string): void {
    this.shut({ reason: 'not-leader', why });
  }

  /**
   * As `abandon`, when this disk does not sync. Another sequencer may have the blocks on its disk already, and knows
   * keyed items by their keys. So whoever waits for one of those is told at once to ask there. An item without a key
   * is known to nobody else, and waits as usual.
   */
  abandonUnsynced(why: string): void {
    this.shut({ reason: 'not-leader', why });
    for (const proposal of this.proposals) {
      const keyed = proposal.entries.filter(({ item }) => item.key !== undefined);
      for (const entry of keyed)
        this.finish(entry, { outcome: 'unknown', why: `it was proposed at height ${proposal.height}, and ${why}` });
    }
    for (const [height, waiting] of this.unsynced) {
      this.unsynced.delete(height);
      for (const tell of waiting) tell({ outcome: 'unknown', why: `it is in block ${height}, and ${why}` });
    }
  }

  /** As `abandon`, when the process ends. */
  stop(why: string): void {
    this.shut({ reason: 'stopping', why });
  }

  private shut(closed: Closed): void {
    // Stopping is final. A term that ends later does not change the reason.
    if (this.closed?.reason !== 'stopping') this.closed = closed;
    this.peeked = 0;
    this.epoch = 0;
    const queue = this.queue;
    this.queue = [];
    this.queueBytes = 0;
    for (const entry of queue) this.finish(entry, { outcome: 'refused', ...this.closed! });
    for (const proposal of this.proposals) {
      proposal.cancelTimer();
      proposal.cancelTimer = this.options.clock.after(this.options.unknownAfterMs, () => this.giveUp(proposal));
    }
  }

  private giveUp(proposal: Proposal): void {
    this.proposals = this.proposals.filter((one) => one !== proposal);
    const why = `it was proposed at height ${proposal.height}, and the term ended before that height was decided`;
    for (const entry of proposal.entries) this.finish(entry, { outcome: 'unknown', why });
  }

  private take(item: Item): Promise<SubmitOutcome> | SubmitOutcome | 'full' {
    const digest = item.key === undefined ? '' : itemDigest(item.data);
    if (item.key !== undefined) {
      const waiting = this.byKey.get(item.key);
      if (waiting !== undefined) {
        if (waiting.digest !== digest) return conflict(item.key, 'waits for its block');
        return new Promise((resolve) => waiting.joined.push(resolve));
      }
      const receipt = this.options.store.receipt(item.key);
      if (receipt === 'unproven')
        return { outcome: 'unknown', why: 'what this store remembers of the key is damaged, and is being repaired' };
      if (receipt !== undefined) {
        if (receipt.digest !== digest) return conflict(item.key, `is in block ${receipt.height}`);
        const outcome: SubmitOutcome = { outcome: 'committed', receipt: this.answered(receipt), duplicate: true };
        // Whoever leads knows its epoch. A receipt without one is no fencing token.
        if (outcome.receipt.epoch === 0 && this.closed !== null) return { outcome: 'refused', ...this.closed };
        return receipt.height <= this.settledHeight ? outcome : this.onceSynced(receipt.height, outcome);
      }
    }
    if (this.closed !== null) return { outcome: 'refused', ...this.closed };
    const aside = this.options.refusal?.(item) ?? null;
    if (aside !== null) return { outcome: 'refused', reason: 'set-aside', why: aside };
    const size = encodedItemSize(item);
    if (size > this.options.maxItemBytes) {
      return {
        outcome: 'refused',
        reason: 'too-large',
        why: `the item takes ${size} bytes; the largest that fits into a block is ${this.options.maxItemBytes}`,
      };
    }
    if (this.count >= this.options.maxItems || this.bytes + size > this.options.maxBytes) return 'full';
    return new Promise((answer) => {
      const entry: Entry = { item, size, digest, answer, joined: [], answered: false };
      this.count++;
      this.bytes += size;
      this.queue.push(entry);
      this.queueBytes += size;
      if (item.key !== undefined) this.byKey.set(item.key, entry);
    });
  }

  /**
   * A receipt from a block that the store holds but has not synced. It is given after the sync. Without a sync in time,
   * the answer is `unknown`.
   */
  private onceSynced(height: Height, outcome: SubmitOutcome): Promise<SubmitOutcome> {
    return new Promise((resolve) => {
      const waiting = this.unsynced.get(height) ?? [];
      const cancel = this.options.clock.after(this.options.unknownAfterMs, () =>
        resolve({ outcome: 'unknown', why: `block ${height} is committed, but not on this disk yet` }),
      );
      waiting.push((instead = outcome) => {
        cancel();
        resolve(instead);
      });
      this.unsynced.set(height, waiting);
    });
  }

  private committed(entry: Entry, here: { height: Height; index: number; epoch: number }): SubmitOutcome {
    const first = this.elsewhere(entry);
    if (first === null) return { outcome: 'committed', receipt: here, duplicate: false };
    return first.receipt.height === here.height && first.receipt.index === here.index
      ? { outcome: 'committed', receipt: here, duplicate: false }
      : first;
  }

  /** The first receipt that the chain has for this very item, if any. */
  private elsewhere(entry: Entry): Extract<SubmitOutcome, { outcome: 'committed' }> | null {
    const found = entry.item.key === undefined ? undefined : this.options.store.receipt(entry.item.key);
    if (
      found === undefined ||
      found === 'unproven' ||
      found.digest !== entry.digest ||
      found.height > this.settledHeight
    )
      return null;
    return { outcome: 'committed', receipt: this.answered(found), duplicate: true };
  }

  /**
   * A receipt names the term that answers, and a term before it answers with an earlier epoch: that is what a consumer
   * fences on (docs/HTTP.md). The store knows the epoch of a copy, and of a block that it learnt not even that.
   */
  private answered({ height, index, epoch }: { height: Height; index: number; epoch: Epoch }): Receipt {
    return { height, index, epoch: Math.max(epoch, this.epoch) };
  }

  private finish(entry: Entry, outcome: SubmitOutcome): void {
    if (entry.answered) return;
    entry.answered = true;
    this.count--;
    this.bytes -= entry.size;
    if (entry.item.key !== undefined && this.byKey.get(entry.item.key) === entry) this.byKey.delete(entry.item.key);
    entry.answer(outcome);
    const shared: SubmitOutcome = outcome.outcome === 'committed' ? { ...outcome, duplicate: true } : outcome;
    for (const answer of entry.joined) answer(shared);
  }

  private busy(): SubmitOutcome {
    const { retryAfterMs } = this.options;
    return {
      outcome: 'refused',
      reason: 'busy',
      why: `${this.count} items (${this.bytes} bytes) wait for a block already`,
      retryAfterMs,
    };
  }
}

function notLeader(why: string): SubmitOutcome {
  return { outcome: 'refused', reason: 'not-leader', why };
}

function conflict(key: string, where: string): SubmitOutcome {
  return {
    outcome: 'refused',
    reason: 'key-conflict',
    why: `another item with the key ${JSON.stringify(key)} ${where}`,
  };
}
