// Interleaved rounds: A B A B …. Every other round has the reverse order, and the first rounds only warm up. Nothing is
// asserted.
import { nowAndThen } from './progress.js';
import { rowOf, ratioOfRounds, ratioOfTails, type Spread } from './statistics.js';
import type { Row } from './words.js';

export interface Side {
  name: string;
  /** One unit of work. Its duration in ms is a sample, unless it returns a sample of its own. */
  work(): Promise<number | void>;
}

export interface Measured {
  /** Per side: one list of samples for each round. */
  samples: Map<string, number[][]>;
  rows: Row[];
  /** `b` ÷ `a`, the median over rounds. */
  ratio(a: string, b: string, q?: number): Spread;
  /** `b` ÷ `a` of the 99th percentile over all rounds. */
  tail(a: string, b: string): Spread;
}

export async function interleave(
  sides: readonly Side[],
  options: { rounds: number; perRound: number; warm?: number; say?: (text: string) => void },
): Promise<Measured> {
  const warm = options.warm ?? 2;
  const say = nowAndThen(options.say ?? (() => undefined));
  const samples = new Map(sides.map(({ name }) => [name, [] as number[][]]));
  const seconds = new Map(sides.map(({ name }) => [name, 0]));
  for (let round = 0; round < warm + options.rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      const mine: number[] = [];
      const roundAt = performance.now();
      for (let i = 0; i < options.perRound; i += 1) {
        const at = performance.now();
        const own = await side.work();
        mine.push(typeof own === 'number' ? own : performance.now() - at);
      }
      say(
        `${side.name}: round ${round + 1} of ${warm + options.rounds}, ` +
          `${((performance.now() - roundAt) / 1000).toFixed(0)} s`,
      );
      if (round < warm) continue;
      samples.get(side.name)!.push(mine);
      seconds.set(side.name, seconds.get(side.name)! + (performance.now() - roundAt) / 1000);
    }
  }
  const of = (name: string): number[][] => samples.get(name)!;
  return {
    samples,
    rows: sides.map(({ name }) => rowOf(name, of(name), seconds.get(name)!)),
    ratio: (a, b, q = 0.5) => ratioOfRounds(of(a), of(b), q),
    tail: (a, b) => ratioOfTails(of(a), of(b), 0.99),
  };
}
