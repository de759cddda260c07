// How does a term change the set of members, or the agreed settings (docs/PROTOCOL.md section 8, I13)? A server that is
// to become a member is filled and admitted first, and counts for nothing meanwhile. Then, as the last act of the term,
// the nodes note the next configuration: q of the present members and q of the next ones. No block is proposed
// meanwhile. Then the term is renewed. So a term has one set of members for its whole life.
import {
  configurationText,
  isNextTo,
  memberOf,
  quorumFor,
  withChange,
  withoutMember,
  type Configuration,
  type MembersChange,
} from './configuration.js';
import { end, setStanding } from './ending.js';
import { claimedUnder, countsUnder, isCandidate, isChanging, nextVersionOf, nodeOpened } from './members.js';
import { candidateAdded, candidateDropped, configurationChanged, type NodeIndex } from './node-progress.js';
import type { StepContext, TermState } from './term-state.js';
import type { Epoch } from './types.js';

/** Begins a change, unless `whyNoChange` says why not. `node`: the index of the server that is added. */
export function beginChange(context: StepContext, change: MembersChange, node: NodeIndex): void {
  const { state, now } = context;
  if (whyNoChange(state, change) !== '' || (change.kind === 'add' && node > state.nodes.length)) return;
  const former = state.nodes[state.change?.candidate ?? -1];
  if (former) candidateDropped(former, now);
  state.change = { change, candidate: change.kind === 'add' ? node : -1, next: null, by: Infinity };
  if (change.kind !== 'add') return;
  if (node === state.nodes.length) nodeOpened(state, change.id);
  candidateAdded(state.nodes[node]!, now);
  setStanding(context, node, 'unclaimed', 'it is to become a member');
}

/** Why this term cannot begin a change now; '' when it can. */
export function whyNoChange(state: TermState, change: MembersChange): string {
  const { configuration, phase, stopping, nodes, settings } = state;
  if (phase !== 'leading' || stopping) return 'this leader has not committed in its own term yet, or is stopping';
  if (configuration === null) return 'no configuration is known';
  if (state.change?.next) return 'another change is under way';
  const admitting = nodes.findIndex(({ admission }, node) => admission !== null && !isCandidate(state, node));
  if (admitting >= 0) return `${settings.ids![admitting]} is being admitted, and nodes are changed one at a time`;
  if (noted(state, configuration) < quorumFor(configuration)) return 'too few nodes have noted the last change';
  if (change.kind !== 'remove') return '';
  const rest = withoutMember(configuration, change.id, configuration.version);
  const left = answering(state, rest);
  if (rest.members.length === 0) return 'it is the last member';
  const needed = quorumFor(rest) + change.margin;
  const how = change.margin === 0 ? 'needed' : `needed, by the margin of ${change.margin} that was confirmed,`;
  return left < needed ? `without ${change.id} only ${left} of the ${needed} nodes ${how} count` : '';
}

function marginOf(change: MembersChange): number {
  return change.kind === 'set' ? 0 : change.margin;
}

/** Whether this term carries out this change. */
export function isUnderWay(state: TermState, change: MembersChange): boolean {
  return state.change !== null && JSON.stringify(state.change.change) === JSON.stringify(change);
}

/**
 * Lets the nodes note the next configuration, when nothing is in flight and enough nodes are there to note it. False:
 * there is no change, or it is not ready. The term goes on then.
 */
export function noteChange(context: StepContext): boolean {
  const { state, now } = context;
  const { change, configuration } = state;
  if (!change || configuration === null || isChanging(state) || state.phase !== 'leading') return false;
  if (state.inflight || state.stopping || noted(state, configuration) < quorumFor(configuration)) return false;
  const candidate = state.nodes[change.candidate];
  if (change.change.kind === 'add' && candidate?.standing !== 'claimed') return false;
  const version = nextVersionOf(state);
  if (version === null) {
    end(context, 'RENEW', 'only a term of a higher epoch can change the configuration');
    return true;
  }
  const next = withChange(configuration, change.change, candidate?.incarnation ?? '', version);
  if (!isNextTo(configuration, next)) return false;
  if (answering(state, configuration) < quorumFor(configuration)) return false;
  if (answering(state, next) < quorumFor(next) + marginOf(change.change)) return false;
  state.change = { ...change, next, by: now + 2 * state.settings.nodeTimeoutMs };
  state.configurationFrom = state.nextId;
  state.gateUntil = Infinity;
  for (const progress of state.nodes) configurationChanged(progress);
  return true;
}

/** What a change that is under way waits for, beside the filling of a new member. '' when nothing is known. */
export function whyNotNoted(state: TermState): string {
  const { change, configuration } = state;
  const candidate = state.nodes[change?.candidate ?? -1];
  if (!change || change.next || configuration === null) return '';
  if (change.change.kind === 'add' && candidate?.standing !== 'claimed') return '';
  const next = withChange(configuration, change.change, candidate?.incarnation ?? '', configuration.version);
  const [left, needed] = [answering(state, next), quorumFor(next) + marginOf(change.change)];
  const margin =
    marginOf(change.change) === 0 ? '' : `, by the margin of ${marginOf(change.change)} that was confirmed,`;
  return left < needed ? `${needed} nodes must count${margin} and ${left} do` : '';
}

/** Ends the term once the nodes have noted the change, or too late. The renewed term counts by what is found then. */
export function endOnceNoted(context: StepContext): void {
  const { state, now } = context;
  const { change, configuration } = state;
  if (!change?.next || configuration === null) return;
  if (isNoted(state)) return end(context, 'RENEW', `${describeChange(change.change)}: configuration noted`);
  if (now >= change.by) end(context, 'RENEW', `${describeChange(change.change)}: too few nodes noted it in time`);
}

/** The configuration that q of the present members and q of the next members have noted. Null: there is none. */
export function notedChange(state: TermState): Configuration | null {
  return isNoted(state) ? state.change!.next : null;
}

/**
 * The votes for the term that counts by this configuration: the nodes that this term has claimed bear its epoch and
 * its lock. One that has not noted the configuration yet is asked, too. Otherwise its lock keeps it out for a while.
 */
export function votesUnder(state: TermState, configuration: Configuration): { node: NodeIndex; epoch: Epoch }[] {
  return state.nodes.flatMap((_, node) =>
    countsUnder(state, configuration, node) ? [{ node, epoch: state.epoch }] : [],
  );
}

function isNoted(state: TermState): boolean {
  const next = state.change?.next;
  const { configuration } = state;
  if (!next || configuration === null) return false;
  return noted(state, configuration) >= quorumFor(configuration) && noted(state, next) >= quorumFor(next);
}

/** How many nodes count under this configuration and have noted the newest one that this term made. */
function noted(state: TermState, configuration: Configuration): number {
  return claimedUnder(state, configuration, ({ unnoted }) => !unnoted);
}

/** How many nodes count under this configuration and answered their last call. */
function answering(state: TermState, configuration: Configuration): number {
  return claimedUnder(state, configuration, ({ failures }) => failures === 0);
}

function describeChange(change: MembersChange): string {
  if (change.kind === 'set') return 'the agreed settings change';
  return change.kind === 'add' ? `${change.id} becomes a member` : `${change.id} is no member any more`;
}

/** Whether this change was made already. */
export function isDone(configuration: Configuration, change: MembersChange): boolean {
  if (change.kind === 'add') return memberOf(configuration, change.id) !== undefined;
  if (change.kind === 'remove') return memberOf(configuration, change.id) === undefined;
  const { version } = configuration;
  return configurationText(configuration) === configurationText(withChange(configuration, change, '', version));
}
