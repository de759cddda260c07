// Nodes that were replaced by servers at other addresses while sequencers run (`seq node replace`, docs/PROTOCOL.md section 8). The leader hears of
// it by a request; it tells the others in its presence record, and each tells what it knows, so that one started with the old address learns it.
import type { NodePort } from '../ports.js';
import type { Epoch } from '../protocol/words.js';
import type { Look } from './look.js';

export class Moves {
  /** `turn`: a tenure may move a node more than once; what it said last holds. */
  private readonly known = new Map<string, { epoch: Epoch; turn: number; url: string }>();

  constructor(private readonly nodes: readonly NodePort[]) {}

  /** For the presence record: `r3@17=redis://…` each, `r3@17.1=…` for the second one of a tenure; addresses hold no blanks. */
  get text(): string {
    return [...this.known].map(([node, { epoch, turn, url }]) => `${node}@${epoch}${turn === 0 ? '' : `.${turn}`}=${url}`).join(' ');
  }

  /** Ids of nodes that were moved by what others tell: what was said later (under a higher epoch, or later in that tenure) holds. */
  learn(seen: Look): string[] {
    const told = seen.replies.flatMap((reply) => (reply?.outcome === 'accepted' ? reply.value.sequencers.map((one) => one.extra['moved'] ?? '') : []));
    return [...new Set(told)].flatMap((text) => text.split(' ')).flatMap((one) => {
      const [, node, epoch, turn = '0', url] = /^([^@= ]+)@(\d{1,15})(?:\.(\d{1,9}))?=(\S+)$/.exec(one) ?? [];
      return node !== undefined && this.take(node, url!, Number(epoch), Number(turn)) ? [node] : [];
    });
  }

  /** By the leader of that epoch itself. True when the node is somewhere else now. */
  move(node: string, url: string, epoch: Epoch): boolean {
    const known = this.known.get(node);
    return this.take(node, url, epoch, known?.epoch === epoch ? known.turn + 1 : 0);
  }

  private take(node: string, url: string, epoch: Epoch, turn: number): boolean {
    const port = this.nodes.find((one) => one.id === node);
    const known = this.known.get(node) ?? { epoch: -1, turn: 0 };
    if (!port?.moveTo || epoch < known.epoch || (epoch === known.epoch && turn <= known.turn)) return false;
    this.known.set(node, { epoch, turn, url });
    if (port.url === url) return false;
    port.moveTo(url);
    return true;
  }
}
