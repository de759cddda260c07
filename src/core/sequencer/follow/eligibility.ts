// Could this follower lead, by its last probe, and if not, why (docs/PROTOCOL.md section 5)? It needs enough nodes that
// count, a store near their heads and inside their retained range, a ready producer, and no retry back-off.
import type { EmitEvent } from '../../events.js';
import type { Clock, Producer } from '../../ports.js';
import type { Height } from '../../protocol/types.js';
import { seenHeads } from './follower.js';
import { admittedViews, stateOf, type ProbeResult } from '../../nodes/probe.js';
import { MAX_ADOPT } from '../lead/leadership.js';
import type { RetryBackoff } from '../lead/retry-backoff.js';
import type { LinkPace } from './link-pace.js';
import { retentionMargin, type RetentionMargin } from './retention-margin.js';
import { SetBack } from './set-back.js';

export interface EligibilityOptions {
  id: string;
  quorum(): number;
  producer: Producer;
  backoff: RetryBackoff;
  clock: Clock;
  emit: EmitEvent;
  /** What its disk does not do; '' while the disk syncs. */
  disk(): string;
  /** Its store's head. */
  height(): Height;
  /** Only a peer has what it needs next. */
  needsPeer(seen: ProbeResult): void;
  /** What its link carries, and what it would need. */
  pace(seen: ProbeResult): LinkPace;
  /** The nodes have it: it will be here soon. */
  isBehind(): void;
}

export class Eligibility {
  private could = false;
  private reason = 'it has not asked the nodes yet';
  private retained: RetentionMargin = 'inside';
  private slow = false;
  private readonly setBack: SetBack;
  private setBackTold = false;

  /** It could lead. */
  get ready(): boolean {
    return this.could;
  }

  /** Why it could not lead, or does not; '' while nothing stands in the way. */
  get why(): string {
    return this.reason;
  }

  get margin(): RetentionMargin {
    return this.retained;
  }

  constructor(private readonly options: EligibilityOptions) {
    this.setBack = new SetBack(options.id, options.height());
  }

  /** `why`: what the nodes that would not have it lead say. */
  judge(seen: ProbeResult, why: string): void {
    const { producer, backoff, clock, height, disk } = this.options;
    const quorum = this.options.quorum();
    const head = height();
    const heads = seenHeads(seen, head);
    this.heedMargin(head, heads);
    const producing = producer.ready();
    this.could = false;
    const answering = admittedViews(seen).length;
    const missing = answering < quorum ? '' : this.heedSetBack(seen, head, quorum);
    if (answering < quorum) {
      this.reason = `${answering} of the ${quorum} nodes needed answer and are admitted: ${why}`;
    } else if (heads.floor > head) {
      this.reason =
        `its store ends at ${head}, below the nodes' retained range (floor ${heads.floor}): ` + 'it needs a peer';
      this.options.needsPeer(seen);
    } else if (heads.head - head > MAX_ADOPT) {
      this.reason = this.lag(heads.head - head, this.options.pace(seen));
      this.options.isBehind();
    } else if (missing !== '') {
      this.reason = missing;
    } else if (disk() !== '') {
      this.reason = disk();
    } else if (!producing.ready) {
      this.reason = `its producer is not ready: ${producing.why}`;
    } else if (backoff.activeAt(clock.now(), stateOf(seen))) {
      this.reason = backoff.why(clock.now());
    } else {
      this.could = true;
      this.reason = '';
    }
  }

  /** It could lead, but the nodes are not free: somebody leads, or a hold is set. */
  notFree(why: string): void {
    if (this.could) this.reason = why;
  }

  /** It begins to lead: its store ends at the head of the nodes' retained range. */
  led(): void {
    this.retained = 'inside';
  }

  /** Its leadership is over. */
  ended(reason: string): void {
    this.reason = reason;
  }

  /** It could not lead any more, by something that the nodes do not show. The next probe judges anew. */
  prevented(reason: string): void {
    this.could = false;
    this.reason = reason;
  }

  /** It stops, and never leads again. */
  stopped(): void {
    this.could = false;
  }

  /** Why nobody may lead from here. What the nodes have lost is told, once, also when this store has it. */
  private heedSetBack(seen: ProbeResult, head: Height, quorum: number): string {
    const found = this.setBack.judge(seen, head, quorum);
    if (found?.certain === false) this.options.isBehind(); // the next probe says whether it is so
    if (found?.certain === true && !this.setBackTold)
      this.options.emit({ type: 'alarm', code: 'NODES_SET_BACK', reason: found.why });
    this.setBackTold = found !== null && (found.certain || this.setBackTold);
    return found?.lost ? found.why : '';
  }

  private lag(blocks: number, pace: LinkPace): string {
    const reason = `its store is ${blocks} blocks behind${pace.text === '' ? '' : `: ${pace.text}`}`;
    if (pace.tooSlow && !this.slow) this.options.emit({ type: 'alarm', code: 'LINK_TOO_SLOW', reason });
    this.slow = pace.tooSlow;
    return reason;
  }

  private heedMargin(mine: Height, heads: { head: Height; floor: Height }): void {
    const before = this.retained;
    this.retained = retentionMargin(before, mine, heads);
    if (before !== 'inside' || this.margin === 'inside') return;
    const reason =
      this.margin === 'outside'
        ? `its store ends at ${mine}, below the nodes' retained range (floor ${heads.floor}): only a peer can ` +
          'bring what is between'
        : `its store is ${heads.head - mine} blocks behind, and the nodes will have trimmed what it needs ` +
          `next ${mine - heads.floor} blocks from now`;
    this.options.emit({
      type: 'alarm',
      code: this.margin === 'outside' ? 'RETENTION_LOST' : 'RETENTION_CLOSING',
      reason,
    });
  }
}
