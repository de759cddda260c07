// Which nodes were replaced by servers at other addresses (`seq node replace`, docs/PROTOCOL.md section 8, I13), as far
// as one sequencer knows? It learns addresses from the nodes' records, whatever address it was started with. Every
// claim of its terms carries the addresses that it knows.
import type { NodePort } from '../../ports.js';
import { isNewer, movesText, parseMoves, type Move } from '../../protocol/node-addresses.js';
import type { Epoch } from '../../protocol/types.js';
import type { ProbeResult } from '../../nodes/probe.js';

export class NodeAddresses {
  private readonly known = new Map<string, Move>();

  constructor(
    private readonly nodes: readonly NodePort[],
    private readonly cluster: string,
  ) {}

  get text(): string {
    return movesText(this.known);
  }

  /** Where the node was moved to, '' if it never was. */
  urlOf(node: string): string {
    return this.known.get(node)?.url ?? '';
  }

  /** Ids of nodes that turn out to be somewhere else. */
  learn(seen: ProbeResult): string[] {
    const told = new Set(
      seen.replies.map((reply) =>
        reply?.outcome === 'accepted' && reply.value.cluster === this.cluster ? reply.value.moves : '',
      ),
    );
    return [...told]
      .flatMap((text) => [...parseMoves(text)])
      .flatMap(([node, move]) => (this.take(node, move) ? [node] : []));
  }

  /** By the leader of that epoch itself; a term may move a node more than once. */
  move(node: string, url: string, epoch: Epoch): void {
    const last = this.known.get(node);
    this.take(
      node,
      last && last.epoch >= epoch ? { epoch: last.epoch, turn: last.turn + 1, url } : { epoch, turn: 0, url },
    );
  }

  private take(node: string, move: Move): boolean {
    if (!isNewer(move, this.known.get(node))) return false;
    this.known.set(node, move);
    const port = this.nodes.find((one) => one.id === node);
    if (!port?.moveTo || port.url === move.url) return false;
    port.moveTo(move.url);
    return true;
  }
}
