// Is every alarm true? No invariant may fail inside a process, no rejection may stay unhandled, and no sequencer may
// end with a fatal error. Without lost memory and damaged bytes, nothing justifies an alarm.
import type { Anomaly, Checker } from '../history.js';

/**
 * Codes that say that the cluster contradicts itself. Codes that only say that a node lacks something are not in this
 * list.
 */
const CONTRADICTIONS = new Set([
  'CONFLICT',
  'CHAIN_MISMATCH',
  'EPOCH_ABOVE_FENCE',
  'AHEAD_OF_LEADER',
  'FLOOR_MISMATCH',
  'DAMAGED_ENTRY',
  'STORE_AHEAD',
  'TRIMMED',
  'BAD_ARGUMENT',
  'WRONG_TYPE',
  'WRONG_CLUSTER',
  'STORE_HOLE',
  'BAD_PROPOSAL',
]);
/** The codes among them that are true once nodes have lost memory or bytes. */
const TRUE_OF_LOST_MEMORY = new Set(['DAMAGED_ENTRY', 'STORE_AHEAD']);

export const truthful: Checker = (history) => {
  const found: Anomaly[] = [];
  /** After a recovery, a sequencer of the old generation reports this and stops. */
  let recovered = false;
  let retired = false;
  for (const entry of history.entries) {
    if (entry.is === 'op' && entry.script === 'recover_node' && entry.outcome === 'accepted') recovered = true;
    if (entry.is === 'op' && entry.script === 'retire_node' && entry.outcome === 'accepted') retired = true;
    if (
      recovered &&
      entry.is === 'trouble' &&
      entry.kind === 'fatal-error' &&
      entry.text.startsWith('CLUSTER_RECOVERED')
    )
      continue;
    if (entry.is === 'trouble')
      found.push({ checker: 'truthful', what: `${entry.who}: ${entry.kind}: ${entry.text}`, witness: [entry] });
    if (entry.is !== 'event') continue;
    const { event } = entry;
    const code =
      event.type === 'alarm' || event.type === 'leadership-ended' || event.type === 'promotion-failed'
        ? event.code
        : '';
    if (
      CONTRADICTIONS.has(code) &&
      !(history.memoryFaults && TRUE_OF_LOST_MEMORY.has(code)) &&
      !(code === 'WRONG_CLUSTER' && (recovered || retired))
    ) {
      found.push({
        checker: 'truthful',
        what: `${entry.who}: ${event.type} ${code}: ${'reason' in event ? event.reason : ''}`,
        witness: [entry],
      });
    }
  }
  return found;
};
