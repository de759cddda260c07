// Makes one change on several nodes: the answer of each node, and the result of all. The change is done when a quorum
// accepted it. An unknown outcome is never reported as a refusal.
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError, type ExitCode } from '../errors.js';
import type { Clock, NodePort } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import type { NodeReply } from '../protocol/types.js';
import { askAll } from './ask-all.js';

export interface NodeChange {
  id: string;
  outcome: 'accepted' | 'refused' | 'unknown' | 'skipped';
  /** The refusal word. '' when the node did not refuse. */
  refusal: string;
  /** A sentence. '' when the node accepted. */
  why: string;
}

export function changeOf(id: string, reply: NodeReply<unknown>): NodeChange {
  return {
    id,
    outcome: reply.outcome,
    refusal: reply.outcome === 'refused' ? reply.reason : '',
    why: reply.outcome === 'accepted' ? '' : describeReply(reply),
  };
}

/** Changes all nodes at once, each with its own limit. For marks that are valid once they stand on a quorum. */
export async function changeNodes(
  nodes: readonly NodePort[],
  call: (node: NodePort) => Promise<NodeReply<unknown>>,
  limitMs: number,
  clock: Clock,
): Promise<NodeChange[]> {
  const replies = await askAll(nodes, call, { limitMs, clock });
  return replies.map((reply, i) => changeOf(nodes[i]!.id, reply));
}

/** Reports that a node was replaced. The caller still names it by its earlier address. */
export function nodeMoved({ id, url, to }: { id: string; url: string; to: string }, target: string): SeqError {
  return new SeqError({
    code: 'NODE_MOVED',
    exit: EXIT.precondition,
    message: `${id} was moved to ${to}: what is at ${url} is not that node any more`,
    why: 'a node must never be two servers',
    changed: 'nothing',
    next: [`name ${id} by its new address (in the context, or --node ${id}=${to})`, `seq history ${target}`.trim()],
  });
}

/**
 * Throws when the operator expected another leader or epoch than the current one. The scripts that follow compare them
 * again.
 */
export function requireExpected(
  leader: { id: string; epoch: number } | null,
  expect: { leader?: string; epoch?: number },
  next: string[],
): void {
  requireExpectedOf({ leader: leader?.id ?? '', epoch: leader?.epoch ?? null }, expect, next);
}

/** The same where the epoch is known although nobody leads (`leader` is '' then). */
export function requireExpectedOf(
  is: { leader: string; epoch: number | null },
  expect: { leader?: string; epoch?: number },
  next: string[],
): void {
  const wrong =
    expect.leader !== undefined && expect.leader !== is.leader
      ? `${is.leader === '' ? 'nobody' : is.leader} leads, not ${expect.leader}`
      : expect.epoch !== undefined && expect.epoch !== is.epoch
        ? `the epoch is ${is.epoch ?? "nobody's"}, not ${expect.epoch}`
        : '';
  if (wrong !== '') throw unexpected(wrong, next);
}

export function unexpected(message: string, next: string[]): SeqError {
  return new SeqError({
    code: 'EXPECTATION',
    exit: EXIT.precondition,
    message,
    why: 'the cluster is not as expected',
    changed: 'nothing',
    next,
  });
}

/** Throws unless `needed` nodes accepted. `what` is a noun phrase, e.g. `the hold`. */
export function requireAccepted(changes: readonly NodeChange[], needed: number, what: string, next: string[]): void {
  const of = (outcome: NodeChange['outcome']): NodeChange[] => changes.filter((change) => change.outcome === outcome);
  const accepted = of('accepted');
  if (accepted.length >= needed) return;
  const unknown = of('unknown').length;
  const [code, exit, changed]: [ErrorCode, ExitCode, 'nothing' | 'some' | 'unknown'] =
    accepted.length > 0
      ? ['PARTIAL', EXIT.partial, 'some']
      : unknown > 0
        ? ['OUTCOME_UNKNOWN', EXIT.outcomeUnknown, 'unknown']
        : changes.some((change) => change.refusal === 'EXPECTATION')
          ? ['EXPECTATION', EXIT.precondition, 'nothing']
          : ['CHANGE_REFUSED', EXIT.precondition, 'nothing'];
  throw new SeqError({
    code,
    exit,
    changed,
    changedNodes: accepted.map((change) => change.id),
    next,
    retryable: code !== 'EXPECTATION',
    message: `${what}: ${accepted.length} of ${changes.length} nodes took it, ${needed} are needed: ${changes
      .filter((c) => c.outcome !== 'accepted')
      .map((c) => `${c.id}: ${c.why}`)
      .join('; ')}`,
    why:
      changed === 'nothing'
        ? 'every node refused before anything was written'
        : changed === 'some'
          ? 'it does not hold before a quorum has it'
          : 'no node said whether it took it',
  });
}
