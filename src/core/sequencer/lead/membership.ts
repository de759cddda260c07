// Which nodes belong to the cluster, as far as this sequencer knows (docs/PROTOCOL.md section 8, I13)? It learns the
// configuration from the records of the nodes, whatever list it was started with. Each term counts by the configuration
// that was known when the term began. After a replacement, the node is asked at its new address.
import type { NodePort } from '../../ports.js';
import {
  compareVersions,
  configurationText,
  firstConfiguration,
  memoryNamed,
  newest,
  parseVersion,
  type Configuration,
  type Version,
} from '../../protocol/configuration.js';
import type { ProbeResult } from '../../nodes/probe.js';

export class Membership {
  /** The newest configuration that any node has shown. Null when no node has shown one. */
  configuration: Configuration | null = null;
  /** Per replaced node: the configuration version by which this process changed the node's address. */
  private readonly followed = new Map<string, Version>();

  constructor(
    private readonly nodes: readonly NodePort[],
    private readonly cluster: string,
  ) {}

  /** Returns the ids of nodes whose address has changed. */
  learn(seen: ProbeResult): string[] {
    const shown = seen.replies.map((reply) =>
      reply?.outcome === 'accepted' && reply.value.cluster === this.cluster && reply.value.admission !== 'foreign'
        ? reply.value.config
        : '',
    );
    return this.take(newest(this.configuration, ...shown) ?? this.first(seen));
  }

  /** Takes a configuration that a term of this process has made or learnt. Returns as `learn` does. */
  take(configuration: Configuration | null): string[] {
    this.configuration = configuration;
    return (configuration?.members ?? []).flatMap(({ id, url, since }) => {
      const version = parseVersion(since ?? '');
      const last = this.followed.get(id);
      if (version === null || (last !== undefined && compareVersions(version, last) <= 0)) return [];
      this.followed.set(id, version);
      const port = this.nodes.find((one) => one.id === id);
      if (!port?.moveTo || port.url === url) return [];
      port.moveTo(url);
      return [id];
    });
  }

  /** Whether this memory of the node is the one that counts. Without a configuration, nobody compares memories. */
  counts(id: string, incarnation: string): boolean {
    return this.configuration === null || memoryNamed(this.configuration, id) === incarnation;
  }

  /** A claim of this process carries this text. Two texts of one version never differ in anything that counts. */
  get text(): string {
    return this.configuration === null ? '' : configurationText(this.configuration);
  }

  /**
   * Makes the first configuration for nodes that know none, because an older version of seq made them a cluster. It
   * requires that all nodes answer, each as an admitted node. If one were missing, nobody could say which memory of it
   * counts.
   */
  private first(seen: ProbeResult): Configuration | null {
    const members = seen.replies.flatMap((reply, i) => {
      if (reply?.outcome !== 'accepted') return [];
      const { admission, cluster, incarnation } = reply.value;
      const { id, url } = this.nodes[i]!;
      return admission === 'admitted' && cluster === this.cluster ? [{ id, memory: incarnation, url }] : [];
    });
    return members.length === this.nodes.length ? firstConfiguration(members) : null;
  }
}
