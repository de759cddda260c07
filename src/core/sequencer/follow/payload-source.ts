// Which nodes does a follower read payloads from (docs/PROTOCOL.md section 7)? Near the head: all, because copies on q
// nodes prove the newest block. Far behind: one, because each block below the newest is proved by its successor. The
// others would bring the same bytes over a link that may be shared.
import type { Height } from '../../protocol/types.js';

/** So many blocks behind, one node is read alone, until this follower is as near as NEAR. */
const FAR = 4;
const NEAR = 1;

export class PayloadSource {
  private source: number | null = null;
  /** The head that the source had at the last probe. */
  private head: Height = 0;
  /** The source that brought nothing last. It is chosen again only when there is no other. */
  private poor: number | null = null;

  constructor(private readonly mine: () => Height) {}

  reset(): void {
    this.source = null;
    this.poor = null;
  }

  reads(node: number): boolean {
    return this.source === null || this.source === node;
  }

  /** `heads`: of each node that can be read, by the newest probe. Null: this node cannot. True: others may read now. */
  choose(heads: readonly (Height | null)[]): boolean {
    const known = heads.flatMap((head) => (head === null ? [] : [head]));
    if (known.length === 0) return this.leave();
    const highest = Math.max(...known);
    const far = highest - this.mine() >= FAR;
    if (this.source === null && !far) return false;
    const before = this.source;
    if (before === null || heads[before] == null || heads[before]! < highest - FAR) {
      const best = heads.findIndex((head, node) => head !== null && head >= highest - NEAR && node !== this.poor);
      this.source = best >= 0 ? best : heads.findIndex((head) => head === highest);
    }
    this.head = heads[this.source!] ?? 0;
    return this.caughtUp() || this.source !== before;
  }

  /** Near the head again: all nodes are read. True once. */
  caughtUp(): boolean {
    return this.source !== null && this.head - this.mine() <= NEAR && this.leave();
  }

  /** A read failed, or brought nothing: another node may do better. */
  failed(node: number): void {
    if (node !== this.source) return;
    this.poor = node;
    this.source = null;
  }

  private leave(): boolean {
    const left = this.source !== null;
    this.source = null;
    return left;
  }
}
