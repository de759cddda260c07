// A repair by the leader (docs/PROTOCOL.md sections 6, 8, 9). The order lies in `seq:leader:request` on the nodes. The
// leader's own term carries it out and records the outcome in the audit log. This side writes no block.
import { EXIT, SeqError } from '../errors.js';
import { askAll, bounded } from '../nodes/ask-all.js';
import type { Operator } from '../nodes/audit-record.js';
import { pause } from '../nodes/pause.js';
import type { NodePort, Random } from '../ports.js';
import { describeReplies } from '../protocol/describe.js';
import { quorumOf } from '../protocol/quorum.js';
import type { LeaderRequest, NodeReply } from '../protocol/types.js';
import { writeOrder, type RepairOrder } from '../sequencer/lead/repair-order.js';
import type { TermOutcome } from './by-own-term.js';
import type { EvidenceOptions } from './evidence.js';
import type { Hand, RepairPlan } from './plan.js';

export interface LeaderRepairOptions extends EvidenceOptions {
  random: Random;
  operator: Operator;
  reason: string;
  timeoutMs: number;
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  unchanged: () => void;
  step: (doing: string) => void;
}

const POLL_MS = 50;
/** A request that vanished without a record is given up after this long. Its record is written before its removal. */
const GONE_MS = 2000;
/** This many audit records are searched for the leader's answer. */
const AUDIT_READ = 50;

/** Who is asked, in which term, and how one repair is told from another. */
interface Asked {
  leader: Extract<Hand, { by: 'leader' }>['leader'];
  /** Of the request. */
  id: string;
}

export async function repairByLeader(plan: RepairPlan, options: LeaderRepairOptions): Promise<TermOutcome> {
  if (plan.hand.by !== 'leader')
    throw new SeqError({
      code: 'BUG',
      exit: EXIT.bug,
      message: 'the leader was asked without one',
      why: plan.hand.by,
      changed: 'nothing',
      next: [],
    });
  const asked: Asked = { leader: plan.hand.leader, id: options.random.hex(8) };
  await refuseSecond(asked, options);
  options.step(`asking ${asked.leader.id} to repair`);
  options.changing('unknown', []);
  await leaveRequest(plan, asked, options);
  options.step(`waiting for ${asked.leader.id} to carry it out`);
  const askedAt = options.clock.now();
  const outcome = await answerOf(asked.id, options);
  if (outcome === null) throw await withdraw(asked, Math.round(options.clock.now() - askedAt), options);
  if (outcome.startsWith('refused')) throw refusedBy(asked, outcome, options);
  return resultOf(plan, asked, outcome);
}

/** The leader carries out one repair at a time. */
async function refuseSecond({ leader }: Asked, options: LeaderRepairOptions): Promise<void> {
  const { requests } = await requestsOn(options);
  const other = requests.find((one) => one.kind === 'repair' && one.epoch === leader.epoch);
  if (other === undefined) return;
  throw new SeqError({
    code: 'REPAIR_UNDER_WAY',
    exit: EXIT.tryAgain,
    message: `${other.by} has asked ${leader.id} for a repair, and it is not done yet`,
    why: 'the leader carries out one repair at a time',
    changed: 'nothing',
    next: [`seq repair plan ${options.target}`.trim()],
    retryable: true,
  });
}

/** Puts the request on the nodes. One node that took it, or may have taken it, is enough: the leader reads them all. */
async function leaveRequest(plan: RepairPlan, { leader, id }: Asked, options: LeaderRepairOptions): Promise<void> {
  const { nodes, limitMs, clock } = options;
  const request: LeaderRequest = {
    id,
    kind: 'repair',
    to: '',
    plan: writeOrder(orderFor(plan, options)),
    by: options.operator.by,
    reason: options.reason,
    epoch: leader.epoch,
  };
  const call = (node: NodePort): Promise<NodeReply<unknown>> =>
    node.call(
      {
        script: 'request_leader',
        request,
        ttlMs: Math.max(1, Math.round(options.timeoutMs)),
        expect: { leader: leader.id, epoch: leader.epoch },
      },
      limitMs,
    );
  const answers = await askAll(nodes, call, { limitMs, clock });
  const replies = answers.map((reply, i) => ({ node: nodes[i]!.id, reply }));
  if (replies.some(({ reply }) => reply.outcome !== 'refused')) return;
  options.unchanged();
  const moved = replies.some(({ reply }) => reply.outcome === 'refused' && reply.reason === 'EXPECTATION');
  throw new SeqError({
    code: moved ? 'EXPECTATION' : 'REQUEST_REFUSED',
    exit: moved ? EXIT.precondition : EXIT.tryAgain,
    message: `no node took the request: ${describeReplies(replies, nodes.length, 'took it')}`,
    why: moved
      ? `${leader.id} no longer leads under epoch ${leader.epoch}`
      : 'every node refused before anything was written',
    changed: 'nothing',
    next: [`seq repair plan ${options.target}`.trim()],
    retryable: true,
  });
}

function orderFor(plan: RepairPlan, { timeoutMs }: LeaderRepairOptions): RepairOrder {
  return {
    digest: plan.digest,
    limitMs: timeoutMs,
    chosen: plan.chosen.map(({ height, hash }) => ({ height, hash })),
    nodes: plan.steps.map((one) => ({
      id: one.node,
      replace: one.kind === 'replace',
      incarnation: one.incarnation,
      why: one.why.slice(0, 200),
    })),
  };
}

/** Takes a request back that the leader did not answer in time. What the leader did until now is unknown. */
async function withdraw({ leader, id }: Asked, waitedMs: number, options: LeaderRepairOptions): Promise<SeqError> {
  const { nodes, limitMs, clock, target } = options;
  const replies = await askAll(nodes, (node) => node.call({ script: 'clear_request', id }, limitMs), {
    limitMs,
    clock,
  });
  const withdrawn = replies.some((reply) => reply.outcome === 'accepted');
  return new SeqError({
    code: 'REPAIR_UNANSWERED',
    exit: EXIT.outcomeUnknown,
    message:
      `${leader.id} did not say within ${waitedMs} ms what became of the ` +
      `repair${withdrawn ? '; the request was withdrawn' : ''}`,
    why: "its term ended, another operator's request took the place of this one, or it is still at work",
    changed: 'unknown',
    next: [`seq repair plan ${target}`.trim()],
    retryable: true,
  });
}

function refusedBy({ leader }: Asked, outcome: string, options: LeaderRepairOptions): SeqError {
  options.unchanged();
  const busy = outcome.includes('is under way');
  return new SeqError({
    code: busy ? 'REPAIR_UNDER_WAY' : 'REPAIR_REFUSED',
    exit: busy ? EXIT.tryAgain : EXIT.precondition,
    message: `${leader.id} ${outcome}`,
    why: 'with a leader only its own term writes',
    changed: 'nothing',
    next: [`seq repair plan ${options.target}`.trim()],
    retryable: busy,
  });
}

function resultOf(plan: RepairPlan, { leader }: Asked, outcome: string): TermOutcome {
  const done = outcome.startsWith('done');
  const inOrder = nodesInOrder(outcome);
  return {
    epoch: leader.epoch,
    owner: leader.owner,
    height: plan.goal.height,
    hash: plan.goal.hash,
    nodes: plan.steps.map((one) => ({
      node: one.node,
      done: done || inOrder.includes(one.node),
      blocks: one.blocks,
      why: done ? '' : outcome,
    })),
  };
}

/** The nodes that `partly: r1, r2 in order; …` names (sequencer/lead/repair-order.ts). */
function nodesInOrder(outcome: string): string[] {
  return (/^partly: ([^;]*) in order/.exec(outcome)?.[1] ?? '').split(', ');
}

/** The requests that are on the nodes now, and how many nodes answered. */
async function requestsOn({
  nodes,
  limitMs,
  clock,
}: LeaderRepairOptions): Promise<{ requests: LeaderRequest[]; answered: number }> {
  const replies = await askAll(nodes, (node) => node.call({ script: 'inspect' }, limitMs), { limitMs, clock });
  const views = replies.flatMap((reply) => (reply.outcome === 'accepted' ? [reply.value] : []));
  return { requests: views.flatMap((view) => view.request ?? []), answered: views.length };
}

/** The record that the leader writes at the end of the request. Null when none came in time. */
async function answerOf(id: string, options: LeaderRepairOptions): Promise<string | null> {
  const { nodes, limitMs, clock, signal, timeoutMs } = options;
  const until = clock.now() + timeoutMs + 500;
  let goneAt: number | null = null;
  for (;;) {
    for (const node of nodes) {
      const read =
        node.readAudit === undefined ? null : await bounded(node.readAudit(AUDIT_READ, limitMs), limitMs, clock);
      const record =
        read?.outcome === 'accepted'
          ? read.value.find((one) => one['what'] === 'request' && one['id'] === id)
          : undefined;
      if (record !== undefined) return record['outcome'] ?? '';
    }
    // A request stays until its outcome is recorded. If it is gone without a record, another operator's request
    // replaced it, or it has expired. A node that does not answer proves nothing.
    const { requests, answered } = await requestsOn(options);
    if (requests.some((one) => one.id === id) || answered < quorumOf(nodes.length)) goneAt = null;
    else goneAt ??= clock.now();
    if (clock.now() >= until || (goneAt !== null && clock.now() - goneAt > GONE_MS)) return null;
    await pause(clock, POLL_MS);
    signal?.throwIfAborted();
  }
}
