// What is explored: the full configurations (`npm run model`) and their short forms (`npm run model -- --short`, part of npm test).
import { BASE, type ModelConfig } from './state.js';
import type { Limits } from './explore.js';

export interface Task {
  cfg: ModelConfig;
  limits: Limits;
  /** What was left out, in words; '' = nothing. */
  bounded: string;
}

export const EXHAUSTIVE: Task[] = [
  { cfg: { ...BASE, name: 'pair' }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'pair-expiry', expiries: 1 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'pair-raise', raises: 1 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'two-heights', heights: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'one-wipe', wipes: 1 }, limits: { livenessEvery: 4 }, bounded: '' },
  { cfg: { ...BASE, name: 'one-damage', damages: 1 }, limits: { livenessEvery: 4 }, bounded: '' },
  { cfg: { ...BASE, name: 'three', tenures: 3 }, limits: { livenessEvery: 16 }, bounded: '' },
];

/** Small enough for every npm test; `bounded` is printed with each. */
export const SHORT: Task[] = [
  { cfg: { ...BASE, name: 'pair' }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'two-heights', heights: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  {
    cfg: { ...BASE, name: 'one-wipe', heights: 2, wipes: 1, strays: 1, giveUps: 1, staleStores: false }, limits: { livenessEvery: 16, states: 250_000 },
    bounded: 'one late run and one call given up in each path, no stale stores, liveness in every 16th combination, first 250,000 states',
  },
  {
    cfg: { ...BASE, name: 'one-damage', heights: 2, damages: 1, strays: 1, giveUps: 1, staleStores: false }, limits: { livenessEvery: 16, states: 120_000 },
    bounded: 'one late run and one call given up in each path, no stale stores, liveness in every 16th combination, first 120,000 states',
  },
  {
    cfg: { ...BASE, name: 'three', tenures: 3, strays: 1, giveUps: 1, staleStores: false }, limits: { livenessEvery: 16, states: 250_000 },
    bounded: 'one late run and one call given up in each path, no stale stores, liveness in every 16th combination, first 250,000 states',
  },
];
