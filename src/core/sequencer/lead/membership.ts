// Who the nodes are, as one sequencer knows it (docs/PROTOCOL.md section 8, I13). It learns the configuration from the
// records of the nodes, whatever list it was started with, and each of its terms counts by what it knew then. A node
// that was replaced is asked at its new address from then on.
import type { NodePort } from '../../ports.js';
import {
  compareVersions,
  configurationText,
  firstConfiguration,
  newest,
  parseVersion,
  type Configuration,
  type Version,
} from '../../protocol/configuration.js';
import type { ProbeResult } from '../../nodes/probe.js';

export class Membership {
  /** The newest one that any node has shown; null: none has. */
  configuration: Configuration | null = null;
  /** Per node that was replaced: by which version it was moved to where this process asks it. */
  private readonly followed = new Map<string, Version>();

  constructor(
    private readonly nodes: readonly NodePort[],
    private readonly cluster: string,
  ) {}

  /** Ids of nodes that turn out to be somewhere else. */
  learn(seen: ProbeResult): string[] {
    const shown = seen.replies.map((reply) =>
      reply?.outcome === 'accepted' && reply.value.cluster === this.cluster && reply.value.admission !== 'foreign'
        ? reply.value.config
        : '',
    );
    return this.take(newest(this.configuration, ...shown) ?? this.first(seen));
  }

  /** What a term of this process has made, or what was learnt. */
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

  /** Two texts of one version never differ in what counts: this is what a claim of this process would carry. */
  get text(): string {
    return this.configuration === null ? '' : configurationText(this.configuration);
  }

  /**
   * For nodes that know none, because a version of seq before configurations made them one cluster: only while all of
   * them answer, each as an admitted node. With one missing, nobody could say which memory of it counts.
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
