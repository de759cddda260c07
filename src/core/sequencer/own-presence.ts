// What does this sequencer's presence record say (docs/PROTOCOL.md section 2), besides its id and address? How fast it
// commits, how large its blocks are, and what the nodes retain. It is for people who read the nodes. No decision
// depends on it.
import { createHash } from 'node:crypto';
import type { Limits } from '../config.js';
import type { ChainStore } from '../ports.js';
import type { RetentionMargin } from './follow/retention-margin.js';

/** A leader's record summarises the latency of this many commits. */
const COMMITS_TOLD = 16;
/** A leader's record summarises the size and pace of this many blocks. */
const BLOCKS_TOLD = 32;

export class OwnPresence {
  /** Commit latencies of the newest blocks of this term, ms. */
  private commits: readonly number[] = [];

  constructor(
    private readonly store: ChainStore,
    private readonly limits: Limits,
  ) {}

  led(): void {
    this.commits = [];
  }

  committed(commitMs: number): void {
    this.commits = [...this.commits.slice(1 - COMMITS_TOLD), commitMs];
  }

  /** What the nodes retain, where that is too little or soon will be for this store. Also a leader's own figures. */
  facts(
    leads: boolean,
    shortage: { blocks: number; why: string } | null,
    margin: RetentionMargin,
  ): Record<string, string> {
    return {
      ...this.commitLatency(leads),
      ...(leads ? this.newestBlocks() : {}),
      ...(leads && shortage
        ? {
            retention: String(shortage.blocks),
            retentionWhy:
              `${shortage.blocks} of ${this.limits.retainBlocks} blocks are kept on the nodes: ` + shortage.why,
          }
        : {}),
      ...(!leads && margin !== 'inside' ? { margin } : {}),
    };
  }

  /** Median and greatest commit latency of the newest own blocks. '' when there are none. */
  private commitLatency(leads: boolean): Record<string, string> {
    const sorted = leads ? [...this.commits].sort((a, b) => a - b) : [];
    const told = (ms: number | undefined) => (ms === undefined ? '' : ms.toFixed(2));
    return { commitMs: told(sorted[Math.floor((sorted.length - 1) / 2)]), commitMaxMs: told(sorted.at(-1)) };
  }

  /** Size and pace of the newest blocks. Forecasts of memory and disk need them. */
  private newestBlocks(): Record<string, string> {
    const { store } = this;
    const { height } = store.head();
    const [first, last] = [store.header(Math.max(1, height - BLOCKS_TOLD + 1)), store.header(height)];
    if (!first || !last || last.height === first.height) return {};
    let bytes = 0;
    for (let at = first.height + 1; at <= last.height; at++) bytes += store.header(at)?.size ?? 0;
    const count = last.height - first.height;
    return {
      blockBytes: String(Math.round(bytes / count)),
      blockEveryMs: String(Math.max(1, Math.round((last.timestamp - first.timestamp) / count))),
    };
  }
}

/** Sequencers must count the same nodes. This is the digest of their ids; order and addresses do not matter. */
export function nodeListDigest(nodes: readonly { id: string }[]): string {
  const ids = nodes.map(({ id }) => id).sort();
  return createHash('sha256').update(ids.join('\n')).digest('hex').slice(0, 12);
}
