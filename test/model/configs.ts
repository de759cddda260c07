// Which state spaces does the model explore? `EXHAUSTIVE` and `PROCESSES` are the full runs (`npm run model`). `SHORT`
// has the small ones (`npm run model -- --short`), which are part of npm test.
import { bootstrapConfig } from './bootstrap.js';
import type { ProcessConfig } from './processes.js';
import { recoveryConfig } from './recovery.js';
import { BASE, type ModelConfig } from './state.js';
import type { Limits } from './explore.js';

export interface Task {
  cfg: ModelConfig;
  limits: Limits;
  /** What is left out of this space, as text for people. Empty if nothing is left out. */
  bounded: string;
}

const ONE_EACH = 'one late run and one call given up in each path, no stale stores';
const QUIET = 'no call given up, none late, no stale stores';

export const EXHAUSTIVE: Task[] = [
  { cfg: { ...BASE, name: 'pair' }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'pair-expiry', expiries: 1 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'pair-raise', raises: 1 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'two-heights', heights: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'repair', repairs: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'repair-choice', repairs: 1, conflict: true }, limits: { livenessEvery: 1 }, bounded: '' },
  {
    cfg: { ...BASE, name: 'repair-wipe', repairs: 1, wipes: 1, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: ONE_EACH,
  },
  {
    cfg: { ...BASE, name: 'repair-fix', repairs: 1, damages: 1, fixes: 1, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: ONE_EACH,
  },
  {
    cfg: { ...BASE, name: 'window', heights: 3, window: 2, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 1 },
    bounded: ONE_EACH,
  },
  {
    cfg: { ...BASE, name: 'rollback', rollbacks: 1, strays: 1, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: 'one late run in each path, no call given up, no stale stores',
  },
  {
    cfg: { ...BASE, name: 'twins', twins: 1, heights: 3, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 16 },
    bounded: ONE_EACH,
  },
  {
    cfg: { ...BASE, name: 'three-twins', terms: 3, twins: 1, heights: 2, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 16 },
    bounded: QUIET,
  },
  {
    cfg: { ...BASE, name: 'twins-wipe', twins: 1, heights: 2, wipes: 1, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: QUIET,
  },
  {
    cfg: { ...BASE, name: 'twins-repair', twins: 1, heights: 2, repairs: 2, strays: 1, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: 'one late run in each path, no call given up, no stale stores',
  },
  {
    cfg: { ...BASE, name: 'lists', terms: 3, otherLists: true, strays: 1, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 16 },
    bounded: 'one late run in each path, no call given up, no stale stores',
  },
  {
    cfg: { ...BASE, name: 'resize', resizes: 1, heights: 2, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: QUIET,
  },
  {
    cfg: { ...BASE, name: 'resize-wipe', resizes: 1, heights: 2, wipes: 1, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 16 },
    bounded: QUIET,
  },
  { cfg: { ...BASE, name: 'one-wipe', wipes: 1 }, limits: { livenessEvery: 4 }, bounded: '' },
  { cfg: { ...BASE, name: 'one-damage', damages: 1 }, limits: { livenessEvery: 4 }, bounded: '' },
  { cfg: { ...BASE, name: 'three', terms: 3 }, limits: { livenessEvery: 16 }, bounded: '' },
];

/**
 * Two operators at once, with the real use cases of `seq cluster init` and `seq cluster recover`. The cases with one
 * operator run in every npm test (processes.test.ts).
 */
export const PROCESSES: { name: string; cfg: ProcessConfig; bounded: string }[] = [
  { name: 'two-bootstraps', cfg: bootstrapConfig(2, { unknowns: 1 }), bounded: 'one answer lost in each path' },
  { name: 'two-recoveries', cfg: recoveryConfig(2, { unknowns: 0 }), bounded: 'no answer lost' },
];

/** Small enough for every npm test. The output prints `bounded` for each. */
export const SHORT: Task[] = [
  { cfg: { ...BASE, name: 'pair' }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'two-heights', heights: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'repair', repairs: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  {
    cfg: { ...BASE, name: 'repair-choice', repairs: 1, conflict: true, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: `${QUIET}, liveness in every 4th combination`,
  },
  {
    cfg: { ...BASE, name: 'repair-wipe', repairs: 1, wipes: 1, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: `${QUIET}, liveness in every 4th combination`,
  },
  {
    cfg: { ...BASE, name: 'repair-fix', repairs: 1, damages: 1, fixes: 1, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: `${QUIET}, liveness in every 4th combination`,
  },
  {
    cfg: { ...BASE, name: 'window', heights: 3, window: 2, strays: 0, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: 'one call given up in each path, none late, no stale stores, liveness in every 4th combination',
  },
  {
    cfg: { ...BASE, name: 'rollback', rollbacks: 1, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 16 },
    bounded: `${QUIET}, liveness in every 16th combination`,
  },
  {
    cfg: { ...BASE, name: 'twins', twins: 1, heights: 2, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 16 },
    bounded: `${QUIET}, liveness in every 16th combination`,
  },
  {
    cfg: { ...BASE, name: 'resize', resizes: 1, heights: 2, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 16, states: 80_000 },
    bounded: `${QUIET}, liveness in every 16th combination, first 80,000 states`,
  },
  {
    cfg: { ...BASE, name: 'lists', otherLists: true, strays: 0, giveUps: 0, staleStores: false },
    limits: { livenessEvery: 4 },
    bounded: `${QUIET}, liveness in every 4th combination`,
  },
  {
    cfg: { ...BASE, name: 'one-wipe', heights: 2, wipes: 1, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 16, states: 100_000 },
    bounded:
      'one late run and one call given up in each path, no stale stores, liveness in every 16th ' +
      'combination, first 100,000 states',
  },
  {
    cfg: { ...BASE, name: 'one-damage', heights: 2, damages: 1, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 16, states: 80_000 },
    bounded:
      'one late run and one call given up in each path, no stale stores, liveness in every 16th ' +
      'combination, first 80,000 states',
  },
  {
    cfg: { ...BASE, name: 'three', terms: 3, strays: 1, giveUps: 1, staleStores: false },
    limits: { livenessEvery: 16, states: 100_000 },
    bounded:
      'one late run and one call given up in each path, no stale stores, liveness in every 16th ' +
      'combination, first 100,000 states',
  },
];
