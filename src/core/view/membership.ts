// Which nodes count? The members of the newest configuration that this cluster's nodes know (docs/PROTOCOL.md section
// 8, I13), whichever nodes were named by hand. A named node that is no member is a stranger: it is shown but never
// counted. A member that nobody named counts as a node without an answer. Pure.
import { clusterNamed, familyOf } from '../generation.js';
import {
  configurationText,
  contradicts,
  memberOf,
  memoryNamed,
  newest,
  NO_TERM_MADE_IT,
  versionText,
  type Configuration,
  type Member,
} from '../protocol/configuration.js';
import type { NodeReply, NodeView } from '../protocol/types.js';
import { commonCluster, generationThatCounts } from './cluster-name.js';
import type { NodeProbe } from './cluster-view.js';

/** The part of an answer that says which nodes the cluster has. */
type Told = Pick<NodeView, 'cluster' | 'config' | 'admission' | 'node' | 'pending' | 'runId' | 'admittedRunId'>;

export interface Answer {
  id: string;
  reply: NodeReply<Told>;
}

/**
 * The newest configuration that the nodes of this cluster know. Null in two cases: none of them knows one (a cluster of
 * version 0.1.0, or none was made yet), or the answers do not settle whose nodes these are. Then the named nodes count.
 */
export function configurationAmong(answers: readonly Answer[], expectedCluster = ''): Configuration | null {
  const found = newestOf(answers, expectedCluster);
  if (found === null || expectedCluster !== '') return found;
  // A few answers must not make strangers of silent nodes: those that answered may belong to another cluster.
  const answered = answers.filter(({ reply }) => reply.outcome === 'accepted').length;
  const unknown = answers.filter(({ id, reply }) => reply.outcome !== 'accepted' && memberOf(found, id) === undefined);
  return unknown.length < answered ? found : null;
}

/** The newest configuration, even when the answers do not settle whose nodes these are. */
export function newestOf(answers: readonly Answer[], expectedCluster: string): Configuration | null {
  const told = answers.flatMap(({ reply }) => (reply.outcome === 'accepted' ? [reply.value] : []));
  const family = expectedCluster === '' ? clearFamily(told) : familyOf(expectedCluster);
  if (family === '') return null;
  return newest(...told.filter(({ cluster }) => familyOf(cluster) === family).map(({ config }) => config));
}

/** The cluster that more nodes name than any other cluster. '' when there is none. */
function clearFamily(told: readonly Pick<NodeView, 'cluster'>[]): string {
  const counts = new Map<string, number>();
  for (const { cluster } of told) {
    const family = familyOf(clusterNamed(cluster));
    if (family !== '') counts.set(family, (counts.get(family) ?? 0) + 1);
  }
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1]);
  return first === undefined || first[1] === second?.[1] ? '' : first[0];
}

/** The cluster whose configuration `configurationAmong` returned, in the generation that counts. */
export function clusterOf(answers: readonly Answer[], expectedCluster = ''): string {
  if (expectedCluster !== '') return expectedCluster;
  const family = clearFamily(answers.flatMap(({ reply }) => (reply.outcome === 'accepted' ? [reply.value] : [])));
  if (family === '') return commonCluster(answers.map(({ reply }) => reply));
  return generationThatCounts(
    answers.map(({ reply }) => reply),
    family,
  );
}

export interface Membership {
  /** Null: only the named nodes are known. */
  configuration: Configuration | null;
  /** One probe for each node that counts. */
  members: readonly NodeProbe[];
  strangers: readonly NodeProbe[];
}

/** Divides the probed nodes by the configuration. */
export function membershipOf(probes: readonly NodeProbe[], expectedCluster?: string): Membership {
  const configuration = configurationAmong(probes, expectedCluster);
  if (configuration === null) return { configuration, members: probes, strangers: [] };
  const members: NodeProbe[] = [];
  const strangers: NodeProbe[] = [];
  const seen = new Set<string>();
  for (const probe of probes) {
    const id = namedBy(probe);
    const counts = memberOf(configuration, id) !== undefined && !seen.has(id);
    if (counts) seen.add(id);
    if (counts) members.push(underNamedMemory(withoutRival(probe, configuration), id, configuration));
    else strangers.push(probe);
  }
  const missing = configuration.members.filter(({ id }) => !seen.has(id)).map(notAsked);
  return { configuration, members: [...members, ...missing], strangers };
}

/**
 * A server counts as a member only with the memory that the configuration names (docs/PROTOCOL.md section 8, I13). One
 * that is admitted with another memory was replaced: somebody still uses its address. It is shown as no vote.
 */
function underNamedMemory(probe: NodeProbe, id: string, configuration: Configuration): NodeProbe {
  const { reply } = probe;
  if (reply.outcome !== 'accepted' || reply.value.admission !== 'admitted') return probe;
  if (reply.value.incarnation === memoryNamed(configuration, id)) return probe;
  const admissionWhy = `another memory counts as ${id} now, on another server or made since`;
  return { ...probe, reply: { ...reply, value: { ...reply.value, admission: 'restarted', admissionWhy } } };
}

/**
 * A node that knows another configuration of the same version refuses every claim, until a change of the members or of
 * a memory makes a later one. Somebody wrote it by hand, or adopted another list.
 */
function withoutRival(probe: NodeProbe, configuration: Configuration): NodeProbe {
  const { reply } = probe;
  if (reply.outcome !== 'accepted' || reply.value.admission !== 'admitted') return probe;
  const { config } = reply.value;
  if (!contradicts(config, configurationText(configuration))) return probe;
  const admissionWhy =
    `its configuration ${versionText(configuration.version)} has other content than the one of the same version ` +
    `on the other nodes: ${NO_TERM_MADE_IT}`;
  const value = { ...reply.value, admission: 'damaged' as const, admissionWhy, strayConfig: config, config: '' };
  return { ...probe, reply: { ...reply, value } };
}

/** A node that was silent when it was opened has a guessed name. Its own record has the right one. */
function namedBy({ id, reply }: NodeProbe): string {
  if (reply.outcome !== 'accepted' || reply.value.admission === 'foreign') return id;
  return reply.value.node || id;
}

function notAsked({ id, url }: Member): NodeProbe {
  const reply = { outcome: 'unknown', step: 'connect', cause: 'nobody asked it' } as const;
  return { id, url, reply, rttMs: null };
}
