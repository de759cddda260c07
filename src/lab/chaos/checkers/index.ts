// All checkers of a chaos run. Each is pure: history → anomalies with their witness.
import type { Anomaly, Checker, History } from '../history.js';
import { chainLinks, nodesIdentical, oneBlockPerHeight, readersInOrder, storesNeverGoBack } from './chain.js';
import { clientOrder, itemsAsTold } from './items.js';
import { linearizable } from './linearizable.js';
import { everyKeyedItemAnswered, healsInTime, noTrouble } from './liveness.js';
import { epochsRise, epochsUnique } from './terms.js';

const CHECKERS: readonly Checker[] = [
  oneBlockPerHeight,
  chainLinks,
  readersInOrder,
  storesNeverGoBack,
  nodesIdentical,
  itemsAsTold,
  clientOrder,
  epochsUnique,
  epochsRise,
  linearizable,
  healsInTime,
  everyKeyedItemAnswered,
  noTrouble,
];

export function checkHistory(history: History): Anomaly[] {
  return CHECKERS.flatMap((checker) => checker(history));
}
