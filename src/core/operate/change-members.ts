// Changes the members of a cluster by one, or its agreed settings (docs/PROTOCOL.md section 8): check everything, ask
// the leader, and wait until the nodes have noted it and a leader counts by it. What was broken off goes on from what
// the configuration says.
import { nextForServer } from '../view/no-answer.js';
import type { ErrorCode } from '../error-codes.js';
import { EXIT, SeqError } from '../errors.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { bounded } from '../nodes/ask-all.js';
import { changeNodes, requireExpected } from '../nodes/change-all.js';
import { pause } from '../nodes/pause.js';
import type { NodePort } from '../ports.js';
import {
  memberOf,
  memoryNamed,
  newest,
  parseConfiguration,
  quorumFor,
  versionText,
  type Configuration,
  type MembersChange,
} from '../protocol/configuration.js';
import { describeReply } from '../protocol/describe.js';
import { quorumOf } from '../protocol/quorum.js';
import { isDone } from '../protocol/reconfigure.js';
import { serverOf, type Height, type NodeReply, type NodeView } from '../protocol/types.js';
import type { ClusterView } from '../view/cluster-view.js';
import { inspectWithProbes } from '../view/inspect.js';
import { refuseUnfit } from './bootstrap.js';
import type { OperatorChange } from './operator-change.js';
import { Refusals } from './refusals.js';

const EVERY_MS = 50;
/** A leader may refuse because something else is under way, or may change. Then the request is made again. */
const ASK_AGAIN_MS = 1000;
/** One that took the request is asked seldom: there is one request at a time, and others may wait for their turn. */
const ASK_TAKER_AGAIN_MS = 5000;

/** What is wanted. The margin that must be left follows from the plan. */
export type WantedChange =
  | { kind: 'add'; server: NodePort }
  | { kind: 'remove'; id: string; server: NodePort | null }
  | { kind: 'set'; settings: Extract<MembersChange, { kind: 'set' }>['settings'] };

export interface ChangeMembersOptions extends OperatorChange<ChangePlan> {
  wanted: WantedChange;
  reason: string;
  operator: Operator;
  changing(state: 'unknown' | 'some', nodes: string[]): void;
}

export interface ChangePlan {
  change: MembersChange;
  /** The nodes know it already: only what follows it is left to do. */
  done: boolean;
  before: { version: string; members: string[]; quorum: number; margin: number };
  after: { members: string[]; quorum: number; margin: number };
  leader: string;
  configuration: Configuration;
}

export interface ChangeDone {
  plan: ChangePlan;
  /** Null: it was only planned. */
  made: { waitedMs: number; version: string; margin: number; retired: Retired } | null;
  warnings: string[];
}

/** What happened to the server of a removed node. 'none': no node was removed. */
export type Retired = 'none' | 'retired' | 'gone' | 'unknown';

export async function changeMembers(options: ChangeMembersOptions): Promise<ChangeDone> {
  const { clock, limitMs, timeoutMs } = options;
  options.step('probing every node');
  const plan = await planChange(options);
  if (options.dryRun) return { plan, made: null, warnings: [] };
  if (!plan.done) await options.confirm(plan);
  const startedAt = clock.now();
  options.changing('unknown', []);
  const { view, configuration } = await untilMade(options, plan, startedAt + timeoutMs);
  const retired = await retireRemoved(options);
  const version = versionText(configuration.version);
  const warning = await recordChange(
    membersOf(options, plan.change),
    {
      what: plan.change.kind === 'set' ? 'cluster set' : 'cluster resize',
      reason: options.reason,
      before: `${plan.before.members.join(', ')} (${plan.before.version})`,
      after: `${plan.after.members.join(', ')} (${version})`,
      outcome: `margin ${view.margin}`,
      plan: version,
    },
    options.operator,
    clock,
    limitMs,
  );
  return {
    plan,
    made: { waitedMs: Math.round(clock.now() - startedAt), version, margin: view.margin, retired },
    warnings: warning === '' ? [] : [warning],
  };
}

async function planChange(options: ChangeMembersOptions): Promise<ChangePlan> {
  const { nodes, wanted, expectedCluster, target } = options;
  const status = `seq status ${target}`.trim();
  const { view, configuration, replies } = await probeAll(options, nodes);
  if (!replies.some(({ reply }) => reply.outcome === 'accepted'))
    throw refused(
      'NODE_UNREACHABLE',
      'no node answered in time',
      'without an answer nobody knows who the members are',
      EXIT.noQuorum,
      [status],
    );
  if (configuration === null)
    throw refused(
      'EXPECTATION',
      'no node knows a configuration of this cluster',
      'the members are agreed by the nodes, and a change needs what they agreed before',
      EXIT.precondition,
      [status],
    );
  requireExpected(view.leader, options.expect, [status]);
  const members = configuration.members.map(({ id }) => id);
  const serving = view.margin + quorumOf(members.length);
  const next = nextMembers(members, wanted);
  const counted = wanted.kind === 'remove' && view.nodes.some((row) => row.id === wanted.id && row.admitted) ? -1 : 0;
  const left = serving + (wanted.kind === 'add' ? 1 : counted) - quorumOf(next.length);
  const change = changeOf(wanted, Math.max(0, left));
  const done = isDone(configuration, change);
  const plan: ChangePlan = {
    change,
    done,
    before: {
      version: versionText(configuration.version),
      members,
      quorum: quorumOf(members.length),
      margin: view.margin,
    },
    after: { members: next, quorum: quorumOf(next.length), margin: done ? view.margin : left },
    leader: view.leader?.id ?? '',
    configuration,
  };
  if (wanted.kind === 'add') refuseMovedMember(configuration, wanted.server, status);
  if (done) return plan;
  if (next.length === 0)
    throw refused('QUORUM_AT_RISK', 'it is the last member', 'a cluster needs a node', EXIT.safety, [status]);
  if (view.margin < 0 || left < 0)
    throw refused(
      'QUORUM_AT_RISK',
      `the margin is ${view.margin} now and would be ${left}: ${view.reason}`,
      'q of the present members and q of the next members must note the change',
      EXIT.safety,
      [status],
    );
  if (view.leader === null)
    throw refused(
      'NO_LEADER',
      'nobody leads, and only a leader changes the configuration',
      'a change needs a term whose claim quorum accepted the present configuration',
      EXIT.precondition,
      [status],
    );
  const busy = view.nodes.find((row) => row.admission === 'admitting' && memberOf(configuration, row.id));
  if (busy)
    throw refused('ONE_AT_A_TIME', `${busy.id} is being admitted`, 'nodes are changed one at a time', EXIT.safety, [
      `seq node admit --on ${busy.id} ${target}`.trim(),
    ]);
  if (wanted.kind === 'add') await refuseUnfitServer(options, wanted.server, expectedCluster, replies);
  return plan;
}

function nextMembers(members: string[], wanted: WantedChange): string[] {
  if (wanted.kind === 'set') return members;
  if (wanted.kind === 'remove') return members.filter((id) => id !== wanted.id);
  return [...new Set([...members, wanted.server.id])].sort();
}

function changeOf(wanted: WantedChange, margin: number): MembersChange {
  if (wanted.kind === 'set') return wanted;
  if (wanted.kind === 'remove') return { kind: 'remove', id: wanted.id, margin };
  return { kind: 'add', id: wanted.server.id, url: wanted.server.url, margin };
}

function refuseMovedMember(configuration: Configuration, server: NodePort, status: string): void {
  const member = memberOf(configuration, server.id);
  if (member === undefined || member.url === server.url) return;
  throw refused(
    'EXPECTATION',
    `${server.id} is a member already, at ${member.url}`,
    'an id stands for one node; a server takes the place of another one by seq node replace',
    EXIT.precondition,
    ['give the new server another id', `seq node replace --on ${server.id} --to ${server.url} --dry-run`, status],
  );
}

/** The new server must answer, be fit, and be empty, unless an earlier run of this command filled it. */
async function refuseUnfitServer(
  { limitMs, clock }: ChangeMembersOptions,
  server: NodePort,
  cluster: string,
  replies: readonly { node: NodePort; reply: NodeReply<NodeView> }[],
): Promise<void> {
  const reply = await bounded(server.call({ script: 'inspect' }, limitMs), limitMs, clock);
  if (reply.outcome !== 'accepted')
    throw new SeqError({
      code: reply.outcome === 'refused' && /^NO(AUTH|PERM)$/.test(reply.reason) ? 'NODE_DENIED' : 'NODE_UNREACHABLE',
      exit: reply.outcome === 'refused' ? EXIT.denied : EXIT.noQuorum,
      message: `the new server ${server.url}: ${describeReply(reply)}`,
      why: 'nothing is changed before the new server is known to be fit',
      changed: 'nothing',
      next: [nextForServer(server.url, reply)],
      retryable: true,
    });
  const seen = replies.flatMap(({ node, reply: its }) =>
    its.outcome === 'accepted' ? [{ port: { id: node.id, url: node.url }, view: its.value }] : [],
  );
  const own = serverOf(reply.value.runId);
  const same = seen.find(({ view }) => own !== '' && serverOf(view.runId) === own);
  if (same)
    throw refused(
      'SAME_SERVER',
      `${server.url} is the server of ${same.port.id}`,
      'one server must not count twice',
      EXIT.config,
      ['use a server of its own'],
    );
  refuseUnfit([...seen, { port: server, view: reply.value }]);
  const { admission, admissionWhy, node, cluster: its } = reply.value;
  const begun = its === cluster && node === server.id && admission !== 'foreign';
  if (admission === 'pristine' || begun) return;
  throw refused(
    'NOT_PRISTINE',
    `${server.url} is not empty: ${admission}${admissionWhy ? ` (${admissionWhy})` : ''}`,
    'what a server promised under another name must not be forgotten',
    EXIT.precondition,
    ['use an empty server, or FLUSHALL it if nothing else needs what it holds'],
  );
}

/** Asks the leader until the nodes have noted the change, and until a later term counts by it. */
async function untilMade(
  options: ChangeMembersOptions,
  plan: ChangePlan,
  until: number,
): Promise<{ view: ClusterView; configuration: Configuration }> {
  const { clock, signal, step, target } = options;
  const { change } = plan;
  let askedAt = -Infinity;
  let askedEpoch = -1;
  let told = '';
  let counting = new SameTerm('');
  const refusals = new Refusals(options);
  const next = membersOf(options, change);
  let probed = next;
  for (;;) {
    const { view, configuration, replies } = await probeAll(options, probed);
    const { leader } = view;
    const noted = configuration !== null && isNoted(configuration, change, replies);
    // The sequencers of the former producer end now. Whoever leads next counts by it.
    if (noted && change.kind === 'set' && change.settings.producer !== undefined) return { view, configuration };
    // A node that leaves is a member until the change is noted. Without it, too few may show the leader's lock.
    if (noted || leader === null) probed = noted ? next : everyNode(options, next);
    if (noted && leader !== null) {
      if (leader.epoch > configuration.version.epoch) return { view, configuration };
      const version = versionText(configuration.version);
      if (counting.version !== version) counting = new SameTerm(version);
      else if (leader.epoch === configuration.version.epoch && counting.goesOn(view, clock.now()))
        return { view, configuration };
    }
    const filled = await progressOf(options);
    const refusal = noted || filled.runs ? '' : await refusals.words();
    if (refusals.areFinal)
      throw refused(
        'REQUEST_REFUSED',
        refusal,
        'the leader alone changes the configuration, and it says the same each time',
        EXIT.precondition,
        [`seq status ${target}`.trim()],
      );
    const said = refusals.waits === '' ? filled.text : `${filled.text}; ${leader?.id} waits: ${refusals.waits}`;
    const waitsFor = leader === null && !filled.runs ? view.reason : said;
    told = noted ? 'noted; waiting for a leader that counts by it' : refusal || waitsFor;
    step(told);
    if (clock.now() >= until) break;
    const again = clock.now() - askedAt > (refusals.taken ? ASK_TAKER_AGAIN_MS : ASK_AGAIN_MS) && !filled.runs;
    if (!noted && leader !== null && (leader.epoch !== askedEpoch || again)) {
      refusals.asked(await ask(options, plan, leader), leader.id);
      askedAt = clock.now();
      askedEpoch = leader.epoch;
    }
    await pause(clock, EVERY_MS);
    signal.throwIfAborted();
  }
  throw new SeqError({
    code: 'NOT_ADMITTED_YET',
    exit: EXIT.partial,
    message: `the change is not made yet: ${told}`,
    why: 'the leader goes on with it while it leads, and the same command goes on with it',
    changed: 'some',
    changedNodes: change.kind === 'add' ? [change.id] : [],
    next: [`seq history ${target}`.trim(), `seq status ${target}`.trim()],
    retryable: true,
  });
}

/**
 * A term that changes the members does nothing afterwards. So the term that a configuration names has changed a memory
 * since, and counts by the members, when it goes on: it commits a block, or its lock outlives what was left of it. A
 * lane that rests makes no blocks. One extension may have been on its way when the change was noted, so it takes two.
 */
class SameTerm {
  private height: Height | null = null;
  private lockEndsAt: number | null = null;
  private extensions = 0;

  constructor(readonly version: string) {}

  goesOn({ committed, leader }: ClusterView, now: number): boolean {
    const height = committed?.height ?? 0;
    this.height ??= height;
    if (leader !== null && (this.lockEndsAt === null || now > this.lockEndsAt)) {
      if (this.lockEndsAt !== null) this.extensions += 1;
      this.lockEndsAt = now + leader.ttlMs;
    }
    return height > this.height || this.extensions >= 2;
  }
}

/**
 * Whether a quorum of the next members know the change. One node may know a change that was given up: a leader of a
 * later epoch counts without it then.
 */
function isNoted(
  configuration: Configuration,
  change: MembersChange,
  replies: readonly { node: NodePort; reply: NodeReply<NodeView> }[],
): boolean {
  if (!isDone(configuration, change)) return false;
  const noters = replies.filter(({ node: { id }, reply }) => {
    if (reply.outcome !== 'accepted' || reply.value.admission !== 'admitted') return false;
    const known = parseConfiguration(reply.value.config);
    return known !== null && isDone(known, change) && memoryNamed(configuration, id) === reply.value.incarnation;
  });
  return noters.length >= quorumFor(configuration);
}

async function ask(
  options: ChangeMembersOptions,
  { change }: ChangePlan,
  leader: { id: string; epoch: number },
): Promise<string> {
  const { random, operator, reason, limitMs, clock, nodes } = options;
  const request = {
    id: random.hex(8),
    kind: change.kind === 'set' ? ('set' as const) : ('resize' as const),
    to: change.kind === 'set' ? '' : change.id,
    plan: JSON.stringify(
      change.kind === 'add'
        ? { url: change.url, margin: change.margin }
        : change.kind === 'remove'
          ? { remove: true, margin: change.margin }
          : { settings: change.settings },
    ),
    by: operator.by,
    reason,
    epoch: leader.epoch,
  };
  await changeNodes(
    nodes,
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
  return request.id;
}

/** How far the new server is filled. `runs`: the leader is filling it. */
async function progressOf({ wanted, limitMs, clock }: ChangeMembersOptions): Promise<{ text: string; runs: boolean }> {
  if (wanted.kind !== 'add') return { text: 'waiting for the leader to note the change', runs: false };
  const reply = await bounded(wanted.server.call({ script: 'inspect' }, limitMs), limitMs, clock);
  if (reply.outcome !== 'accepted') return { text: `${wanted.server.id}: ${describeReply(reply)}`, runs: false };
  const { admission, head } = reply.value;
  return { text: `${wanted.server.id} is ${admission}, at height ${head}`, runs: admission === 'admitting' };
}

/** A removed server counts for nobody. Retired, it also refuses everybody who still takes it for a node. */
async function retireRemoved({
  wanted,
  limitMs,
  clock,
  step,
  expectedCluster,
}: ChangeMembersOptions): Promise<Retired> {
  if (wanted.kind !== 'remove') return 'none';
  if (wanted.server === null) return 'unknown';
  step(`retiring ${wanted.id} at ${wanted.server.url}`);
  const reply = await bounded(wanted.server.call({ script: 'inspect' }, limitMs), limitMs, clock);
  if (reply.outcome !== 'accepted') return 'gone';
  const { admission, cluster, pending, incarnation } = reply.value;
  if (cluster === `retired:${expectedCluster}`) return 'retired';
  // Another server answers at this address, or this one has lost its memory: where the removed node is, nobody knows.
  if (['foreign', 'pristine', 'wiped'].includes(admission)) return 'unknown';
  const done = await bounded(
    wanted.server.call({ script: 'retire_node', expect: pending || incarnation, movedTo: '-' }, limitMs),
    limitMs,
    clock,
  );
  return done.outcome === 'accepted' ? 'retired' : 'unknown';
}

/** The nodes that are members after the change. */
function membersOf({ nodes, wanted }: ChangeMembersOptions, change: MembersChange): NodePort[] {
  if (wanted.kind === 'add' && !nodes.some(({ id }) => id === wanted.server.id)) return [...nodes, wanted.server];
  return nodes.filter(({ id }) => change.kind !== 'remove' || id !== change.id);
}

/** The present members and the next ones. */
function everyNode({ nodes }: ChangeMembersOptions, next: readonly NodePort[]): NodePort[] {
  return [...next, ...nodes.filter((node) => !next.includes(node))];
}

async function probeAll(
  { limitMs, clock, expectedCluster, target }: ChangeMembersOptions,
  nodes: readonly NodePort[],
): Promise<{
  view: ClusterView;
  configuration: Configuration | null;
  replies: { node: NodePort; reply: NodeReply<NodeView> }[];
}> {
  const { view, probes } = await inspectWithProbes({ nodes: [...nodes], limitMs, clock, expectedCluster, target });
  const replies = probes.flatMap(({ id, reply }) => {
    const node = nodes.find((one) => one.id === id);
    return node === undefined ? [] : [{ node, reply }];
  });
  const configuration = newest(
    ...replies.map(({ reply }) =>
      reply.outcome === 'accepted' && reply.value.cluster === expectedCluster ? reply.value.config : '',
    ),
  );
  return { view, configuration, replies };
}

function refused(code: ErrorCode, message: string, why: string, exit: SeqError['exit'], next: string[]): SeqError {
  return new SeqError({ code, exit, message, why, changed: 'nothing', next });
}
