// What do the streams of all nodes show to a repair (docs/PROTOCOL.md section 9)? The committed chain as hashes, what
// each node lacks or holds instead, and heights with conflicting blocks. Its input is pieces in ascending order. It
// keeps 32 bytes a height. Pure.
import { readLedger, type NodeLedger } from '../protocol/ledger.js';
import { sequencerOf, type Entry, type Epoch, type Hash, type Height, type NodeView } from '../protocol/types.js';
import type { Chunk } from '../stream/chunks.js';

/** Copies of one block at a contested height. */
export interface Copy {
  hash: Hash;
  epoch: Epoch;
  /** Sequencer that wrote it. */
  owner: string;
  nodes: string[];
}

/** A height at which no block is proven, or more than one is. */
export interface Contest {
  height: Height;
  /**
   * conflict: an invariant is broken, and only a person may choose. pending: the next term settles it by its own rule.
   */
  kind: 'conflict' | 'pending';
  why: string;
  copies: Copy[];
}

interface Orphan {
  height: Height;
  hash: Hash;
  epoch: Epoch;
  owner: string;
}

export interface Scanned {
  /** Why this node's stream is damaged, lowest height first; at most `DAMAGE_KEPT`. */
  damage: { height: Height; why: string }[];
  damaged: number;
  /** The uncommitted block at its head, where another block is committed. */
  orphan: Orphan | null;
}

const DAMAGE_KEPT = 20;

/** Hashes of a run of heights, packed. */
export class PackedChain {
  private readonly hashes: Buffer;
  private readonly known: Uint8Array;

  constructor(
    readonly from: Height,
    readonly to: Height,
  ) {
    const length = Math.max(0, to - from + 1);
    this.hashes = Buffer.alloc(length * 32);
    this.known = new Uint8Array(length);
  }

  set(height: Height, hash: Hash): void {
    if (height < this.from || height > this.to) return;
    this.hashes.write(hash, (height - this.from) * 32, 32, 'hex');
    this.known[height - this.from] = 1;
  }

  get(height: Height): Hash | undefined {
    if (height < this.from || height > this.to || this.known[height - this.from] === 0) return undefined;
    return this.hashes.toString('hex', (height - this.from) * 32, (height - this.from + 1) * 32);
  }
}

export class RepairScan {
  readonly nodes = new Map<string, Scanned>();
  readonly contests: Contest[] = [];
  /** Committed, and on no node that counts. */
  readonly nowhere: Height[] = [];
  top: { height: Height; hash: Hash } | null = null;
  /** Nodes that did not answer every piece. */
  readonly unread = new Set<string>();

  constructor(
    private readonly views: ReadonlyMap<string, NodeView>,
    private readonly n: number,
    readonly chain: PackedChain,
  ) {
    for (const id of views.keys()) this.nodes.set(id, { damage: [], damaged: 0, orphan: null });
  }

  take(chunk: Chunk): void {
    const ledgers = chunk.ledgers.map((ledger) => this.checked(ledger));
    for (const ledger of ledgers) if (!ledger.answered && this.readable(ledger.id)) this.unread.add(ledger.id);
    for (const verdict of readLedger(ledgers, this.n, { from: chunk.from, to: chunk.to })) {
      const { height } = verdict;
      if (verdict.evidence !== null && verdict.hash !== null) {
        this.chain.set(height, verdict.hash);
        this.top = { height, hash: verdict.hash };
        if (verdict.holders.length === 0 && verdict.verdict !== 'trimmed') this.nowhere.push(height);
      }
      for (const bad of verdict.damaged) this.damage(bad.node, height, bad.why);
      for (const node of verdict.missing) this.damage(node, height, 'there is a hole');
      for (const orphan of verdict.orphans) this.orphan(orphan.node, height, orphan, chunk);
      if (verdict.verdict === 'conflict' || (verdict.evidence === null && verdict.candidates.length > 0)) {
        this.contests.push({
          height,
          kind: verdict.verdict === 'conflict' ? 'conflict' : 'pending',
          why: verdict.why,
          copies: verdict.candidates.map(({ hash, epoch, nodes }) => ({
            hash,
            epoch,
            nodes,
            owner: ownerOf(chunk, nodes[0] as string, height),
          })),
        });
      }
    }
  }

  /** Nodes without a stream of this cluster are not read at all. */
  private readable(id: string): boolean {
    const admission = this.views.get(id)?.admission;
    return admission !== undefined && admission !== 'foreign' && admission !== 'pristine';
  }

  private orphan(node: string, height: Height, { hash, epoch }: { hash: Hash; epoch: Epoch }, chunk: Chunk): void {
    const scanned = this.nodes.get(node) as Scanned;
    if (this.views.get(node)?.head === height)
      scanned.orphan = { height, hash, epoch, owner: ownerOf(chunk, node, height) };
    else this.damage(node, height, `another block (${hash.slice(0, 8)}) than the committed one`);
  }

  private damage(node: string, height: Height, why: string): void {
    const scanned = this.nodes.get(node) as Scanned;
    scanned.damaged += 1;
    if (scanned.damage.length < DAMAGE_KEPT) scanned.damage.push({ height, why });
  }

  /**
   * Damage that only the node's record shows: the head is not the block that the record names, or has an epoch that the
   * node never promised.
   */
  private checked(ledger: NodeLedger): NodeLedger {
    const view = this.views.get(ledger.id);
    if (!ledger.answered || view === undefined || view.admission !== 'admitted') return ledger;
    const wrong = (entry: Pick<Entry, 'height' | 'epoch' | 'hash'>): string =>
      entry.height === view.head && entry.epoch === view.headEpoch && entry.hash !== view.headHash
        ? `it is ${entry.hash.slice(0, 8)}, the node's record names ${view.headHash.slice(0, 8)}`
        : entry.height < view.head && entry.epoch > view.epoch
          ? `its epoch ${entry.epoch} is above the node's ${view.epoch}`
          : '';
    const bad = ledger.entries.filter((entry) => wrong(entry) !== '');
    if (bad.length === 0) return ledger;
    return {
      ...ledger,
      entries: ledger.entries.filter((entry) => wrong(entry) === ''),
      damaged: [
        ...ledger.damaged,
        ...bad.map((entry) => ({ id: `${entry.height}-${entry.epoch}`, height: entry.height, why: wrong(entry) })),
      ],
    };
  }
}

function ownerOf(chunk: Chunk, node: string, height: Height): string {
  const entry = chunk.entries.get(node)?.find((one) => one.height === height);
  return entry === undefined ? '' : sequencerOf(entry.owner);
}
