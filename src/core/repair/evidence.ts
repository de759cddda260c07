// Gathers the evidence for a repair plan: one probe of every node, their streams read in bounded pieces, and a second
// probe. It only reads. Without a leader, nothing may change between the probes. With a leader, only what is found
// twice counts, because a block that is being written is no divergence.
import { familyOf } from '../generation.js';
import { pause } from '../nodes/pause.js';
import { genesisHash } from '../chain/block.js';
import { EXIT, SeqError } from '../errors.js';
import type { Clock, NodePort } from '../ports.js';
import { describeReply } from '../protocol/describe.js';
import type { Hash, Height, NodeView } from '../protocol/types.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { ClusterView } from '../view/cluster-view.js';
import { inspectWithProbes, probeNodes } from '../view/inspect.js';
import { PackedChain, RepairScan, type Contest, type Scanned } from './scan.js';
import { heldRange, readChunks } from '../stream/chunks.js';
import type { Archive } from '../stream/tail-archive.js';
import { askStores, type StoreCopy } from './store-copies.js';

export interface EvidenceNode extends Scanned {
  id: string;
  url: string;
  /** Null when it did not answer everything. `why` says at which step. */
  view: NodeView | null;
  why: string;
  /** Committed blocks above its head. */
  lacks: number;
}

export interface RepairEvidence {
  view: ClusterView;
  nodes: EvidenceNode[];
  /** The proven committed head. */
  top: { height: Height; hash: Hash };
  /** Where a node that is filled anew begins. */
  floor: { height: Height; hash: Hash };
  chain: PackedChain;
  contests: Contest[];
  nowhere: Height[];
  /** What the sequencers' stores hold at contested heights. */
  stores: StoreCopy[];
}

export interface EvidenceOptions {
  nodes: readonly NodePort[];
  lane: string;
  limitMs: number;
  clock: Clock;
  signal?: AbortSignal;
  expectedCluster: string;
  target: string;
  /** Stores and feeds that are asked about contested heights. */
  archives?: (view: ClusterView) => Promise<Archive[]>;
  progress: (done: number, total: number) => void;
}

const ATTEMPTS = 3;
const SECOND_PROBE_MS = 250;

export async function gatherEvidence(options: EvidenceOptions): Promise<RepairEvidence> {
  for (let attempt = 1; ; attempt++) {
    const first = await gatherOnce(options);
    if (first === null) {
      if (attempt < ATTEMPTS) continue;
      throw new SeqError({
        code: 'CLUSTER_MOVES',
        exit: EXIT.tryAgain,
        message: `nobody leads, and yet the nodes changed each of the ${ATTEMPTS} times they were read`,
        why: 'leadership is moving, or somebody writes by hand',
        changed: 'nothing',
        next: [`seq status ${options.target}`.trim()],
        retryable: true,
      });
    }
    if (first.view.leader === null || !anything(first)) return withStores(first, options);
    await pause(options.clock, SECOND_PROBE_MS);
    options.signal?.throwIfAborted();
    const second = await gatherOnce(options);
    if (second !== null && second.view.leader?.owner === first.view.leader.owner)
      return withStores(inBoth(first, second), options);
    if (attempt === ATTEMPTS && second !== null) return withStores(second, options);
  }
}

/** Null when the nodes changed although nobody leads. */
async function gatherOnce(options: EvidenceOptions): Promise<RepairEvidence | null> {
  const { nodes, clock, limitMs } = options;
  const { view, probes } = await inspectWithProbes(options);
  refuseNoAnswer(view);
  const views = new Map(
    probes.flatMap((o): [string, NodeView][] => (o.reply.outcome === 'accepted' ? [[o.id, o.reply.value]] : [])),
  );
  const held = heldRange(probes);
  const genesis = genesisHash(familyOf(view.cluster), options.lane);
  const from = held?.from ?? 1;
  const to = view.leader === null ? (held?.to ?? 0) : Math.min(held?.to ?? 0, view.committed?.height ?? 0);
  const floors = [...views.values()].filter((one) => one.admission === 'admitted').map((one) => one.floor);
  const chain = new PackedChain(Math.max(0, Math.min(from - 1, ...floors)), Math.max(to, ...floors, 0));
  chain.set(0, genesis);
  for (const one of views.values())
    if (one.admission === 'admitted' && one.floorHash !== '') chain.set(one.floor, one.floorHash);
  const scan = new RepairScan(views, view.configured, chain);
  if (held !== null && from <= to) {
    for await (const chunk of readChunks({ ...options, probes, from, to, newestFirst: false })) {
      scan.take(chunk);
      options.progress(chunk.to - from + 1, to - from + 1);
    }
    options.signal?.throwIfAborted();
  }
  const later = new Map(
    (await probeNodes({ nodes, limitMs, clock })).flatMap((o): [string, NodeView][] =>
      o.reply.outcome === 'accepted' ? [[o.id, o.reply.value]] : [],
    ),
  );
  if (
    view.leader === null &&
    [...views].some(([id, before]) => later.has(id) && mark(before) !== mark(later.get(id) as NodeView))
  )
    return null;

  const known =
    view.committed !== null && view.committed.hash !== null
      ? { height: view.committed.height, hash: view.committed.hash }
      : { height: 0, hash: genesis };
  const top = scan.top !== null && scan.top.height >= known.height ? scan.top : known;
  const rows = probes.map((o): EvidenceNode => {
    const now = later.get(o.id) ?? null;
    const scanned = scan.nodes.get(o.id) ?? { damage: [], damaged: 0, orphan: null };
    const why =
      o.reply.outcome !== 'accepted'
        ? describeReply(o.reply)
        : scan.unread.has(o.id) || now === null
          ? 'it stopped answering while it was read'
          : '';
    const seen = why === '' ? now : null;
    const lacks =
      seen === null || seen.admission !== 'admitted'
        ? 0
        : Math.max(0, top.height - (scanned.orphan === null ? seen.head : scanned.orphan.height - 1));
    // An orphan that was replaced during the read is no orphan any more.
    const orphan =
      scanned.orphan !== null &&
      seen !== null &&
      seen.head === scanned.orphan.height &&
      seen.headHash === scanned.orphan.hash
        ? scanned.orphan
        : null;
    return { id: o.id, url: o.url, ...scanned, orphan, view: seen, why, lacks };
  });
  return {
    view,
    nodes: rows,
    top,
    floor: fillFloor(rows, chain, top, genesis),
    chain,
    contests: scan.contests,
    nowhere: scan.nowhere,
    stores: [],
  };
}

/** The retained range of the nodes in order: the highest floor among those that reach the top. */
function fillFloor(
  nodes: readonly EvidenceNode[],
  chain: PackedChain,
  top: RepairEvidence['top'],
  genesis: Hash,
): RepairEvidence['floor'] {
  const sound = nodes.filter(
    (node) =>
      node.view?.admission === 'admitted' &&
      node.damaged === 0 &&
      node.orphan === null &&
      node.view.head >= top.height &&
      node.view.floor < top.height,
  );
  const height = Math.max(0, ...sound.map((node) => (node.view as NodeView).floor));
  return { height, hash: chain.get(height) ?? genesis };
}

function anything(evidence: RepairEvidence): boolean {
  return (
    evidence.contests.length > 0 ||
    evidence.nodes.some((node) => node.damaged > 0 || node.orphan !== null || node.lacks > 0)
  );
}

/** Keeps only what both probes found, so that blocks under way do not count. */
function inBoth(first: RepairEvidence, second: RepairEvidence): RepairEvidence {
  const nodes = second.nodes.map((node): EvidenceNode => {
    const before = first.nodes.find((one) => one.id === node.id) as EvidenceNode;
    const damage = node.damage.filter((one) => before.damage.some((other) => other.height === one.height));
    return {
      ...node,
      damage,
      damaged: damage.length === 0 ? 0 : node.damaged,
      orphan: before.orphan?.hash === node.orphan?.hash ? node.orphan : null,
      // A leader fills nodes by itself. So a node is behind only if it lacks blocks committed at the first probe.
      lacks: node.view !== null && node.view.head < first.top.height ? node.lacks : 0,
    };
  });
  const contests = second.contests.filter((one) =>
    first.contests.some((other) => other.height === one.height && other.kind === one.kind),
  );
  return { ...second, nodes, contests };
}

async function withStores(evidence: RepairEvidence, options: EvidenceOptions): Promise<RepairEvidence> {
  if (evidence.contests.length === 0 || options.archives === undefined) return evidence;
  const archives = await options.archives(evidence.view);
  const heights = evidence.contests.slice(0, 8).map(({ height }) => height);
  return { ...evidence, stores: await askStores(archives, heights, options.signal) };
}

/** Everything about a node that a plan depends on while nobody leads. */
export function mark(view: NodeView): string {
  return [
    view.admission,
    view.runId,
    view.incarnation,
    view.epoch,
    view.claimant,
    view.lock?.owner ?? '',
    view.head,
    view.headEpoch,
    view.headHash,
    view.floor,
    view.floorHash,
    view.length,
    view.hold?.by ?? '',
    view.handover?.to ?? '',
  ].join('|');
}
