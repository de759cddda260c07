// When which kind of fault strikes: drawn from the seed before anything runs. Rounds of faults, each followed by a
// healing and a check. Targets are drawn by the step's own generator when it strikes: "the leader" is whoever leads
// then.
import { Prng } from './prng.js';

interface Step {
  /** ms since the round began. */
  atMs: number;
  fault: string;
  /** Name of the step's stream of chance. */
  prng: string;
}

export interface Round {
  lengthMs: number;
  steps: Step[];
}

/**
 * Rounds without end; whoever runs them stops when the time is over. Two steps are about half a lease apart,
 * sometimes at once.
 */
export function* rounds(seed: number, faults: readonly string[], ttlMs: number): Generator<Round> {
  const kinds = new Prng(seed, 'kinds');
  let bag: string[] = [];
  for (let round = 1; ; round++) {
    const prng = new Prng(seed, `round ${round}`);
    const lengthMs = Math.round(ttlMs * prng.between(10, 24));
    // Some rounds are crowded, some leave time to recover between two faults.
    const apartMs = ttlMs * prng.pick([0.4, 1, 2.5]);
    const steps: Step[] = [];
    for (
      let atMs = ttlMs * prng.unit();
      atMs < lengthMs;
      atMs += prng.chance(0.2) ? 0 : apartMs * prng.between(0.3, 1.7)
    ) {
      // From a bag, so that every kind comes up before any comes up twice as often.
      if (bag.length === 0) bag = kinds.shuffled(faults);
      steps.push({ atMs: Math.round(atMs), fault: bag.pop()!, prng: `round ${round} step ${steps.length + 1}` });
    }
    yield { lengthMs, steps };
  }
}
