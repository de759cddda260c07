// Is there one chain? One block per height in everything that anybody saw (I4), and every block is the child of the
// block before it (I5).
import type { Anomaly, History } from '../history.js';
import { only } from '../history.js';

interface SeenCopy {
  height: number;
  hash: string;
  by: string;
  entry: unknown;
}

/**
 * Every block that somebody reported as committed. A node's copy counts only below its head: the head may be a proposal
 * that was never committed.
 */
function copiesSeen(history: History): SeenCopy[] {
  return [
    ...history.stores.flatMap(({ who, blocks }) =>
      blocks.map((block) => ({ height: block.height, hash: block.hash, by: `store of ${who}`, entry: block })),
    ),
    ...only(history, 'block').map((entry) => ({ height: entry.height, hash: entry.hash, by: entry.reader, entry })),
    ...only(history, 'commit').map((entry) => ({
      height: entry.height,
      hash: entry.hash,
      by: `log of ${entry.who}`,
      entry,
    })),
    ...only(history, 'head').map((entry) => ({
      height: entry.height,
      hash: entry.hash,
      by: `head of ${entry.who}`,
      entry,
    })),
    ...only(history, 'status').map((entry) => ({
      height: entry.height,
      hash: entry.hash,
      by: `status of ${entry.who}`,
      entry,
    })),
    ...history.nodes.flatMap(({ id, head, entries }) =>
      entries
        .filter(({ height }) => height < head)
        .map((entry) => ({ height: entry.height, hash: entry.hash, by: `stream of ${id}`, entry })),
    ),
  ];
}

export function oneBlockPerHeight(history: History): Anomaly[] {
  const first = new Map<number, SeenCopy>([[0, { height: 0, hash: history.genesis, by: 'genesis', entry: null }]]);
  const found = new Map<number, Anomaly>();
  for (const { height, hash, parent } of history.chain)
    first.set(height, { height, hash, by: 'the chain', entry: { height, hash, parent } });
  for (const copy of copiesSeen(history)) {
    const other = first.get(copy.height);
    if (other === undefined) first.set(copy.height, copy);
    else if (other.hash !== copy.hash && !found.has(copy.height)) {
      found.set(copy.height, {
        checker: 'one block per height',
        witness: [other, copy],
        what:
          `height ${copy.height} is ${short(other.hash)} for ${other.by} and ${short(copy.hash)} ` + `for ${copy.by}`,
      });
    }
  }
  return [...found.values()];
}

export function chainLinks(history: History): Anomaly[] {
  const anomalies: Anomaly[] = [];
  let before = { height: 0, hash: history.genesis };
  for (const block of history.chain) {
    if (block.height !== before.height + 1 || block.parent !== before.hash) {
      anomalies.push({
        checker: 'chain links',
        what: `block ${block.height} is not the child of block ${before.height}`,
        witness: [before, { ...block, items: block.items.length }],
      });
    }
    before = block;
  }
  const head = before.height;
  // Every block that was reported as committed must be in the longest store. Every store could catch up before it was
  // read.
  const beyond = copiesSeen(history).find(({ height, by }) => height > head && !by.startsWith('stream of'));
  if (beyond !== undefined)
    anomalies.push({
      checker: 'chain links',
      what: `block ${beyond.height} was seen by ${beyond.by}, and the longest store ends at ${head}`,
      witness: [beyond],
    });
  return anomalies;
}

/** Readers advance by one height at a time. They never go back and never skip a height. */
export function readersInOrder(history: History): Anomaly[] {
  const last = new Map<string, { height: number; hash: string }>();
  const anomalies: Anomaly[] = [];
  for (const entry of only(history, 'block')) {
    const before = last.get(entry.reader);
    if (before !== undefined && entry.height !== before.height + 1) {
      anomalies.push({
        checker: 'readers in order',
        what: `${entry.reader} was handed block ${entry.height} after block ${before.height}`,
        witness: [before, entry],
      });
    } else if (before !== undefined && entry.parent !== before.hash) {
      anomalies.push({
        checker: 'readers in order',
        what: `${entry.reader}: block ${entry.height} does not link to the block handed out before it`,
        witness: [before, entry],
      });
    }
    last.set(entry.reader, entry);
  }
  return anomalies;
}

/** The height of a sequencer's own store never falls, also across restarts. */
export function storesNeverGoBack(history: History): Anomaly[] {
  const highest = new Map<string, { height: number; t: number }>();
  const anomalies: Anomaly[] = [];
  for (const entry of [...only(history, 'status')].sort((a, b) => a.t - b.t)) {
    const before = highest.get(entry.who);
    // Two answers whose questions overlapped may arrive in the wrong order.
    if (before !== undefined && before.t < entry.from && entry.height < before.height) {
      anomalies.push({
        checker: 'stores never go back',
        what: `${entry.who} was at height ${before.height} and later at ${entry.height}`,
        witness: [before, entry],
      });
    }
    if (before === undefined || entry.height > before.height)
      highest.set(entry.who, { height: entry.height, t: entry.t });
  }
  return anomalies;
}

/** After healing, every node is admitted and readable, and heights that two nodes both have are the same. */
export function nodesIdentical(history: History): Anomaly[] {
  const anomalies: Anomaly[] = [];
  const chain = new Map(history.chain.map((block) => [block.height, block.hash]));
  for (const node of history.nodes) {
    const wrong =
      node.unread !== ''
        ? node.unread
        : node.admission !== 'admitted'
          ? `it is ${node.admission}`
          : node.damaged > 0
            ? `${node.damaged} of its entries are damaged`
            : '';
    if (wrong !== '')
      anomalies.push({
        checker: 'nodes identical',
        what: `${node.id}: ${wrong}`,
        witness: [{ ...node, entries: node.entries.length }],
      });
    node.entries.forEach((entry, at) => {
      const before = node.entries[at - 1];
      if (
        entry.height !== (before?.height ?? node.floor) + 1 ||
        (before !== undefined && entry.parent !== before.hash)
      ) {
        anomalies.push({
          checker: 'nodes identical',
          what: `${node.id}: entry ${entry.height} does not follow the one before it (I6)`,
          witness: [before ?? { floor: node.floor }, entry],
        });
      }
      const committed = chain.get(entry.height);
      if (committed !== undefined && committed !== entry.hash) {
        anomalies.push({
          checker: 'nodes identical',
          what: `${node.id} keeps ${short(entry.hash)} at height ${entry.height}, the chain has ${short(committed)}`,
          witness: [entry],
        });
      }
    });
  }
  return anomalies;
}

function short(hash: string): string {
  return `${hash.slice(0, 12)}…`;
}
