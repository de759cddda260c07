// Who counts for a term (docs/PROTOCOL.md section 8, I13): a claimed node, under the memory that the configuration
// names. Only a term that leads changes the configuration, one node at a time. A memory that it names anew counts only
// after q other nodes have noted the change.
import {
  compareVersions,
  configurationText,
  MAX_TURN,
  memberOf,
  withMemory,
  type Configuration,
  type Version,
} from './configuration.js';
import { setStanding } from './ending.js';
import {
  configurationChanged,
  counts,
  memoryNamed,
  newProgress,
  type NodeIndex,
  type NodeProgress,
} from './node-progress.js';
import type { StepContext, TermState } from './term-state.js';

/** The part of a claim that says who the nodes are. */
export function configurationOf(state: TermState): { config?: string } {
  const configuration = state.change?.next ?? state.configuration;
  return configuration === null ? {} : { config: configurationText(configuration) };
}

/** The number of nodes that count for this term. */
export function countingNodes(state: TermState): number {
  let count = 0;
  for (const progress of state.nodes) if (counts(progress)) count++;
  return count;
}

/** The number of nodes: those of the configuration, whatever node list this process was given. */
export function membersOf({ configuration, settings }: TermState): number {
  return configuration?.members.length ?? settings.nodes;
}

export function isMember({ configuration, settings }: TermState, node: NodeIndex): boolean {
  return configuration === null || memberOf(configuration, settings.ids![node]!) !== undefined;
}

/**
 * A member that this process was not told of is opened when it learns of it: the term may have begun by then. So may a
 * server have been opened that is no member yet.
 */
export function nodeOpened(state: TermState, id: string): void {
  const { configuration, settings, inflight, extending } = state;
  const member = memberOf(configuration, id);
  state.nodes.push(newProgress(configuration && (member?.memory ?? ''), configuration !== null && !member));
  if (settings.ids) state.settings = { ...settings, ids: [...settings.ids, id] };
  for (const asked of [inflight, extending]) if (asked) asked.ackedAt[state.nodes.length - 1] = -1;
}

/** The node is intact, but its memory does not count. */
export function anotherMemory(context: StepContext, node: NodeIndex): void {
  const { named } = context.state.nodes[node]!;
  const which = named === '' ? 'none does yet' : String(named);
  setStanding(context, node, 'unclaimed', `its memory is not the one that counts (${which})`);
}

/**
 * The next configuration: another memory of this node counts in it, or none yet (''). It is not in force before it is
 * adopted. null: this term's epoch is not above the epoch of the present configuration, or the term has made as many
 * configurations as an epoch may have. Then only a renewed term can change anything.
 */
export function nextConfiguration(
  state: TermState,
  node: NodeIndex,
  memory: string,
  url?: string,
): Configuration | null {
  const { configuration, settings } = state;
  const version = nextVersionOf(state);
  return version && withMemory(configuration!, settings.ids![node]!, memory, version, url);
}

/** The version of the next configuration of this term. Null: only a renewed term can make one. */
export function nextVersionOf(state: TermState): Version | null {
  if (state.nextTurn > MAX_TURN) return null;
  const version = { epoch: state.epoch, turn: state.nextTurn++ };
  return compareVersions(version, state.configuration!.version) <= 0 ? null : version;
}

/**
 * How many members of a configuration are claimed under the memory that it names, and meet this condition: they answer,
 * or they have noted the newest configuration of this term.
 */
export function claimedUnder(
  state: TermState,
  configuration: Configuration,
  meets: (progress: NodeProgress) => boolean,
): number {
  let count = 0;
  state.nodes.forEach((progress, node) => {
    if (countsUnder(state, configuration, node) && meets(progress)) count++;
  });
  return count;
}

/** Whether this node is claimed under the memory that the configuration names. */
export function countsUnder(state: TermState, configuration: Configuration, node: NodeIndex): boolean {
  const { standing, incarnation } = state.nodes[node]!;
  const memory = memberOf(configuration, state.settings.ids![node]!)?.memory;
  return standing === 'claimed' && !!memory && memory === incarnation;
}

/**
 * Whether a begin_admission is on its way, or the nodes are noting a change of the members. The configuration that it
 * carries is not in force yet. Until it is, the term makes no other change.
 */
export function isChanging({ configuration, nodes, change }: TermState): boolean {
  return (
    configuration !== null &&
    (!!change?.next || nodes.some(({ admission }) => admission?.begun === false && admission.configuration !== null))
  );
}

/** Whether this node is the server that is to become a member. It is filled and admitted, and counts for nothing. */
export function isCandidate({ change }: TermState, node: NodeIndex): boolean {
  return change !== null && change.candidate === node;
}

/** From now on the term counts by this configuration. The other nodes have to note it. */
export function adoptConfiguration(state: TermState, configuration: Configuration, changed: NodeIndex): void {
  state.configuration = configuration;
  state.configurationFrom = state.nextId;
  state.nodes.forEach((progress, node) => {
    memoryNamed(progress, memberOf(configuration, state.settings.ids![node]!)?.memory ?? '');
    if (node !== changed && isMember(state, node)) configurationChanged(progress);
  });
}
