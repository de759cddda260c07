// Is the cluster in order within the bound after healing? Nodes must be identical at every height that two of them
// retain. Every chain must be linked, every node contiguous (I6) and within its retained range.
import type { Anomaly, Checker } from '../history.js';

export const liveness: Checker = (history) => {
  if (history.convergedAt !== null) return [];
  return [
    {
      checker: 'liveness',
      what: `not together ${history.boundMs} ms after healing: ${history.missing}`,
      witness: [{ healedAt: history.healedAt }],
    },
  ];
};

export const identicalNodes: Checker = (history) => {
  const found: Anomaly[] = [];
  if (history.convergedAt === null) return found; // the liveness checker reports it
  const top = Math.min(...history.final.stores.map((store) => store.blocks.length));
  const at = new Map<number, { hash: string; node: string }>();
  for (const node of history.final.nodes) {
    if (!node.admitted) continue;
    for (const entry of node.entries) {
      if (entry.height > top) continue; // may be in flight
      const first = at.get(entry.height);
      if (first === undefined) at.set(entry.height, { hash: entry.hash, node: node.id });
      else if (first.hash !== entry.hash)
        found.push({
          checker: 'identical-nodes',
          what: `height ${entry.height} differs between ${first.node} and ${node.id}`,
          witness: [first, { node: node.id, ...entry }],
        });
    }
  }
  return found;
};

export const links: Checker = (history) => {
  const found: Anomaly[] = [];
  for (const store of history.final.stores) {
    let parent = history.genesis;
    let time = 0;
    store.blocks.forEach((block, i) => {
      if (block.height !== i + 1 || block.parent !== parent || block.timestamp < time)
        found.push({
          checker: 'links',
          what: `the store of ${store.id} breaks at height ${block.height}`,
          witness: [block, { parent, time }],
        });
      parent = block.hash;
      time = block.timestamp;
    });
  }
  for (const node of history.final.nodes) {
    if (!node.admitted) continue;
    let parent = node.floorHash;
    node.entries.forEach((entry, i) => {
      if (entry.height !== node.floor + i + 1 || entry.parent !== parent)
        found.push({
          checker: 'links',
          what: `I6: ${node.id} breaks at height ${entry.height}`,
          witness: [entry, { floor: node.floor, parent }],
        });
      parent = entry.hash;
    });
    if (history.convergedAt !== null && node.entries.length > history.retainBlocks)
      found.push({
        checker: 'links',
        what: `${node.id} holds ${node.entries.length} entries, ${history.retainBlocks} are to be retained`,
        witness: [{ node: node.id, floor: node.floor }],
      });
  }
  return found;
};
