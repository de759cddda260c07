// What the checks read: every node once (twice when heads are between two writes), and the newest heights when the
// streams are checked.
import type { NodePort } from '../ports.js';
import { judgeCheck } from './check.js';
import type { CheckAnswer, CheckName, Thresholds } from '../view/check-answer.js';
import { inspectWithProbes } from '../view/inspect.js';
import type { ClusterView, StartCommands } from '../view/cluster-view.js';
import { heldRange, readChunks } from '../stream/chunks.js';
import { readStrays, type Stray } from '../stream/strays.js';
import { rowsOf, type MatrixOptions, type MatrixRow } from '../stream/matrix.js';

export interface CheckOptions extends MatrixOptions, StartCommands {
  checks: readonly CheckName[];
  /** Named nodes that are no members. They are judged, and their streams are not read. */
  strangers: readonly NodePort[];
  limits: Thresholds;
  /** How many of the newest heights to read in the streams. */
  depth: number;
}

export async function runChecks(options: CheckOptions): Promise<{ view: ClusterView; answers: CheckAnswer[] }> {
  const { nodes, strangers } = options;
  const { view, probes: all } = await inspectWithProbes({ ...options, nodes: [...nodes, ...strangers], twice: true });
  const probes = all.filter(({ id }) => nodes.some((node) => node.id === id));
  const rows: MatrixRow[] = [];
  let strays: Stray[] = [];
  const held = heldRange(probes);
  if (options.checks.includes('stream') && held !== null) {
    const from = Math.max(held.from, held.to - options.depth + 1);
    for await (const chunk of readChunks({ ...options, probes, from, to: held.to, newestFirst: false }))
      rows.push(...rowsOf(chunk, options.nodes, view.configured));
    options.signal?.throwIfAborted();
  }
  if (options.checks.includes('stream')) strays = (await readStrays({ ...options, probes })).found;
  const seen = { view, probes, rows, strays, target: options.target };
  return { view, answers: options.checks.map((check) => judgeCheck(check, seen, options.limits)) };
}
