// Which items make the child fail? A client sends its item again until it has a receipt, so one item that the child
// cannot take would end one term after another. Items that were there twice when the child failed are suspects. A
// suspect is offered alone, after a block without it has shown that the child works. If the child fails once more, the
// item is set aside: it is refused from then on, with the child's reason.
import { itemDigest } from '../chain/items.js';
import type { Item } from '../ports.js';

/** Failures with an item that make it a suspect. */
const SUSPECT = 2;
const MOST_SUSPECTS = 50_000;
const MOST_SET_ASIDE = 1000;

export class Suspects {
  /** How often the child failed while it was offered this item. */
  private readonly failures = new Map<string, number>();
  private readonly aside = new Map<string, string>();
  /** The child has made a block since its last failure. */
  private works = true;

  /** How many items, from the front, may be offered now. */
  offerable(items: readonly Item[]): number {
    if (this.failures.size === 0) return items.length;
    const first = items.findIndex((item) => (this.failures.get(nameOf(item)) ?? 0) >= SUSPECT);
    if (first < 0) return items.length;
    if (first > 0) return first;
    return this.works ? 1 : 0;
  }

  /** The child answered for these items. */
  passed(offered: readonly Item[], taken: number): void {
    this.works = true;
    if (this.failures.size > 0) for (const item of offered.slice(0, taken)) this.failures.delete(nameOf(item));
  }

  /** The child failed while it was asked for a block of these items. */
  failed(offered: readonly Item[], why: string): void {
    const { works } = this;
    this.works = false;
    for (const item of offered) {
      const name = nameOf(item);
      const before = this.failures.get(name) ?? 0;
      this.failures.delete(name);
      if (works && offered.length === 1 && before >= SUSPECT) keep(this.aside, name, why, MOST_SET_ASIDE);
      else keep(this.failures, name, before + 1, MOST_SUSPECTS);
    }
  }

  /** Why this item is refused; null when it is not. */
  refusal(item: Item): string | null {
    return this.aside.size === 0 ? null : (this.aside.get(nameOf(item)) ?? null);
  }
}

function nameOf({ key, data }: Item): string {
  return `${itemDigest(data)} ${key ?? ''}`;
}

/** The oldest ones are forgotten. */
function keep<T>(map: Map<string, T>, name: string, value: T, most: number): void {
  map.set(name, value);
  for (const oldest of map.keys()) {
    if (map.size <= most) return;
    map.delete(oldest);
  }
}
