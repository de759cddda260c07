// Carries a recovery out (docs/PROTOCOL.md section 8): mark every node with the next generation, fill missing blocks,
// admit, verify. Marks come first, on every node of the plan. So of two recoveries at most one goes on. Once a quorum
// is marked, no term of the old generation can commit. After an interruption the next run plans from what it finds, and
// goes on to a generation of its own.
import { EXIT, SeqError } from '../errors.js';
import type { Clock, CommittedBlock, NodePort, Random } from '../ports.js';
import { configurationText } from '../protocol/configuration.js';
import { describeReply } from '../protocol/describe.js';
import type { Block, NodeCall, NodeReply, NodeView, ReplyTo } from '../protocol/types.js';
import { bounded } from '../nodes/ask-all.js';
import type { Gathered } from './gather.js';
import { RECOVERY_NONCE, type NodePlan, type RecoveryDecision, type RecoveryPlan } from './plan.js';

const BATCH = 32;
const BATCH_BYTES = 4 * 1024 * 1024;
const KEEP_MS = 86_400_000;
/** The lock of an admission by this command. It expires if this process dies before it releases the lock. */
const LOCK_MS = 2000;
const ATTEMPTS = 3;

export interface RecoverOptions {
  /** Under the new generation, all configured nodes. */
  nodes: readonly NodePort[];
  /** The same nodes in whatever generation. Payloads are read through them. */
  readers: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  random: Random;
  command: string;
  step(doing: string): void;
  /** Called with the nodes known to be changed. */
  changed(nodes: string[]): void;
}

export async function carryOut(
  plan: RecoveryPlan,
  gathered: Gathered,
  options: RecoverOptions,
): Promise<{ admitted: string[] }> {
  const { nodes, random, step } = options;
  const owner = `recover/${random.hex(8)}`;
  const nonce = `${RECOVERY_NONCE}${random.hex(8)}`;
  const work = plan.nodes
    .filter((one) => one.action !== 'left-out')
    .map((one) => ({ one, node: nodes.find((node) => node.id === one.id) as NodePort }));
  const by = { owner, epoch: plan.epoch, nonce };
  const challenges = new Map<string, { challenge?: string }>();

  const named = new Set(work.map(({ one }) => one.id));
  const config = configurationText({
    ...plan.configuration,
    members: plan.configuration.members.map((member) => ({ ...member, memory: named.has(member.id) ? nonce : '' })),
  });

  step('marking every node with the new generation');
  await everywhere(work, options, 'marked', async ({ one, node }) => {
    const reply = await once(
      node,
      {
        script: 'recover_node',
        ...by,
        expect: one.expect,
        keep: one.action !== 'refill',
        facts: one.facts,
        keepMs: KEEP_MS,
        config,
      },
      options,
    );
    if (reply.outcome === 'accepted') challenges.set(one.id, reply.value);
    return reply;
  });

  for (const { one, node } of work) {
    if (one.action === 'keep') continue;
    step(`filling ${one.id}`);
    await fill({ one, node, by: { ...by, ...challenges.get(one.id) } }, { plan, gathered, options });
  }
  step('admitting every node');
  const { height: head, hash: headHash } = plan.top;
  await everywhere(work, options, 'admitted', async ({ one, node }): Promise<NodeReply<unknown>> => {
    const answered = challenges.get(one.id);
    const reply = await again(node, { script: 'admit', ...by, ...answered, ttlMs: LOCK_MS, head, headHash }, options);
    // After a lost reply the call is made again. The verification shows whether the first call ran.
    return reply.outcome === 'refused' && reply.reason === 'STALE_NONCE'
      ? { outcome: 'accepted', incarnation: '', value: {} }
      : reply;
  });
  await Promise.all(work.map(({ node }) => again(node, { script: 'release_lock', owner }, options)));

  step('verifying every node');
  await everywhere(work, options, 'verified', async ({ node }) => {
    const reply = await again(node, { script: 'inspect' }, options);
    if (reply.outcome !== 'accepted') return reply;
    const view: NodeView = reply.value;
    const good =
      view.admission === 'admitted' &&
      view.cluster === plan.cluster &&
      view.incarnation === nonce &&
      view.head >= head &&
      view.epoch >= plan.epoch;
    return good
      ? reply
      : {
          outcome: 'refused',
          reason: 'EXPECTATION',
          detail: { why: `it shows ${view.admission} in ${view.cluster}, head ${view.head}` },
        };
  });
  return { admitted: work.map(({ one }) => one.id) };
}

/**
 * Nodes that a finished recovery left behind are marked for the leader. The leader fills and admits them like any node
 * that lost its memory.
 */
export async function handToLeader(
  decision: Extract<RecoveryDecision, { outcome: 'not-needed' }>,
  genesis: string,
  options: RecoverOptions,
): Promise<string[]> {
  const { random, nodes } = options;
  const facts = { head: 0, headEpoch: 0, headHash: genesis, floor: 0, floorHash: genesis };
  const work = decision.rejoin.map((one) => ({ one, node: nodes.find((node) => node.id === one.id) as NodePort }));
  await everywhere(work, options, 'marked', ({ one, node }) =>
    once(
      node,
      {
        script: 'recover_node',
        owner: `recover/${random.hex(8)}`,
        nonce: `${RECOVERY_NONCE}${random.hex(8)}`,
        epoch: one.epoch,
        expect: one.expect,
        keep: false,
        facts,
        keepMs: KEEP_MS,
      },
      options,
    ),
  );
  return decision.rejoin.map((one) => one.id);
}

async function fill(
  {
    one,
    node,
    by,
  }: { one: NodePlan; node: NodePort; by: { owner: string; epoch: number; nonce: string; challenge?: string } },
  { plan, gathered, options }: { plan: RecoveryPlan; gathered: Gathered; options: RecoverOptions },
): Promise<void> {
  for (let from = one.fillFrom; from <= plan.top.height;) {
    const blocks = await blocksFrom(from, plan, gathered, options);
    const replies = await node.backfill({ ...by, ttlMs: LOCK_MS, mode: 'repair', blocks }, 10_000);
    const bad = replies.find((reply) => reply.outcome !== 'accepted');
    if (bad) throw brokenOff(options, [`${one.id} could not be filled at height ${from}: ${describeReply(bad)}`]);
    from += blocks.length;
  }
}

/** The next blocks of the chain with their payloads, checked against the plan's hashes. */
async function blocksFrom(
  from: number,
  plan: RecoveryPlan,
  gathered: Gathered,
  options: RecoverOptions,
): Promise<{ block: Block; entryEpoch: number }[]> {
  const { chain, source, top } = plan;
  const found: (Block & { epoch: number })[] = [];
  if (from >= source.storeFrom) {
    const blocks = gathered.blocks.get(source.store) as Map<number, CommittedBlock>;
    for (let height = from; height <= top.height && found.length < BATCH; height++)
      found.push(blocks.get(height) as CommittedBlock);
  } else {
    const reader = options.readers.find((node) => node.id === source.node) as NodePort;
    const read = await reader.read(
      { from, to: Math.min(top.height, source.storeFrom - 1), limit: BATCH, data: true },
      10_000,
    );
    if (read.outcome !== 'accepted')
      throw brokenOff(options, [`${source.node} could not be read: ${describeReply(read)}`]);
    for (const entry of read.value.entries) if (entry.data) found.push({ ...entry, data: entry.data });
  }
  const batch: { block: Block; entryEpoch: number }[] = [];
  let bytes = 0;
  for (const { height, hash, parent, timestamp, data, epoch } of found) {
    if (
      height !== from + batch.length ||
      hash !== chain.links[height - chain.floor - 1]?.hash ||
      (bytes > 0 && bytes + data.byteLength > BATCH_BYTES)
    )
      break;
    bytes += data.byteLength;
    batch.push({ block: { height, hash, parent, timestamp, data }, entryEpoch: epoch });
  }
  if (batch.length === 0) throw brokenOff(options, [`block ${from} is no longer where the plan found it`]);
  return batch;
}

async function everywhere<W extends { node: NodePort }>(
  work: W[],
  options: RecoverOptions,
  what: string,
  act: (each: W) => Promise<NodeReply<unknown>>,
): Promise<void> {
  const replies = await Promise.all(work.map(async (each) => ({ id: each.node.id, reply: await act(each) })));
  const failed = replies.filter(({ reply }) => reply.outcome !== 'accepted');
  const done = replies.filter(({ reply }) => reply.outcome === 'accepted').map(({ id }) => id);
  options.changed(done);
  if (failed.length > 0)
    throw brokenOff(
      options,
      failed.map(({ id, reply }) => `${id} was not ${what}: ${describeReply(reply)}`),
      what === 'marked' && done.length === 0 && failed.every(({ reply }) => reply.outcome === 'refused'),
      done,
    );
}

function once<C extends NodeCall>(node: NodePort, call: C, { limitMs, clock }: RecoverOptions): Promise<ReplyTo<C>> {
  return bounded(node.call(call, limitMs) as Promise<NodeReply<never>>, limitMs, clock) as Promise<ReplyTo<C>>;
}

/** For calls that may be repeated. */
async function again<C extends NodeCall>(node: NodePort, call: C, options: RecoverOptions): Promise<ReplyTo<C>> {
  for (let attempt = 1; ; attempt++) {
    const reply = await once(node, call, options);
    if (reply.outcome !== 'unknown' || attempt === ATTEMPTS) return reply;
  }
}

function brokenOff(options: RecoverOptions, reasons: string[], untouched = false, nodes: string[] = []): SeqError {
  if (untouched) {
    return new SeqError({
      code: 'PLAN_STALE',
      exit: EXIT.precondition,
      message: `the nodes moved since the plan was made: ${reasons.join('; ')}`,
      why: 'a plan is carried out only on what it was made from',
      changed: 'nothing',
      next: [`${options.command} --dry-run`],
      retryable: true,
    });
  }
  return new SeqError({
    code: 'RECOVERY_BROKEN_OFF',
    exit: nodes.length > 0 ? EXIT.partial : EXIT.outcomeUnknown,
    message: `the recovery stopped: ${reasons.join('; ')}`,
    why: 'no node takes part in anything before the whole chain is on a quorum; what was marked waits',
    changed: nodes.length > 0 ? 'some' : 'unknown',
    changedNodes: nodes,
    next: [`${options.command} --dry-run (goes on from here)`],
    retryable: true,
  });
}
