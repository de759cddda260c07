// Plans a repair, carries it out and proves it (docs/PROTOCOL.md sections 6, 8, 9). When there is a leader, its term
// does the work, on a request in `seq:leader:request`. Without a leader, a term of this command does it. Nothing else
// ever writes. Success means that the nodes were read again and are in order.
import { EXIT, SeqError } from '../errors.js';
import type { Random } from '../ports.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { displaced } from '../protocol/configuration.js';
import { nodeMoved, requireExpectedOf } from '../nodes/change-all.js';
import { gatherEvidence, type EvidenceOptions, type RepairEvidence } from './evidence.js';
import { planRepair, type Hand, type RepairPlan, type RepairWish } from './plan.js';
import { repairByLeader } from './by-leader.js';
import { repairByTerm, type RepairedNode, type TermOutcome } from './by-own-term.js';

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
  const { clock, step } = options;
  step('reading what every node holds');
  const { plan, evidence } = await plannedRepair(options);
  refuseUnexpected(evidence, options);
  if (options.dryRun || plan.steps.length === 0) {
    if (!options.dryRun) refuseUndecided(plan, options);
    return { plan, done: null, after: null, warnings: [] };
  }
  const { hand } = plan;
  if (hand.by === 'nobody') throw nobodyMay(hand);
  const confirmed = await confirm(plan, evidence, options);
  const startedAt = clock.now();
  const result =
    hand.by === 'leader'
      ? await repairByLeader(confirmed.plan, options)
      : await repairByTerm(confirmed.plan, confirmed.evidence, options);
  const ms = Math.round(clock.now() - startedAt);
  const done = result.nodes.filter((node) => node.done).map((node) => node.node);
  options.changing('some', done);

  step('reading every node again');
  const after = (await plannedRepair({ ...options, choose: [] })).plan;
  const by = hand.by === 'leader' ? hand.leader.id : result.owner;
  const unfinished = unfinishedWork(plan, result, after);
  const outcome =
    unfinished.length === 0
      ? `repaired by ${by} under epoch ${result.epoch}`
      : `not finished: ${unfinished.join('; ')}`;
  const warning = await recordRepair(plan, result, outcome, options);
  if (unfinished.length > 0)
    throw new SeqError({
      code: 'REPAIR_UNFINISHED',
      exit: EXIT.partial,
      message: `${done.length} of ${result.nodes.length} nodes are repaired; ${outcome}`,
      why: 'what was written is whole, and no node is worse than before',
      changed: done.length > 0 ? 'some' : 'unknown',
      changedNodes: done,
      next: [`seq repair plan ${options.target}`.trim()],
      retryable: true,
    });
  const blocks = result.nodes.reduce((sum, node) => sum + node.blocks, 0);
  return {
    plan,
    done: { by, epoch: result.epoch, nodes: result.nodes, blocks, ms },
    after,
    warnings: warning === '' ? [] : [warning],
  };
}

/** The operator took time to confirm. The confirmed plan must still be the plan. */
async function confirm(
  plan: RepairPlan,
  evidence: RepairEvidence,
  options: RepairOptions,
): Promise<{ plan: RepairPlan; evidence: RepairEvidence }> {
  const askedAt = options.clock.now();
  await options.confirm(plan);
  return options.clock.now() - askedAt > 1000 ? reread(plan, options) : { plan, evidence };
}

/** What the repair left undone, by its own answer and by what the nodes showed afterwards. Empty: it succeeded. */
function unfinishedWork(plan: RepairPlan, result: TermOutcome, after: RepairPlan): string[] {
  const left = after.steps.filter((one) => plan.steps.some((planned) => planned.node === one.node));
  return [
    ...result.nodes.filter((node) => !node.done).map((node) => `${node.node}: ${node.why}`),
    ...left.map((one) => `${one.node}: ${one.kind} is still needed`),
  ];
}

/** Writes the audit record. Returns the warning when a node did not take it, '' otherwise. */
function recordRepair(plan: RepairPlan, result: TermOutcome, outcome: string, options: RepairOptions): Promise<string> {
  const removed = (one: RepairPlan['steps'][number]): string => (one.removes === '' ? '' : `; ${one.removes}`);
  const before = plan.steps.map((one) => `${one.node} ${one.kind} ${one.from}-${one.to}: ${one.why}${removed(one)}`);
  const chosen = plan.chosen.map((one) => `${one.height}:${one.hash}`).join(', ');
  return recordChange(
    options.nodes,
    {
      what: 'repair',
      reason: options.reason,
      plan: plan.digest,
      outcome: outcome.slice(0, 1000),
      epoch: String(result.epoch),
      before: before.join('\n').slice(0, 4000),
      after: `height ${result.height} ${result.hash}${chosen === '' ? '' : `; chosen ${chosen}`}`,
    },
    options.operator,
    options.clock,
    options.limitMs,
  );
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
  const epoch =
    view.leader?.epoch ??
    Math.max(0, ...view.nodes.flatMap((node) => (node.admitted && node.epoch !== null ? [node.epoch] : [])));
  requireExpectedOf({ leader: view.leader?.id ?? '', epoch }, expect, [`seq repair plan ${target}`.trim()]);
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
