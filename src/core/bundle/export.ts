// Reads everything that a reading command reads, and returns it as the lines of a bundle. The cluster works meanwhile.
// So the streams are read first, then the nodes are probed (twice, as every command does). Then heights that have
// changed since are read again, and a later pass replaces an earlier one. So heads and floors in the bundle are those
// of its probes, and blocks that were trimmed meanwhile are not shown as a hole.
import { createHash } from 'node:crypto';
import type { Entry, Height, NodeReply } from '../protocol/types.js';
import { markForeign } from '../view/cluster-name.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import { summarize } from '../view/model.js';
import type { ClusterView, NodeProbe } from '../view/cluster-view.js';
import { probeNodes } from '../view/inspect.js';
import { bounded } from '../nodes/ask-all.js';
import { heldRange, readChunks, type Chunk } from '../stream/chunks.js';
import type { MatrixOptions } from '../stream/matrix.js';
import type { BundleFacts, BundleLine } from './format.js';

/** Every bundle has this many heights below the top, whatever range was asked for. Status and the checks read them. */
const TOP = 64;
const AUDIT = 1000;
const ORPHANS = 1000;

export interface ExportOptions extends MatrixOptions {
  from?: Height;
  to?: Height;
  payloads: boolean;
  /** Takes one line. The promise waits while the disk is slow. */
  write: (line: BundleLine | BundleFacts) => Promise<void>;
  progress: (done: number, total: number) => void;
}

export interface Exported {
  view: ClusterView;
  /** The part of the requested range that exists. Null when no node holds anything. */
  range: { from: Height; to: Height } | null;
  nodes: { id: string; answered: boolean; copies: number; damaged: number }[];
}

export async function exportBundle(options: ExportOptions): Promise<Exported> {
  const { nodes, signal } = options;
  const before = markForeign(await probeNodes(options), options.expectedCluster);
  refuseNoAnswer(summarize(before, options));
  const held = heldRange(before);
  const counts = nodes.map(({ id }) => ({ id, answered: false, copies: 0, damaged: 0 }));
  const wanted = windowsOf(held, options.from, options.to);
  const total = wanted.reduce((sum, { from, to }) => sum + to - from + 1, 0);
  let done = 0;
  for (const { from, to } of wanted) {
    for await (const chunk of readChunks({
      ...options,
      probes: before,
      from,
      to,
      newestFirst: false,
      keepData: true,
    })) {
      for (const line of linesOf(
        chunk,
        options,
        counts,
        nodes.map(() => ({ from: 0, countFrom: 0 })),
      ))
        await options.write(line);
      done += chunk.to - chunk.from + 1;
      options.progress(done, total);
    }
    signal?.throwIfAborted();
  }
  const first = markForeign(await probeNodes(options), options.expectedCluster);
  const second = markForeign(await probeNodes(options), options.expectedCluster);
  await readMoved(options, before, second, wanted, counts);
  signal?.throwIfAborted();
  const view = summarize(second, options);
  for (const [at, { reply }] of second.entries())
    (counts[at] as { answered: boolean }).answered = reply.outcome === 'accepted';
  const asked = <T>(
    at: number,
    ask: ((limitMs: number) => Promise<NodeReply<T>>) | undefined,
    limitMs: number,
  ): Promise<NodeReply<T> | null> => {
    const { reply } = second[at] as NodeProbe;
    if (ask === undefined) return Promise.resolve(null);
    return reply.outcome === 'unknown' ? Promise.resolve(reply) : bounded(ask(limitMs), limitMs + 1000, options.clock);
  };
  await options.write({
    facts: {
      ranges: rangesOf(held, wanted),
      nodes: await Promise.all(
        nodes.map(async (node, at) => ({
          probes: [first[at], second[at]].map((one) => ({
            reply: (one as NodeProbe).reply,
            rttMs: (one as NodeProbe).rttMs,
          })),
          audit: await asked(at, node.readAudit?.bind(node, AUDIT), options.limitMs),
          orphans: await asked(at, node.readOrphans?.bind(node, ORPHANS), options.limitMs),
          checkup: await asked(at, node.checkup?.bind(node), Math.max(2000, 10 * options.limitMs)),
        })),
      ),
    },
  });
  // Blocks that were trimmed during the read are no longer part of the answer.
  const floors = view.nodes.flatMap((n) => (n.floor === null ? [] : [n.floor + 1]));
  const range =
    held === null
      ? null
      : {
          from: Math.max(held.from, floors.length === 0 ? 1 : Math.min(...floors), options.from ?? 1),
          to: Math.min(
            view.nodes.reduce((top, n) => Math.max(top, n.head ?? 0), held.to),
            options.to ?? Number.MAX_SAFE_INTEGER,
          ),
        };
  return { view, range: range === null || range.from > range.to ? null : range, nodes: counts };
}

/**
 * The requested range, one more height on each side (links, proofs), and the top. Ranges that touch become one.
 * Ascending.
 */
function windowsOf(
  held: { from: Height; to: Height } | null,
  from: Height | undefined,
  to: Height | undefined,
): { from: Height; to: Height }[] {
  if (held === null) return [];
  const window = { from: Math.max(held.from, (from ?? 1) - 2), to: Math.min(held.to, (to ?? held.to) + 2) };
  const top = { from: Math.max(held.from, held.to - TOP), to: held.to };
  if (window.from > window.to) return [top];
  return window.to + 1 >= top.from ? [{ from: Math.min(window.from, top.from), to: held.to }] : [window, top];
}

/** Nothing exists below the lowest and above the highest height that any node holds. That counts as read. */
function rangesOf(
  held: { from: Height; to: Height } | null,
  wanted: readonly { from: Height; to: Height }[],
): { from: Height; to: Height }[] {
  if (held === null) return [{ from: 0, to: Number.MAX_SAFE_INTEGER }];
  return wanted.map(({ from, to }) => ({
    from: from === held.from ? 0 : from,
    to: to === held.to ? Number.MAX_SAFE_INTEGER : to,
  }));
}

/**
 * Finds heights that a node wrote or replaced between the read and the second probe, and reads them again on that node
 * alone.
 */
async function readMoved(
  options: ExportOptions,
  before: readonly NodeProbe[],
  now: readonly NodeProbe[],
  wanted: readonly { from: Height; to: Height }[],
  counts: Exported['nodes'],
): Promise<void> {
  const again = now.map(({ reply }, at): (Part & { to: Height }) | null => {
    const was = before[at]?.reply;
    if (reply.outcome !== 'accepted' || was?.outcome !== 'accepted') return null;
    const { floor, head } = reply.value;
    // A re-admitted node has another stream altogether. Otherwise only its head may have been replaced, and later
    // entries are new.
    const same = was.value.incarnation === reply.value.incarnation && was.value.floor <= floor;
    return head > floor
      ? {
          from: same ? Math.max(floor + 1, Math.min(was.value.head, head)) : floor + 1,
          to: head,
          countFrom: was.value.head + 1,
        }
      : null;
  });
  const ranges = again.filter((one) => one !== null);
  if (ranges.length === 0) return;
  const lowest = wanted[0]?.from ?? 1;
  const [from, to] = [
    Math.max(lowest, Math.min(...ranges.map((one) => one.from))),
    Math.max(...ranges.map((one) => one.to)),
  ];
  if (from > to) return;
  for await (const chunk of readChunks({
    ...options,
    probes: now,
    from,
    to,
    newestFirst: false,
    keepData: true,
  })) {
    for (const line of linesOf(chunk, options, counts, again)) await options.write(line);
  }
}

/** What a pass reads from one node. Copies below `countFrom` were counted before. */
interface Part {
  from: Height;
  countFrom: Height;
}

function linesOf(
  chunk: Chunk,
  { nodes, payloads }: ExportOptions,
  counts: Exported['nodes'],
  parts: readonly (Part | null)[],
): BundleLine[] {
  const lines = new Map<Height, BundleLine>();
  for (let height = chunk.from; height <= chunk.to; height += 1)
    lines.set(height, { height, read: [], blocks: [], copies: [], damaged: [] });
  for (const [at, { id }] of nodes.entries()) {
    const ledger = chunk.ledgers.find((one) => one.id === id);
    const part = parts[at];
    if (ledger === undefined || !ledger.answered || part == null) continue;
    const count = counts[at] as Exported['nodes'][number];
    for (const line of lines.values()) if (line.height >= part.from) line.read.push(at);
    for (const entry of chunk.entries.get(id) ?? []) {
      const line = lines.get(entry.height);
      if (line === undefined || entry.height < part.from) continue;
      line.copies.push([at, blockIn(line, entry, payloads), entry.epoch, entry.owner]);
      if (entry.height >= part.countFrom) count.copies += 1;
    }
    for (const bad of ledger.damaged) {
      const line = bad.height === null ? undefined : lines.get(bad.height);
      if (line === undefined || line.height < part.from) continue;
      line.damaged.push([at, bad.id, bad.why]);
      if (line.height >= part.countFrom) count.damaged += 1;
    }
  }
  return [...lines.values()];
}

/**
 * The block's index among the blocks of the line. A block that several nodes hold is written once. Its hash was checked
 * when it was read.
 */
function blockIn(
  line: BundleLine,
  { hash, parent, timestamp, size, data = new Uint8Array() }: Entry,
  payloads: boolean,
): number {
  const known = line.blocks.findIndex((block) => block.hash === hash);
  if (known >= 0) return known;
  const content = payloads
    ? { data: Buffer.from(data).toString('base64') }
    : { dataSha256: createHash('sha256').update(data).digest('hex') };
  return line.blocks.push({ hash, parent, timestamp, size, ...content }) - 1;
}
