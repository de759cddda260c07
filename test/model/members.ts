// Who are the nodes, and by which configuration does a term count them (docs/PROTOCOL.md section 8, I13)? The model
// separates ids from servers. A second, empty server (a twin) may answer for the last id. A process may have another
// list of nodes than the cluster. The production reducer decides what counts, from the configuration that its process
// knew when the term began.
import {
  compareVersions,
  configurationText,
  firstConfiguration,
  memberOf,
  memoryNamed,
  parseConfiguration,
  quorumFor,
  withoutMember,
  type Configuration,
} from '../../src/core/protocol/configuration.js';
import { quorumOf } from '../../src/core/protocol/quorum.js';
import type { Epoch } from '../../src/core/protocol/types.js';
import { sameServerRun, type MemoryNodeState, type Mutant } from '../support/memory-node.js';
import type { ModelConfig } from './state.js';

/** The nodes that one process was started with. Index = track of the term. */
export interface NodeList {
  ids: readonly string[];
  servers: readonly number[];
}

const STRANGER = 'x1';

function memberIds(cfg: ModelConfig): string[] {
  return Array.from({ length: cfg.nodes }, (_, n) => `r${n + 1}`);
}

/**
 * The id that each server answers for. The members come first, then the twin of the last member, then a stranger, then
 * a server that may become a member.
 */
export function serverIds(cfg: ModelConfig): string[] {
  const ids = memberIds(cfg);
  const further = cfg.resizes > 0 ? [`r${cfg.nodes + 1}`] : [];
  return [...ids, ...(cfg.twins > 0 ? [ids.at(-1)!] : []), ...(cfg.otherLists ? [STRANGER] : []), ...further];
}

/** Servers with an index below this one are interchangeable. */
export function interchangeable(cfg: ModelConfig): number {
  return cfg.twins > 0 || cfg.otherLists ? cfg.nodes - 1 : cfg.nodes;
}

const lists = new WeakMap<ModelConfig, readonly NodeList[]>();

/**
 * The lists that a new term may have. Its process may talk to the twin, may have a stranger in its list, or may name
 * the last node only.
 */
export function listsOf(cfg: ModelConfig): readonly NodeList[] {
  let known = lists.get(cfg);
  if (!known) {
    const ids = memberIds(cfg);
    const servers = ids.map((_, n) => n);
    const last = cfg.nodes - 1;
    // An id that the configuration does not name is a stranger to the term.
    const all = cfg.resizes > 0 ? serverIds(cfg) : ids;
    known = [{ ids: all, servers: all.map((_, n) => n) }];
    if (cfg.twins > 0) known = [...known, { ids, servers: [...servers.slice(0, last), cfg.nodes] }];
    if (cfg.otherLists)
      known = [
        ...known,
        { ids: [...ids, STRANGER], servers: [...servers, serverIds(cfg).length - 1] },
        { ids: [ids[last]!], servers: [last] },
      ];
    if (cfg.variation === 'joint-claim') known = [...known, known[0]!];
    lists.set(cfg, known);
  }
  return known;
}

export function isAdmitted(s: MemoryNodeState, mutant: Mutant = {}): boolean {
  if (s.record === null || s.record.pending !== '') return false;
  return s.record.run === s.runId || (mutant.oldRunOnly === true && sameServerRun(s.record.run, s.runId));
}

export function firstText(cfg: ModelConfig): string {
  if (!cfg.configured) return '';
  return configurationText(
    firstConfiguration(memberIds(cfg).map((id) => ({ id, memory: 'boot', url: `redis://${id}` }))),
  );
}

/** A small number for a version. 0: no configuration, or the one that the bootstrap made. */
export function versionCode(configuration: Configuration | null): number {
  return configuration === null ? 0 : configuration.version.epoch * 16 + configuration.version.turn;
}

export function isEarlier(one: Configuration | null, other: Configuration | null): boolean {
  return other !== null && (one === null || compareVersions(one.version, other.version) < 0);
}

/** What a process may know when it begins a term, and the votes that its pre-vote then gets. */
export interface Knowledge {
  list: number;
  /** The configuration is the n-th newest of those on the servers. */
  nth: number;
  configuration: Configuration | null;
  quorum: number;
  votes: { node: number; epoch: Epoch }[];
}

/**
 * A process may have probed any of the servers at any time. So it may begin with each configuration that a server
 * knows. It gets the votes of the nodes that know no later one: a node with a later configuration would teach it that
 * one.
 */
export function knowledgeOf(cfg: ModelConfig, servers: readonly { s: MemoryNodeState }[]): Knowledge[] {
  const found: Knowledge[] = [];
  configurationsOn(servers).forEach((configuration, nth) => {
    listsOf(cfg).forEach(({ ids, servers: at }, list) => {
      const own = countedBy(cfg, configuration, list);
      const votes = ids.flatMap((id, node) => {
        const { s } = servers[at[node]!]!;
        if (!isAdmitted(s, cfg.mutant) && !cfg.mutant.noAdmissionCheck) return [];
        const vote = { node, epoch: s.epoch ?? 0 };
        if (own === null) return [vote];
        const named = memoryNamed(own, id);
        const counts = cfg.variation === 'any-memory' ? memberOf(own, id) !== undefined : named !== '';
        const right = cfg.variation === 'any-memory' || named === s.record?.incarnation;
        return counts && right && !isEarlier(own, parseConfiguration(s.record?.config ?? '')) ? [vote] : [];
      });
      const quorum = own === null ? quorumOf(cfg.nodes) : quorumFor(own);
      if (votes.length >= quorum) found.push({ list, nth, configuration: own, quorum, votes });
    });
  });
  return found;
}

/** The distinct configurations on the servers, the newest first. A server that was never a node has none. */
export function configurationsOn(servers: readonly { s: MemoryNodeState }[]): (Configuration | null)[] {
  const texts = new Set<string>();
  for (const { s } of servers) if (s.record !== null) texts.add(s.record.config);
  return [...texts]
    .map((text) => parseConfiguration(text))
    .sort((a, b) => (isEarlier(a, b) ? 1 : isEarlier(b, a) ? -1 : 0));
}

/** The configuration that a term counts by. Where that rule is broken, it is the process's own list. */
function countedBy(cfg: ModelConfig, configuration: Configuration | null, list: number): Configuration | null {
  if (cfg.variation === 'joint-claim' && configuration !== null && list === 1)
    return withoutMember(configuration, memberIds(cfg)[0]!, configuration.version);
  if (cfg.variation !== 'own-list' || configuration === null) return configuration;
  const { ids } = listsOf(cfg)[list]!;
  return {
    ...configuration,
    members: ids.map((id) => memberOf(configuration, id) ?? { id, memory: '', url: `redis://${id}` }),
  };
}
