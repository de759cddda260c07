// Sets and ends a hold: nobody may promote for a while (docs/PROTOCOL.md section 2). A hold is written to all nodes,
// and is valid when q nodes have it. A present leader stays. While the hold is set, nobody takes over when the leader
// fails. Success means that the hold was read back from a quorum.
import { quorumOf } from '../config.js';
import type { Clock, NodePort } from '../ports.js';
import type { Expectation } from '../protocol/types.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { ClusterView } from '../view/cluster-view.js';
import { inspectCluster } from '../view/inspect.js';
import { changeNodes, requireAccepted, type NodeChange } from '../nodes/change-all.js';

export interface HoldOptions {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  target: string;
  expectedCluster?: string;
  operator: Operator;
  reason: string;
  expect: Expectation;
  dryRun: boolean;
  changing: () => void;
  step: (doing: string) => void;
}

type Hold = ClusterView['hold'];

export interface HoldDone {
  leader: string | null;
  /** The hold that was set before. */
  before: Hold;
  /** As read back. */
  after: Hold;
  nodes: NodeChange[];
  warnings: string[];
}

export async function holdPromotion(options: HoldOptions & { forMs: number }): Promise<HoldDone> {
  const { reason, forMs, operator } = options;
  return mark(options, 'hold', `for ${forMs} ms`, (node) =>
    node.call({ script: 'set_hold', by: operator.by, reason, ttlMs: forMs, expect: options.expect }, options.limitMs),
  );
}

export async function resumePromotion(options: HoldOptions): Promise<HoldDone> {
  return mark(options, 'resume', 'no hold', (node) =>
    node.call({ script: 'clear_hold', expect: options.expect }, options.limitMs),
  );
}

async function mark(
  options: HoldOptions,
  what: 'hold' | 'resume',
  wish: string,
  call: (node: NodePort) => ReturnType<NodePort['call']>,
): Promise<HoldDone> {
  const { nodes, limitMs, clock, target, expectedCluster } = options;
  const probe = async (): Promise<ClusterView> => {
    const view = await inspectCluster({ nodes, limitMs, clock, expectedCluster, target });
    refuseNoAnswer(view);
    return view;
  };
  options.step('asking every node who leads and whether there is a hold');
  const before = await probe();
  const leader = before.leader?.id ?? null;
  if (options.dryRun) return { leader, before: before.hold, after: before.hold, nodes: [], warnings: [] };
  options.step(`${what} on every node`);
  options.changing();
  const changes = await changeNodes(nodes, call, limitMs, clock);
  const retry = target === '' ? [] : [target];
  requireAccepted(changes, quorumOf(nodes.length), `the ${what}`, [
    ['seq status', ...retry].join(' '),
    ['seq resume', ...retry].join(' '),
  ]);
  const after = await probe();
  const missing = changes
    .filter((change) => change.outcome !== 'accepted')
    .map((change) => `${change.id} did not take the ${what}: ${change.why}`);
  const outcome = after.hold === null ? 'no hold stands' : `held by ${after.hold.by} on ${after.hold.nodes} nodes`;
  const record = await recordChange(
    nodes,
    {
      what,
      reason: options.reason,
      before: before.hold === null ? 'no hold' : `held by ${before.hold.by}: ${before.hold.reason}`,
      after: wish,
      outcome,
    },
    options.operator,
    clock,
    limitMs,
  );
  return {
    leader,
    before: before.hold,
    after: after.hold,
    nodes: changes,
    warnings: [...missing, ...(record === '' ? [] : [record])],
  };
}
