// Epochs: each belongs to one term (I1), and a later term never commits below what an earlier one committed (I3, I4).
import type { Anomaly, History, LeaderCommit } from '../history.js';
import { only } from '../history.js';

/** Blocks committed by the term itself. Epoch 0 stands on the blocks that were committed when it was promoted. */
function committed(history: History): LeaderCommit[] {
  return only(history, 'commit').filter(({ epoch }) => epoch > 0);
}

export function epochsUnique(history: History): Anomaly[] {
  const holders = new Map<number, string>();
  const anomalies: Anomaly[] = [];
  const statuses = only(history, 'status').filter(({ role, epoch }) => role === 'leader' && epoch > 0);
  for (const entry of [...only(history, 'term'), ...committed(history), ...statuses]) {
    const other = holders.get(entry.epoch);
    if (other === undefined) holders.set(entry.epoch, entry.who);
    else if (other !== entry.who)
      anomalies.push({
        checker: 'epochs unique',
        what: `${other} and ${entry.who} both led under epoch ${entry.epoch}`,
        witness: [entry],
      });
  }
  return anomalies;
}

export function epochsRise(history: History): Anomaly[] {
  const terms = new Map<number, { lowest: LeaderCommit; highest: LeaderCommit }>();
  const anomalies: Anomaly[] = [];
  const last = new Map<string, LeaderCommit>();
  for (const commit of committed(history)) {
    const mine = last.get(commit.who);
    if (mine !== undefined && commit.epoch < mine.epoch) {
      anomalies.push({
        checker: 'epochs rise',
        what:
          `${commit.who} committed block ${commit.height} under epoch ${commit.epoch} after block ` +
          `${mine.height} under epoch ${mine.epoch}`,
        witness: [mine, commit],
      });
    }
    last.set(commit.who, commit);
    const known = terms.get(commit.epoch);
    if (known === undefined) terms.set(commit.epoch, { lowest: commit, highest: commit });
    else if (commit.height > known.highest.height) known.highest = commit;
    else if (commit.height < known.lowest.height) known.lowest = commit;
  }
  let highest: LeaderCommit | null = null;
  for (const [, term] of [...terms].sort(([a], [b]) => a - b)) {
    if (highest !== null && term.lowest.height < highest.height) {
      anomalies.push({
        checker: 'epochs rise',
        witness: [highest, term.lowest],
        what:
          `epoch ${term.lowest.epoch} committed block ${term.lowest.height} although epoch ` +
          `${highest.epoch} had committed block ${highest.height}`,
      });
    }
    if (highest === null || term.highest.height > highest.height) highest = term.highest;
  }
  return anomalies;
}
