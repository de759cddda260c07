// A repair as text and data: what is wrong on which node, what each step writes, what cannot be decided and why. Pure.
// The names in `data` are a contract (schemas/repair.plan.json, repair.apply.json, repair.json, repair.verify.json).
import { EXIT } from '../../../core/errors.js';
import type { RepairPlan, Undecidable } from '../../../core/repair/plan.js';
import type { Repaired } from '../../../core/repair/repair.js';
import type { Undone } from '../../../core/repair/undo.js';
import { andYet, VERDICT_RANK } from '../../../core/view/standstill.js';
import type { Result, Verdict } from '../result.js';

const SHORT = 8;

interface Told {
  verdict: Verdict;
  reason: string;
  reasonCode: string;
}

/** Streams that are in order, or can be repaired, are no good news while nothing can be committed. */
function planVerdict(plan: RepairPlan): Told {
  return withAll(streamsVerdict(plan), plan.standstill);
}

function withAll(streams: Told, said: RepairPlan['standstill']): Told {
  if (said === null || VERDICT_RANK[streams.verdict] >= VERDICT_RANK[said.verdict]) return streams;
  const repair = streams.verdict === 'OK' ? 'nothing to repair in the streams' : streams.reason;
  return { verdict: said.verdict, reason: andYet(repair, said), reasonCode: said.code };
}

function streamsVerdict({ steps, undecidable, goal }: RepairPlan): Told {
  const conflict = undecidable.find((one) => one.class === 'conflict');
  if (conflict !== undefined) return { verdict: 'CRIT', reason: conflict.why, reasonCode: 'CONFLICT' };
  const open = undecidable.length === 0 ? '' : `; ${undecidable.map((one) => one.why).join('; ')}`;
  if (steps.length > 0) {
    const nodes = [...new Set(steps.map((step) => step.node))];
    return {
      verdict: 'WARN',
      reason: `${nodes.join(', ')} ${nodes.length === 1 ? 'needs' : 'need'} repair${open}`,
      reasonCode: 'REPAIR_NEEDED',
    };
  }
  if (undecidable.length > 0)
    return {
      verdict: 'UNKNOWN',
      reason: `nothing to repair on the nodes that answered${open}`,
      reasonCode: 'UNDECIDABLE',
    };
  return {
    verdict: 'OK',
    reason: `nothing to repair: every node holds what the others hold, up to height ${goal.height}`,
    reasonCode: 'OK',
  };
}

export function planLines(plan: RepairPlan): string[] {
  return [
    `to be done by ${handText(plan)}:`,
    ...plan.steps.map(
      (step) =>
        `  ${step.node}  ${step.kind}: ${step.writes}${step.removes === '' ? '' : `; ${step.removes}`} (${step.why})`,
    ),
    ...plan.undecidable.map((one) => `  not decided: ${one.why}`),
    ...plan.chosen.map(
      (one) => `  chosen for height ${one.height}: ${one.hash.slice(0, 16)}, held by ${one.holders.join(', ')}`,
    ),
    `digest ${plan.digest.slice(0, 16)}`,
  ];
}

function handText({ hand }: RepairPlan): string {
  if (hand.by === 'leader') return `the leader ${hand.leader.id} (epoch ${hand.leader.epoch})`;
  return hand.by === 'own-term' ? 'a term of this command: nobody leads' : `nobody now: ${hand.why}`;
}

/** `data` of a plan. */
function planData(plan: RepairPlan) {
  const { digest, cluster, hand, goal, chosen, steps, undecidable } = plan;
  return {
    digest,
    cluster,
    by: hand.by,
    leader: hand.by === 'leader' ? { id: hand.leader.id, epoch: hand.leader.epoch } : null,
    why: hand.by === 'nobody' ? hand.why : '',
    goal,
    chosen,
    steps: steps.map(({ node, kind, class: of, from, to, blocks, writes, removes, why }) => ({
      node,
      kind,
      class: of,
      from: String(from),
      to: String(to),
      blocks,
      writes,
      removes,
      why,
    })),
    undecidable,
  };
}

export function planResult(plan: RepairPlan, target: string, apply: string): Result {
  const verdict = planVerdict(plan);
  const tail = target === '' ? '' : ` ${target}`;
  const next =
    plan.steps.length > 0 && plan.hand.by !== 'nobody'
      ? [`${apply} --confirm ${plan.digest.slice(0, SHORT)}`]
      : plan.hand.by === 'nobody' && plan.steps.length > 0
        ? plan.hand.next
        : [];
  return {
    data: { ...verdict, ...planData(plan) },
    verdict,
    facts: [
      ['by', handText(plan)],
      ['head', `height ${plan.goal.height} ${plan.goal.hash.slice(0, 16)}`],
      ...plan.chosen.map((one): [string, string] => [
        'chosen',
        `height ${one.height}: ${one.hash.slice(0, 16)}, held by ${one.holders.join(', ')}`,
      ]),
      ['digest', plan.digest],
    ],
    tables: [stepTable(plan), ...openTables(plan.undecidable)],
    items: plan.steps,
    next: [
      // Where nobody may write, what keeps a leader away comes first.
      ...new Set([
        ...(plan.hand.by === 'nobody' ? (plan.standstill?.next ?? []) : []),
        ...next,
        ...plan.undecidable.flatMap((one) => one.next),
        ...(plan.standstill?.next ?? []),
        ...(verdict.verdict === 'OK' ? [`seq stream verify${tail}`] : []),
      ]),
    ],
  };
}

function stepTable(plan: RepairPlan) {
  return {
    title: 'steps',
    columns: [
      { key: 'node' },
      { key: 'step' },
      { key: 'class' },
      { key: 'blocks', align: 'right' as const },
      { key: 'writes' },
      { key: 'removes', wide: true },
      { key: 'why' },
    ],
    rows: plan.steps.map((step) => ({
      node: step.node,
      step: step.kind,
      class: step.class,
      blocks: step.blocks,
      writes: step.writes,
      removes: step.removes,
      why: step.why,
    })),
  };
}

function openTables(undecidable: readonly Undecidable[]) {
  if (undecidable.length === 0) return [];
  const copies = undecidable.flatMap((one) => [
    ...one.copies.map((copy) => ({
      height: one.height,
      block: copy.hash,
      epoch: copy.epoch,
      writer: copy.owner,
      where: copy.nodes.join(', '),
    })),
    ...one.stores.map((store) => ({
      height: one.height,
      block: store.hash ?? `- (${store.why})`,
      epoch: null,
      writer: '',
      where: store.store,
    })),
  ]);
  return [
    {
      title: 'not decided',
      columns: [{ key: 'node' }, { key: 'height' }, { key: 'class' }, { key: 'why' }],
      rows: undecidable.map((one) => ({ node: one.node, height: one.height, class: one.class, why: one.why })),
    },
    ...(copies.length === 0
      ? []
      : [
          {
            title: 'evidence',
            columns: [{ key: 'height' }, { key: 'block' }, { key: 'epoch' }, { key: 'writer' }, { key: 'where' }],
            rows: copies,
          },
        ]),
  ];
}

export function repairedResult(repaired: Repaired, dryRun: boolean, target: string, command: string): Result {
  const { plan, done, after, warnings } = repaired;
  const tail = target === '' ? '' : ` ${target}`;
  if (done === null) {
    const shown = planResult(plan, target, command);
    return {
      ...shown,
      data: { ...planData(plan), ...planVerdict(plan), dryRun, done: null, left: null, warnings },
      warnings,
    };
  }
  const rate = done.ms > 0 ? Math.round((done.blocks * 1000) / done.ms) : 0;
  const open = after === null ? [] : after.undecidable;
  return {
    data: {
      ...planData(plan),
      verdict: 'OK',
      reason: 'repaired',
      reasonCode: 'OK',
      dryRun,
      done: { by: done.by, epoch: done.epoch, blocks: done.blocks, ms: done.ms, nodes: done.nodes },
      left: after === null ? null : { steps: after.steps.length, undecidable: open },
      warnings,
    },
    verdict: {
      verdict: open.length === 0 && (after?.steps.length ?? 0) === 0 ? 'OK' : 'WARN',
      reason:
        `${done.nodes.map((node) => node.node).join(', ')} repaired by ${done.by} under epoch ` +
        `${done.epoch}, read again and in order`,
      reasonCode: 'OK',
    },
    facts: [
      ['blocks', done.blocks],
      ['took', `${done.ms} ms${rate > 0 && done.blocks > 100 ? ` (${rate} blocks/s)` : ''}`],
      ['head', after === null ? '' : `height ${after.goal.height}`],
      [
        'left',
        after === null || after.steps.length === 0
          ? 'nothing'
          : after.steps.map((step) => `${step.node}: ${step.kind}`).join(', '),
      ],
    ],
    tables: [
      {
        columns: [{ key: 'node' }, { key: 'step' }, { key: 'blocks', align: 'right' }, { key: 'removed' }],
        rows: plan.steps.map((step) => ({
          node: step.node,
          step: step.kind,
          blocks: done.nodes.find((node) => node.node === step.node)?.blocks ?? 0,
          removed: step.removes,
        })),
      },
      ...openTables(open),
    ],
    next: [`seq repair verify${tail}`],
    warnings,
  };
}

/** Exit code 0 when nothing is left to repair, 1 otherwise. */
export function provenResult(plan: RepairPlan, violations: { total: number; first: string }, target: string): Result {
  // Whether the streams are repaired is one question, and the exit code answers it. The verdict is that of all verbs.
  const planned = streamsVerdict(plan);
  const proven =
    planned.verdict === 'OK' && violations.total > 0
      ? {
          verdict: 'CRIT' as const,
          reason: `${violations.total} violations: ${violations.first}`,
          reasonCode: 'VIOLATIONS',
        }
      : planned;
  const verdict = withAll(proven, plan.standstill);
  const tail = target === '' ? '' : ` ${target}`;
  return {
    data: {
      ...verdict,
      ...planData(plan),
      violations: violations.total,
      result: proven.verdict === 'OK' ? 'repaired' : 'not-repaired',
    },
    verdict,
    facts: [
      ['head', `height ${plan.goal.height} ${plan.goal.hash.slice(0, 16)}`],
      ['violations', violations.total],
    ],
    tables: plan.steps.length > 0 ? [stepTable(plan), ...openTables(plan.undecidable)] : openTables(plan.undecidable),
    next: [
      ...(plan.standstill?.next ?? []),
      ...(proven.verdict === 'OK'
        ? []
        : [`seq repair plan${tail}`, ...(violations.total > 0 ? [`seq stream verify${tail}`] : [])]),
    ],
    exit: proven.verdict === 'OK' ? EXIT.ok : EXIT.no,
  };
}

export function undoneResult(undone: Undone, dryRun: boolean, target: string, command: string): Result {
  const { last, plan, why, done, warnings } = undone;
  const tail = target === '' ? '' : ` ${target}`;
  const said =
    plan === null
      ? why
      : done === null
        ? `height ${plan.goal.height} would be ${plan.goal.hash.slice(0, 16)} again, in place of ` +
          `${last.hash.slice(0, 16)}`
        : `height ${plan.goal.height} is ${plan.goal.hash.slice(0, 16)} again under epoch ${done.epoch}`;
  return {
    data: {
      result: plan === null ? 'nothing-to-undo' : done === null ? 'planned' : 'undone',
      dryRun,
      digest: plan?.digest ?? '',
      why: said,
      done,
      repair: {
        by: last.by,
        at: last.at,
        digest: last.digest,
        before: last.before,
        outcome: last.outcome,
        head: last.height,
        hash: last.hash,
      },
      steps: plan === null ? [] : planData(plan).steps,
      warnings,
    },
    facts: [
      ['the last repair', `${last.at} by ${last.by}: ${last.outcome}`],
      [plan === null ? 'nothing to undo' : done === null ? 'would undo' : 'undone', said],
      ...(plan === null ? [] : [['digest', plan.digest] as [string, string]]),
    ],
    ...(plan === null ? {} : { tables: [stepTable(plan)] }),
    next:
      plan !== null && done === null
        ? [
            `${command}${command.includes('--replace-committed') ? '' : ' --replace-committed'} --confirm ` +
              `${plan.digest.slice(0, SHORT)}`,
          ]
        : [`seq repair verify${tail}`],
    warnings,
  };
}
