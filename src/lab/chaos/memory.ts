// Which nodes still have their memory? If two of three nodes lose it at once, a quorum can promise nothing
// (docs/PROTOCOL.md section 8). So the scheduler always keeps a quorum with memory. A node counts again only after a
// leader has re-admitted it.
import { quorumOf } from '../../core/config.js';
import type { NodePort } from '../../core/ports.js';

const PROBE_EVERY_MS = 100;

interface Loss {
  /** The old server has ended: from now on the new one gives every answer. */
  gone: boolean;
}

export class Memory {
  private readonly losses = new Map<string, Loss>();
  private stopped = false;
  private loop: Promise<void> | null = null;

  /**
   * `nodes`: connections to the servers without any proxy. `restored` is called for every node that was admitted again.
   */
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

  /** Call it before the server is ended. Call the returned function once the server has ended. */
  lose(node: string): () => void {
    const loss: Loss = { gone: false };
    this.losses.set(node, loss);
    return () => {
      loss.gone = true;
    };
  }

  /** Nodes that lost their memory and have not been re-admitted since. */
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
