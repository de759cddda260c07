// Plans a repair, carries it out and proves it (docs/PROTOCOL.md sections 6, 8, 9). When there is a leader, its term
// does the work, on a request in `seq:leader:request`. Without a leader, a term of this command does it. Nothing else
// ever writes. Success means that the nodes were read again and are in order.
import { pause } from '../nodes/pause.js';
import { EXIT, SeqError } from '../errors.js';
import type { NodePort, Random } from '../ports.js';
import { describeReplies } from '../protocol/describe.js';
import { quorumOf } from '../protocol/quorum.js';
import type { LeaderRequest, NodeReply } from '../protocol/types.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { askAll, bounded } from '../nodes/ask-all.js';
import { displaced } from '../protocol/configuration.js';
import { nodeMoved } from '../nodes/change-all.js';
import { gatherEvidence, type EvidenceOptions, type RepairEvidence } from './evidence.js';
import { planRepair, type Hand, type RepairPlan, type RepairWish } from './plan.js';
import { writeOrder } from '../sequencer/lead/repair-order.js';
import { repairByTerm, type RepairedNode } from './by-own-term.js';

export interface RepairOptions extends EvidenceOptions, RepairWish {
  random: Random;
  operator: Operator;
  reason: string;
  host: string;
  expect: { leader?: string; epoch?: number };
  dryRun: boolean;
  /** For the leader's part. */
  timeoutMs: number;
  confirm: (plan: RepairPlan) => Promise<void>;
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  unchanged: () => void;
  step: (doing: string) => void;
}

export interface Repaired {
  plan: RepairPlan;
  /** Null when there was nothing to do, or in a dry run. */
  done: { by: string; epoch: number; nodes: RepairedNode[]; blocks: number; ms: number } | null;
  /** The work that is left, read from the nodes afterwards. Null when nothing was done. */
  after: RepairPlan | null;
  warnings: string[];
}

const POLL_MS = 50;
/** A request that vanished without a record is given up after this long. Its record is written before its removal. */
const GONE_MS = 2000;
/** This many audit records are searched for the leader's answer. */
const AUDIT_READ = 50;

export async function plannedRepair(
  options: EvidenceOptions & RepairWish,
): Promise<{ plan: RepairPlan; evidence: RepairEvidence }> {
  const evidence = await gatherEvidence(options);
  const [elsewhere] = displaced(
    evidence.nodes.map(({ id, view }) => ({
      id,
      view: view && { config: view.admission === 'foreign' ? '' : view.config },
      url: options.nodes.find((node) => node.id === id)!.url,
    })),
  );
  if (elsewhere) throw nodeMoved(elsewhere, options.target);
  return { plan: planRepair(evidence, options), evidence };
}

export async function applyRepair(options: RepairOptions): Promise<Repaired> {
  const { clock, nodes, limitMs, step } = options;
  step('reading what every node holds');
  const { plan, evidence } = await plannedRepair(options);
  refuseUnexpected(evidence, options);
  if (options.dryRun || plan.steps.length === 0) {
    if (!options.dryRun) refuseUndecided(plan, options);
    return { plan, done: null, after: null, warnings: [] };
  }
  const { hand } = plan;
  if (hand.by === 'nobody') throw nobodyMay(hand);
  const askedAt = clock.now();
  await options.confirm(plan);
  // The operator took time to confirm. The confirmed plan must still be the plan.
  const fresh = clock.now() - askedAt > 1000 ? await reread(plan, options) : { plan, evidence };
  const startedAt = clock.now();
  const result =
    hand.by === 'leader'
      ? await askLeader(fresh.plan, options)
      : await repairByTerm(fresh.plan, fresh.evidence, options);
  const ms = Math.round(clock.now() - startedAt);
  options.changing(
    'some',
    result.nodes.filter((node) => node.done).map((node) => node.node),
  );
  step('reading every node again');
  const after = (await plannedRepair({ ...options, choose: [] })).plan;
  const blocks = result.nodes.reduce((sum, node) => sum + node.blocks, 0);
  const by = hand.by === 'leader' ? hand.leader.id : result.owner;
  const left = after.steps.filter((one) => plan.steps.some((planned) => planned.node === one.node));
  const outcome =
    left.length === 0 && result.nodes.every((node) => node.done)
      ? `repaired by ${by} under epoch ${result.epoch}`
      : 'not finished: ' +
        [
          ...result.nodes.filter((node) => !node.done).map((node) => `${node.node}: ${node.why}`),
          ...left.map((one) => `${one.node}: ${one.kind} is still needed`),
        ].join('; ');
  const warning = await recordChange(
    nodes,
    {
      what: 'repair',
      reason: options.reason,
      plan: plan.digest,
      outcome: outcome.slice(0, 1000),
      epoch: String(result.epoch),
      before: plan.steps
        .map(
          (one) =>
            `${one.node} ${one.kind} ${one.from}-${one.to}: ${one.why}${one.removes === '' ? '' : `; ${one.removes}`}`,
        )
        .join('\n')
        .slice(0, 4000),
      after:
        `height ${result.height} ${result.hash}` +
        (plan.chosen.length === 0
          ? ''
          : `; chosen ${plan.chosen.map((one) => `${one.height}:${one.hash}`).join(', ')}`),
    },
    options.operator,
    clock,
    limitMs,
  );
  const repaired: Repaired = {
    plan,
    done: { by, epoch: result.epoch, nodes: result.nodes, blocks, ms },
    after,
    warnings: warning === '' ? [] : [warning],
  };
  if (left.length > 0 || result.nodes.some((node) => !node.done)) {
    const done = result.nodes.filter((node) => node.done).map((node) => node.node);
    throw new SeqError({
      code: 'REPAIR_UNFINISHED',
      exit: EXIT.partial,
      message: `${done.length} of ${result.nodes.length} nodes are repaired; ${outcome}`,
      why: 'what was written is whole, and no node is worse than before',
      changed: 'some',
      changedNodes: done,
      next: [`seq repair plan ${options.target}`.trim()],
      retryable: true,
    });
  }
  return repaired;
}

/** Why nobody may write now. Some causes end by themselves, so a retry helps. The others need an operator. */
export function nobodyMay(hand: Extract<Hand, { by: 'nobody' }>): SeqError {
  return new SeqError({
    code: hand.code,
    exit:
      hand.code === 'NO_QUORUM' || hand.code === 'LEADER_UNKNOWN'
        ? EXIT.noQuorum
        : hand.code === 'LOCKS_HELD'
          ? EXIT.tryAgain
          : EXIT.precondition,
    message: `nothing can be repaired now: ${hand.why}`,
    why: "only a term writes blocks: the leader's, or one of this command",
    changed: 'nothing',
    next: hand.next,
    retryable: hand.retryable,
  });
}

async function reread(
  plan: RepairPlan,
  options: RepairOptions,
): Promise<{ plan: RepairPlan; evidence: RepairEvidence }> {
  const again = await plannedRepair(options);
  if (again.plan.digest === plan.digest) return again;
  throw new SeqError({
    code: 'PLAN_STALE',
    exit: EXIT.precondition,
    message: `the cluster moved while you were asked: ${whatMoved(plan, again.plan)}`,
    why: 'a plan is carried out only on what it was made from',
    changed: 'nothing',
    next: [`seq repair plan ${options.target}`.trim()],
    retryable: true,
  });
}

function whatMoved(before: RepairPlan, now: RepairPlan): string {
  if (before.hand.by !== now.hand.by)
    return now.hand.by === 'leader' ? `${now.hand.leader.id} leads now` : 'the leader is gone';
  if (before.goal.hash !== now.goal.hash) return `the head is ${now.goal.height} now`;
  const steps = (plan: RepairPlan): string =>
    plan.steps.map((step) => `${step.node} ${step.kind}`).join(', ') || 'nothing to do';
  return steps(before) === steps(now) ? 'a node shows something else' : `it would be ${steps(now)} now`;
}

function refuseUnexpected({ view }: RepairEvidence, { expect, target }: RepairOptions): void {
  const is = view.leader?.id ?? '';
  const epoch =
    view.leader?.epoch ??
    Math.max(0, ...view.nodes.flatMap((node) => (node.admitted && node.epoch !== null ? [node.epoch] : [])));
  const wrong =
    expect.leader !== undefined && expect.leader !== is
      ? `${is === '' ? 'nobody' : is} leads, not ${expect.leader}`
      : expect.epoch !== undefined && expect.epoch !== epoch
        ? `the epoch is ${epoch}, not ${expect.epoch}`
        : '';
  if (wrong === '') return;
  throw new SeqError({
    code: 'EXPECTATION',
    exit: EXIT.precondition,
    message: wrong,
    why: 'the cluster is not as expected',
    changed: 'nothing',
    next: [`seq repair plan ${target}`.trim()],
  });
}

/** Nothing can be written yet, because a person has to choose first. */
function refuseUndecided(plan: RepairPlan, { target }: RepairOptions): void {
  const conflict = plan.undecidable.find((one) => one.class === 'conflict');
  if (conflict === undefined) return;
  throw new SeqError({
    code: 'CHOICE_NEEDED',
    exit: EXIT.safety,
    message:
      `${conflict.why}: ` +
      conflict.copies
        .map(
          ({ hash, epoch, owner, nodes }) =>
            `${hash.slice(0, 16)} of epoch ${epoch} by ${owner || 'nobody known'} on ${nodes.join(', ')}`,
        )
        .join('; '),
    why: 'it goes against a safety rule to choose between conflicting blocks: it needs --choose-block',
    changed: 'nothing',
    next: conflict.next.length > 0 ? conflict.next : [`seq repair plan ${target}`.trim()],
  });
}

// --- by the leader
// -------------------------------------------------------------------------------------------------------------

type LeaderResult = { epoch: number; owner: string; nodes: RepairedNode[]; height: number; hash: string };

async function askLeader(plan: RepairPlan, options: RepairOptions): Promise<LeaderResult> {
  const { nodes, limitMs, clock, step, target } = options;
  if (plan.hand.by !== 'leader')
    throw new SeqError({
      code: 'BUG',
      exit: EXIT.bug,
      message: 'the leader was asked without one',
      why: plan.hand.by,
      changed: 'nothing',
      next: [],
    });
  const { leader } = plan.hand;
  const id = options.random.hex(8);
  const before = await requestsOn(options);
  const other = before.requests.find((one) => one.kind === 'repair' && one.epoch === leader.epoch);
  if (other !== undefined) {
    throw new SeqError({
      code: 'REPAIR_UNDER_WAY',
      exit: EXIT.tryAgain,
      message: `${other.by} has asked ${leader.id} for a repair, and it is not done yet`,
      why: 'the leader carries out one repair at a time',
      changed: 'nothing',
      next: [`seq repair plan ${target}`.trim()],
      retryable: true,
    });
  }
  const order = {
    digest: plan.digest,
    limitMs: options.timeoutMs,
    chosen: plan.chosen.map(({ height, hash }) => ({ height, hash })),
    nodes: plan.steps.map((one) => ({
      id: one.node,
      replace: one.kind === 'replace',
      incarnation: one.incarnation,
      why: one.why.slice(0, 200),
    })),
  };
  const request = {
    id,
    kind: 'repair' as const,
    to: '',
    plan: writeOrder(order),
    by: options.operator.by,
    reason: options.reason,
    epoch: leader.epoch,
  };
  step(`asking ${leader.id} to repair`);
  options.changing('unknown', []);
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
  if (!replies.some(({ reply }) => reply.outcome !== 'refused')) {
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
      next: [`seq repair plan ${target}`.trim()],
      retryable: true,
    });
  }
  step(`waiting for ${leader.id} to carry it out`);
  const askedAt = clock.now();
  const outcome = await answerOf(id, options);
  if (outcome === null) {
    const withdrawn = await askAll(nodes, (node) => node.call({ script: 'clear_request', id }, limitMs), {
      limitMs,
      clock,
    });
    throw new SeqError({
      code: 'REPAIR_UNANSWERED',
      exit: EXIT.outcomeUnknown,
      message:
        `${leader.id} did not say within ${Math.round(clock.now() - askedAt)} ms what became of the ` +
        `repair${withdrawn.some((reply) => reply.outcome === 'accepted') ? '; the request was withdrawn' : ''}`,
      why: "its term ended, another operator's request took the place of this one, or it is still at work",
      changed: 'unknown',
      next: [`seq repair plan ${target}`.trim()],
      retryable: true,
    });
  }
  if (outcome.startsWith('refused')) {
    options.unchanged();
    const busy = outcome.includes('is under way');
    throw new SeqError({
      code: busy ? 'REPAIR_UNDER_WAY' : 'REPAIR_REFUSED',
      exit: busy ? EXIT.tryAgain : EXIT.precondition,
      message: `${leader.id} ${outcome}`,
      why: 'with a leader only its own term writes',
      changed: 'nothing',
      next: [`seq repair plan ${target}`.trim()],
      retryable: busy,
    });
  }
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
}: RepairOptions): Promise<{ requests: LeaderRequest[]; answered: number }> {
  const replies = await askAll(nodes, (node) => node.call({ script: 'inspect' }, limitMs), { limitMs, clock });
  const views = replies.flatMap((reply) => (reply.outcome === 'accepted' ? [reply.value] : []));
  return { requests: views.flatMap((view) => view.request ?? []), answered: views.length };
}

/** The record that the leader writes at the end of the request. Null when none came in time. */
async function answerOf(id: string, options: RepairOptions): Promise<string | null> {
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
