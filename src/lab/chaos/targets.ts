// What a fault is, and whom it strikes: a sequencer (mostly the leader), a node, a link or several. A fault takes its
// target exclusively.
import type { PrivateCluster } from '../private-cluster.js';
import type { TcpProxy } from '../tcp-proxy.js';
import type { Client } from './clients.js';
import type { Prng } from './prng.js';
import type { Memory } from './memory.js';
import type { SmallDisk } from './small-disk.js';

export interface Setting {
  cluster: PrivateCluster;
  memory: Memory;
  ttlMs: number;
  nodeTimeoutMs: number;
  /** The leader, as far as it is known. */
  leader(): string | null;
  big: Client;
  /** The sequencer whose store is on a small file system of its own. Null where that is not possible. */
  disk: SmallDisk | null;
}

/** A fault in effect. `heal` ends it. It is always called once, perhaps before its time has come. */
export interface Standing {
  what: string;
  holdMs: number;
  /** How long after the healing a process of its target may still end because of the fault. Default 0. */
  afterMs?: number;
  heal(): Promise<void>;
  /** What is promised: a healing that fails is an anomaly. */
  mustHeal?: boolean;
}

export interface Fault {
  name: string;
  /** One line for the help. */
  help: string;
  /** Returns the target and the locks that the fault takes exclusively, or the reason why it cannot be done now. */
  aim(setting: Setting, prng: Prng): { target: string; locks: string[] } | { skip: string };
  begin(setting: Setting, target: string, prng: Prng): Promise<Standing>;
}

export function aSequencer(
  { cluster, leader }: Setting,
  prng: Prng,
): { target: string; locks: string[] } | { skip: string } {
  const up = cluster.sequencers.map(({ name }) => name).filter((name) => cluster.state(name) === 'running');
  const leads = leader();
  const chosen = prng.pick(cluster.sequencers).name;
  const target = prng.chance(0.5) && leads !== null && up.includes(leads) ? leads : chosen;
  return up.includes(target) ? { target, locks: [target] } : { skip: `${target} is not running` };
}

export function aNode({ cluster }: Setting, prng: Prng): { target: string; locks: string[] } | { skip: string } {
  const target = prng.pick(cluster.nodes).name;
  return cluster.state(target) === 'running' ? { target, locks: [target] } : { skip: `${target} is not running` };
}

export function aNodeThatMayForget(
  setting: Setting,
  prng: Prng,
): { target: string; locks: string[] } | { skip: string } {
  const aimed = aNode(setting, prng);
  if ('skip' in aimed || setting.memory.mayLose(aimed.target)) return aimed;
  return { skip: `a quorum must keep its memory; without: ${setting.memory.without.join(', ')}` };
}

/** A link, all links of a sequencer, or all links of a node. */
export function aPlace({ cluster, leader }: Setting, prng: Prng): { target: string; locks: string[] } {
  const leads = leader();
  const anyone = prng.pick(cluster.sequencers).name;
  const sequencer = prng.chance(0.6) && leads !== null ? leads : anyone;
  const node = prng.pick(cluster.nodes).name;
  const kind = prng.pick(['link', 'sequencer', 'sequencer', 'node']);
  const links = cluster.sequencers.flatMap(({ name }) => cluster.nodes.map((other) => `${name}/${other.name}`));
  const target = kind === 'link' ? `${sequencer}/${node}` : kind === 'sequencer' ? `${sequencer}/*` : `*/${node}`;
  return { target, locks: links.filter((link) => matches(target, link)) };
}

function matches(target: string, link: string): boolean {
  const [sequencer, node] = target.split('/');
  const [a, b] = link.split('/');
  return (sequencer === '*' || sequencer === a) && (node === '*' || node === undefined || node === b);
}

/**
 * The proxies of a target, and those at the agreed addresses of its nodes: else a sequencer that starts meanwhile goes
 * around the fault. A bare node name means all links to that node.
 */
export function proxiesAt(cluster: PrivateCluster, target: string): TcpProxy[] {
  const place = target.includes('/') ? target : `*/${target}`;
  const links = cluster.sequencers.flatMap(({ name: sequencer }) =>
    cluster.nodes.map(({ name: node }) => ({ sequencer, node })),
  );
  const struck = links.filter(({ sequencer, node }) => matches(place, `${sequencer}/${node}`));
  return [
    ...struck.map(({ sequencer, node }) => cluster.proxy(sequencer, node)),
    ...[...new Set(struck.map(({ node }) => node))].map((node) => cluster.agreedProxy(node)),
  ];
}

export async function revive(cluster: PrivateCluster, target: string): Promise<void> {
  if (cluster.state(target) === 'dead')
    await cluster.startProcess(target, { wait: cluster.nodes.some(({ name }) => name === target) });
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
