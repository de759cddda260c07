// Nodes that were replaced by servers at other addresses while sequencers run (`seq node replace`, docs/PROTOCOL.md section 8). The leader hears of
// it by a request; it tells the others in its presence record, and each tells what it knows, so that one started with the old address learns it.
import type { NodePort } from '../ports.js';
import type { Epoch } from '../protocol/words.js';
import type { Look } from './look.js';

export class Moves {
  private readonly known = new Map<string, { epoch: Epoch; url: string }>();

  constructor(private readonly nodes: readonly NodePort[]) {}

  /** For the presence record: `r3@17=redis://…` each; addresses hold no blanks. */
  get text(): string {
    return [...this.known].map(([node, { epoch, url }]) => `${node}@${epoch}=${url}`).join(' ');
  }

  /** Ids of nodes that were moved by what others tell: what was said later (under a higher epoch) holds. */
  learn(seen: Look): string[] {
    const told = seen.replies.flatMap((reply) => (reply?.outcome === 'accepted' ? reply.value.sequencers.map((one) => one.extra['moved'] ?? '') : []));
    return [...new Set(told)].flatMap((text) => text.split(' ')).flatMap((one) => {
      const [, node, epoch, url] = /^([^@= ]+)@(\d{1,15})=(\S+)$/.exec(one) ?? [];
      return node !== undefined && this.move(node, url!, Number(epoch)) ? [node] : [];
    });
  }

  /** True when the node is somewhere else now. */
  move(node: string, url: string, epoch: Epoch): boolean {
    const port = this.nodes.find((one) => one.id === node);
    if (!port?.moveTo || (this.known.get(node)?.epoch ?? -1) >= epoch) return false;
    this.known.set(node, { epoch, url });
    if (port.url === url) return false;
    port.moveTo(url);
    return true;
  }
}
