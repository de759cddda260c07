// A repair by the command itself, when nobody leads (docs/PROTOCOL.md sections 5, 6, 8). It runs a real term of the
// shipped reducer: promote, claim, settle the head, fill every node of the plan, release. It proposes no block of its
// own, and writes nothing outside that term. After an interruption the nodes are as after any term: whole entries, a
// lock that expires, and nodes that the next run can continue with.
import { usableLeaseMs } from '../config.js';
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort, Random } from '../ports.js';
import { newest, quorumFor } from '../protocol/configuration.js';
import type { NodeProgress } from '../protocol/node-progress.js';
import type { TermEnd } from '../protocol/term-codes.js';
import type { TermSettings } from '../protocol/term-state.js';
import type { Block, Epoch, NodeView } from '../protocol/types.js';
import type { RepairEvidence } from './evidence.js';
import type { RepairPlan } from './plan.js';
import { RepairStore } from './store.js';
import { bounded } from '../nodes/ask-all.js';
import { probe, votesOf } from '../nodes/probe.js';
import { inOrder } from '../sequencer/lead/repair-order.js';
import { TermDriver } from '../sequencer/lead/term-driver.js';

export interface RepairTermOptions {
  nodes: readonly NodePort[];
  limitMs: number;
  clock: Clock;
  random: Random;
  signal?: AbortSignal;
  host: string;
  /** The chosen block, where no node's stream holds it. */
  block?: Block;
  target: string;
  /** Called right before the first write, and for every node that is known to be changed. */
  changing: (state: 'unknown' | 'some', nodes: string[]) => void;
  step: (doing: string) => void;
  progress: (done: number, total: number) => void;
}

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

/**
 * The lease covers the work at a slow pace, so that it need not be renewed. If this process dies, standby sequencers
 * wait for the end of this lease.
 */
const LEASE_MS = 5000;
const LONGEST_LEASE_MS = 60_000;
const SLOW_BLOCKS_PER_MS = 2;
const SLOW_BYTES_PER_MS = 10_000;
/** At most this many terms. A node's epoch may turn out to be above the term's. Then a new term claims that node. */
const TERMS = 3;
const CHECK_MS = 5;

export async function repairByTerm(
  plan: RepairPlan,
  evidence: RepairEvidence,
  options: RepairTermOptions,
): Promise<TermOutcome> {
  const { nodes, clock, random } = options;
  if (plan.hand.by !== 'own-term')
    throw new SeqError({
      code: 'BUG',
      exit: EXIT.bug,
      message: 'a repair by its own term was asked for with another plan',
      why: plan.hand.by,
      changed: 'nothing',
      next: [],
    });
  const settles = plan.goal.height > evidence.top.height || plan.chosen.some((one) => one.height === plan.goal.height);
  const base = settles
    ? { height: plan.goal.height - 1, hash: evidence.chain.get(plan.goal.height - 1) ?? evidence.floor.hash }
    : plan.goal;
  const doubtful = new Map(plan.steps.filter((step) => step.kind === 'replace').map((step) => [step.node, step]));
  const chosen = plan.chosen.find((one) => one.height === plan.goal.height);
  const store = new RepairStore({
    chain: evidence.chain,
    head: base,
    floor: evidence.floor.height <= base.height ? evidence.floor : base,
    clock,
    sources: sourcesOf(nodes, evidence, doubtful),
  });
  const block = chosen === undefined ? undefined : (options.block ?? (await fetchChosen(chosen, options)));
  // A paused former leader may have continued since the plan was made. Its proposal under a later epoch is not
  // overwritten.
  const over = Math.max(
    0,
    ...evidence.nodes.map(({ view }) => (view?.head === chosen?.height ? (view?.headEpoch ?? 0) : 0)),
  );
  const bytes = Math.max(0, ...evidence.nodes.map((node) => Number(node.view?.info['used_memory'] ?? 0)));
  const most = Math.max(0, ...plan.steps.map((step) => step.blocks));
  const ttlMs = Math.round(
    Math.min(LONGEST_LEASE_MS, LEASE_MS + most / SLOW_BLOCKS_PER_MS + (most > 100 ? bytes / SLOW_BYTES_PER_MS : 0)),
  );
  const work = new Map(plan.steps.map((step) => [step.node, step]));
  const progress = new Map<string, number>();
  const total = plan.steps.reduce((sum, step) => sum + step.blocks, 0);

  // A silent node may be a server that was replaced. The records of other nodes give its new address.
  let configuration = newest(
    ...evidence.nodes.map(({ view }) => (view === null || view.admission === 'foreign' ? '' : view.config)),
  );
  const quorum = configuration === null ? evidence.view.quorum : quorumFor(configuration);
  for (const { id, url, since } of configuration?.members ?? []) {
    const node = nodes.find((one) => one.id === id);
    if (since !== undefined && node && node.url !== url && evidence.nodes.find((one) => one.id === id)?.view === null)
      node.moveTo?.(url);
  }
  let owner = `repair.${options.host}/${random.hex(8)}`;
  let previousOwner: string | undefined;
  let votes = plan.hand.nodes.map(({ id, epoch }) => ({ node: nodes.findIndex((node) => node.id === id), epoch }));
  let driver: TermDriver;
  let end: TermEnd;
  options.changing('unknown', []);
  for (let term = 1; ; term++) {
    const settings: TermSettings = {
      owner,
      ...(previousOwner === undefined ? {} : { previousOwner }),
      nodes: nodes.length,
      quorum,
      ttlMs,
      usableLeaseMs: usableLeaseMs(ttlMs),
      nodeTimeoutMs: options.limitMs,
      graceMs: options.limitMs,
      retryMs: 5,
      regainMs: 50,
      renewNotBefore: nodes.map(() => 0),
      readmit: true,
      maxAdopt: 8,
      quiet: true,
      ...(configuration === null ? {} : { configuration }),
      ids: nodes.map((node) => node.id),
      ...(block === undefined ? {} : { chosen: { block, over } }),
    };
    let failed: (() => void) | null = null;
    const held: TermDriver = new TermDriver({
      nodes,
      clock,
      store,
      chain: store.localChain(),
      settings,
      hooks: {
        leading: () => undefined,
        ready: () => undefined,
        committed: (committed, epoch) => {
          if (committed.height > store.head().height) void store.append({ ...committed, epoch });
        },
        adopted: (blocks) => {
          for (const one of blocks) void store.append({ ...one, epoch: 0 });
        },
        request: () => undefined,
        node: (id, standing) => {
          const step = doubtful.get(id);
          if (standing === 'claimed' && step !== undefined)
            held.damaged(
              nodes.findIndex((node) => node.id === id),
              step.incarnation,
              step.why,
            );
        },
        alarm: (code, reason, node) => options.step(`${code}${node === undefined ? '' : ` on ${node}`}: ${reason}`),
        backfilled: (node, from, head) => {
          const step = work.get(node);
          if (step === undefined) return;
          progress.set(node, Math.max(progress.get(node) ?? 0, head - Math.min(from, step.from) + 1));
          options.changing('some', [...progress.keys()]);
          options.progress(
            [...progress.values()].reduce((sum, of) => sum + of, 0),
            total,
          );
        },
      },
    });
    driver = held;
    const onAbort = (): void => held.stepdown('INTERRUPTED', 'the command was stopped');
    options.signal?.addEventListener('abort', onAbort, { once: true });
    options.step(`promoting for the repair (term ${term})`);
    const running = held.run(votes);
    const watch = (): void => {
      if (held.state.phase === 'ended') return;
      if (held.state.phase === 'leading' && finished(held, nodes, work))
        held.stepdown('REPAIRED', 'every node of the plan is as planned');
      else failed = clock.after(CHECK_MS, watch);
    };
    watch();
    if (options.signal?.aborted) onAbort();
    end = await running;
    (failed as (() => void) | null)?.();
    options.signal?.removeEventListener('abort', onAbort);
    if (end.code !== 'RENEW' || term === TERMS) break;
    const seen = await probe(nodes, quorum, options.limitMs, clock);
    const texts = seen.replies.map((reply) =>
      reply?.outcome === 'accepted' && reply.value.admission !== 'foreign' ? reply.value.config : '',
    );
    configuration = newest(configuration, ...texts);
    const again = votesOf(seen, nodes, '', { own: owner, ...(configuration === null ? {} : { configuration }) });
    if (again.votes.length < quorum) break;
    votes = again.votes;
    previousOwner = owner;
    owner = `repair.${options.host}/${random.hex(8)}`;
  }
  options.step('releasing the locks');
  await driver.release();
  options.signal?.throwIfAborted();
  const { state } = driver;
  const changed = [...progress.keys()];
  if (end.code === 'PROMOTION_LOST' || end.code === 'CLAIM_LOST' || end.code === 'CHOICE_OVERTAKEN') {
    throw new SeqError({
      code: 'REPAIR_LOST',
      exit: EXIT.tryAgain,
      message: `the repair was not promoted: ${end.reason}`,
      why: 'somebody else leads or repairs now, or a node moved since the plan was made; no block was written',
      changed: 'nothing',
      next: [`seq repair plan ${options.target}`.trim(), `seq status ${options.target}`.trim()],
      retryable: true,
    });
  }
  if (state.phase === 'ended' && state.settleTo > state.committed.height) {
    throw new SeqError({
      code: 'REPAIR_UNFINISHED',
      exit: EXIT.outcomeUnknown,
      message: `the head at height ${state.settleTo} was not settled: ${end.reason}`,
      why: `${end.code}: too few nodes accepted the block in time`,
      changed: 'unknown',
      changedNodes: changed,
      next: [`seq repair plan ${options.target}`.trim()],
      retryable: true,
    });
  }
  const head = state.committed;
  return {
    epoch: state.epoch,
    owner,
    height: head.height,
    hash: head.hash,
    nodes: plan.steps.map((step) => {
      const index = nodes.findIndex((node) => node.id === step.node);
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

/** Healthy nodes first: those that hold the whole retained range. */
function sourcesOf(
  nodes: readonly NodePort[],
  evidence: RepairEvidence,
  doubtful: ReadonlyMap<string, unknown>,
): NodePort[] {
  const sound = evidence.nodes.filter((node) => node.view?.admission === 'admitted' && !doubtful.has(node.id));
  const rank = (view: NodeView): number => view.head * 2 - view.floor;
  return sound
    .sort((a, b) => rank(b.view as NodeView) - rank(a.view as NodeView))
    .map((node) => nodes.find((one) => one.id === node.id) as NodePort);
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

async function fetchChosen(chosen: RepairPlan['chosen'][number], options: RepairTermOptions): Promise<Block> {
  for (const id of chosen.holders) {
    const node = options.nodes.find((one) => one.id === id) as NodePort;
    const read = await bounded(
      node.read({ from: chosen.height, to: chosen.height, limit: 2, data: true }, options.limitMs),
      options.limitMs,
      options.clock,
    );
    const entry = read.outcome === 'accepted' ? read.value.entries.find((one) => one.hash === chosen.hash) : undefined;
    if (entry?.data)
      return {
        height: entry.height,
        hash: entry.hash,
        parent: entry.parent,
        timestamp: entry.timestamp,
        data: entry.data,
      };
  }
  throw new SeqError({
    code: 'CLUSTER_MOVES',
    exit: EXIT.tryAgain,
    message: `block ${chosen.height} ${chosen.hash.slice(0, 8)} is no longer on ${chosen.holders.join(', ')}`,
    why: 'it was there when the plan was made',
    changed: 'nothing',
    next: [`seq repair plan ${options.target}`.trim()],
    retryable: true,
  });
}
