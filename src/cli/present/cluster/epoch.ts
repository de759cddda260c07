// Epochs of the nodes → Result. Pure. The names in `data` are a contract (schemas/epoch.show.json,
// schemas/epoch.heal.json).
import type { HealDone, HealPlan } from '../../../core/operate/epoch.js';
import { MAX_EPOCH_LEAP } from '../../../core/protocol/types.js';
import { deleteEpoch, type EpochView } from '../../../core/view/epochs.js';
import type { Result, Table } from '../result.js';
import { saidByAll } from '../../../core/view/standstill.js';

export function epochResult(epochs: EpochView, target: string): Result {
  const { leader, reference, rows, view } = epochs;
  const below = rows.filter((row) => row.standing === 'below').map((row) => row.id);
  const above = rows.filter((row) => row.standing === 'above').map((row) => row.id);
  const stray = rows.filter((row) => row.admitted && (row.epoch ?? 0) > reference + MAX_EPOCH_LEAP);
  const tail = target === '' ? '' : ` ${target}`;
  const known = rows.filter((row) => row.admitted).length;
  // Epochs that agree are no good news while nobody can lead.
  const stands = saidByAll(view);
  const verdict =
    stands !== null
      ? { verdict: stands.verdict, reason: stands.reason, reasonCode: stands.code }
      : known < view.quorum
        ? {
            verdict: 'UNKNOWN' as const,
            reason: `only ${known} of ${view.configured} nodes say an epoch that counts`,
            reasonCode: 'NO_QUORUM',
          }
        : stray.length > 0 && leader !== null
          ? {
              verdict: 'WARN' as const,
              reason:
                `no term has reached the epoch of ${stray.map((row) => row.id).join(', ')} (the leader's is ` +
                `${reference}): somebody wrote it by hand; delete that key, and the leader re-admits the node`,
              reasonCode: 'NODE_FENCED',
            }
          : above.length > 0 && leader !== null
            ? {
                verdict: 'WARN' as const,
                reason:
                  `the epoch of ${above.join(', ')} is above the leader's ${reference}: it refuses the leader ` +
                  'until the term is renewed',
                reasonCode: 'NODE_FENCED',
              }
            : below.length > 0
              ? {
                  verdict: 'WARN' as const,
                  reason: `the epoch of ${below.join(', ')} is below ${reference}`,
                  reasonCode: 'EPOCH_BEHIND',
                }
              : {
                  verdict: 'OK' as const,
                  reason:
                    `${known} of ${view.configured} nodes are at epoch ` +
                    `${reference}${leader === null ? ', nobody leads' : `, the epoch of ${leader.id}`}`,
                  reasonCode: 'OK',
                };
  const next =
    stands !== null
      ? stands.next
      : stray.length > 0 && leader !== null
        ? stray.map((row) => deleteEpoch(view.nodes.find((node) => node.id === row.id)?.url ?? '', target))
        : above.length > 0 && leader !== null
          ? [`seq epoch show --watch${tail}`]
          : below.length > 0
            ? [`seq epoch heal${tail}`]
            : [];
  return {
    data: {
      cluster: view.cluster,
      leader: leader === null ? null : { id: leader.id, epoch: leader.epoch },
      epoch: reference,
      nodes: rows,
      next,
    },
    verdict,
    tables: [epochTable(epochs)],
    items: rows,
    next,
    meta: { nodesAsked: view.configured, nodesAnswered: view.answered, quorum: view.quorum },
  };
}

export function healEffect(plan: HealPlan): string[] {
  return [
    ...plan.steps.map((step) => `  ${step.node}: epoch ${step.from} → ${plan.value}`),
    ...plan.skipped.map((one) => `  ${one.node}: left alone (${one.why})`),
    plan.deposes
      ? `this is above the epoch of ${plan.leader?.id ?? 'the holder of the lock'}, which will be ` +
        'refused by these nodes'
      : 'nobody loses leadership; an epoch cannot be lowered again',
    `digest ${plan.digest.slice(0, 16)}`,
  ];
}

export function healResult({ plan, nodes, warnings }: HealDone, dryRun: boolean, command: string): Result {
  const nothing = plan.steps.length === 0;
  return {
    data: {
      digest: plan.digest,
      epoch: plan.value,
      deposes: plan.deposes,
      steps: plan.steps.map((s) => ({ node: s.node, epochFrom: s.from, epochTo: plan.value })),
      skipped: plan.skipped,
      nodes,
      dryRun,
    },
    warnings,
    facts: [
      ['epoch', plan.value],
      [
        nothing ? 'nothing to do' : dryRun ? 'would raise' : 'raised',
        nothing
          ? 'no admitted node that answered is below it'
          : plan.steps.map((s) => `${s.node} from ${s.from}`).join(', '),
      ],
      ...(nothing ? [] : [['digest', plan.digest.slice(0, 16)] as [string, string]]),
    ],
    next: dryRun && !nothing ? [`${command} --confirm ${plan.digest.slice(0, 8)}`] : [],
  };
}

function epochTable({ rows }: EpochView): Table {
  return {
    columns: [
      { key: 'node' },
      { key: 'state' },
      { key: 'epoch', align: 'right' },
      { key: 'standing' },
      { key: 'claimant' },
      { key: 'holder' },
      { key: 'note', wide: true },
    ],
    rows: rows.map((row) => ({
      node: row.id,
      state: row.state,
      epoch: row.epoch ?? '?',
      standing: row.standing,
      claimant: row.claimant,
      holder: row.epoch === null ? '?' : row.holder,
      note: row.note,
    })),
  };
}
