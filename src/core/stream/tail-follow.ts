// Yields the newest blocks as they are committed. It tails every node's stream. A block is handed out when q admitted
// nodes show the same (height, epoch, hash), or when an entry stands on top of it (I5). docs/PROTOCOL.md section 7. The
// holders say what q is: entries of an epoch that a node had not shown before count only after an `inspect` of it. On
// each node, the next read waits until the last batch has been judged. So a slow reader holds at most one small batch
// per node.
import { pause } from '../nodes/pause.js';
import { compareVersions, type Configuration } from '../protocol/configuration.js';
import { enoughCopies, shownBy, type Enough, type Shown } from '../protocol/copies.js';
import type { CommittedBlock, NodePort } from '../ports.js';
import type { Entry, Epoch, Hash, Height } from '../protocol/types.js';
import { bounded } from '../nodes/ask-all.js';
import type { TailContext } from './tail-context.js';

const BATCH = 4;
/** How long one XREAD may wait. A head that was re-stamped or replaced is read again after this time. */
const WAIT_MS = 500;
const AFTER_FAILURE_MS = 200;

interface NodeTail {
  port: NodePort;
  /** Newest copy by height. Heights below `next` are dropped. */
  copies: Map<Height, Entry>;
  admitted: boolean;
  /** The memory and the connection that were seen at the last `inspect`. */
  incarnation: string;
  generation: number;
  /** The configuration that it showed then. Null: it knows none. */
  shown: Shown | null;
  /** Entries up to this epoch were on it then. Entries of later epochs do not count yet. */
  shownEpoch: Epoch;
  afterId: string;
  release: () => void;
}

export interface Followed {
  next: Height;
  parent: Hash | null;
  /** The newest configuration that a node showed. Null: none did. */
  configuration: Configuration | null;
}

/**
 * Yields blocks from `next` on. It returns its position in four cases: the nodes are further than the tails can prove,
 * other nodes are members now, `to` was reached, or it was aborted.
 */
export async function* followHead(
  context: TailContext,
  from: { next: Height; parent: Hash | null; to: Height },
): AsyncGenerator<CommittedBlock, Followed> {
  const tails = new Tails(context, from);
  tails.start();
  try {
    while (!tails.ended() && tails.next <= from.to) {
      const block = tails.committed();
      if (block !== null && tails.continuedBy(block)) {
        const { height, hash, parent, timestamp, epoch } = block;
        yield { height, hash, parent, timestamp, epoch, data: block.data as Uint8Array };
        tails.passed(block);
        continue;
      }
      // An entry above is there, so `next` is committed (I5). But the tails did not bring `next` itself.
      if (block !== null || tails.showAbove() || tails.moved) return tails.position();
      await tails.news();
    }
    return tails.position();
  } finally {
    tails.stop();
  }
}

/** The tails of all nodes, and how far the reader is. */
class Tails {
  next: Height;
  /** Other nodes are members now. */
  moved = false;
  private parent: Hash | null;
  private configuration: Configuration | null;
  private readonly tails: readonly NodeTail[];
  private stopped = false;
  private wake: () => void = () => undefined;

  constructor(
    private readonly context: TailContext,
    { next, parent }: { next: Height; parent: Hash | null },
  ) {
    this.next = next;
    this.parent = parent;
    this.configuration = context.configuration ?? null;
    this.tails = context.nodes.map((port) => ({
      port,
      copies: new Map(),
      admitted: false,
      incarnation: '',
      generation: -1,
      shown: null,
      shownEpoch: 0,
      afterId: `${next}-0`,
      release: () => undefined,
    }));
  }

  start(): void {
    this.context.signal?.addEventListener('abort', this.onAbort);
    for (const tail of this.tails) void this.run(tail).catch(() => undefined);
  }

  stop(): void {
    this.stopped = true;
    this.context.signal?.removeEventListener('abort', this.onAbort);
    for (const tail of this.tails) tail.release();
  }

  ended(): boolean {
    return this.stopped || (this.context.signal?.aborted ?? false);
  }

  position(): Followed {
    return { next: this.next, parent: this.parent, configuration: this.configuration };
  }

  /** The block at `next`, if the copies prove that it is committed. */
  committed(): Entry | null {
    const shown = new Map(this.tails.map(({ port, shown: one }) => [port.id, one]));
    return committedAt(this.tails, this.next, enoughCopies(shown, this.context.configured));
  }

  continuedBy(block: Entry): boolean {
    return this.parent === null || block.parent === this.parent;
  }

  showAbove(): boolean {
    return this.tails.some((tail) => tail.admitted && [...tail.copies.keys()].some((height) => height > this.next));
  }

  /** The block was handed out: the reader goes on above it. */
  passed({ hash }: Entry): void {
    this.parent = hash;
    this.next += 1;
    for (const { copies } of this.tails)
      for (const height of copies.keys()) if (height < this.next) copies.delete(height);
  }

  /** Lets every tail read on, and waits until one of them has read something. */
  async news(): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.wake = resolve;
    });
    for (const tail of this.tails) tail.release();
    await woken;
  }

  private readonly onAbort = (): void => this.wake();

  private async run(tail: NodeTail): Promise<void> {
    while (!this.ended()) {
      if (!tail.admitted || tail.generation !== tail.port.connectionGeneration) await this.show(tail);
      if (!tail.admitted) await this.pause();
      else if (await this.readOn(tail)) await this.offer(tail);
    }
  }

  /** Waits until what was read has been judged. */
  private async offer(tail: NodeTail): Promise<void> {
    // The term of a new epoch may count by more members than this reader knows of.
    if (highestEpoch(tail) > tail.shownEpoch) await this.show(tail);
    if (this.ended() || (!this.moved && tail.copies.size === 0)) return;
    const judged = new Promise<void>((resolve) => {
      tail.release = resolve;
    });
    this.wake();
    await judged;
  }

  private async pause(): Promise<void> {
    if (!this.ended()) await pause(this.context.clock, AFTER_FAILURE_MS);
  }

  /** Asks the node who it is, and by which configuration it counts. */
  private async show(tail: NodeTail): Promise<void> {
    const { limitMs, clock } = this.context;
    tail.generation = tail.port.connectionGeneration;
    const read = highestEpoch(tail);
    const reply = await bounded(tail.port.call({ script: 'inspect', brief: true }, limitMs), limitMs, clock);
    const view = reply.outcome === 'accepted' && reply.value.admission === 'admitted' ? reply.value : null;
    tail.admitted = view !== null;
    if (view === null || view.incarnation !== tail.incarnation) {
      tail.copies.clear();
      tail.afterId = `${this.next}-0`;
    }
    tail.incarnation = view?.incarnation ?? '';
    tail.shown = view && shownBy(view, read);
    tail.shownEpoch = view === null ? 0 : Math.max(view.headEpoch, read);
    if (tail.shown !== null) this.learn(tail.shown.configuration);
  }

  private learn(shown: Configuration): void {
    if (!isLater(shown, this.configuration)) return;
    this.moved ||= this.configuration !== null && !sameServers(shown, this.configuration);
    this.configuration = shown;
  }

  /** Takes the node's next entries. False: it must be asked again who it is. */
  private async readOn(tail: NodeTail): Promise<boolean> {
    const read = await tail.port.tail(tail.afterId, WAIT_MS, BATCH);
    if (this.ended()) return false;
    // Another memory than the probe has shown: the node was re-admitted, or its connections reach two servers.
    if (read.outcome !== 'accepted' || read.incarnation !== tail.incarnation) {
      tail.admitted = false;
      await this.pause();
      return false;
    }
    if (read.value.lastId === '') return this.readQuiet(tail);
    tail.afterId = read.value.lastId;
    take(tail, read.value.entries, this.next);
    return true;
  }

  /**
   * The stream is quiet. A new entry may have an id below that of a superseded one, and XREAD does not show that. So
   * the next two heights are read.
   */
  private async readQuiet(tail: NodeTail): Promise<boolean> {
    const { limitMs, clock } = this.context;
    const range = { from: this.next, to: this.next + 1, limit: 2, data: true };
    const again = await bounded(tail.port.read(range, limitMs), limitMs, clock);
    if (again.outcome !== 'accepted' || again.incarnation !== tail.incarnation) {
      tail.admitted = false;
      return false;
    }
    take(tail, again.value.entries, this.next);
    return true;
  }
}

function take(tail: NodeTail, entries: readonly Entry[], next: Height): void {
  for (const entry of entries) if (entry.height >= next) tail.copies.set(entry.height, entry);
}

function highestEpoch(tail: NodeTail): Epoch {
  let highest = 0;
  for (const { epoch } of tail.copies.values()) highest = Math.max(highest, epoch);
  return highest;
}

function committedAt(tails: readonly NodeTail[], height: Height, enough: Enough): Entry | null {
  const counted = tails.filter((t) => t.admitted);
  const copiesAt = (at: Height): { id: string; entry: Entry }[] =>
    counted.flatMap(({ port, copies, shownEpoch }) => {
      const entry = copies.get(at);
      return entry === undefined || entry.epoch > shownEpoch ? [] : [{ id: port.id, entry }];
    });
  const here = copiesAt(height);
  for (const { entry } of here) {
    const same = here.filter((one) => one.entry.hash === entry.hash && one.entry.epoch === entry.epoch);
    if (
      enough(
        same.map(({ id }) => id),
        entry.epoch,
      )
    )
      return entry;
  }
  const above = copiesAt(height + 1)[0];
  return above === undefined ? null : (here.find(({ entry }) => entry.hash === above.entry.parent)?.entry ?? null);
}

function isLater(shown: Configuration, known: Configuration | null): boolean {
  return known === null || compareVersions(shown.version, known.version) > 0;
}

/** Whether both name the same members at the same addresses. */
function sameServers(a: Configuration, b: Configuration): boolean {
  const servers = ({ members }: Configuration): string => members.map(({ id, since }) => `${id}#${since}`).join(' ');
  return servers(a) === servers(b);
}
