// A repair by the command itself, when nobody leads (docs/PROTOCOL.md sections 5, 6, 8). It runs a real term of the
// shipped reducer: promote, claim, settle the head, fill every node of the plan, release. It proposes no block of its
// own, and writes nothing outside that term. After an interruption the nodes are as after any term: whole entries, a
// lock that expires, and nodes that the next run can continue with.
import { usableLeaseMs } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import type { NodePort } from '../ports.js';
import { newest } from '../protocol/configuration.js';
import type { NodeProgress } from '../protocol/node-progress.js';
import type { TermEnd } from '../protocol/term-codes.js';
import type { TermSettings, TermState } from '../protocol/term-state.js';
import type { Epoch } from '../protocol/types.js';
import type { RepairEvidence } from './evidence.js';
import type { RepairPlan } from './plan.js';
import {
  firstCandidacy,
  followMovedNodes,
  newOwner,
  prepare,
  type Candidacy,
  type RepairTermOptions,
  type Work,
} from './own-term-work.js';
import { probe, votesOf } from '../nodes/probe.js';
import { inOrder } from '../sequencer/lead/repair-order.js';
import { TermDriver, type TermHooks } from '../sequencer/lead/term-driver.js';

export interface RepairedNode {
  node: string;
  done: boolean;
  blocks: number;
  why: string;
}

export interface TermOutcome {
  epoch: Epoch;
  owner: string;
  nodes: RepairedNode[];
  /** The head as the term left it. */
  height: number;
  hash: string;
}

/** At most this many terms. A node's epoch may turn out to be above the term's. Then a new term claims that node. */
const TERMS = 3;
const CHECK_MS = 5;

export async function repairByTerm(
  plan: RepairPlan,
  evidence: RepairEvidence,
  options: RepairTermOptions,
): Promise<TermOutcome> {
  const first = firstCandidacy(plan, evidence, options);
  const work = await prepare(plan, evidence, options);
  followMovedNodes(first.configuration, evidence, options.nodes);
  options.changing('unknown', []);
  const { driver, end, owner } = await runTerms(work, first);
  options.step('releasing the locks');
  await driver.release();
  options.signal?.throwIfAborted();
  refuseLost(end, work);
  refuseUnsettled(driver.state, end, work);
  return outcomeOf(driver.state, end, owner, work);
}

// --- the terms
// -------------------------------------------------------------------------------------------------------------

/** Runs terms until one ends for another reason than a node with a higher epoch. */
async function runTerms(work: Work, first: Candidacy): Promise<{ driver: TermDriver; end: TermEnd; owner: string }> {
  let candidacy = first;
  for (let term = 1; ; term++) {
    work.options.step(`promoting for the repair (term ${term})`);
    const driver = driverFor(candidacy, work);
    const end = await runOne(driver, candidacy.votes, work);
    const last = { driver, end, owner: candidacy.owner };
    if (end.code !== 'RENEW' || term === TERMS) return last;
    const next = await nextCandidacy(candidacy, work.options);
    if (next === null) return last;
    candidacy = next;
  }
}

function driverFor(candidacy: Candidacy, work: Work): TermDriver {
  const { nodes, clock } = work.options;
  const driver: TermDriver = new TermDriver({
    nodes,
    clock,
    store: work.store,
    chain: work.store.localChain(),
    settings: settingsFor(candidacy, work),
    hooks: hooksFor(work, (index, incarnation, why) => driver.damaged(index, incarnation, why)),
  });
  return driver;
}

function settingsFor({ owner, previousOwner, quorum, configuration }: Candidacy, work: Work): TermSettings {
  const { nodes, limitMs } = work.options;
  return {
    owner,
    ...(previousOwner === undefined ? {} : { previousOwner }),
    nodes: nodes.length,
    quorum,
    ttlMs: work.ttlMs,
    usableLeaseMs: usableLeaseMs(work.ttlMs),
    nodeTimeoutMs: limitMs,
    graceMs: limitMs,
    retryMs: 5,
    regainMs: 50,
    renewNotBefore: nodes.map(() => 0),
    readmit: true,
    maxAdopt: 8,
    quiet: true,
    ...(configuration === null ? {} : { configuration }),
    ids: nodes.map((node) => node.id),
    ...(work.choice === undefined ? {} : { chosen: work.choice }),
  };
}

function hooksFor(
  { options, store, steps, doubtful, progress }: Work,
  damaged: (index: number, incarnation: string, why: string) => void,
): TermHooks {
  const total = [...steps.values()].reduce((sum, step) => sum + step.blocks, 0);
  return {
    leading: () => undefined,
    ready: () => undefined,
    committed: (block, epoch) => {
      if (block.height > store.head().height) void store.append({ ...block, epoch });
    },
    adopted: (blocks) => {
      for (const one of blocks) void store.append({ ...one, epoch: 0 });
    },
    request: () => undefined,
    node: (id, standing) => {
      const step = doubtful.get(id);
      if (standing !== 'claimed' || step === undefined) return;
      damaged(
        options.nodes.findIndex((node) => node.id === id),
        step.incarnation,
        step.why,
      );
    },
    alarm: (code, reason, node) => options.step(`${code}${node === undefined ? '' : ` on ${node}`}: ${reason}`),
    backfilled: (node, from, head) => {
      const step = steps.get(node);
      if (step === undefined) return;
      progress.set(node, Math.max(progress.get(node) ?? 0, head - Math.min(from, step.from) + 1));
      options.changing('some', [...progress.keys()]);
      options.progress(
        [...progress.values()].reduce((sum, of) => sum + of, 0),
        total,
      );
    },
  };
}

/** Runs one term until it ends. It steps down when the plan is carried out, or when the command is stopped. */
async function runOne(driver: TermDriver, votes: Candidacy['votes'], work: Work): Promise<TermEnd> {
  const { nodes, clock, signal } = work.options;
  const onAbort = (): void => driver.stepdown('INTERRUPTED', 'the command was stopped');
  signal?.addEventListener('abort', onAbort, { once: true });
  const running = driver.run(votes);
  let cancel = (): void => undefined;
  const watch = (): void => {
    if (driver.state.phase === 'ended') return;
    if (driver.state.phase === 'leading' && finished(driver, nodes, work.steps))
      driver.stepdown('REPAIRED', 'every node of the plan is as planned');
    else cancel = clock.after(CHECK_MS, watch);
  };
  watch();
  if (signal?.aborted) onAbort();
  const end = await running;
  cancel();
  signal?.removeEventListener('abort', onAbort);
  return end;
}

/** The next term's, from a fresh probe of the nodes. Null when no quorum would vote for it. */
async function nextCandidacy(last: Candidacy, options: RepairTermOptions): Promise<Candidacy | null> {
  const { nodes, limitMs, clock } = options;
  const { owner, quorum } = last;
  const seen = await probe(nodes, quorum, limitMs, clock);
  const texts = seen.replies.map((reply) =>
    reply?.outcome === 'accepted' && reply.value.admission !== 'foreign' ? reply.value.config : '',
  );
  const configuration = newest(last.configuration, ...texts);
  const { votes } = votesOf(seen, nodes, '', { own: owner, ...(configuration === null ? {} : { configuration }) });
  if (votes.length < quorum) return null;
  return { owner: newOwner(options), previousOwner: owner, quorum, configuration, votes };
}

// --- what became of it
// -------------------------------------------------------------------------------------------------------------

function refuseLost(end: TermEnd, { options: { target } }: Work): void {
  if (end.code !== 'PROMOTION_LOST' && end.code !== 'CLAIM_LOST' && end.code !== 'CHOICE_OVERTAKEN') return;
  throw new SeqError({
    code: 'REPAIR_LOST',
    exit: EXIT.tryAgain,
    message: `the repair was not promoted: ${end.reason}`,
    why: 'somebody else leads or repairs now, or a node moved since the plan was made; no block was written',
    changed: 'nothing',
    next: [`seq repair plan ${target}`.trim(), `seq status ${target}`.trim()],
    retryable: true,
  });
}

function refuseUnsettled(state: TermState, end: TermEnd, { options, progress }: Work): void {
  if (state.phase !== 'ended' || state.settleTo <= state.committed.height) return;
  throw new SeqError({
    code: 'REPAIR_UNFINISHED',
    exit: EXIT.outcomeUnknown,
    message: `the head at height ${state.settleTo} was not settled: ${end.reason}`,
    why: `${end.code}: too few nodes accepted the block in time`,
    changed: 'unknown',
    changedNodes: [...progress.keys()],
    next: [`seq repair plan ${options.target}`.trim()],
    retryable: true,
  });
}

function outcomeOf(state: TermState, end: TermEnd, owner: string, { plan, options, progress }: Work): TermOutcome {
  const head = state.committed;
  return {
    epoch: state.epoch,
    owner,
    height: head.height,
    hash: head.hash,
    nodes: plan.steps.map((step) => {
      const index = options.nodes.findIndex((node) => node.id === step.node);
      const track = state.nodes[index] as NodeProgress;
      const done = inOrder(track, head, step.kind === 'replace' ? step.incarnation : '');
      return {
        node: step.node,
        done,
        blocks:
          progress.get(step.node) ?? (done && step.kind !== 'readmit' && step.kind !== 'replace' ? step.blocks : 0),
        why: done ? '' : track.why || end.reason,
      };
    }),
  };
}

/** True when every node of the plan is in order, or this term cannot repair it. */
function finished(
  driver: TermDriver,
  nodes: readonly NodePort[],
  work: ReadonlyMap<string, { kind: string; incarnation: string }>,
): boolean {
  return nodes.every((node, index) => {
    const step = work.get(node.id);
    const track = driver.state.nodes[index] as NodeProgress;
    if (step === undefined || inOrder(track, driver.state.committed, step.kind === 'replace' ? step.incarnation : ''))
      return true;
    return track.standing === 'quarantined' && !track.damage;
  });
}
