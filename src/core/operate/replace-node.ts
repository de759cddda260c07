// Replaces the server of a node by another one (docs/PROTOCOL.md section 8): check the new server, retire the old one,
// and tell the leader the new address. Then wait until the leader has noted the new address on a quorum of other nodes
// (I13: two servers never count as one node), has filled the new server and has admitted it. It replaces one node at a
// time, and never when fewer than a quorum of other nodes count.
import { nextForServer } from '../view/no-answer.js';
import type { ErrorCode } from '../error-codes.js';
import { pause } from '../nodes/pause.js';
import { createHash } from 'node:crypto';
import { EXIT, SeqError } from '../errors.js';
import type { NodePort } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import { displaced, memberOf } from '../protocol/configuration.js';
import { quorumOf } from '../protocol/quorum.js';
import { serverOf, type NodeReply, type NodeView } from '../protocol/types.js';
import { refuseUnfit } from './bootstrap.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { changeNodes, nodeMoved, requireExpected } from '../nodes/change-all.js';
import type { ClusterView, LeaderRow, NodeProbe } from '../view/cluster-view.js';
import { inspectCluster, inspectWithProbes } from '../view/inspect.js';
import { configurationAmong } from '../view/membership.js';
import type { OperatorChange } from './operator-change.js';
import { Refusals } from './refusals.js';
import { bounded } from '../nodes/ask-all.js';

const EVERY_MS = 100;
/** The leader may refuse because it does not know yet that the old server is out. Then the request is made again. */
const ASK_AGAIN_MS = 1500;

export interface ReplaceOptions extends OperatorChange<ReplacePlan> {
  id: string;
  /** The new server, under the node's id. */
  successor: NodePort;
  /** The operator says that the old server, which does not answer, will never come back. */
  oldIsGone: boolean;
  reason: string;
  operator: Operator;
  changing(state: 'unknown' | 'some', nodes: string[]): void;
}

export interface ReplacePlan {
  digest: string;
  id: string;
  from: string;
  to: string;
  /** retire: it answers, and is told to retire for good. gone: it does not answer. done: it is retired already. */
  old: 'retire' | 'gone' | 'done';
  oldMemory: string;
  /** The new server is empty, or its admission has begun already. */
  successor: 'empty' | 'begun';
  version: string;
  leader: string;
  margin: number;
  /** The limit until the new server counts. */
  marginMeanwhile: number;
}

export interface ReplaceDone {
  plan: ReplacePlan;
  admitted: { waitedMs: number; head: number; margin: number } | null;
  warnings: string[];
}

export async function replaceNode(options: ReplaceOptions): Promise<ReplaceDone> {
  const { id, clock, limitMs, target, timeoutMs } = options;
  options.step('looking at every node and at the new server');
  const plan = await planReplace(options);
  if (options.dryRun) return { plan, admitted: null, warnings: [] };
  await options.confirm(plan);
  const startedAt = clock.now();
  options.changing('unknown', []);
  if (plan.old === 'retire') await retire(options, plan);
  options.changing('some', [id]);
  const view = await untilAdmitted(options, plan, startedAt + timeoutMs);
  const port = (node: NodePort): NodePort => (node.id === id ? options.successor : node);
  const { margin } = await inspectCluster({
    nodes: options.nodes.map(port),
    limitMs,
    clock,
    expectedCluster: options.expectedCluster,
    target,
  });
  const warning = await recordChange(
    options.nodes.map(port),
    {
      what: 'node replace',
      reason: options.reason,
      before: `${id} at ${plan.from}, memory ${plan.oldMemory || 'unknown'}`,
      after: `${id} at ${plan.to}, memory ${view.incarnation}`,
      outcome: `admitted at height ${view.head}`,
      plan: plan.digest,
    },
    options.operator,
    clock,
    limitMs,
  );
  return {
    plan,
    admitted: { waitedMs: Math.round(clock.now() - startedAt), head: view.head, margin },
    warnings: warning === '' ? [] : [warning],
  };
}

async function planReplace(options: ReplaceOptions): Promise<ReplacePlan> {
  const { nodes, id, successor, limitMs, clock, target, expectedCluster } = options;
  const status = `seq status ${target}`.trim();
  const [{ view, probes }, reply] = await Promise.all([
    inspectWithProbes({ nodes, limitMs, clock, expectedCluster, target }),
    bounded(successor.call({ script: 'inspect' }, limitMs), limitMs, clock),
  ]);
  const old = nodes.find((node) => node.id === id);
  const configuration = configurationAmong(probes, expectedCluster);
  if (old === undefined || (configuration !== null && !memberOf(configuration, id)))
    throw refused(
      'NOT_MEMBER',
      `${id} is no member of the cluster`,
      'a server takes the place of a member; a removed node has no place',
      EXIT.config,
      [status, `seq cluster resize --add ${id}=${successor.url} --dry-run ${target}`.trim()],
    );
  requireExpected(view.leader, options.expect, [status]);
  refuseMoved(options, probes);
  const leader = leaderThatAdmits(view, id, target);
  const fresh = successorView(successor, reply);
  const was = probes.find((one) => one.id === id)!.reply;
  refuseSameServer({ old, successor, was, fresh }, status);
  refuseUnfit([
    ...probes.flatMap((one) =>
      one.reply.outcome === 'accepted' && one.id !== id
        ? [{ port: { id: one.id, url: one.url }, view: one.reply.value }]
        : [],
    ),
    { port: successor, view: fresh },
  ]);
  const begun = hasBegun(fresh, id, successor.url);
  const state = oldState(was);
  if (state === 'gone' && !options.oldIsGone) throw oldIsSilent(old, was);
  const counted = view.nodes.find((row) => row.id === id)!.admitted;
  const plan = {
    id,
    from: old.url,
    to: successor.url,
    old: state,
    oldMemory: was.outcome === 'accepted' ? was.value.pending || was.value.incarnation : '',
    successor: begun ? ('begun' as const) : ('empty' as const),
    version: fresh.info['redis_version'] ?? '',
    leader: leader.id,
    margin: view.margin,
    marginMeanwhile: view.margin - (counted ? 1 : 0),
  };
  return {
    ...plan,
    digest: createHash('sha256')
      .update(JSON.stringify([plan.id, plan.from, plan.to, plan.old, plan.oldMemory, fresh.runId]))
      .digest('hex'),
  };
}

/** Another node, or this one to another address, was moved. */
function refuseMoved({ id, successor, target }: ReplaceOptions, probes: readonly NodeProbe[]): void {
  const elsewhere = displaced(
    probes.map(({ id: node, url, reply: seen }) => ({
      id: node,
      url,
      view:
        seen.outcome === 'accepted' ? { config: seen.value.admission === 'foreign' ? '' : seen.value.config } : null,
    })),
  ).find((one) => one.id !== id || one.to !== successor.url);
  if (elsewhere) throw nodeMoved(elsewhere, target);
}

/** The leader, if it can admit a node now: on a quorum of other nodes, and no other admission is under way. */
function leaderThatAdmits(view: ClusterView, id: string, target: string): LeaderRow {
  const status = `seq status ${target}`.trim();
  const quorum = quorumOf(view.nodes.length);
  const others = view.nodes.filter((row) => row.admitted && row.id !== id);
  if (others.length < quorum)
    throw refused(
      'QUORUM_AT_RISK',
      `without ${id} only ${others.length} of the ${quorum} nodes needed count: ${view.reason}`,
      'a leader must prove itself on a quorum of others before it admits a node',
      EXIT.safety,
      [status],
    );
  if (view.leader === null)
    throw refused(
      'NO_LEADER',
      'nobody leads, and only a leader fills and admits a node',
      'a new server is made a node by the leader alone',
      EXIT.precondition,
      [status],
    );
  const busy = view.nodes.find((row) => row.id !== id && row.admission === 'admitting');
  if (busy)
    throw refused('ONE_AT_A_TIME', `${busy.id} is being admitted`, 'nodes are changed one at a time', EXIT.safety, [
      `seq node admit --on ${busy.id} ${target}`.trim(),
    ]);
  return view.leader;
}

function successorView(successor: NodePort, reply: NodeReply<NodeView>): NodeView {
  if (reply.outcome === 'accepted') return reply.value;
  throw new SeqError({
    code: reply.outcome === 'refused' && /^NO(AUTH|PERM)$/.test(reply.reason) ? 'NODE_DENIED' : 'NODE_UNREACHABLE',
    exit: reply.outcome === 'refused' ? EXIT.denied : EXIT.noQuorum,
    message: `the new server ${successor.url}: ${describeReply(reply)}`,
    why: 'nothing is retired before its successor is known to be fit',
    changed: 'nothing',
    next: [nextForServer(successor.url, reply)],
    retryable: true,
  });
}

function refuseSameServer(
  { old, successor, was, fresh }: { old: NodePort; successor: NodePort; was: NodeReply<NodeView>; fresh: NodeView },
  status: string,
): void {
  const server = serverOf(fresh.runId);
  if (server === '' || was.outcome !== 'accepted' || serverOf(was.value.runId) !== server) return;
  throw refused(
    'SAME_SERVER',
    `${successor.url} and ${old.url} are the same server`,
    'a server cannot take its own place',
    EXIT.config,
    [status],
  );
}

/** Its admission has begun already. A server that holds anything else is refused. */
function hasBegun({ admission, admissionWhy, node }: NodeView, id: string, url: string): boolean {
  const begun = ['admitting', 'admitted'].includes(admission) && node === id;
  if (admission !== 'pristine' && !begun)
    throw refused(
      'NOT_PRISTINE',
      `${url} is not empty: ${admission}${admissionWhy ? ` (${admissionWhy})` : ''}`,
      'what a server promised under another name must not be forgotten',
      EXIT.precondition,
      ['use an empty server, or FLUSHALL it if nothing else needs what it holds'],
    );
  return begun;
}

function oldIsSilent(old: NodePort, was: NodeReply<NodeView>): SeqError {
  return refused(
    'OLD_SERVER_SILENT',
    `${old.id} at ${old.url} does not answer, so it cannot be retired: ${describeReply(was)}`,
    'if it came back, sequencers that still use its address would count two servers as one node',
    EXIT.safety,
    ['bring it back, or stop it for good', `then add --old-server-is-gone`],
  );
}

function oldState(reply: NodeReply<NodeView>): ReplacePlan['old'] {
  if (reply.outcome !== 'accepted') return 'gone';
  return reply.value.admission === 'foreign' ||
    reply.value.admission === 'pristine' ||
    reply.value.admission === 'wiped'
    ? 'done'
    : 'retire';
}

async function retire({ nodes, id, limitMs, clock, step, target }: ReplaceOptions, plan: ReplacePlan): Promise<void> {
  const old = nodes.find((node) => node.id === id)!;
  step(`retiring ${id} at ${plan.from}`);
  const reply = await bounded(
    old.call({ script: 'retire_node', expect: plan.oldMemory, movedTo: plan.to }, limitMs),
    limitMs,
    clock,
  );
  if (reply.outcome === 'accepted') return;
  // No answer came. A read of the node shows the outcome.
  const now = await bounded(old.call({ script: 'inspect' }, limitMs), limitMs, clock);
  if (now.outcome === 'accepted' && oldState(now) === 'done') return;
  const open = reply.outcome === 'unknown';
  throw new SeqError({
    code: open ? 'OUTCOME_UNKNOWN' : 'EXPECTATION',
    exit: open ? EXIT.outcomeUnknown : EXIT.precondition,
    message: `${id} at ${plan.from} was not retired: ${describeReply(reply)}`,
    why: open ? 'it did not say whether it took the call' : 'it is no longer what the plan was made from',
    changed: open ? 'unknown' : 'nothing',
    next: [`seq node list ${target}`.trim()],
    retryable: true,
  });
}

/**
 * Asks the leader until the new server counts: it is admitted, and the *present* leader writes to it. It asks again
 * when the leader changes, or when the request was too early. A sequencer that was started with the old address may
 * become leader before anybody tells it the new one. Without a request it would go on without that node for ever.
 */
async function untilAdmitted(options: ReplaceOptions, plan: ReplacePlan, until: number): Promise<NodeView> {
  const { nodes, id, successor, limitMs, clock, random, signal, target, expectedCluster, operator, reason } = options;
  const others = nodes.filter((node) => node.id !== id);
  const refusals = new Refusals({ nodes: others, limitMs, clock });
  let asked = -Infinity;
  let told = '';
  let seen = '';
  let stillSince = clock.now();
  for (;;) {
    const reply = await bounded(successor.call({ script: 'inspect' }, limitMs), limitMs, clock);
    const view = reply.outcome === 'accepted' ? reply.value : null;
    const admitted = view?.admission === 'admitted';
    const now = view === null ? '' : `${view.pending} ${view.head}`;
    if (now !== seen) [seen, stillSince] = [now, clock.now()];
    // The admission has not begun, or it has stopped. The leader that began it is gone, and the present leader may not
    // know the new address.
    const ask =
      view !== null &&
      clock.now() - asked > ASK_AGAIN_MS &&
      (view.admission !== 'admitting' || clock.now() - stillSince > ASK_AGAIN_MS);
    // Once the new server is admitted, its lock is one of those that show who leads.
    const present = admitted ? [...others, successor] : nodes;
    const leader =
      admitted || ask
        ? (await inspectWithProbes({ nodes: present, limitMs, clock, expectedCluster, target })).view.leader
        : null;
    if (admitted && leader !== null && view.lock?.owner === leader.owner && view.epoch === leader.epoch) return view;
    told =
      view === null
        ? describeReply(reply)
        : `${view.admission}, height ${view.head}${admitted ? ', not written to by who leads now' : ''}`;
    const refusal = view?.admission === 'pristine' ? await refusals.words() : '';
    if (refusal !== '') told += `; ${refusal}`;
    options.step(`waiting for the leader to fill and admit ${plan.to}: ${told}`);
    if (clock.now() >= until) break;
    if (ask && leader !== null) {
      const request = {
        id: random.hex(8),
        kind: 'replace' as const,
        to: id,
        plan: JSON.stringify({ url: plan.to }),
        by: operator.by,
        reason,
        epoch: leader.epoch,
      };
      await changeNodes(
        others,
        (node) =>
          node.call(
            {
              script: 'request_leader',
              request,
              ttlMs: ASK_AGAIN_MS,
              expect: { leader: leader.id, epoch: leader.epoch },
            },
            limitMs,
          ),
        limitMs,
        clock,
      );
      refusals.asked(request.id, leader.id);
      asked = clock.now();
    }
    await pause(clock, EVERY_MS);
    signal.throwIfAborted();
  }
  throw new SeqError({
    code: 'NOT_ADMITTED_YET',
    exit: EXIT.partial,
    message: `${plan.to} does not count as ${id} yet: ${told}`,
    why:
      'the old server is out; the leader goes on filling the new one if it took the request, and the ' +
      'same command goes on with it',
    changed: 'some',
    changedNodes: [id],
    next: [`seq history ${target}`.trim(), `seq status ${target}`.trim()],
    retryable: true,
  });
}

function refused(code: ErrorCode, message: string, why: string, exit: SeqError['exit'], next: string[]): SeqError {
  return new SeqError({ code, exit, message, why, changed: 'nothing', next });
}
