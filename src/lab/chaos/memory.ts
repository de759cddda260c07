// Which nodes still have their memory? If two of three nodes lose it at once, a quorum can promise nothing
// (docs/PROTOCOL.md section 8). So the scheduler always keeps a quorum with memory. A node counts again only after a
// leader has re-admitted it.
import { quorumOf } from '../../core/config.js';
import type { NodePort } from '../../core/ports.js';
import { memoryNamed, newest } from '../../core/protocol/configuration.js';

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

  /** A node that was admitted, but whose place another server took meanwhile, has a memory that does not count. */
  private async watch(): Promise<void> {
    while (!this.stopped) {
      const waiting = new Map([...this.losses].filter(([, { gone }]) => gone));
      if (waiting.size > 0) {
        const replies = await Promise.all(this.nodes.map((node) => node.call({ script: 'inspect' }, this.limitMs)));
        const views = replies.map((reply) => (reply.outcome === 'accepted' ? reply.value : null));
        // A node that has its old memory back knows an old configuration only. The others must say which one is newest.
        if (this.nodes.some(({ id }, at) => views[at] === null && !this.losses.has(id))) {
          await pause();
          continue;
        }
        const configuration = newest(...views.map((view) => view?.config ?? ''));
        this.nodes.forEach(({ id }, at) => {
          const view = views[at];
          if (view?.admission !== 'admitted' || !waiting.has(id) || this.losses.get(id) !== waiting.get(id)) return;
          if (configuration !== null && memoryNamed(configuration, id) !== view.incarnation) return;
          this.losses.delete(id);
          this.restored(id);
        });
      }
      await pause();
    }
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
}
