// Which nodes belong to the cluster, as far as this sequencer knows (docs/PROTOCOL.md section 8, I13)? It learns the
// configuration from the records of the nodes, whatever list it was started with. Each term counts by the configuration
// that was known when the term began. After a replacement, the node is asked at its new address.
import type { NodePort } from '../../ports.js';
import {
  compareVersions,
  contradicts,
  configurationText,
  firstConfiguration,
  memberOf,
  memoryNamed,
  newest,
  parseVersion,
  quorumFor,
  type Configuration,
  type Version,
} from '../../protocol/configuration.js';
import { showsMemory } from '../../nodes/node-address.js';
import { quorumOf } from '../../protocol/quorum.js';
import type { ProbeResult } from '../../nodes/probe.js';

export interface MembershipOptions {
  /** Grows when a member is opened. The index of a node never changes. */
  nodes: NodePort[];
  cluster: string;
  /** Whether these nodes may become the first configuration of a cluster that knows none. */
  adopts: boolean;
  /** Opens a node that this process was not told of. */
  open?: (member: { id: string; url: string }) => Promise<NodePort>;
  /** Another set of ids counts now. */
  changed?(): void;
  /** A member was opened. */
  opened?(id: string): void;
}

export class Membership {
  /** The newest configuration that any node has shown. Null when no node has shown one. */
  configuration: Configuration | null = null;
  /** Per replaced node: the configuration version by which this process changed the node's address. */
  private readonly followed = new Map<string, Version>();

  /** The ids of the members, as one text. It changes when the set of members changes. */
  members: string;
  /** This process made the configuration that it knows, from its own list. */
  private adopted = false;
  /** Members that are being opened. */
  private readonly opening = new Set<string>();

  constructor(private readonly options: MembershipOptions) {
    this.members = idsOf(options.nodes);
  }

  get quorum(): number {
    return this.configuration === null ? quorumOf(this.options.nodes.length) : quorumFor(this.configuration);
  }

  /** Whether the node with this index counts. A node that was removed keeps its index, and is asked for nothing. */
  readonly asks = (node: number): boolean =>
    this.configuration === null || memberOf(this.configuration, this.options.nodes[node]!.id) !== undefined;

  /** The nodes that count. */
  get nodes(): NodePort[] {
    return this.options.nodes.filter((_, node) => this.asks(node));
  }

  /** The index of the node with this id, which is opened if need be. The index of a node never changes. */
  async indexOf(id: string, url: string): Promise<number> {
    const { nodes, open } = this.options;
    const known = nodes.findIndex((one) => one.id === id);
    if (known >= 0 || !open) {
      if (known >= 0 && nodes[known]!.url !== url) nodes[known]!.moveTo?.(url);
      return known;
    }
    const port = await open({ id, url });
    const meanwhile = nodes.findIndex((one) => one.id === id);
    if (meanwhile < 0) return nodes.push(port) - 1;
    await port.close();
    return meanwhile;
  }

  /** Returns the ids of nodes whose address has changed. */
  learn(seen: ProbeResult): string[] {
    const shown = seen.replies.map((reply) =>
      reply?.outcome === 'accepted' &&
      reply.value.cluster === this.options.cluster &&
      reply.value.admission !== 'foreign'
        ? reply.value.config
        : '',
    );
    return this.take(this.chosen(shown) ?? this.first(seen), seen);
  }

  /**
   * The newest of what the nodes show and what this process knows. A text of the version that it knows, and of other
   * content, was written by hand, or another operator has adopted another list: what two nodes show then counts.
   */
  private chosen(shown: readonly string[]): Configuration | null {
    const own = this.configuration;
    const found = newest(...shown);
    if (own === null || found === null) return own ?? found;
    const { text } = this;
    if (!contradicts(configurationText(found), text)) return newest(own, found);
    const others = shown.filter((one) => contradicts(one, text)).length;
    return others > 1 || (this.adopted && !shown.includes(text)) ? found : own;
  }

  /** Takes a configuration that a term of this process has made or learnt. Returns as `learn` does. */
  take(configuration: Configuration | null, seen: ProbeResult | null = null): string[] {
    this.configuration = configuration;
    const members = configuration === null ? this.members : idsOf(configuration.members);
    if (members !== this.members) {
      this.members = members;
      this.options.changed?.();
    }
    void this.openMissing();
    return (configuration?.members ?? []).flatMap(({ id, url, since }) => {
      const version = parseVersion(since ?? '');
      const last = this.followed.get(id);
      if (version === null || (last !== undefined && compareVersions(version, last) <= 0)) return [];
      this.followed.set(id, version);
      const at = this.options.nodes.findIndex((one) => one.id === id);
      const port = this.options.nodes[at];
      if (!port?.moveTo || port.url === url) return [];
      // The address of the list may be another name of the same server.
      if (showsMemory(seen?.replies[at] ?? null, memberOf(configuration, id)!, this.options.cluster)) return [];
      port.moveTo(url);
      return [id];
    });
  }

  /** Whether this memory of the node is the one that counts. Without a configuration, nobody compares memories. */
  counts(id: string, incarnation: string): boolean {
    return this.configuration === null || memoryNamed(this.configuration, id) === incarnation;
  }

  /** A member that this process was not told of is opened at the address in the configuration. */
  private async openMissing(): Promise<void> {
    const { nodes, open, opened } = this.options;
    if (!open) return;
    for (const { id, url } of this.configuration?.members ?? []) {
      if (this.opening.has(id) || nodes.some((one) => one.id === id)) continue;
      this.opening.add(id);
      try {
        await this.indexOf(id, url);
        opened?.(id);
      } catch {
        // It cannot be opened (its credentials cannot be read): the next probe tries again.
      } finally {
        this.opening.delete(id);
      }
    }
  }

  /** A claim of this process carries this text. Two texts of one version name the same ids. */
  get text(): string {
    return this.configuration === null ? '' : configurationText(this.configuration);
  }

  /**
   * Makes the first configuration for nodes that know none, because an older version of seq made them a cluster. It
   * requires that all nodes answer, each as an admitted node. If one were missing, nobody could say which memory of it
   * counts. It also requires an operator's word: no node can tell whether this process was given all nodes.
   */
  private first(seen: ProbeResult): Configuration | null {
    if (!this.options.adopts) return null;
    const members = seen.replies.flatMap((reply, i) => {
      if (reply?.outcome !== 'accepted') return [];
      const { admission, cluster, incarnation } = reply.value;
      const { id, url } = this.options.nodes[i]!;
      return admission === 'admitted' && cluster === this.options.cluster ? [{ id, memory: incarnation, url }] : [];
    });
    this.adopted = members.length === this.options.nodes.length;
    return this.adopted ? firstConfiguration(members) : null;
  }
}

function idsOf(nodes: readonly { id: string }[]): string {
  return nodes
    .map(({ id }) => id)
    .sort()
    .join(' ');
}
