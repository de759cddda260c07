// Where is each node asked, while its listed address and the agreed one differ? An address is a hint. A list may be
// older than the cluster, and an agreed address may not be reached from here. So both are asked from time to time, and
// the port moves to the server that is the node (nodes/node-address.ts).
import type { EmitEvent } from '../../events.js';
import { showsMemory, whichAddress } from '../../nodes/node-address.js';
import type { Clock, NodePort } from '../../ports.js';
import { memberOf, type Configuration, type Member } from '../../protocol/configuration.js';
import type { NodeReply, NodeView } from '../../protocol/types.js';

export interface NodeAddressesOptions {
  /** Grows when a member is opened. */
  nodes: readonly NodePort[];
  clock: Clock;
  cluster: string;
  everyMs: number;
  nodeTimeoutMs: number;
  configuration(): Configuration | null;
  emit: EmitEvent;
}

export class NodeAddresses {
  /** The address that each node was listed with. A node that was not listed has the agreed one alone. */
  private readonly listed: ReadonlyMap<string, string>;
  private readonly told = new Set<string>();
  private cancel: () => void = () => {};
  private stopped = false;

  constructor(private readonly options: NodeAddressesOptions) {
    this.listed = new Map(options.nodes.map(({ id, url }) => [id, url]));
  }

  start(): void {
    this.cancel = this.options.clock.after(this.options.everyMs, () => void this.turn());
  }

  stop(): void {
    this.stopped = true;
    this.cancel();
  }

  private async turn(): Promise<void> {
    const { nodes } = this.options;
    await Promise.all(nodes.map((port) => this.check(port)));
    if (!this.stopped) this.start();
  }

  private async check(port: NodePort): Promise<void> {
    const member = memberOf(this.options.configuration(), port.id);
    const listed = this.listed.get(port.id);
    if (member === undefined || listed === undefined || listed === member.url || !port.elsewhere) return;
    const { url } = port;
    const isListed = url === listed;
    const here = await this.ask(port);
    if (showsMemory(here, member, this.options.cluster)) return;
    const there = await this.askAt(port, isListed ? member.url : listed);
    const shown = isListed ? { listed: here, agreed: there } : { listed: there, agreed: here };
    if (!isListed) this.told.delete(port.id);
    else if (here.outcome !== 'accepted') this.tell(port.id, there, { listed, agreed: member.url });
    const better = whichAddress(member, this.options.cluster, shown) === 'listed' ? listed : member.url;
    // It was moved meanwhile, or another address was agreed: what was asked says nothing of that.
    if (this.stopped || better === url || port.url !== url || this.isPast(member)) return;
    port.moveTo?.(better);
    const why = `it is asked at ${better}: ${url} does not show the memory that counts as ${port.id}`;
    this.options.emit({ type: 'node', node: port.id, state: 'moved', why });
  }

  /** Nobody answers at the listed address, and an empty server at the agreed one may be anybody's: a person decides. */
  private tell(id: string, there: NodeReply<NodeView>, { listed, agreed }: { listed: string; agreed: string }): void {
    if (there.outcome !== 'accepted' || there.value.cluster !== '' || this.told.has(id)) return;
    this.told.add(id);
    const reason =
      `${id} does not answer at ${listed}, where the list has it; the server at ${agreed}, where the cluster has it, ` +
      'is empty: it is taken back once the list names it';
    this.options.emit({ type: 'alarm', code: 'NODE_ADDRESS', node: id, reason });
  }

  private isPast({ id, memory, url }: Member): boolean {
    const now = memberOf(this.options.configuration(), id);
    return now === undefined || now.url !== url || now.memory !== memory;
  }

  private ask(port: NodePort): Promise<NodeReply<NodeView>> {
    return port.call({ script: 'inspect', brief: true }, this.options.nodeTimeoutMs);
  }

  private async askAt(port: NodePort, url: string): Promise<NodeReply<NodeView>> {
    const other = port.elsewhere!(url);
    try {
      return await this.ask(other);
    } finally {
      await other.close();
    }
  }
}
