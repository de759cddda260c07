// How a term ends: once, with a stable code and a sentence. The driver releases the locks, because that may take longer
// than this state lives.
import { nodeName } from './term-state.js';
import { changeStanding, type NodeIndex, type Standing } from './node-progress.js';
import { compareVersions, parseConfiguration, versionText } from './configuration.js';
import type { Refused } from './types.js';
import type { TermEndCode } from './term-codes.js';
import type { StepContext } from './term-state.js';

export function end(context: StepContext, code: TermEndCode, reason: string): void {
  const { state, out } = context;
  if (state.phase === 'ended') return;
  state.phase = 'ended';
  state.ended = { code, reason };
  out.push({ type: 'ended', end: state.ended });
}

/**
 * Another term changed which memories count. This term may still count a memory that no longer counts (I13), so it
 * ends. A refusal that names no later configuration answers an old call, and is ignored. `learn`: the node was probed
 * just before, so that what it knows is not a stray configuration. The next term of this process may count by it.
 */
export function endIfStale(context: StepContext, node: NodeIndex, reply: Refused, learn = false): void {
  const { configuration } = context.state;
  if (reply.reason !== 'CONFIG_STALE') return;
  const theirs = parseConfiguration(reply.detail.actual ?? '');
  if (theirs === null || (configuration !== null && compareVersions(theirs.version, configuration.version) <= 0))
    return;
  end(
    context,
    'RECONFIGURED',
    `${nodeName(context.state.settings, node)} knows configuration ${versionText(theirs.version)}, ` +
      `this term counts by ${configuration === null ? 'none' : versionText(configuration.version)}`,
  );
  if (learn) context.state.ended!.learnt = theirs;
}

/** Changes a node's standing and reports the change once. */
export function setStanding(context: StepContext, node: NodeIndex, standing: Standing, why: string): void {
  const { out } = context;
  const progress = context.state.nodes[node]!;
  if (changeStanding(progress, standing, why)) out.push({ type: 'node', node, standing, why });
}
