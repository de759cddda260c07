// The machine's own clock and randomness as the ports want them. Timers do not keep a finished process alive.
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../ports.js';

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

export const systemRandom: Random = {
  hex: (bytes) => randomBytes(bytes).toString('hex'),
  unit: () => Math.random(),
};
