// Does the cluster recover? After healing all processes agree again within a bound. Every item of a client that
// continues gets its answer. No process ends by itself.
import type { Anomaly, History } from '../history.js';
import { only } from '../history.js';

export function healsInTime(history: History): Anomaly[] {
  return only(history, 'healing')
    .filter(({ missing }) => missing !== '')
    .map((healing) => ({
      checker: 'heals in time',
      what:
        `${Math.round(healing.boundMs / 1000)} s after everything was healed at ` +
        `${(healing.t / 1000).toFixed(1)} s: ${healing.missing}`,
      witness: [healing],
    }));
}

/** Keyed items are sent until they are committed. After the last healing none may be without an answer. */
export function everyKeyedItemAnswered(history: History): Anomaly[] {
  return only(history, 'item')
    .filter(({ keyed, outcome }) => keyed && outcome !== 'committed')
    .map((item) => ({
      checker: 'every item answered',
      what: `${item.token} was sent ${item.attempts} times and is still ${item.outcome}`,
      witness: [item],
    }));
}

export function noTrouble(history: History): Anomaly[] {
  return only(history, 'trouble').map((trouble) => ({
    checker: 'no trouble',
    what: `${trouble.who}: ${trouble.text}`,
    witness: [trouble],
  }));
}
