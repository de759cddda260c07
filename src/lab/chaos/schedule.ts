// Which kind of fault comes when? Drawn from the seed before anything runs: rounds of faults, each followed by a
// healing and a check. The step's own generator draws the target when the step begins, so "the leader" is whoever leads
// then.
import { Prng } from './prng.js';

interface Step {
  /** ms since the round began. */
  atMs: number;
  fault: string;
  /** Name of the step's random stream. */
  prng: string;
}

export interface Round {
  lengthMs: number;
  steps: Step[];
}

/**
 * Endless rounds; the caller stops when the time is over. Two steps are about half a lease apart, sometimes at the same
 * time.
 */
export function* rounds(seed: number, faults: readonly string[], ttlMs: number): Generator<Round> {
  const kinds = new Prng(seed, 'kinds');
  let bag: string[] = [];
  for (let round = 1; ; round++) {
    const prng = new Prng(seed, `round ${round}`);
    const lengthMs = Math.round(ttlMs * prng.between(10, 24));
    // Some rounds have many faults close together; others leave time to recover between two faults.
    const apartMs = ttlMs * prng.pick([0.4, 1, 2.5]);
    const steps: Step[] = [];
    for (
      let atMs = ttlMs * prng.unit();
      atMs < lengthMs;
      atMs += prng.chance(0.2) ? 0 : apartMs * prng.between(0.3, 1.7)
    ) {
      // Drawn from a shuffled bag, so that every kind comes up once before any comes up twice.
      if (bag.length === 0) bag = kinds.shuffled(faults);
      steps.push({ atMs: Math.round(atMs), fault: bag.pop()!, prng: `round ${round} step ${steps.length + 1}` });
    }
    yield { lengthMs, steps };
  }
}
