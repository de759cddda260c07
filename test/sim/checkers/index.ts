// All checkers, in order of severity.
import type { Anomaly, Checker, History } from '../history.js';
import { acknowledged } from './acknowledged.js';
import { identicalNodes, links, liveness } from './converged.js';
import { epochs } from './epochs.js';
import { fencing } from './fencing.js';
import { linearizable } from './linearizable.js';
import { oneBlockPerHeight } from './one-block-per-height.js';
import { reads } from './reads.js';
import { truthful } from './truthful.js';

const CHECKERS: readonly Checker[] = [
  oneBlockPerHeight,
  fencing,
  epochs,
  acknowledged,
  reads,
  linearizable,
  links,
  identicalNodes,
  truthful,
  liveness,
];

export function check(history: History): Anomaly[] {
  return CHECKERS.flatMap((checker) => checker(history));
}
