// The machine's own clock and randomness, as ports. Timers do not keep a finished process alive.
import { randomBytes } from 'node:crypto';
import type { Clock, Random } from '../ports.js';

/** Length of the last part of a wait for a moment. In this part, every turn of the event loop checks the time. */
const TURNS_MS = 2;

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  after(ms, run) {
    const timer = setTimeout(run, Math.max(0, ms));
    return () => clearTimeout(timer);
  },
  /**
   * Timers use whole milliseconds, and their start time may be a millisecond old. So they fire up to two milliseconds
   * early or late. In the last two milliseconds, every turn of the event loop checks the time.
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
