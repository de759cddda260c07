// Moves leadership on purpose (docs/PROTOCOL.md sections 2, 4 and 6). It asks the leader through `seq:leader:request`,
// or deletes the lock of a leader that does not answer. It succeeds only when a successor has committed the next height
// under a higher epoch. An outcome that is not known is reported as unknown, never as done or as refused.
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort, Random } from '../ports.js';
import { describeReplies } from '../protocol/describe.js';
import { type Epoch, type Height, type NodeReply, sequencerOf } from '../protocol/types.js';
import { recordChange, type Operator } from '../nodes/audit-record.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import { inspectWithProbes } from '../view/inspect.js';
import { askAll } from '../nodes/ask-all.js';
import { failWhenRefused } from './refusals.js';
import { planStepdown, type StepdownPlan, type StepdownWish } from './stepdown-plan.js';
import { watchChain, type Succession } from './stepdown-watch.js';

export interface StepdownOptions extends StepdownWish {
  nodes: readonly NodePort[];
  limitMs: number;
  /** For the whole hand-over, from the moment the request goes out. */
  timeoutMs: number;
  clock: Clock;
  random: Random;
  signal?: AbortSignal;
  expectedCluster?: string;
  reason: string;
  operator: Operator;
  /** Delete the lock of a leader that does not answer, instead of asking it. */
  revoke: boolean;
  dryRun: boolean;
  /** Shows the plan and asks; throws when the answer is no. */
  confirm: (plan: StepdownPlan) => Promise<void>;
  changing: () => void;
  step: (doing: string) => void;
}

export interface StepdownDone {
  plan: StepdownPlan;
  /** null when it was a dry run. */
  done: (Succession & { to: string; gapBlocks: number | null }) | null;
  warnings: string[];
}

/**
 * How long a block of the old leader is waited for beyond two block times, so that the gap can be measured from its
 * arrival.
 */
const WATCH_SLACK_MS = 500;
/** After this long, the check that a leader does not write is made again. */
const STALE_MS = 1000;
/**
 * How long the chosen one alone may promote after a revoke; a leader that hands over by itself keeps one ttl for it.
 */
const HANDOVER_MS = 2000;

export async function stepDown(options: StepdownOptions): Promise<StepdownDone> {
  const { nodes, limitMs, clock, target } = options;
  options.step('asking every node who leads');
  const { view, probes } = await inspectWithProbes({
    nodes,
    limitMs,
    clock,
    expectedCluster: options.expectedCluster,
    target,
  });
  refuseNoAnswer(view);
  const plan = planStepdown(view, probes, options);
  if (options.revoke) await refuseAliveLeader(options, plan);
  if (options.dryRun) return { plan, done: null, warnings: [] };
  const askedAt = clock.now();
  await options.confirm(plan);
  // The operator took time to confirm, and the leader may have come back meanwhile.
  if (options.revoke && clock.now() - askedAt > STALE_MS) await refuseAliveLeader(options, plan);

  const watch = watchChain(nodes, limitMs, clock, { height: plan.height, epochFrom: plan.leader.epoch });
  try {
    options.step(`waiting for a block of ${plan.leader.id} to measure the gap from`);
    await Promise.race([
      watch.started,
      sleep(options, options.revoke ? WATCH_SLACK_MS : 2 * (plan.blockTimeMs ?? 1000) + WATCH_SLACK_MS),
    ]);
    const id = options.random.hex(8);
    options.step(options.revoke ? `taking the lock of ${plan.leader.id}` : `asking ${plan.leader.id} to step down`);
    options.changing();
    const sent = options.revoke ? await revokeLock(options, plan) : await sendRequest(options, plan, id);
    if (sent.landed === 0 && sent.maybe === 0) throw notTaken(options, plan, sent.replies);
    options.step(`waiting until a successor of ${plan.leader.id} has committed a block`);
    const succession = await successionOrRefusal(watch.succession, options, plan, id);
    if (succession === null) throw await explainSilence(options, plan, id, watch.height());
    return await settle(options, plan, id, succession);
  } finally {
    watch.stop();
  }
}

/** Null: neither came in time. */
async function successionOrRefusal(
  succession: Promise<Succession | null>,
  options: StepdownOptions,
  plan: StepdownPlan,
  id: string,
): Promise<Succession | null> {
  const over = new AbortController();
  const request = { id, leader: plan.leader.id, next: commandIn(options, 'seq status') };
  const refused = options.revoke
    ? []
    : [failWhenRefused({ ...options, ...request }, over.signal).then((): null => null)];
  try {
    return await Promise.race([succession, sleep(options, options.timeoutMs).then((): null => null), ...refused]);
  } finally {
    over.abort();
  }
}

// --- sending
// -------------------------------------------------------------------------------------------------------------------

interface Sent {
  landed: number;
  maybe: number;
  replies: { node: string; reply: NodeReply<unknown> }[];
}

async function sendRequest(options: StepdownOptions, plan: StepdownPlan, id: string): Promise<Sent> {
  const { leader, to } = plan;
  const request = {
    id,
    kind: 'stepdown' as const,
    to,
    plan: '',
    by: options.operator.by,
    reason: options.reason,
    epoch: leader.epoch,
  };
  // The node checks the expectation in the same step that stores the request. A check here would be a moment too early.
  return counted(
    await onAll(options, (node) =>
      node.call(
        {
          script: 'request_leader',
          request,
          ttlMs: Math.max(1, Math.round(options.timeoutMs)),
          expect: { leader: leader.id, epoch: leader.epoch },
        },
        options.limitMs,
      ),
    ),
  );
}

/** The owner token names one term. The lock of any other term stays. */
async function revokeLock(options: StepdownOptions, plan: StepdownPlan): Promise<Sent> {
  const handover = { to: plan.to, ttlMs: HANDOVER_MS };
  return counted(
    await onAll(options, (node) =>
      node.call({ script: 'release_lock', owner: plan.leader.owner, handover }, options.limitMs),
    ),
  );
}

async function onAll(
  options: StepdownOptions,
  call: (node: NodePort) => Promise<NodeReply<unknown>>,
): Promise<Sent['replies']> {
  const replies = await askAll(options.nodes, call, options);
  return replies.map((reply, i) => ({ node: options.nodes[i]!.id, reply }));
}

function counted(replies: Sent['replies']): Sent {
  return {
    replies,
    landed: replies.filter((r) => r.reply.outcome === 'accepted').length,
    maybe: replies.filter((r) => r.reply.outcome === 'unknown').length,
  };
}

function notTaken(options: StepdownOptions, plan: StepdownPlan, replies: Sent['replies']): SeqError {
  const moved = replies.some(
    ({ reply }) => reply.outcome === 'refused' && (reply.reason === 'EXPECTATION' || reply.reason === 'FENCING_ERROR'),
  );
  return new SeqError({
    code: moved ? 'EXPECTATION' : 'REQUEST_REFUSED',
    exit: moved ? EXIT.precondition : EXIT.tryAgain,
    message:
      `no node took the ${options.revoke ? 'release' : 'request'}: ` +
      `${describeReplies(replies, options.nodes.length, 'took it')}`,
    why: moved
      ? `${plan.leader.id} no longer leads under epoch ${plan.leader.epoch}`
      : 'every node refused before anything was written',
    changed: 'nothing',
    next: [commandIn(options, 'seq status')],
    retryable: true,
  });
}

/**
 * Only a leader that does not write may lose its lock. A leader that commits, or renews its lease, answers a request.
 */
async function refuseAliveLeader(options: StepdownOptions, plan: StepdownPlan): Promise<void> {
  const { leader } = plan;
  options.step(`watching whether ${leader.id} still writes`);
  const startedAt = options.clock.now();
  const waitMs = Math.min(1500, (plan.blockTimeMs ?? 1000) * 1.5);
  await sleep(options, waitMs);
  const { view } = await inspectWithProbes({
    nodes: options.nodes,
    limitMs: options.limitMs,
    clock: options.clock,
    expectedCluster: options.expectedCluster,
    target: options.target,
  });
  const now = view.leader;
  if (now === null || now.owner !== leader.owner) {
    throw new SeqError({
      code: 'EXPECTATION',
      exit: EXIT.precondition,
      message:
        `${leader.id} no longer holds the lock of epoch ${leader.epoch}: ` +
        `${now === null ? 'nobody leads' : `${now.id} leads under epoch ${now.epoch}`}`,
      why: 'its lease ended meanwhile, or it was renewed',
      changed: 'nothing',
      next: [commandIn(options, 'seq status')],
    });
  }
  const left = leader.ttlMs - (options.clock.now() - startedAt);
  const renewed = now.ttlMs > left + 50;
  if ((view.committed?.height ?? 0) <= plan.height && !renewed) return;
  throw new SeqError({
    code: 'LEADER_ANSWERS',
    exit: EXIT.safety,
    message:
      `${leader.id} is alive: ` +
      `${renewed ? 'its lease was renewed' : `it committed height ${view.committed?.height}`} within ` +
      `${Math.round(waitMs)} ms`,
    why: '--revoke is for a leader that does not answer; this one can hand over in order',
    changed: 'nothing',
    next: [commandIn(options, `seq stepdown --to ${plan.to}`)],
  });
}

// --- what became of it
// ---------------------------------------------------------------------------------------------------------

async function settle(
  options: StepdownOptions,
  plan: StepdownPlan,
  id: string,
  succession: Succession,
): Promise<StepdownDone> {
  const { leader, to } = plan;
  const successor = await writerOf(options, succession.height, succession.hash, succession.epoch);
  const by = successor ?? 'an unknown sequencer';
  if (successor === leader.id) throw await cameBack(options, plan, id, succession);
  const outcome = `${by} committed height ${succession.height} under epoch ${succession.epoch}`;
  const warning = await audit(options, plan, succession.epoch, outcome);
  if (successor === null || (plan.named && successor !== to)) {
    throw new SeqError({
      code: 'WRONG_SUCCESSOR',
      exit: EXIT.partial,
      message: `${leader.id} stepped down, and ${outcome}${plan.named ? `, not ${to}` : ''}`,
      why:
        successor === null
          ? 'no node gave the entry that names its writer'
          : `${to} did not promote within the time that was kept for it`,
      changed: 'some',
      next: [commandIn(options, 'seq status'), ...(plan.named ? [commandIn(options, `seq stepdown --to ${to}`)] : [])],
    });
  }
  const { blockTimeMs } = plan;
  const gapBlocks = blockTimeMs === null ? null : Math.max(0, Math.round(succession.gapMs / blockTimeMs) - 1);
  return { plan, done: { ...succession, to: successor, gapBlocks }, warnings: warning === '' ? [] : [warning] };
}

/** Nothing was committed under a higher epoch in time. Is everything as before, or is the outcome unknown? */
async function explainSilence(
  options: StepdownOptions,
  plan: StepdownPlan,
  id: string,
  height: Height,
): Promise<SeqError> {
  const { leader } = plan;
  const withdrawn = options.revoke ? false : await withdraw(options, id);
  const before = height;
  // A leader that was reading the request at this moment steps down within two node timeouts. If it goes on committing,
  // it did not read it.
  const { view } = await patientProbe(
    options,
    (seen) => seen.leader?.owner !== leader.owner || (seen.committed?.height ?? 0) > before + 1,
  );
  const limit = `within ${Math.round(options.timeoutMs)} ms`;
  if (withdrawn && view.leader?.owner === leader.owner && (view.committed?.height ?? 0) > before + 1) {
    return new SeqError({
      code: 'REQUEST_UNANSWERED',
      exit: EXIT.tryAgain,
      message: `${leader.id} did not take the request ${limit}: it still leads under epoch ${leader.epoch} and commits`,
      why: 'the request was withdrawn from every node',
      changed: 'nothing',
      next: [commandIn(options, 'seq stepdown'), commandIn(options, 'seq status')],
      retryable: true,
    });
  }
  const moved =
    view.leader === null
      ? view.leaderKnown
        ? 'nobody leads'
        : 'who leads is not known'
      : `${view.leader.id} leads under epoch ${view.leader.epoch}`;
  await audit(options, plan, view.leader?.epoch ?? leader.epoch, `unknown: ${moved}`);
  return new SeqError({
    code: 'HANDOVER_UNKNOWN',
    exit: EXIT.outcomeUnknown,
    message:
      `no successor of ${leader.id} was seen to commit ${limit}: ${moved}, height ` +
      `${view.committed?.height ?? 'unknown'} is committed`,
    why:
      view.hold === null
        ? 'the request was sent, and its effect could not be established'
        : `the request was sent; meanwhile ${view.hold.by} holds promotion (${view.hold.reason}), and ` +
          'nobody takes over before that ends',
    changed: 'unknown',
    next: [
      ...(view.hold === null ? [] : [commandIn(options, 'seq resume')]),
      commandIn(options, 'seq status'),
      commandIn(options, 'seq history'),
    ],
    retryable: true,
  });
}

/**
 * The same sequencer leads under a higher epoch. It renewed its term before it saw the request, or it stepped down and
 * was elected again.
 */
async function cameBack(
  options: StepdownOptions,
  plan: StepdownPlan,
  id: string,
  succession: Succession,
): Promise<SeqError> {
  const { leader } = plan;
  const replies = await onAll(options, (node) => node.call({ script: 'inspect' }, options.limitMs));
  const waiting = replies.some(
    ({ reply }) =>
      reply.outcome === 'accepted' && (reply.value as { request: { id: string } | null }).request?.id === id,
  );
  if (!options.revoke && waiting && (await withdraw(options, id))) {
    return new SeqError({
      code: 'EXPECTATION',
      exit: EXIT.precondition,
      message: `${leader.id} renewed its term meanwhile: it leads under epoch ${succession.epoch}, not ${leader.epoch}`,
      why: 'a request is meant for one epoch, and void under another',
      changed: 'nothing',
      next: [commandIn(options, 'seq stepdown')],
      retryable: true,
    });
  }
  await audit(options, plan, succession.epoch, `${leader.id} came back under epoch ${succession.epoch}`);
  return new SeqError({
    code: 'NO_SUCCESSOR',
    exit: EXIT.partial,
    message:
      `${leader.id} gave up epoch ${leader.epoch} and leads again under epoch ${succession.epoch}: ` +
      'nobody else took over',
    why: `${plan.to} did not promote in the time that was kept for it`,
    changed: 'some',
    next: [commandIn(options, 'seq status -o wide')],
    retryable: true,
  });
}

/** The owner of the entry, from any node that holds exactly this entry. */
async function writerOf(options: StepdownOptions, height: Height, hash: string, epoch: Epoch): Promise<string | null> {
  const reads = await askAll(
    options.nodes,
    (node) => node.read({ from: height, to: height, limit: 2, data: false }, options.limitMs),
    options,
  );
  for (const read of reads) {
    const entry =
      read.outcome === 'accepted' ? read.value.entries.find((e) => e.hash === hash && e.epoch >= epoch) : undefined;
    if (entry) return sequencerOf(entry.owner);
  }
  return null;
}

/** Removes the request. True when every node answers that it does not hold it any more. */
async function withdraw(options: StepdownOptions, id: string): Promise<boolean> {
  const replies = await onAll(options, (node) => node.call({ script: 'clear_request', id }, options.limitMs));
  return replies.every(
    ({ reply }) => reply.outcome === 'accepted' || (reply.outcome === 'refused' && reply.reason === 'NOT_ADMITTED'),
  );
}

async function patientProbe(
  options: StepdownOptions,
  until: (view: Awaited<ReturnType<typeof inspectWithProbes>>['view']) => boolean,
) {
  const deadline = options.clock.now() + 3000;
  for (;;) {
    const seen = await inspectWithProbes({
      nodes: options.nodes,
      limitMs: options.limitMs,
      clock: options.clock,
      expectedCluster: options.expectedCluster,
      target: options.target,
    });
    if (until(seen.view) || options.clock.now() >= deadline) return seen;
    await sleep(options, 50);
  }
}

function audit(options: StepdownOptions, plan: StepdownPlan, epoch: Epoch, outcome: string): Promise<string> {
  return recordChange(
    options.nodes,
    {
      what: options.revoke ? 'stepdown --revoke' : 'stepdown',
      reason: options.reason,
      outcome,
      epoch: String(plan.leader.epoch),
      before: `${plan.leader.id} under epoch ${plan.leader.epoch}, height ${plan.height}`,
      after: `epoch ${epoch}`,
    },
    options.operator,
    options.clock,
    options.limitMs,
  );
}

function commandIn(options: StepdownOptions, command: string): string {
  return options.target ? `${command} ${options.target}` : command;
}

/** Rejects with the signal's reason. */
function sleep({ clock, signal }: StepdownOptions, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason as Error);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    if (signal?.aborted) onAbort();
    else signal?.addEventListener('abort', onAbort, { once: true });
  });
}
