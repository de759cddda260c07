// How long the pause after a batch of a filling is (docs/PROTOCOL.md section 8, step 2): a table of what was measured.
import { describe, expect, test } from 'vitest';
import {
  abreast,
  batchSize,
  gateMissed,
  newPace,
  pauseAfter,
  type FillPace,
} from '../../src/core/protocol/fill-pace.js';

/** The weight of a batch. Twenty of them are more than what is filled at once. */
const BATCH = 2_000_000;

/**
 * Batches of 10 ms, back to back. `newAMs`: the weight that is committed in a ms, in thousandths of what is copied in a
 * ms.
 */
function fillFor(
  ms: number,
  newAMs: number,
  slid = 0,
  all = false,
  weight = BATCH,
): { pace: FillPace; pauseMs: number } {
  const pace = newPace(0, 0);
  let pauseMs = NaN;
  for (let now = 10; now <= ms; now += 10)
    pauseMs = pauseAfter(pace, { weight, tookMs: 10, all }, (newAMs / 1000) * (weight / 10) * now, slid, now);
  return { pace, pauseMs };
}

describe('the pace of a filling', () => {
  test.each<[string, Parameters<typeof fillFor>, number]>([
    ['nothing was measured yet', [190, 10], 0],
    ['hardly anything comes new: a tenth of the time', [200, 10], 90],
    ['copying what comes new takes a tenth of the time: twice that', [200, 100], 40],
    ['copying it takes a fifth', [200, 200], 15],
    ['copying it takes more than a quarter: nothing is spared', [200, 260], 0],
    ['more comes new than can be copied', [200, 2000], 0],
    ['a quarter of the window has slid away', [200, 10, 0.26], 0],
    ['less than a quarter has', [200, 10, 0.25], 90],
    ['it has everything but what came meanwhile', [200, 10, 0, true], 0],
    ['a slow machine: the first 16 MiB are still on their way', [400, 10, 0, false, 415_000], 0],
    ['… they are filled', [410, 10, 0, false, 415_000], 90],
    ['a very slow machine: after one and a half seconds, commits are spared all the same', [1500, 10, 0, false, 1], 90],
  ])('pace: %s → the pause', (_, args, expected) => {
    const { pace, pauseMs } = fillFor(...args);
    expect(pauseMs).toBeCloseTo(expected, 6);
    const kib = pace.share > 1 ? 1024 : pace.share > 0.5 ? 256 : 64;
    expect(batchSize(false, pace).bytes).toBe(kib * 1024);
  });

  test('pace: paused, and then more comes new → the pause shrinks at the next measurement, down to none', () => {
    const { pace } = fillFor(200, 10);
    const pauses: number[] = [];
    let fresh = 2 * (BATCH / 10);
    for (let now = 300; now <= 1100; now += 100)
      pauses.push(pauseAfter(pace, { weight: BATCH, tookMs: 10, all: false }, (fresh += 3 * BATCH), 0, now));
    expect(pauses[0]).toBe(90);
    expect(pauses.at(-1)).toBe(0);
  });

  test('pace: one batch took a second → the pause has a bound', () => {
    const { pace } = fillFor(200, 10);
    expect(pauseAfter(pace, { weight: BATCH, tookMs: 1000, all: false }, 2 * (BATCH / 10), 0, 201)).toBe(250);
  });

  test(
    'pace: two batches in a row took everything → it comes no nearer; not before it was seen for a ' +
      'moment, nor soon after a gate closed in vain',
    () => {
      const { pace } = fillFor(200, 10, 0, true);
      expect(abreast(pace, 100)).toBe(false);
      expect(abreast(pace, 200)).toBe(true);
      const waited = [1, 2, 3].map(() => {
        gateMissed(pace);
        let batches = 0;
        for (; !abreast(pace, 1000); batches += 1) pauseAfter(pace, { weight: 1, tookMs: 1, all: true }, 0, 0, 1000);
        return batches;
      });
      expect(waited).toEqual([10, 18, 34]);
    },
  );
});
