// Opens the nodes of a cluster. The only place that joins engine and redis. Its parts: which cluster is meant
// (cluster/settings.ts), how a node is reached (cluster/address.ts), whose nodes these are (cluster/identity.ts).
import { quorumOf } from '../../core/config.js';
import type { FuelPort } from '../../core/dialect-fuel/types.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import type { BenchServer, Clock, ClusterIdentity, NodeCheckup, NodePort } from '../../core/ports.js';
import type { NodeReply, NodeView } from '../../core/protocol/types.js';
import { asDialect, setting } from '../config/settings.js';
import { nodeNotFound, readOnlyDialect } from '../cluster/errors.js';
import { findIdentity, nameNodes, type Purpose } from '../cluster/identity.js';
import type { ClusterSettings, Surroundings } from '../cluster/settings.js';
import { addressOf, type NodeAddress } from '../cluster/address.js';

export interface Cluster {
  settings: ClusterSettings;
  identity: ClusterIdentity;
  /** Every configured node, in order. Counts are over these. */
  nodes: NodePort[];
  /** Those of --on, else all. */
  asked: NodePort[];
  /** How many of those have given any answer so far. */
  answers(): number;
  quorum: number;
  nodeTimeoutMs: number;
  /** What discovery saw, by node id; empty when nothing had to be discovered. */
  views: Map<string, NodeReply<NodeView>>;
  /** How to reach each node, secrets included: for opening more connections. */
  addresses: NodeAddress[];
  /** The time that answers are given for: now, or when a bundle was made. */
  clock: Clock;
  /** Opens every node once more, as one of that cluster (`<id>.<generation>`). The caller closes them. */
  reopen(cluster: string): Promise<NodePort[]>;
  close(): Promise<void>;
}

/** Opens one node; connects lazily. */
export async function openNode(address: NodeAddress, identity: ClusterIdentity, guessed = false): Promise<NodePort> {
  const { RedisNode } = await import('../../core/redis/node.js');
  return new RedisNode({ ...address, identity, guessed });
}

export interface OpenOptions {
  identity?: 'discover' | 'as-configured';
  signal?: AbortSignal;
  /** Absent (a sequencer, the lab): one round of questions, and whatever it finds. */
  purpose?: Purpose;
}

/**
 * Opens every configured node. Asks the nodes for their ids and the cluster's identity unless all of it is configured.
 * `identity: 'as-configured'` never asks: for `cluster init`, where there is nothing to find.
 */
export async function openCluster(around: Surroundings, options: OpenOptions = {}): Promise<Cluster> {
  if (setting(around.sources, 'dialect', asDialect, 'seq').value !== 'seq') throw readOnlyDialect('this command');
  const settings = around.clusterSettings();
  const { env } = around.sources;
  const addresses = await Promise.all(settings.nodes.map((node, at) => addressOf(node, node.id ?? `n${at + 1}`, env)));
  const complete = settings.cluster !== '' && settings.nodes.every((node) => node.id !== null);
  let identity: ClusterIdentity = { cluster: settings.cluster, lane: settings.lane };
  const heard = new Set<number>();
  const open = (as: ClusterIdentity, guessed: readonly boolean[] = []) =>
    Promise.all(
      addresses.map(async (address, at) => noteAnswers(await openNode(address, as, guessed[at]), () => heard.add(at))),
    );
  let nodes = await open(
    identity,
    settings.nodes.map((node) => node.id === null && options.identity !== 'as-configured'),
  );
  const views = new Map<string, NodeReply<NodeView>>();
  if (!complete && options.identity !== 'as-configured') {
    try {
      const found = await findIdentity(nodes, addresses, settings, options.purpose);
      identity = { cluster: found.cluster, lane: settings.lane };
      await closeAll(nodes);
      addresses.forEach((address, at) => {
        address.id = found.ids[at] as string;
      });
      nodes = await open(identity, found.guessed);
      found.ids.forEach((id, at) => views.set(id, found.replies[at] as NodeReply<NodeView>));
    } catch (error) {
      await closeAll(nodes);
      throw error;
    }
  }
  let asked: NodePort[];
  try {
    asked = chosen(nodes, settings.on);
  } catch (error) {
    await closeAll(nodes);
    throw error;
  }
  const answers = (): number => nodes.filter((node, at) => heard.has(at) && asked.includes(node)).length;
  return {
    settings,
    identity,
    nodes,
    asked,
    answers,
    quorum: quorumOf(nodes.length),
    nodeTimeoutMs: settings.nodeTimeoutMs,
    views,
    addresses,
    clock: systemClock,
    reopen: (cluster) => open({ ...identity, cluster }),
    close: () => closeAll(nodes),
  };
}

/** Calls back whenever the node answered, also with a refusal. So `meta.nodesAnswered` is counted, never assumed. */
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

/** Opens every configured node for reading the other dialect's keys; connects lazily, discovers nothing. */
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
 * The cluster's servers as `seq bench` uses them: a lane of its own on each, and what it needs besides. Closed by the
 * caller.
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
