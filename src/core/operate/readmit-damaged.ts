// Asks the leader to set aside the memory of nodes that are damaged and do not know it (docs/PROTOCOL.md section 8). It
// does so one node at a time, and waits until each counts under a new incarnation. The leader acts only while q other
// nodes can do without the node, so the request is made only then.
import type { ErrorCode } from '../error-codes.js';
import { pause } from '../nodes/pause.js';
import { EXIT, SeqError } from '../errors.js';
import { quorumOf } from '../protocol/quorum.js';
import type { NodeReply, NodeView } from '../protocol/types.js';
import { changeNodes, requireAccepted, requireExpected } from '../nodes/change-all.js';
import { inspectWithProbes } from '../view/inspect.js';
import type { OperatorChange } from './operator-change.js';
import { bounded } from '../nodes/ask-all.js';
import { failWhenRefused, type Waiting } from './refusals.js';

const EVERY_MS = 50;

export interface AskReplacementOptions extends OperatorChange<ReplacementPlan> {
  wanted: readonly string[];
  why: string;
  by: string;
  changing(): void;
}

export interface ReplacementPlan {
  nodes: { id: string; incarnation: string }[];
  leader: string;
  margin: number;
}

/** Resolves with the plan once every node has a new memory. A dry run resolves at once. */
export async function askReplacement(options: AskReplacementOptions): Promise<ReplacementPlan> {
  const { nodes, wanted, limitMs, clock, random, why, by, target, timeoutMs } = options;
  const status = `seq status ${target}`.trim();
  const { view, probes } = await inspectWithProbes({
    nodes,
    limitMs,
    clock,
    expectedCluster: options.expectedCluster,
    target,
  });
  const { leader } = view;
  requireExpected(leader, options.expect, [status]);
  if (leader === null)
    throw refusal('NO_LEADER', 'nobody leads, and only a leader sets a node aside', EXIT.precondition, [status]);
  const others = view.nodes.filter((row) => row.admitted && !wanted.includes(row.id)).length;
  const quorum = quorumOf(nodes.length);
  // Nodes are filled one after the other. A node that is repaired counts again while the next one is filled.
  const short = view.nodes.filter((row) => row.admitted).length - 1 < quorum;
  if (short)
    throw refusal(
      'QUORUM_AT_RISK',
      `without ${wanted.join(' or ')} only ${others} of the ${quorum} nodes needed would be left`,
      EXIT.safety,
      [status, `seq node admit ${target}`.trim()],
    );
  const plan: ReplacementPlan = {
    leader: leader.id,
    margin: view.margin,
    nodes: wanted.map((id) => {
      const reply = probes.find((one) => one.id === id)?.reply;
      if (reply?.outcome !== 'accepted' || reply.value.admission !== 'admitted')
        throw refusal(
          'NOT_ADMITTED',
          `${id} is not admitted: it has nothing that would have to be set aside`,
          EXIT.precondition,
          [`seq node admit --on ${id} ${target}`.trim()],
        );
      return { id, incarnation: reply.value.incarnation };
    }),
  };
  if (options.dryRun) return plan;
  await options.confirm(plan);
  for (const [at, { id, incarnation }] of plan.nodes.entries()) {
    const request = {
      id: random.hex(8),
      kind: 'admit' as const,
      to: id,
      plan: JSON.stringify({ incarnation, why }),
      by,
      reason: why,
      epoch: leader.epoch,
    };
    options.step(`asking ${leader.id} to set ${id} aside and to admit it anew`);
    options.changing();
    const changes = await changeNodes(
      nodes,
      (node) =>
        node.call(
          { script: 'request_leader', request, ttlMs: timeoutMs, expect: { leader: leader.id, epoch: leader.epoch } },
          limitMs,
        ),
      limitMs,
      clock,
    );
    requireAccepted(changes, quorum, 'the request', [status]);
    const done = plan.nodes.slice(0, at).map((node) => node.id);
    const waiting = { nodes, limitMs, clock, id: request.id, leader: leader.id, next: status, done };
    if (!(await fixedInTime(options, { id, incarnation }, waiting))) {
      await changeNodes(
        nodes,
        (node) => node.call({ script: 'clear_request', id: request.id }, limitMs),
        limitMs,
        clock,
      );
      throw new SeqError({
        code: 'REQUEST_UNANSWERED',
        exit: EXIT.outcomeUnknown,
        message: `${id} bears its old memory still, after ${timeoutMs} ms`,
        why:
          `${leader.id} sets it aside only when ${quorum} other nodes have everything and answer; the ` +
          'request was withdrawn, and the leader may have taken it before',
        changed: 'unknown',
        next: [`seq history ${target}`.trim(), status],
        retryable: true,
      });
    }
  }
  return plan;
}

/** Fails as soon as the leader refuses. */
async function fixedInTime(
  options: AskReplacementOptions,
  asked: ReplacementPlan['nodes'][number],
  waiting: Waiting,
): Promise<boolean> {
  const over = new AbortController();
  const refused = failWhenRefused(waiting, over.signal).then(() => false);
  try {
    return await Promise.race([untilFixed(options, asked, over.signal), refused]);
  } finally {
    over.abort();
  }
}

async function untilFixed(
  { nodes, limitMs, timeoutMs, clock, signal }: AskReplacementOptions,
  { id, incarnation }: ReplacementPlan['nodes'][number],
  over: AbortSignal,
): Promise<boolean> {
  const node = nodes.find((one) => one.id === id)!;
  const until = clock.now() + timeoutMs;
  do {
    const reply: NodeReply<NodeView> = await bounded(node.call({ script: 'inspect' }, limitMs), limitMs, clock);
    if (reply.outcome === 'accepted' && reply.value.admission === 'admitted' && reply.value.incarnation !== incarnation)
      return true;
    await pause(clock, EVERY_MS, over);
    signal.throwIfAborted();
  } while (clock.now() < until && !over.aborted);
  return false;
}

function refusal(
  code: ErrorCode,
  message: string,
  exit: typeof EXIT.safety | typeof EXIT.precondition,
  next: string[],
): SeqError {
  return new SeqError({
    code,
    exit,
    message,
    why: 'a node is set aside only while a quorum of others can do without it',
    changed: 'nothing',
    next,
  });
}
