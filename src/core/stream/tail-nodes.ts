// Which nodes does a long read ask? It begins with those that were opened for it. When the nodes show a later
// configuration, new members are opened, removed ones are asked no more, and a replaced one is asked at its new address
// (docs/PROTOCOL.md section 8). Nodes that were opened here are closed by whoever opens them.
import type { NodePort } from '../ports.js';
import { compareVersions, memberOf, type Configuration } from '../protocol/configuration.js';

export class TailNodes {
  configuration: Configuration | null = null;

  constructor(
    public nodes: readonly NodePort[],
    readonly open?: (member: { id: string; url: string }) => Promise<NodePort>,
  ) {}

  /** Follows a later configuration. Returns whether other nodes are asked now. */
  async take(shown: Configuration | null): Promise<boolean> {
    const former = this.configuration;
    if (shown === null || (former !== null && compareVersions(shown.version, former.version) < 0)) return false;
    this.configuration = shown;
    const before = this.nodes;
    const kept = before.filter(({ id }) => memberOf(former, id) === undefined || memberOf(shown, id) !== undefined);
    let moved = false;
    for (const { id, url, since } of former === null ? [] : shown.members) {
      const port = kept.find((node) => node.id === id);
      const known = memberOf(former, id);
      if (!port?.moveTo || known === undefined || known.since === since || port.url === url) continue;
      port.moveTo(url);
      moved = true;
    }
    const joined = shown.members.filter(({ id }) => !before.some((node) => node.id === id));
    const opened = await Promise.all(joined.map(async (member) => this.open?.(member).catch(() => undefined)));
    this.nodes = [...kept, ...opened.filter((node) => node !== undefined)];
    return moved || opened.some((node) => node !== undefined) || kept.length < before.length;
  }
}
