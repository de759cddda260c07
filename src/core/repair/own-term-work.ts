// What a repair by its own term works with (docs/PROTOCOL.md sections 5, 6, 8): the chain it settles on, the chosen
// block, a lease that covers the work, and the quorum that it asks for its votes. Everything here comes from the
// evidence of the plan. Nothing is written.
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort, Random } from '../ports.js';
import { newest, quorumFor, type Configuration } from '../protocol/configuration.js';
import type { TermSettings } from '../protocol/term-state.js';
import type { Block, Epoch, NodeView } from '../protocol/types.js';
import type { RepairEvidence } from './evidence.js';
import type { RepairPlan } from './plan.js';
import { RepairStore } from './store.js';
import { bounded } from '../nodes/ask-all.js';

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

/**
 * The lease covers the work at a slow pace, so that it need not be renewed. If this process dies, standby sequencers
 * wait for the end of this lease.
 */
const LEASE_MS = 5000;
const LONGEST_LEASE_MS = 60_000;
const SLOW_BLOCKS_PER_MS = 2;
const SLOW_BYTES_PER_MS = 10_000;

/** What all terms of one repair share: the plan, the chain they settle on, and how far each node of the plan is. */
export interface Work {
  plan: RepairPlan;
  options: RepairTermOptions;
  store: RepairStore;
  /** The steps by node. */
  steps: ReadonlyMap<string, RepairPlan['steps'][number]>;
  /** The steps on nodes whose whole stream is replaced. */
  doubtful: ReadonlyMap<string, RepairPlan['steps'][number]>;
  /** Node → blocks written so far. */
  progress: Map<string, number>;
  ttlMs: number;
  choice: TermSettings['chosen'];
}

/** What a term is promoted with. Another term, after a node with a higher epoch was met, has its own. */
export interface Candidacy {
  owner: string;
  previousOwner?: string;
  quorum: number;
  configuration: Configuration | null;
  votes: { node: number; epoch: Epoch }[];
}

export function firstCandidacy(plan: RepairPlan, evidence: RepairEvidence, options: RepairTermOptions): Candidacy {
  if (plan.hand.by !== 'own-term')
    throw new SeqError({
      code: 'BUG',
      exit: EXIT.bug,
      message: 'a repair by its own term was asked for with another plan',
      why: plan.hand.by,
      changed: 'nothing',
      next: [],
    });
  const configuration = newest(
    ...evidence.nodes.map(({ view }) => (view === null || view.admission === 'foreign' ? '' : view.config)),
  );
  return {
    owner: newOwner(options),
    quorum: configuration === null ? evidence.view.quorum : quorumFor(configuration),
    configuration,
    votes: plan.hand.nodes.map(({ id, epoch }) => ({ node: options.nodes.findIndex((node) => node.id === id), epoch })),
  };
}

export const newOwner = ({ host, random }: RepairTermOptions): string => `repair.${host}/${random.hex(8)}`;

export async function prepare(plan: RepairPlan, evidence: RepairEvidence, options: RepairTermOptions): Promise<Work> {
  const settles = plan.goal.height > evidence.top.height || plan.chosen.some((one) => one.height === plan.goal.height);
  const base = settles
    ? { height: plan.goal.height - 1, hash: evidence.chain.get(plan.goal.height - 1) ?? evidence.floor.hash }
    : plan.goal;
  const doubtful = new Map(plan.steps.filter((step) => step.kind === 'replace').map((step) => [step.node, step]));
  const store = new RepairStore({
    chain: evidence.chain,
    head: base,
    floor: evidence.floor.height <= base.height ? evidence.floor : base,
    clock: options.clock,
    sources: sourcesOf(options.nodes, evidence, doubtful),
  });
  return {
    plan,
    options,
    store,
    steps: new Map(plan.steps.map((step) => [step.node, step])),
    doubtful,
    progress: new Map(),
    ttlMs: leaseFor(plan, evidence),
    choice: await choiceOf(plan, evidence, options),
  };
}

/** The block that was chosen for the head, if one was. */
async function choiceOf(
  plan: RepairPlan,
  evidence: RepairEvidence,
  options: RepairTermOptions,
): Promise<TermSettings['chosen']> {
  const chosen = plan.chosen.find((one) => one.height === plan.goal.height);
  if (chosen === undefined) return undefined;
  // A paused former leader may have continued since the plan was made. Its proposal under a later epoch is not
  // overwritten.
  const over = Math.max(
    0,
    ...evidence.nodes.map(({ view }) => (view?.head === chosen.height ? (view.headEpoch ?? 0) : 0)),
  );
  return { block: options.block ?? (await fetchChosen(chosen, options)), over };
}

function leaseFor(plan: RepairPlan, evidence: RepairEvidence): number {
  const bytes = Math.max(0, ...evidence.nodes.map((node) => Number(node.view?.info['used_memory'] ?? 0)));
  const most = Math.max(0, ...plan.steps.map((step) => step.blocks));
  return Math.round(
    Math.min(LONGEST_LEASE_MS, LEASE_MS + most / SLOW_BLOCKS_PER_MS + (most > 100 ? bytes / SLOW_BYTES_PER_MS : 0)),
  );
}

/** A silent node may be a server that was replaced. The records of other nodes give its new address. */
export function followMovedNodes(
  configuration: Configuration | null,
  evidence: RepairEvidence,
  nodes: readonly NodePort[],
): void {
  for (const { id, url, since } of configuration?.members ?? []) {
    const node = nodes.find((one) => one.id === id);
    if (since !== undefined && node && node.url !== url && evidence.nodes.find((one) => one.id === id)?.view === null)
      node.moveTo?.(url);
  }
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
