// Are epochs unique, and do they rise? I1: no two terms that claimed a quorum have the same epoch, and a term that
// begins after another one's quorum gets a higher epoch. I2: in one epoch, at most one block is proposed at a height.
import type { Anomaly, Checker, NodeOp } from '../history.js';
import { Votes } from '../votes.js';

interface Term {
  owner: string;
  epoch: number;
  begunAt: number;
  quorumAt: number;
  last: NodeOp;
}

export const epochs: Checker = (history) => {
  const found: Anomaly[] = [];
  const begun = new Map<string, number>();
  const claims = new Votes(history);
  const terms: Term[] = [];
  const proposed = new Map<string, NodeOp>();
  for (const entry of history.entries) {
    if (entry.is !== 'op') continue;
    if (entry.script === 'promote_leader' && !begun.has(entry.owner)) begun.set(entry.owner, entry.t);
    if (entry.script === 'claim' && entry.outcome === 'accepted') {
      const key = `${entry.owner} ${entry.epoch}`;
      const nodes = claims.add(key, entry.epoch, entry);
      if (nodes !== null && !terms.some((one) => one.owner === entry.owner)) {
        terms.push({
          owner: entry.owner,
          epoch: entry.epoch,
          begunAt: begun.get(entry.owner) ?? 0,
          quorumAt: entry.t,
          last: entry,
        });
      }
    }
    if (entry.script === 'write_block' && entry.entryEpoch === entry.epoch && entry.hash !== '') {
      // A backfill with the term's own epoch carries a committed block. Every sender sends the same block at that
      // height.
      const key = `${entry.height} ${entry.epoch}`;
      const first = proposed.get(key);
      if (first === undefined) proposed.set(key, entry);
      else if (first.hash !== entry.hash)
        found.push({
          checker: 'epochs',
          what: `I2: two blocks at height ${entry.height} in epoch ${entry.epoch}`,
          witness: [first, entry],
        });
    }
  }
  const byEpoch = new Map<number, Term>();
  let highest: Term[] = [];
  for (const term of terms) {
    const same = byEpoch.get(term.epoch);
    if (same)
      found.push({
        checker: 'epochs',
        what: `I1: ${same.owner} and ${term.owner} both claimed a quorum with epoch ${term.epoch}`,
        witness: [same.last, term.last],
      });
    byEpoch.set(term.epoch, term);
    const before = highest.find((one) => one.quorumAt < term.begunAt && one.epoch >= term.epoch);
    if (before)
      found.push({
        checker: 'epochs',
        what:
          `I1: ${term.owner} began after ${before.owner} had claimed epoch ${before.epoch}, and has ` + `${term.epoch}`,
        witness: [before.last, term.last],
      });
    highest = [...highest, term];
  }
  return found;
};
