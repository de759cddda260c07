// How long may a call take that carries many bytes (docs/PROTOCOL.md section 6.1)? As long as the link to its node
// needs. At first every link is taken for a fast one. Silence after a large call halves the rate, an answer raises it
// again. So a slow link costs a few repetitions once, and a silent node is still noticed soon.
import type { NodePort } from '../../ports.js';
import type { NodeReply } from '../../protocol/types.js';

/** Bytes per ms: 50 MB/s, and what the slowest link is taken for. */
const FASTEST = 50_000;
const SLOWEST = 100;
/** Smaller calls say nothing of the rate. */
const TELLING_BYTES = 32 * 1024;

export class LinkRates {
  private readonly rates = new Map<NodePort, number>();

  constructor(private readonly mostMs: number) {}

  /** What a call of this size may take beyond the time of a small one. */
  extraMs(node: NodePort, bytes: number): number {
    return Math.min(this.mostMs, bytes / (this.rates.get(node) ?? FASTEST));
  }

  learn(node: NodePort, bytes: number, reply: NodeReply<unknown>, tookMs: number): void {
    if (bytes < TELLING_BYTES) return;
    const rate = this.rates.get(node) ?? FASTEST;
    if (reply.outcome === 'unknown') {
      if (reply.step === 'call') this.rates.set(node, Math.max(SLOWEST, rate / 2));
      return;
    }
    this.rates.set(node, Math.max(rate, Math.min(FASTEST, bytes / Math.max(1, tookMs) / 2)));
  }
}
