// Do nodes keep their promises (I3)? Within one memory, a node's epoch never falls. The node accepts no write of a
// lower epoch, and none of the same epoch from a term that is not its claimant. The checker judges by the calls, not by
// what the node reports about itself.
import type { Anomaly, Checker } from '../history.js';

const NO_PROMISE = new Set<string>([
  'begin_admission',
  'backfill',
  'recover_node',
  'retire_node',
  'bootstrap_prepare',
  'bootstrap_commit',
]);

export const fencing: Checker = (history) => {
  const found: Anomaly[] = [];
  const promised = new Map<string, { epoch: number; owner: string; by: unknown }>();
  for (const entry of history.entries) {
    if (entry.is !== 'op' || entry.outcome !== 'accepted' || entry.script === 'release_lock') continue;
    if (NO_PROMISE.has(entry.script)) continue;
    const key = `${entry.node}#${entry.memory}`;
    const last = promised.get(key);
    if (entry.script === 'raise_epoch') {
      if (!last || entry.nodeEpoch > last.epoch)
        promised.set(key, { epoch: entry.nodeEpoch, owner: entry.claimant, by: entry });
      continue;
    }
    if (last && entry.epoch < last.epoch) {
      found.push({
        checker: 'fencing',
        what:
          `I3: ${entry.node} had promised epoch ${last.epoch} and accepted ${entry.script} of epoch ` +
          `${entry.epoch} by ${entry.owner}`,
        witness: [last.by, entry],
      });
    } else if (last && entry.epoch === last.epoch && last.owner !== entry.owner) {
      found.push({
        checker: 'fencing',
        what:
          `I3: ${entry.node} had promised epoch ${last.epoch} to ${last.owner || 'nobody'} and accepted ` +
          `${entry.script} by ${entry.owner}`,
        witness: [last.by, entry],
      });
    }
    if (!last || entry.epoch >= last.epoch) promised.set(key, { epoch: entry.epoch, owner: entry.owner, by: entry });
  }
  return found;
};
