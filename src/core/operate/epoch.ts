// Compares the fencing epoch of every node with the leader's, and raises those that lag (docs/PROTOCOL.md sections 2, 3
// and 4: raise_epoch). An epoch never falls (I3). To raise it to the leader's own epoch is harmless. To raise it above
// deposes the leader, so the operator must ask for that explicitly, and the node itself checks it (WOULD_DEPOSE).
import { createHash } from 'node:crypto';
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort } from '../ports.js';
import type { Epoch } from '../protocol/types.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { epochsOf, type EpochView } from '../view/epochs.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { LeaderRow } from '../view/cluster-view.js';
import { inspectWithProbes } from '../view/inspect.js';
import { bounded } from '../nodes/ask-all.js';
import { changeOf, requireExpectedOf, type NodeChange } from '../nodes/change-all.js';

export interface EpochProbeOptions {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  target: string;
  expectedCluster?: string;
}

export async function readEpochs(options: EpochProbeOptions): Promise<EpochView> {
  const { view, probes } = await inspectWithProbes(options);
  refuseNoAnswer(view);
  return epochsOf(view, probes);
}

export interface HealPlan {
  digest: string;
  value: Epoch;
  /** The leader whose epoch it is, or null. */
  leader: LeaderRow | null;
  /** It is above the epoch of a leader in office. */
  deposes: boolean;
  steps: { node: string; from: Epoch }[];
  skipped: { node: string; why: string }[];
}

/** Pure. `to`: a value asked for; otherwise the leader's epoch, or the highest one where nobody leads. */
function planHeal(epochs: EpochView, to: Epoch | undefined): HealPlan {
  const { leader, reference, rows, view } = epochs;
  if (leader === null && !view.leaderKnown && to === undefined) {
    throw new SeqError({
      code: 'LEADER_UNKNOWN',
      exit: EXIT.noQuorum,
      message: `to which epoch the nodes should be raised cannot be told: ${view.reason}`,
      why: 'a node that did not answer may hold the lock of a leader',
      changed: 'nothing',
      next: view.next,
      retryable: true,
    });
  }
  const value = to ?? reference;
  const steps = rows.flatMap((row) =>
    row.admitted && row.epoch !== null && row.epoch < value ? [{ node: row.id, from: row.epoch }] : [],
  );
  const skipped = rows.flatMap((row) => (row.admitted && row.epoch !== null ? [] : [{ node: row.id, why: row.note }]));
  const deposes = steps.length > 0 && value > reference && rows.some((row) => row.holder !== null);
  const digest = createHash('sha256')
    .update(JSON.stringify([value, leader?.owner ?? '', deposes, steps]))
    .digest('hex');
  return { digest, value, leader, deposes, steps, skipped };
}

export interface HealOptions extends EpochProbeOptions {
  to?: Epoch;
  mayDepose: boolean;
  reason: string;
  operator: Operator;
  dryRun: boolean;
  confirm: (plan: HealPlan) => Promise<void>;
  expect: { leader?: string; epoch?: Epoch };
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  step: (doing: string) => void;
}

export interface HealDone {
  plan: HealPlan;
  nodes: NodeChange[];
  warnings: string[];
}

/** Raises one node after the other. A failure does not stop it. The result says what happened on each node. */
export async function healEpochs(options: HealOptions): Promise<HealDone> {
  options.step('reading the epoch of every node');
  const epochs = await readEpochs(options);
  refuseUnexpected(epochs, options);
  const plan = planHeal(epochs, options.to);
  if (options.dryRun || plan.steps.length === 0) return { plan, nodes: [], warnings: [] };
  await options.confirm(plan);
  const changes: NodeChange[] = [];
  for (const { node: id } of plan.steps) {
    const node = options.nodes.find((one) => one.id === id) as NodePort;
    options.step(`raising the epoch of ${id} to ${plan.value}`);
    const landed = changes.filter((change) => change.outcome === 'accepted').map((change) => change.id);
    options.changing('unknown', landed);
    const ofOwner = plan.leader !== null && !plan.deposes ? { ofOwner: plan.leader.owner } : {};
    changes.push(
      changeOf(
        id,
        await bounded(
          node.call(
            {
              script: 'raise_epoch',
              value: plan.value,
              ...ofOwner,
              highestSeen: epochs.highest,
              mayDepose: plan.deposes && options.mayDepose,
            },
            options.limitMs,
          ),
          options.limitMs,
          options.clock,
        ),
      ),
    );
  }
  const after = await readEpochs(options);
  for (const change of changes) {
    // No answer came, so the outcome is open. A read of the node may settle it, because an epoch never falls.
    const now = after.rows.find((row) => row.id === change.id)?.epoch ?? null;
    if (change.outcome === 'unknown' && now !== null)
      Object.assign(
        change,
        now >= plan.value ? { outcome: 'accepted', why: '' } : { outcome: 'refused', why: `its epoch is still ${now}` },
      );
  }
  const outcome = changes
    .map((change) => `${change.id}: ${change.outcome === 'accepted' ? 'raised' : change.why}`)
    .join('; ');
  const warning = await recordChange(
    options.nodes,
    {
      what: 'epoch heal',
      reason: options.reason,
      plan: plan.digest,
      outcome,
      before: plan.steps.map((s) => `${s.node}: ${s.from}`).join(', '),
      after: `epoch ${plan.value}`,
      ...(plan.deposes && plan.leader !== null ? { epoch: String(plan.leader.epoch) } : {}),
    },
    options.operator,
    options.clock,
    options.limitMs,
  );
  failUnlessAll(changes, plan, options.target);
  return { plan, nodes: changes, warnings: warning === '' ? [] : [warning] };
}

function refuseUnexpected(epochs: EpochView, { expect, target }: HealOptions): void {
  const is = { leader: epochs.leader?.id ?? '', epoch: epochs.reference };
  requireExpectedOf(is, expect, [`seq epoch show ${target}`.trim()]);
}

function failUnlessAll(changes: readonly NodeChange[], plan: HealPlan, target: string): void {
  const failed = changes.filter((change) => change.outcome !== 'accepted');
  if (failed.length === 0) return;
  const raised = changes.filter((change) => change.outcome === 'accepted').map((change) => change.id);
  const open = failed.some((change) => change.outcome === 'unknown');
  const deposing = failed.find((change) => change.refusal === 'WOULD_DEPOSE');
  throw new SeqError({
    code:
      deposing && raised.length === 0
        ? 'WOULD_DEPOSE'
        : raised.length > 0
          ? 'PARTIAL'
          : open
            ? 'OUTCOME_UNKNOWN'
            : 'CHANGE_REFUSED',
    exit: raised.length > 0 ? EXIT.partial : open ? EXIT.outcomeUnknown : deposing ? EXIT.safety : EXIT.precondition,
    message:
      `epoch ${plan.value}: ${raised.length} of ${changes.length} nodes raised; ` +
      `${failed.map((change) => `${change.id}: ${change.why}`).join('; ')}`,
    why: open
      ? 'a node did not answer: it may have been raised'
      : deposing
        ? 'a lock appeared on the node after the plan was made'
        : 'a node refused',
    changed: open ? 'unknown' : raised.length > 0 ? 'some' : 'nothing',
    changedNodes: raised,
    retryable: true,
    next: [`seq epoch show${target === '' ? '' : ` ${target}`}`],
  });
}
