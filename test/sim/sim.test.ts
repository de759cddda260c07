// Do random faults ever break a promise? The first test runs as many new seeds as fit the time: SEQ_SIM_SECONDS, by
// default 20, or 60 with --all. Half of them lose memory, and half have processes that differ in who the nodes are. The
// seeds depend on the commit, so that no two commits run the same ones. The others are fixed seeds that once failed or
// cover much (broken.test.ts tests the simulation itself).
import { describe, expect, it } from 'vitest';
import { commitSeed } from '../support/commit-seed.js';
import { check } from './checkers/index.js';
import type { Anomaly } from './history.js';
import { minimise } from './minimise.js';
import { anomalyLines, asTest } from './narrate.js';
import { drawScenario, type PlanOptions } from './plan.js';
import { run } from './world.js';

const SECONDS = Number(process.env.SEQ_SIM_SECONDS ?? (process.env.SEQ_TEST_LONG === '1' ? 60 : 20));

/** Leaves room for the seeds that follow. */
const firstSeed = (): number => commitSeed() * 4096;

async function failures(
  seed: number,
  memory: boolean,
  members = false,
): Promise<{ anomalies: Anomaly[]; simulatedMs: number }> {
  const { history, simulatedMs } = await run(drawScenario(seed, { memory, members }));
  return { anomalies: check(history), simulatedMs };
}

async function explain(seed: number, options: PlanOptions, anomalies: Anomaly[]): Promise<string> {
  const small = await minimise(drawScenario(seed, options), anomalies[0]!.checker, 40);
  return [
    `npm run sim -- --seed ${seed}${options.memory ? ' --memory' : ''}${options.members ? ' --members' : ''}`,
    ...anomalyLines(anomalies),
    asTest(small.scenario, `seed ${seed}: ${anomalies[0]!.what}`),
  ].join('\n');
}

describe('simulation', () => {
  it(
    'new seeds → no anomaly',
    async () => {
      const first = firstSeed();
      const end = performance.now() + SECONDS * 1000;
      let seeds = 0;
      let simulatedMs = 0;
      for (; performance.now() < end; seeds++) {
        const memory = seeds % 2 === 1;
        const members = seeds % 4 < 2;
        const result = await failures(first + seeds, memory, members);
        simulatedMs += result.simulatedMs;
        if (result.anomalies.length > 0)
          expect.fail(await explain(first + seeds, { memory, members }, result.anomalies));
      }
      process.stdout.write(
        `simulation: seeds ${first} … ${first + seeds - 1}, ${Math.round(simulatedMs / 1000)} simulated ` +
          `seconds, 0 anomalies\n`,
      );
      expect(seeds).toBeGreaterThan(0);
    },
    (SECONDS + 300) * 1000,
  );

  it.each([
    [84, false], // a candidate below the retained range of the store was called damaged
    [88, false], // a store was emptied while it was the only one
    [5259, true], // a node that forgot all but a raised epoch was never re-admitted
    // an answer was under way while its sender lost its disk, and was checked against the store of that later time
    [3844402034323518, false],
    [79002326, false], // an orphan at the lowest height that the others show: its parent is in a store
    [55, true],
    [541, false],
    [15, false],
  ])('seed %i (lost memory: %s) → no anomaly', async (seed, memory) => {
    expect((await failures(seed, memory)).anomalies).toEqual([]);
  });

  it('a sequencer is paused during a recovery and the removal of two nodes → it ends, and follows again', async () => {
    expect((await failures(2787163312157229, true, true)).anomalies).toEqual([]);
  });

  it('the same seed twice → exactly the same history', async () => {
    const scenario = drawScenario(77, { memory: true });
    const [one, two] = [await run(scenario), await run(scenario)];
    expect(two.history).toEqual(one.history);
    expect(one.history.entries.length).toBeGreaterThan(500);
  });
});
