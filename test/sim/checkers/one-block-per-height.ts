// Did everybody see the same committed block at each height (I4)? Any of these counts as committed:
// - q nodes accepted the block under one epoch, each with the memory that a configuration of that epoch's term names
//    (I13).
// - An accepted entry above names it as its parent (I5).
// - A sequencer took it as committed, a store ends up with it, or a reader got it.
import type { Anomaly, Checker } from '../history.js';
import { Votes } from '../votes.js';

export const oneBlockPerHeight: Checker = (history) => {
  const found: Anomaly[] = [];
  const known = new Map<number, { hash: string; by: string; witness: unknown }>();
  known.set(0, { hash: history.genesis, by: 'genesis', witness: 'genesis' });
  const told = new Set<number>();
  const see = (height: number, hash: string, by: string, witness: unknown): void => {
    const first = known.get(height);
    if (first === undefined) known.set(height, { hash, by, witness });
    else if (first.hash !== hash && !told.has(height)) {
      told.add(height);
      found.push({
        checker: 'one-block-per-height',
        what: `height ${height}: ${first.hash.slice(0, 8)} by ${first.by}, ${hash.slice(0, 8)} by ${by}`,
        witness: [first.witness, witness],
      });
    }
  };
  const votes = new Votes(history);
  for (const entry of history.entries) {
    if (entry.is === 'op' && entry.outcome === 'accepted' && entry.script === 'write_block') {
      see(entry.height - 1, entry.parent, `the entry above it on ${entry.node}`, entry);
      for (const epoch of new Set([entry.entryEpoch, entry.stamped])) {
        const nodes = votes.add(`${entry.height}/${epoch}/${entry.hash}`, epoch, entry);
        if (nodes !== null) see(entry.height, entry.hash, `${nodes.join(', ')} under epoch ${epoch}`, entry);
      }
    } else if (entry.is === 'event' && entry.event.type === 'committed') {
      see(entry.event.height, entry.event.hash, `${entry.who} (${entry.event.by})`, entry);
    } else if (entry.is === 'read') {
      see(entry.height, entry.hash, `${entry.reader} reading from ${entry.who}`, entry);
    } else if (entry.is === 'tail') {
      see(entry.height, entry.hash, 'the tail of the nodes', entry);
    } else if (entry.is === 'status' && entry.height > 0) {
      see(entry.height, entry.hash, `the status of ${entry.who}`, entry);
    } else if (entry.is === 'confirm' && entry.height > 0) {
      see(entry.height, entry.hash, `${entry.who} confirming its head`, entry);
    }
  }
  for (const store of history.final.stores)
    for (const block of store.blocks) see(block.height, block.hash, `the store of ${store.id}`, block);
  return found;
};
