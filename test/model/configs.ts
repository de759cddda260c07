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
  { cfg: { ...BASE, name: 'pair', tenures: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'pair-x1', tenures: 2, expiries: 1 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'two-heights', tenures: 2, heights: 2 }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'one-wipe', tenures: 2, wipes: 1, lazyProposals: true }, limits: { livenessEvery: 1 }, bounded: '' },
  { cfg: { ...BASE, name: 'three', tenures: 3 }, limits: { livenessEvery: 1 }, bounded: '' },
];
export const SHORT: Task[] = EXHAUSTIVE;
