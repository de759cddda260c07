// A recovery as text and data: what is proven, what each node will do, and the doubts.
import { EXIT } from '../../../core/errors.js';
import type { RecoveryDecision, RecoveryPlan } from '../../../core/recovery/plan.js';
import type { Result } from '../result.js';
import { saidByAll } from '../../../core/view/standstill.js';
import type { ClusterView } from '../../../core/view/cluster-view.js';

type NotNeeded = Extract<RecoveryDecision, { outcome: 'not-needed' }>;

export function planLines(plan: RecoveryPlan): string[] {
  const { chain, top, cluster, nodes, stores, doubts } = plan;
  return [
    `longest provable chain: blocks ${chain.floor + 1} to ${top.height}, head ${top.hash.slice(0, 16)}`,
    ...nodes.map((node) => `  ${node.id}  ${node.action.padEnd(8)}  ${node.finding}`),
    ...stores.map((store) => `  store of ${store.id}  ${store.finding}`),
    ...(doubts.length === 0
      ? ['every node answers, heads and epochs explain each other, no store is ahead: nothing is lost']
      : ['what may be lost, or is not explained:', ...doubts.map((doubt) => `  - ${doubt}`)]),
    `the cluster goes on as ${cluster}, epochs above ${plan.epoch}; running sequencers of the old ` +
      'generation stop and have to be started again',
  ];
}

export function recoverResult(
  plan: RecoveryPlan,
  done: 'planned' | 'recovered',
  next: string[],
  warnings: string[] = [],
): Result {
  const { chain, top, cluster, epoch, nodes, stores, doubts, digest } = plan;
  return {
    data: {
      result: done,
      cluster,
      epoch,
      head: top.height,
      hash: top.hash,
      floor: chain.floor,
      digest,
      doubts,
      warnings,
      nodes: nodes.map(({ id, url, action, finding }) => ({ id, url, action, finding })),
      stores,
    },
    facts: [
      [done === 'planned' ? 'would become' : 'recovered', `cluster ${cluster}, above epoch ${epoch}`],
      ['chain', `blocks ${chain.floor + 1} to ${top.height}, head ${top.hash.slice(0, 16)}`],
      ['plan', digest],
      [
        'evidence',
        doubts.length === 0
          ? 'every node answers, heads and epochs explain each other, no store is ahead'
          : `${doubts.length} ${doubts.length === 1 ? 'doubt' : 'doubts'}`,
      ],
    ],
    tables: [
      {
        title: 'nodes',
        columns: [{ key: 'node' }, { key: 'action' }, { key: 'finding' }, { key: 'url', wide: true }],
        rows: nodes.map((node) => ({ node: node.id, action: node.action, finding: node.finding, url: node.url })),
      },
      ...(stores.length === 0
        ? []
        : [
            {
              title: 'stores',
              columns: [{ key: 'store' }, { key: 'finding' }, { key: 'url', wide: true }],
              rows: stores.map(({ id, finding, url }) => ({ store: id, finding, url })),
            },
          ]),
      ...(doubts.length === 0
        ? []
        : [
            {
              title: 'what may be lost, or is not explained',
              columns: [{ key: 'doubt' }],
              rows: doubts.map((doubt) => ({ doubt })),
            },
          ]),
    ],
    next,
    warnings,
    exit: EXIT.ok,
  };
}

/** `view`: a quorum is admitted, and still nothing may be committed. Then that is said, with what helps. */
export function notNeededResult(decision: NotNeeded, rejoined: string[], view: ClusterView, status: string): Result {
  const { cluster, admitted } = decision;
  const stands = saidByAll(view);
  const next = stands === null ? [status] : stands.next;
  return {
    data: {
      result: 'not-needed',
      cluster,
      admitted,
      rejoined,
      digest: '',
      doubts: [],
      nodes: [],
      stores: [],
      warnings: [],
      standstill: stands === null ? null : { reason: stands.reason, code: stands.code },
    },
    facts: [
      ['nothing to recover', `${admitted.join(', ')} are admitted to ${cluster}: a quorum`],
      ...(stands === null ? [] : [['and yet', stands.reason] as [string, string]]),
      ...(rejoined.length === 0 ? [] : [['handed to the leader', rejoined.join(', ')] as [string, string]]),
    ],
    next,
    exit: EXIT.ok,
  };
}
