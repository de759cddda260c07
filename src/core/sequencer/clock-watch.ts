// Which clocks are wrong, as this sequencer sees it: said in the log once, and again only after the clock was right in
// between. Its own difference also stands in its presence record, for `seq status` and `seq doctor`. A wrong clock
// decides nothing (docs/PROTOCOL.md section 6); a node's frees its locks too early or too late when it jumps.
import type { EmitEvent } from '../events.js';
import { wrongClockText } from '../nodes/node-clocks.js';
import type { WrongClock } from './lead/chain-time.js';

export class ClockWatch {
  private named = new Set<string>();
  private ownMs: number | null = null;

  constructor(private readonly emit: EmitEvent) {}

  learn(wrong: readonly WrongClock[]): void {
    for (const { node, aheadMs } of wrong) {
      if (this.named.has(node)) continue;
      const text = wrongClockText(node === '' ? "this sequencer's clock" : `the clock of ${node}`, aheadMs);
      this.emit({
        type: 'alarm',
        code: 'CLOCK_OFF',
        reason: `${text}; block time follows that median`,
        ...(node === '' ? {} : { node }),
      });
    }
    this.named = new Set(wrong.map(({ node }) => node));
    this.ownMs = wrong.find(({ node }) => node === '')?.aheadMs ?? null;
  }

  /** For the presence record: nothing while its own clock is right. */
  facts(): Record<string, string> {
    return this.ownMs === null ? {} : { clockOffMs: String(Math.round(this.ownMs)) };
  }
}
