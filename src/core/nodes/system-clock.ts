// The machine's own clock and randomness behind the ports. Timers do not keep a finished process alive.
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../ports.js';

/** How much of a wait until a moment is counted turn by turn. */
const TURNS_MS = 2;

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.max(0, ms));
    return () => clearTimeout(timer);
  },
  /**
   * Timers know whole milliseconds of a time that may be a millisecond old: early or late by up to two. The last two
   * are counted turn by turn of the loop.
   */
  at(time, run) {
    let timer: NodeJS.Timeout | undefined;
    let turn: NodeJS.Immediate | undefined;
    const wait = (): void => {
      const left = time - performance.now();
      if (left <= 0) run();
      else if (left > TURNS_MS) timer = setTimeout(wait, left - TURNS_MS);
      else turn = setImmediate(wait);
    };
    turn = setImmediate(wait);
    return () => {
      clearTimeout(timer);
      clearImmediate(turn);
    };
  },
};

export const systemRandom: Random = {
  hex: (bytes) => randomBytes(bytes).toString('hex'),
  unit: () => Math.random(),
};
