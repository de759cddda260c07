// Which nodes still have their memory. Two nodes of three that lose it at once are outside what a quorum can promise
// (docs/PROTOCOL.md section 8), so the scheduler keeps a quorum with memory at any time. A node counts again only
// once a leader has re-admitted it.
import { quorumOf } from '../../core/config.js';
import type { NodePort } from '../../core/ports.js';

const PROBE_EVERY_MS = 100;

interface Loss {
  /** The old server has ended: whatever is asked from now on is answered by the new one. */
  gone: boolean;
}

export class Memory {
  private readonly losses = new Map<string, Loss>();
  private stopped = false;
  private loop: Promise<void> | null = null;

  /** `nodes`: straight to the servers, past every proxy. `restored` is told of every node that was admitted again. */
  constructor(
    private readonly nodes: readonly NodePort[],
    private readonly limitMs: number,
    private readonly restored: (node: string) => void,
  ) {}

  start(): void {
    this.loop = this.watch();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.loop;
  }

  /** May this node lose its memory now? */
  mayLose(node: string): boolean {
    return this.nodes.filter(({ id }) => id !== node && !this.losses.has(id)).length >= quorumOf(this.nodes.length);
  }

  /** To be called before the server is ended; what it returns, once it is gone. */
  lose(node: string): () => void {
    const loss: Loss = { gone: false };
    this.losses.set(node, loss);
    return () => {
      loss.gone = true;
    };
  }

  /** Nodes that have not been re-admitted since. */
  get without(): string[] {
    return [...this.losses.keys()];
  }

  private async watch(): Promise<void> {
    while (!this.stopped) {
      await Promise.all(
        this.nodes.map(async (node) => {
          const loss = this.losses.get(node.id);
          if (loss === undefined || !loss.gone) return;
          const reply = await node.call({ script: 'inspect' }, this.limitMs);
          if (reply.outcome !== 'accepted' || reply.value.admission !== 'admitted' || this.losses.get(node.id) !== loss)
            return;
          this.losses.delete(node.id);
          this.restored(node.id);
        }),
      );
      await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
    }
  }
}
