// Proves every node's stream, and that no two streams contradict each other (docs/PROTOCOL.md sections 3, 8 and 9). It
// reads each stream once, in ascending pieces. Every violation comes with its witness. What could not be read is
// reported as not verified.
import { readLedger } from '../protocol/ledger.js';
import type { Height } from '../protocol/types.js';
import { refuseNoAnswer } from '../view/no-answer.js';
import type { ClusterView } from '../view/cluster-view.js';
import { inspectWithProbes, probeNodes } from '../view/inspect.js';
import { heldRange, readChunks } from './chunks.js';
import type { MatrixOptions } from './matrix.js';
import { readStrays, strayWitness } from './strays.js';
import { NodeProof, type Violation } from './verify-node.js';

const MOST_VIOLATIONS = 1000;

export interface VerifyOptions extends MatrixOptions {
  from?: Height;
  to?: Height;
  progress: (done: number, total: number) => void;
}

export interface Verified {
  view: ClusterView;
  range: { from: Height; to: Height } | null;
  violations: Violation[];
  /** The number of all violations. `violations` holds the first thousand. */
  total: number;
  /** What is not known of entries outside the records. */
  untold: string[];
  /** Only some nodes were verified (`--on`). */
  narrowed: boolean;
  nodes: { id: string; entries: number; verified: boolean; violations: number }[];
}

export async function verifyStreams(options: VerifyOptions): Promise<Verified> {
  const { nodes, signal, only } = options;
  const chosen = only === undefined ? nodes : nodes.filter((node) => only.has(node.id));
  const { view, probes } = await inspectWithProbes(options);
  refuseNoAnswer(view);
  const held = heldRange(probes, only);
  const range =
    held === null
      ? null
      : { from: Math.max(held.from, options.from ?? 1), to: Math.min(held.to, options.to ?? held.to) };
  const proofs = new Map(
    probes.flatMap((o): [string, NodeProof][] =>
      o.reply.outcome === 'accepted' ? [[o.id, new NodeProof(o.id, o.reply.value, range?.from ?? 1)]] : [],
    ),
  );
  const unread = new Set(probes.filter((o) => o.reply.outcome !== 'accepted').map((o) => o.id));
  const between: Violation[] = [];
  if (range !== null && range.from <= range.to) {
    for await (const chunk of readChunks({ ...options, nodes: chosen, probes, ...range, newestFirst: false })) {
      for (const ledger of chunk.ledgers) {
        const proof = proofs.get(ledger.id);
        if (!ledger.answered) unread.add(ledger.id);
        else proof?.take(chunk.entries.get(ledger.id) ?? [], ledger.damaged, chunk);
      }
      for (const verdict of readLedger(chunk.ledgers, view.configured, { from: chunk.from, to: chunk.to })) {
        if (verdict.verdict !== 'conflict') continue;
        const witness = verdict.candidates
          .map((one) => `${one.hash.slice(0, 16)} at epoch ${one.epoch} on ${one.nodes.join(', ')}`)
          .join('; ');
        between.push({
          node: '',
          height: verdict.height,
          code: 'CONFLICT',
          witness: `${verdict.why}${witness === '' ? '' : `: ${witness}`}`,
        });
      }
      options.progress(chunk.to - range.from + 1, range.to - range.from + 1);
    }
    signal?.throwIfAborted();
  }
  const later = await probeNodes({ nodes: chosen, limitMs: options.limitMs, clock: options.clock });
  const strays = await readStrays({ ...options, nodes: chosen, probes: later });
  const all = [...between];
  for (const stray of strays.found)
    all.push({ node: stray.node, height: null, code: 'STRAY', witness: strayWitness(stray) });
  const rows = chosen.map(({ id }) => {
    const reply = later.find((o) => o.id === id)?.reply;
    const found = proofs.get(id)?.finish(reply?.outcome === 'accepted' ? reply.value : null) ?? [];
    all.push(...found);
    const violations = found.length + strays.found.filter((one) => one.node === id).length;
    return { id, entries: proofs.get(id)?.entries ?? 0, verified: !unread.has(id), violations };
  });
  all.sort((a, b) => (a.height ?? 0) - (b.height ?? 0));
  return {
    view,
    range,
    violations: all.slice(0, MOST_VIOLATIONS),
    total: all.length,
    untold: strays.untold,
    narrowed: chosen.length < nodes.length,
    nodes: rows,
  };
}
