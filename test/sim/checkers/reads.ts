// Do readers get every block in order, and are confirmed heads current? Each reader, and each session of a tail, gets
// every height once. A confirmed head is at least as high as everything acknowledged before the request. Later
// confirmed heads never fall.
import type { Anomaly, Checker, Confirmed } from '../history.js';

export const reads: Checker = (history) => {
  const found: Anomaly[] = [];
  const next = new Map<string, number>();
  const tails = new Map<number, number>();
  const acknowledged: { t: number; height: number; by: unknown }[] = [];
  const confirmed: Confirmed[] = [];
  for (const entry of history.entries) {
    if (entry.is === 'read') {
      const expected = next.get(entry.reader) ?? 1;
      if (entry.height !== expected)
        found.push({
          checker: 'reads',
          what: `${entry.reader} got height ${entry.height} instead of ${expected}`,
          witness: [entry],
        });
      next.set(entry.reader, entry.height + 1);
    } else if (entry.is === 'tail') {
      const expected = tails.get(entry.session) ?? entry.height;
      if (entry.height !== expected)
        found.push({
          checker: 'reads',
          what: `a tail got height ${entry.height} instead of ${expected}`,
          witness: [entry],
        });
      tails.set(entry.session, entry.height + 1);
    } else if (entry.is === 'answer' && entry.receipt) {
      acknowledged.push({ t: entry.t, height: entry.receipt.height, by: entry });
    } else if (entry.is === 'confirm') {
      const missed = acknowledged.find((one) => one.t < entry.from && one.height > entry.height);
      if (missed)
        found.push({
          checker: 'reads',
          what: `${entry.who} confirmed head ${entry.height}, and ${missed.height} had been acknowledged before`,
          witness: [missed.by, entry],
        });
      const before = confirmed.find((one) => one.t < entry.from && one.height > entry.height);
      if (before)
        found.push({
          checker: 'reads',
          what: `${entry.who} confirmed head ${entry.height}, and ${before.who} had confirmed ${before.height} before`,
          witness: [before, entry],
        });
      confirmed.push(entry);
    }
  }
  return found;
};
