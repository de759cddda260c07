// Opens the nodes of a cluster. This is the only place that joins engine and redis. Its parts: which cluster is meant
// (cluster/settings.ts), how a node is reached (cluster/address.ts), which cluster the nodes belong to
// (cluster/identity.ts).
import { quorumOf } from '../../core/config.js';
import type { FuelPort } from '../../core/dialect-fuel/types.js';
import { showsMemory, whichAddress } from '../../core/nodes/node-address.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import type { BenchServer, Clock, ClusterIdentity, NodeCheckup, NodePort } from '../../core/ports.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import type { LinePool } from '../../core/redis/shared/lines.js';
import { memberOf, newest, type Configuration } from '../../core/protocol/configuration.js';
import { clusterOf, configurationAmong } from '../../core/view/membership.js';
import { asDialect, setting } from '../config/settings.js';
import { nodeNotFound, readOnlyDialect } from '../cluster/errors.js';
import { findIdentity, nameNodes, type Purpose } from '../cluster/identity.js';
import type { ClusterSettings, NodeSettings, Surroundings } from '../cluster/settings.js';
import { addressOf, type NodeAddress } from '../cluster/address.js';

export interface Cluster {
  settings: ClusterSettings;
  identity: ClusterIdentity;
  /** The members as the nodes know them. Null when no node knows. */
  configuration: Configuration | null;
  /** Every member of the configuration. Without a configuration: every listed node, in order. Counts are over these. */
  nodes: NodePort[];
  /** How each of them was listed. Null for a member that was not listed. */
  listed: (Pick<NodeSettings, 'id' | 'url'> | null)[];
  /** Listed nodes that are not members: shown, never counted. */
  strangers: { port: NodePort; listed: Pick<NodeSettings, 'id' | 'url'> }[];
  /** Listed members that are asked at the configuration's address: the listed one shows another memory, or nothing. */
  readdressed: { id: string; from: string; to: string }[];
  /** Those of --on, else all. */
  asked: NodePort[];
  /** How many of those have given any answer so far. */
  answers(): number;
  quorum: number;
  nodeTimeoutMs: number;
  /** What discovery read, by node id. Empty when nothing was asked. */
  views: Map<string, NodeReply<NodeView>>;
  /** How to reach each node, secrets included: for opening more connections. */
  addresses: NodeAddress[];
  /** The time to which answers refer: now, or when a bundle was made. */
  clock: Clock;
  /** Opens a node that is not listed, with the credentials of the others. `close` closes it too. */
  openMember(member: { id: string; url: string }): Promise<NodePort>;
  /** For many lanes on the same nodes, over connections that they share (docs/decisions/0015). */
  lanes(): Promise<LaneOpener>;
  /** Opens every node again, as a node of that cluster (`<id>.<generation>`). The caller closes them. */
  reopen(cluster: string): Promise<NodePort[]>;
  close(): Promise<void>;
}

/** Closing a node of a lane leaves the shared connections open. The cluster closes them. */
export interface LaneOpener {
  /** `cluster`: the one that the lane's records name; the default lane's when it is absent. */
  open(lane: string, cluster?: string): NodePort[];
  /** A member of the lane that the cluster does not list. */
  openMember(identity: ClusterIdentity, member: { id: string; url: string }): Promise<NodePort>;
}

/**
 * Opens one node; connects lazily. A node behind Sentinel has its `sentinel://` address, which the configuration of the
 * cluster must name.
 */
export async function openNode(address: NodeAddress, identity: ClusterIdentity, guessed = false): Promise<NodePort> {
  const { RedisNode } = await import('../../core/redis/node.js');
  return new RedisNode({ ...address, url: knownUrl(address), identity, guessed });
}

function knownUrl({ url, sentinel }: NodeAddress): string {
  const db = /^redis:\/\/[^/]+(\/\d+)?$/.exec(url)?.[1] ?? '';
  return sentinel === undefined || !url.startsWith('redis:')
    ? url
    : `sentinel://${sentinel.nodes.join(',')}/${sentinel.name}${db}`;
}

export interface OpenOptions {
  identity?: 'discover' | 'as-configured';
  /** `as-listed`: for making a cluster of exactly these nodes. */
  members?: 'of-the-cluster' | 'as-listed';
  signal?: AbortSignal;
  /** Absent (a sequencer, the lab): one round of questions, and any result is accepted. */
  purpose?: Purpose;
}

/** One node and how it is to be opened. */
interface Entry {
  address: NodeAddress;
  /** How it was listed. Null: its address comes from the configuration of the cluster. */
  listed: NodeSettings | null;
  /** Its name is a guess. */
  guessed: boolean;
}

interface Completed {
  configuration: Configuration;
  members: Entry[];
  strangers: Entry[];
  readdressed: Cluster['readdressed'];
}

/** The members may be learned step by step: a node just found may know a later configuration. */
const MEMBER_ROUNDS = 3;

/** The connections of one cluster while discovery runs. */
class Opening {
  readonly views = new Map<string, NodeReply<NodeView>>();
  readonly heard = new Set<NodeAddress>();
  private readonly ports = new Map<NodeAddress, NodePort>();
  private pool: LinePool | undefined;

  constructor(
    readonly settings: ClusterSettings,
    public identity: ClusterIdentity,
  ) {}

  /** Opens the entries under the present identity. Closes connections that were open. */
  async open(entries: readonly Entry[]): Promise<void> {
    for (const entry of entries) {
      const former = this.ports.get(entry.address);
      this.ports.set(entry.address, await this.openAs(entry, this.identity));
      await former?.close().catch(() => undefined);
    }
  }

  async openAs({ address, guessed }: Entry, identity: ClusterIdentity): Promise<NodePort> {
    return noteAnswers(await openNode(address, identity, guessed), () => this.heard.add(address));
  }

  async openMember({ id, url }: { id: string; url: string }, env: NodeJS.ProcessEnv): Promise<NodePort> {
    const address = await addressOf({ id, url, ...this.settings.unlisted }, id, env);
    const entry = { address, listed: null, guessed: false };
    await this.open([entry]);
    return this.port(entry);
  }

  port({ address }: Entry): NodePort {
    return this.ports.get(address) as NodePort;
  }

  async lanes(members: readonly Entry[], env: NodeJS.ProcessEnv): Promise<LaneOpener> {
    const [{ RedisNode }, { LinePool }] = await Promise.all([
      import('../../core/redis/node.js'),
      import('../../core/redis/shared/lines.js'),
    ]);
    const pool = (this.pool ??= new LinePool());
    const openAt = (address: NodeAddress, identity: ClusterIdentity): NodePort =>
      new RedisNode({ ...address, url: knownUrl(address), identity, pool });
    return {
      open: (lane, cluster = this.identity.cluster) => members.map(({ address }) => openAt(address, { cluster, lane })),
      openMember: async (identity, { id, url }) =>
        openAt(await addressOf({ id, url, ...this.settings.unlisted }, id, env), identity),
    };
  }

  close(): Promise<void> {
    this.pool?.close();
    return closeAll([...this.ports.values()]);
  }

  /** Finds out who the nodes are and who the members are. Null: nobody knows. */
  async identify(listed: readonly Entry[], purpose: Purpose | undefined): Promise<Configuration | null> {
    const { settings } = this;
    const ports = listed.map((entry) => this.port(entry));
    const found = await findIdentity(ports, listed, settings, purpose);
    listed.forEach((entry, at) => {
      entry.address.id = found.ids[at] as string;
      entry.guessed = found.guessed[at] as boolean;
      this.views.set(entry.address.id, found.replies[at] as NodeReply<NodeView>);
    });
    if (settings.cluster === '' || settings.nodes.some((node) => node.id === null)) {
      this.identity = { cluster: found.cluster, lane: settings.lane };
      await this.open(listed);
    }
    return found.configuration;
  }

  /**
   * An address is a hint: the memory decides which server is the node (nodes/node-address.ts). Where the listed address
   * does not show the memory that counts, the configuration's address is asked, too. Returns the entry that is better.
   */
  private async atEither(entry: Entry, configuration: Configuration, env: NodeJS.ProcessEnv): Promise<Entry> {
    const { id } = entry.address;
    const member = memberOf(configuration, id);
    if (member === undefined || this.port(entry).url === member.url) return entry;
    const { cluster } = this.identity;
    const listed = this.views.get(id) ?? null;
    if (showsMemory(listed, member, cluster)) return entry;
    const address = await addressOf({ id, url: member.url, ...this.settings.unlisted }, id, env);
    const other: Entry = { address, listed: entry.listed, guessed: false };
    await this.open([other]);
    const agreed = await this.port(other).call({ script: 'inspect' }, this.settings.nodeTimeoutMs);
    if (whichAddress(member, cluster, { listed, agreed }) === 'listed') return entry;
    this.views.set(id, agreed);
    return other;
  }

  /** Opens every member that is not listed. Those members may name others again. */
  async complete(listed: readonly Entry[], first: Configuration, env: NodeJS.ProcessEnv): Promise<Completed> {
    const { settings, views } = this;
    const entries = await Promise.all(listed.map((entry) => this.atEither(entry, first, env)));
    const readdressed = entries.flatMap((entry, at) =>
      entry === listed[at]
        ? []
        : [{ id: entry.address.id, from: this.port(listed[at] as Entry).url, to: this.port(entry).url }],
    );
    let configuration = first;
    for (let round = 0; ; round += 1) {
      const missing = configuration.members.filter(({ id }) => !entries.some(({ address }) => address.id === id));
      if (missing.length === 0) break;
      const added = await Promise.all(
        missing.map(async ({ id, url }): Promise<Entry> => {
          const address = await addressOf({ id, url, ...settings.unlisted }, id, env);
          return { address, listed: null, guessed: false };
        }),
      );
      await this.open(added);
      entries.push(...added);
      if (round === MEMBER_ROUNDS) break;
      const ask = async (entry: Entry): Promise<void> => {
        const reply = await this.port(entry).call({ script: 'inspect' }, settings.nodeTimeoutMs);
        views.set(entry.address.id, reply);
      };
      await Promise.all(added.map(ask));
      configuration = newest(configuration, configurationAmong(this.answers(), settings.cluster)) ?? configuration;
    }
    const cluster = clusterOf(this.answers(), settings.cluster);
    if (cluster !== this.identity.cluster) {
      // The listed nodes are of an older generation than the nodes that they name.
      this.identity = { cluster, lane: settings.lane };
      await this.open(entries);
    }
    const { members } = configuration;
    const isMember = ({ address }: Entry): boolean => members.some(({ id }) => id === address.id);
    const found = entries.filter(isMember);
    const whole = found.every((entry) => entry.listed !== null);
    return {
      configuration,
      // A list that names every member keeps its order.
      members: whole ? found : members.map(({ id }) => found.find(({ address }) => address.id === id) as Entry),
      strangers: entries.filter((entry) => !isMember(entry) && entry.listed !== null),
      readdressed,
    };
  }

  private answers(): { id: string; reply: NodeReply<NodeView> }[] {
    return [...this.views].map(([id, reply]) => ({ id, reply }));
  }
}

/**
 * Opens the nodes of the cluster. It asks the listed nodes who they are and who the members are. It opens members that
 * are not listed at the address in the configuration. Where no node knows a configuration, the list is the cluster.
 * `identity: 'as-configured'` never asks: for `cluster init`, where there is nothing to find.
 */
export async function openCluster(around: Surroundings, options: OpenOptions = {}): Promise<Cluster> {
  if (setting(around.sources, 'dialect', asDialect, 'seq').value !== 'seq') throw readOnlyDialect('this command');
  const settings = around.clusterSettings();
  const { env } = around.sources;
  const asks = options.identity !== 'as-configured';
  const opening = new Opening(settings, { cluster: settings.cluster, lane: settings.lane });
  const listed = await Promise.all(
    settings.nodes.map(async (node, at): Promise<Entry> => {
      const address = await addressOf(node, node.id ?? `n${at + 1}`, env);
      return { address, listed: node, guessed: node.id === null && asks };
    }),
  );
  try {
    await opening.open(listed);
    const known = asks ? await opening.identify(listed, options.purpose) : null;
    const { configuration, members, strangers, readdressed } =
      known === null || options.members === 'as-listed'
        ? { configuration: null, members: listed, strangers: [], readdressed: [] }
        : await opening.complete(listed, known, env);
    const nodes = members.map((entry) => opening.port(entry));
    const asked = chosen(nodes, settings.on);
    const { identity, views, heard } = opening;
    return {
      settings,
      identity,
      configuration,
      nodes,
      listed: members.map((entry) => entry.listed),
      strangers: strangers.map((entry) => ({ port: opening.port(entry), listed: entry.listed as NodeSettings })),
      readdressed,
      asked,
      answers: () => members.filter((entry) => heard.has(entry.address) && asked.includes(opening.port(entry))).length,
      quorum: quorumOf(nodes.length),
      nodeTimeoutMs: settings.nodeTimeoutMs,
      views,
      addresses: members.map(({ address }) => address),
      clock: systemClock,
      openMember: (member) => opening.openMember(member, env),
      lanes: () => opening.lanes(members, env),
      reopen: (cluster) =>
        Promise.all(members.map((entry) => opening.openAs({ ...entry, guessed: false }, { ...identity, cluster }))),
      close: () => opening.close(),
    };
  } catch (error) {
    await opening.close();
    throw error;
  }
}

/**
 * Calls back whenever the node answered, also with a refusal. `meta.nodesAnswered` is therefore counted, never assumed.
 */
export function noteAnswers<N extends NodePort>(node: N, answered: () => void): N {
  const [call, read] = [node.call.bind(node), node.read.bind(node)];
  const noted = <R extends { outcome: string }>(reply: R): R => {
    if (reply.outcome !== 'unknown') answered();
    return reply;
  };
  return Object.assign(node, {
    call: async (...args: Parameters<NodePort['call']>) => noted(await call(...args)),
    read: async (...args: Parameters<NodePort['read']>) => noted(await read(...args)),
  });
}

/** Opens every configured node for reading the other dialect's keys. Connects lazily, discovers nothing. */
export async function openFuelNodes(
  around: Surroundings,
  leaseKey: string,
): Promise<{ settings: ClusterSettings; nodes: FuelPort[] }> {
  const settings = around.clusterSettings();
  const { FuelNode } = await import('../../core/redis/fuel/fuel-node.js');
  const addresses = await Promise.all(
    settings.nodes.map((node, at) => addressOf(node, nameNodes(settings.nodes, [])[at] as string, around.sources.env)),
  );
  const nodes = addresses.map((address) => new FuelNode({ ...address, leaseKey }));
  chosen(nodes, settings.on);
  return { settings, nodes };
}

async function closeAll(nodes: NodePort[]): Promise<void> {
  await Promise.allSettled(nodes.map((node) => node.close()));
}

/** The nodes that --on names; all when it is absent. */
export function chosen<Node extends { id: string }>(nodes: Node[], on: string[] | null): Node[] {
  if (on === null) return nodes;
  const unknown = on.filter((id) => !nodes.some((node) => node.id === id));
  if (unknown.length === 0) return nodes.filter((node) => on.includes(node.id));
  throw nodeNotFound(
    unknown,
    nodes.map((node) => node.id),
  );
}

/** What `seq doctor` reads of a node. */
export async function checkNode(node: NodePort, limitMs: number): Promise<NodeReply<NodeCheckup>> {
  return node.checkup?.(limitMs) ?? { outcome: 'unknown', step: 'call', cause: 'it is no Redis server' };
}

/**
 * The cluster's servers as `seq bench` uses them: a separate lane on each, and what the measurement needs besides. The
 * caller closes it.
 */
export async function openBenchLane(
  cluster: Cluster,
  lane: string,
): Promise<{ node: NodePort; server: BenchServer }[]> {
  const { BenchLane } = await import('../../core/redis/bench-lane.js');
  return Promise.all(
    cluster.addresses.map(async ({ id, ...address }) => ({
      node: await openNode({ id, ...address }, { cluster: cluster.identity.cluster, lane }),
      server: new BenchLane(address, lane),
    })),
  );
}

/**
 * The rules of `seq doctor --acl` where no node can be asked, one for each user: they are needed before the first
 * server runs.
 */
export async function rulesWithoutNodes(
  users: readonly { username?: string; url?: string }[],
  lane: string,
): Promise<string[]> {
  const { hintChannelOf, keysOf } = await import('../../core/redis/keys.js');
  const { aclRule } = await import('../../core/redis/rights.js');
  const rules = users.map(({ username, url = '' }) => {
    const db = Number(/(?:^rediss?:\/\/[^/]+\/|[?]db=)(\d+)/.exec(url)?.[1] ?? 0);
    return aclRule(username ?? (process.env['SEQ_USERNAME'] || 'seq'), keysOf(lane), hintChannelOf(lane), db);
  });
  return [...new Set(rules)];
}
