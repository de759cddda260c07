// The committed chain as a stream: every block once, in order. It reads archives below the floor, then the nodes'
// retained range, then each new head. It never yields an uncommitted block, and never leaves a gap. A block that cannot
// be proven or read ends the stream with a reason. docs/PROTOCOL.md sections 7 and 9.
import { pause } from '../nodes/pause.js';
import { EXIT, SeqError } from '../errors.js';
import type { CommittedBlock, NodePort } from '../ports.js';
import type { Hash, Height } from '../protocol/types.js';
import { inspectWithProbes } from '../view/inspect.js';
import type { ClusterView, NodeProbe } from '../view/cluster-view.js';
import { membershipOf } from '../view/membership.js';
import type { TailContext } from './tail-context.js';
import { readArchives, type Archive } from './tail-archive.js';
import { followHead, type Followed } from './tail-follow.js';
import { TailNodes } from './tail-nodes.js';
import { readRetained, type RetainedNode } from './tail-retained.js';

export interface TailOptions extends Omit<TailContext, 'configured' | 'configuration'> {
  /** A height, the lowest that the nodes retain, or the newest committed one. */
  from: Height | 'floor' | 'head';
  /** Ends after this height. */
  to?: Height;
  /** Continues with new blocks as they are committed. */
  follow?: boolean;
  /** Flags that name this cluster in a command. */
  target?: string;
  /** Opens a node that became a member while the stream is read. Absent: it is not read. */
  open?: TailNodes['open'];
  /** Called once for each reason while following waits for a quorum. */
  onWait?: (reason: string) => void;
  /** Called only when the range starts below what the nodes retain. */
  archives?: (view: ClusterView) => Promise<Archive[]>;
}

const RETRY_MS = 200;
/** A committed block counts as unreadable after this many probes without progress: 10 s while following. */
const FRUITLESS_PROBES = 50;

export async function* tailBlocks(options: TailOptions): AsyncGenerator<CommittedBlock> {
  const { signal } = options;
  const members = new TailNodes(options.nodes, options.open);
  let probe = await probeOrThrow(options, members);
  let next = firstHeight(options, probe);
  let parent: Hash | null = null;
  const end = options.to ?? Infinity;
  let fruitless = 0;

  while (next <= end && !signal?.aborted) {
    const { nodes, committed } = probe;
    const context = {
      ...options,
      nodes: members.nodes,
      configuration: members.configuration,
      configured: probe.view.configured,
    };
    const to = Math.min(end, committed.height);
    // Nodes that hold the next block come first, the ones furthest ahead before the others.
    const holders = nodes
      .filter((n) => n.view.floor < next && n.view.head >= next)
      .sort((a, b) => b.view.head - a.view.head);
    // Trimmed: no node holds the block, or its holders lag so far that the other nodes can no longer prove it.
    const trimmed = nodes.filter((n) => n.view.floor >= next).sort((a, b) => a.view.floor - b.view.floor)[0];
    if (next <= to && trimmed !== undefined && (holders.length === 0 || fruitless > 1)) {
      const { floor, floorHash } = trimmed.view;
      const archives = (await options.archives?.(probe.view)) ?? [];
      const last = Math.min(to, floor);
      fruitless = 0;
      for await (const block of readArchives(archives, { from: next, to: floor, anchor: floorHash, last }, signal)) {
        if (parent !== null && block.parent !== parent) throw broken(block.height);
        yield block;
        parent = block.hash;
        next = block.height + 1;
      }
      if (signal?.aborted) return;
      continue;
    }
    const before = next;
    if (holders.length > 0 && next <= to) {
      for await (const block of readRetained(context, holders, { from: next, to, parent, committed })) {
        yield block;
        parent = block.hash;
        next = block.height + 1;
      }
    }
    if (next > end || signal?.aborted) return;
    if (next > committed.height || next > to) {
      if (!options.follow) return;
      const reached: Followed = yield* followHead(context, { next, parent, to: end });
      ({ next, parent } = reached);
      if (next > end || signal?.aborted) return;
      await members.take(reached.configuration);
      probe = await probePatiently(options, members);
    } else {
      // The range was trimmed under the reader, or nodes went away. Probe again. Without progress, end with a reason.
      fruitless = next === before ? fruitless + 1 : 0;
      if (fruitless > (options.follow ? FRUITLESS_PROBES : 2)) throw unreadable(next, probe.view, options.target);
      probe = options.follow ? await probePatiently(options, members) : await probeOrThrow(options, members);
      if (next === before) await pause(options.clock, RETRY_MS, signal);
    }
  }
}

interface ProbeResult {
  view: ClusterView;
  /** Admitted nodes that answered. */
  nodes: RetainedNode[];
  committed: { height: Height; hash: Hash | null };
}

async function probeOrThrow(options: TailOptions, members: TailNodes): Promise<ProbeResult> {
  let { view, probes } = await inspectWithProbes({ ...options, nodes: members.nodes });
  if (await members.take(membershipOf(probes).configuration))
    ({ view, probes } = await inspectWithProbes({ ...options, nodes: members.nodes }));
  const nodes = admittedNodes(probes, view, members.nodes);
  if (nodes.length < view.quorum || view.committed === null) {
    const code = view.verdict === 'CRIT' && view.reasonCode !== 'OK' ? view.reasonCode : 'NO_QUORUM';
    throw new SeqError({
      code,
      exit: EXIT.noQuorum,
      message: `the committed chain cannot be read: ${view.reason}`,
      why: `a block is committed by ${view.quorum} of ${view.configured} nodes, and ${nodes.length} can be asked`,
      changed: 'nothing',
      next: view.next,
      retryable: true,
    });
  }
  return { view, nodes, committed: view.committed };
}

/** While following, a lost quorum means waiting: without a quorum, nothing new can be committed. */
async function probePatiently(options: TailOptions, members: TailNodes): Promise<ProbeResult> {
  let said = '';
  for (;;) {
    try {
      return await probeOrThrow(options, members);
    } catch (error) {
      if (!(error instanceof SeqError) || !error.retryable || options.signal?.aborted) throw error;
      if (error.message !== said) options.onWait?.(error.message);
      said = error.message;
      await pause(options.clock, RETRY_MS, options.signal);
    }
  }
}

function admittedNodes(probes: readonly NodeProbe[], view: ClusterView, ports: readonly NodePort[]): RetainedNode[] {
  const admitted = new Set(view.nodes.filter((n) => n.admitted).map((n) => n.id));
  return probes.flatMap((o) => {
    const port = ports.find((p) => p.id === o.id);
    return port !== undefined && o.reply.outcome === 'accepted' && admitted.has(o.id)
      ? [{ port, view: o.reply.value }]
      : [];
  });
}

function firstHeight(options: TailOptions, probe: ProbeResult): Height {
  const { committed, nodes } = probe;
  if (options.from === 'head') return Math.max(1, committed.height);
  if (options.from === 'floor') return lowestJoined(nodes, committed.height);
  const from = Math.max(1, options.from);
  if (from > committed.height + 1 && !options.follow) {
    throw new SeqError({
      code: 'HEIGHT_NOT_FOUND',
      exit: EXIT.notFound,
      message: `height ${from} does not exist yet: ${committed.height} is the newest committed one`,
      why: 'nothing above it is proven by the nodes that answered',
      changed: 'nothing',
      next: [`seq stream tail --from ${from} --follow${options.target ? ` ${options.target}` : ''}`],
    });
  }
  return from;
}

/**
 * The lowest height from which the nodes together hold everything up to the committed head. A node that lags below what
 * the others trimmed is not counted.
 */
function lowestJoined(nodes: readonly RetainedNode[], committed: Height): Height {
  let lowest = committed + 1;
  for (const { view } of [...nodes].sort((a, b) => b.view.floor - a.view.floor)) {
    if (view.head >= lowest - 1) lowest = Math.min(lowest, view.floor + 1);
  }
  return lowest;
}

function unreadable(height: Height, view: ClusterView, target = ''): SeqError {
  return new SeqError({
    code: 'BLOCK_UNREADABLE',
    exit: EXIT.noQuorum,
    message: `block ${height} is committed, and no node gave it within its limit`,
    why: `asked: ${view.nodes
      .filter((n) => n.admitted)
      .map((n) => n.id)
      .join(', ')}; their copies are damaged, or the payload takes longer than --node-timeout allows`,
    changed: 'nothing',
    next: [`seq stream inspect --from ${height} --to ${height}${target === '' ? '' : ` ${target}`}`],
    retryable: true,
  });
}

function broken(height: Height): SeqError {
  return new SeqError({
    code: 'CHAIN_MISMATCH',
    exit: EXIT.data,
    message: `block ${height} does not link to the one handed out before it`,
    why: 'what was read from the archive and from the nodes are different chains',
    changed: 'nothing',
    next: ['seq stream verify'],
  });
}
