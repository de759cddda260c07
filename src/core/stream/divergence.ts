// At which height do a store and the nodes first hold different blocks (docs/PROTOCOL.md section 5, CHAIN_MISMATCH)?
// A contradiction is never repaired, only reported. A person needs this height to find out which of the two is this
// cluster's history. Every block names its parent, so every block after the first difference differs, too. A few single
// reads find it. It only reads, and each read is bounded.
import type { ChainStore, Clock, NodePort } from '../ports.js';
import type { Hash, Height, NodeReply, NodeView } from '../protocol/types.js';
import { bounded } from '../nodes/ask-all.js';

interface Parting {
  height: Height;
  /** The node has no lower block. The chains may have parted before this height. */
  lowest: boolean;
  theirs: Hash;
}

/** One sentence. '' when no node answers or none differs. */
export async function whereTheyPart(
  nodes: readonly NodePort[],
  store: Pick<ChainStore, 'head' | 'header'>,
  limitMs: number,
  clock: Clock,
): Promise<string> {
  const found = await Promise.all(
    nodes.map(async (node) => ({ id: node.id, parting: await partingOf(node, store, limitMs, clock) })),
  );
  const groups = new Map<string, { parting: Parting; ids: string[] }>();
  for (const { id, parting } of found) {
    if (parting === null) continue;
    const key = `${parting.height} ${parting.theirs}`;
    groups.set(key, { parting, ids: [...(groups.get(key)?.ids ?? []), id] });
  }
  return [...groups.values()]
    .map(({ parting: { height, lowest, theirs }, ids }) => {
      const mine = store.header(height);
      return (
        'the first height at which they differ is ' +
        `${height}${lowest ? ' or lower (nothing below is retained there)' : ''}: this store has ` +
        `${mine?.hash.slice(0, 12) ?? 'nothing'}${mine ? ` of epoch ${mine.epoch}` : ''}, ` +
        `${ids.join(', ')} ${ids.length === 1 ? 'has' : 'have'} ${theirs.slice(0, 12)}`
      );
    })
    .join('; ');
}

async function partingOf(
  node: NodePort,
  store: Pick<ChainStore, 'head' | 'header'>,
  limitMs: number,
  clock: Clock,
): Promise<Parting | null> {
  const probe = await bounded(
    node.call({ script: 'inspect' }, limitMs) as Promise<NodeReply<NodeView>>,
    limitMs,
    clock,
  );
  if (probe.outcome !== 'accepted' || probe.value.cluster === '') return null;
  const { floor, floorHash, head } = probe.value;
  const theirs = async (height: Height): Promise<Hash | undefined> => {
    if (height === floor) return floorHash;
    const read = await bounded(node.read({ from: height, to: height, limit: 2, data: false }, limitMs), limitMs, clock);
    return read.outcome === 'accepted' ? read.value.entries.find((entry) => entry.height === height)?.hash : undefined;
  };
  const differs = async (height: Height): Promise<Hash | null | undefined> => {
    const hash = await theirs(height);
    return hash === undefined ? undefined : hash === store.header(height)?.hash ? null : hash;
  };
  let high = Math.min(head, store.head().height);
  if (high < floor || high < 1) return null;
  let at = await differs(high);
  if (at === null || at === undefined) return null;
  let low = floor;
  const below = floor === 0 ? null : await differs(floor);
  if (below === undefined) return null;
  if (below !== null) return { height: floor, lowest: true, theirs: below };
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const there = await differs(middle);
    if (there === undefined) return null;
    if (there === null) low = middle;
    else [high, at] = [middle, there];
  }
  return { height: high, lowest: false, theirs: at };
}
