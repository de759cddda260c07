// Which entries of a node's stream stand outside its record (docs/PROTOCOL.md sections 2 and 9, I6)? Scripts write
// entries from floor + 1 up to the head of the record, and nothing else. An entry above the head, beside it, or at or
// below the floor was written by hand or by another program. A node shows such a stream as damaged, so a sound node is
// not read again. The reads are bounded, and a node that moved on meanwhile says nothing.
import type { Clock, NodePort } from '../ports.js';
import { sequencerOf, type EntriesRead, type NodeReply, type NodeView } from '../protocol/types.js';
import type { NodeProbe } from '../view/cluster-view.js';
import { bounded } from '../nodes/ask-all.js';

export interface Stray {
  node: string;
  id: string;
  /** The sequencer that its owner field names. '' when it has none. */
  writer: string;
  /** Where it stands, and what it holds. */
  why: string;
}

export interface Strays {
  found: Stray[];
  /** Sentences about nodes of which not every stray entry is known. */
  untold: string[];
}

/** Entries listed at most of each node, above the record and below it. */
const MOST = 10;

export interface StrayOptions {
  nodes: readonly NodePort[];
  probes: readonly NodeProbe[];
  limitMs: number;
  clock: Clock;
  /** Only these nodes. Absent: all. */
  only?: ReadonlySet<string>;
}

export async function readStrays(options: StrayOptions): Promise<Strays> {
  const { nodes, probes, only } = options;
  const told = await Promise.all(
    nodes.map(async (node) => {
      const reply = probes.find((one) => one.id === node.id)?.reply;
      if (reply?.outcome !== 'accepted' || only?.has(node.id) === false || !mayHold(reply.value)) return null;
      return straysOf(node, reply.value, options);
    }),
  );
  return {
    found: told.flatMap((one) => one?.found ?? []),
    untold: told.flatMap((one) => one?.untold ?? []),
  };
}

/** Entries outside the record make a node damaged. Another reason may hide that one. */
function mayHold(view: NodeView): boolean {
  if (view.admission === 'foreign' || view.admission === 'pristine') return false;
  // Without the facts of a record, nothing tells which entries are outside it.
  if (view.headHash === '' || view.floorHash === '' || view.head < view.floor) return false;
  return view.admission !== 'admitted' || view.length !== view.head - view.floor;
}

async function straysOf(node: NodePort, view: NodeView, { limitMs, clock }: StrayOptions): Promise<Strays> {
  const ask = (from: number, to: number) =>
    bounded(node.read({ from, to, limit: MOST + 2, data: true }, limitMs), limitMs, clock);
  // 2^53 is above every height, so the read goes on to the last id of the stream.
  const [above, below] = await Promise.all([ask(view.head, 2 ** 53), ask(0, Math.max(1, view.floor))]);
  const again = await bounded(
    node.call({ script: 'inspect' }, limitMs) as Promise<NodeReply<NodeView>>,
    limitMs,
    clock,
  );
  if (above.outcome !== 'accepted' || below.outcome !== 'accepted' || again.outcome !== 'accepted')
    return { found: [], untold: [`${node.id}: the entries outside its record could not be read`] };
  if (!sameRecord(view, again.value)) return { found: [], untold: [] };
  const high = outside(node.id, above.value, (height, seq) =>
    height > view.head
      ? `above the head ${view.head}-${view.headEpoch} of its record`
      : height === view.head && seq !== view.headEpoch
        ? `beside the head ${view.head}-${view.headEpoch} of its record`
        : null,
  );
  const low = outside(node.id, below.value, (height) =>
    height <= view.floor ? `at or below the floor ${view.floor} of its record` : null,
  ).filter((one) => !high.some((other) => other.id === one.id));
  const more = Math.max(high.length, low.length) > MOST;
  return {
    found: [...low.slice(0, MOST), ...high.slice(0, MOST)],
    untold: more ? [`${node.id} holds further entries outside its record: ${MOST} are listed`] : [],
  };
}

function sameRecord(a: NodeView, b: NodeView): boolean {
  return (
    a.admission === b.admission &&
    a.incarnation === b.incarnation &&
    a.head === b.head &&
    a.headEpoch === b.headEpoch &&
    a.floor === b.floor
  );
}

/** The entries that `place` puts outside the record, in the order of their ids. */
function outside(node: string, read: EntriesRead, place: (height: number, seq: number) => string | null): Stray[] {
  const all = [
    ...read.entries.map(({ height, epoch, owner, hash }) => ({
      id: `${height}-${epoch}`,
      owner,
      holds: `it holds block ${hash.slice(0, 16)}`,
    })),
    ...read.damaged.map(({ id, owner = '', why }) => ({ id, owner, holds: why })),
  ];
  return all
    .flatMap(({ id, owner, holds }): (Stray & { at: [number, number] })[] => {
      const [height = 0, seq = 0] = id.split('-').map(Number);
      const where = place(height, seq);
      if (where === null) return [];
      return [{ node, id, writer: sequencerOf(owner), why: `${where}: ${holds}`, at: [height, seq] }];
    })
    .sort((a, b) => a.at[0] - b.at[0] || a.at[1] - b.at[1])
    .map(({ at: _at, ...stray }) => stray);
}

/** `r3: entry 5-9 of seq-z stands above the head …`. */
export function strayText(stray: Stray): string {
  return `${stray.node}: ${strayWitness(stray)}`;
}

/** The same, where the node stands beside it. */
export function strayWitness({ id, writer, why }: Stray): string {
  return `entry ${id}${writer === '' ? '' : ` of ${writer}`} stands ${why}`;
}

/** The first stray entry, and how many there are. '' without one. */
export function straysText(strays: readonly Stray[]): string {
  const [first] = strays;
  if (first === undefined) return '';
  const rest = strays.length === 1 ? '' : `; ${strays.length} such entries are listed`;
  return `${strayText(first)}${rest}`;
}
