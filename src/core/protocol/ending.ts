// How a term ends: once, with a stable code and a sentence. Releasing the locks is the driver's job (it may have to
// outlive the state).
import { changeStanding, type NodeIndex, type Standing } from './node-progress.js';
import { compareVersions, parseConfiguration, versionText } from './configuration.js';
import type { Refused } from './types.js';
import type { StepContext } from './term-state.js';

export function end(context: StepContext, code: string, reason: string): void {
  const { state, out } = context;
  if (state.phase === 'ended') return;
  state.phase = 'ended';
  state.ended = { code, reason };
  out.push({ type: 'ended', end: state.ended });
}

/**
 * Another term changed which memories count: this one may count some that count no more (I13). A refusal that names no
 * later configuration answers a call that was late.
 */
export function endIfStale(context: StepContext, node: NodeIndex, reply: Refused): void {
  const { configuration } = context.state;
  if (reply.reason !== 'CONFIG_STALE') return;
  const theirs = parseConfiguration(reply.detail.actual ?? '');
  if (theirs === null || (configuration !== null && compareVersions(theirs.version, configuration.version) <= 0))
    return;
  end(
    context,
    'RECONFIGURED',
    `node ${node + 1} knows configuration ${versionText(theirs.version)}, this term counts by ` +
      `${configuration === null ? 'none' : versionText(configuration.version)}`,
  );
}

/** Changes where a node stands and says so once. */
export function setStanding(context: StepContext, node: NodeIndex, standing: Standing, why: string): void {
  const { out } = context;
  const progress = context.state.nodes[node]!;
  if (changeStanding(progress, standing, why)) out.push({ type: 'node', node, standing, why });
}
