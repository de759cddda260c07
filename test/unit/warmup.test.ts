// Warm-up: a whole leadership runs to its end in the in-memory cluster. Nothing of it is seen outside, and it never
// delays real work.
import { describe, expect, test } from 'vitest';
import { keepWarm, warmUp } from '../../src/core/sequencer/warmup/warmup.js';
import type { NodePort } from '../../src/core/ports.js';
import { batchProducer } from '../../src/core/produce/batch.js';
import { ManualClock } from '../support/manual-clock.js';

const random = { hex: (bytes: number) => '0'.repeat(2 * bytes), unit: () => 0.5 };

function inMemory(clock: ManualClock) {
  let made = 0;
  const producer = () => {
    made++;
    return batchProducer({ maxBlockBytes: 1_000_000 });
  };
  return { options: { nodes: 3, producer, clock, random }, lives: () => made };
}

describe('warm-up', () => {
  test.each([1, 3, 5])('warm-up: n=%i, one life → led twice, stepped down on request, over in time', async (nodes) => {
    const clock = new ManualClock();
    const { options } = inMemory(clock);
    const told: string[] = [];
    const life = warmUp({
      ...options,
      nodes,
      tell: (event) => told.push(event.type === 'role' ? event.to : event.type),
    });
    await clock.advance(500);
    expect(await life).toBe(true);
    expect(told.filter((what) => ['promoting', 'leader'].includes(what))).toEqual([
      'promoting',
      'leader',
      'promoting',
      'leader',
    ]);
    expect(told).not.toContain('alarm');
  });

  test('warm-up: a producer that fails → said as false, never thrown', async () => {
    const clock = new ManualClock();
    const { options } = inMemory(clock);
    const life = warmUp({
      ...options,
      producer: () => ({
        ...batchProducer({ maxBlockBytes: 1_000_000 }),
        produce: () => Promise.reject(new Error('no')),
      }),
    });
    await clock.advance(5000);
    expect(await life).toBe(false);
  });

  test(
    'warm-up: kept → nodes prepared and lives played soon after the start and from time to time, ' +
      'none while busy, none once stopped',
    async () => {
      const clock = new ManualClock();
      const { options, lives } = inMemory(clock);
      let prepared = 0;
      let busy = true;
      const real = [
        {
          prepare: async () => {
            prepared++;
          },
        },
      ] as unknown as NodePort[];
      const stop = keepWarm({ ...options, real, busy: () => busy });
      await clock.advance(2000);
      expect({ prepared, lives: lives() }).toEqual({ prepared: 0, lives: 0 });
      busy = false;
      await clock.advance(10_000);
      expect({ prepared, lives: lives() }).toEqual({ prepared: 1, lives: 3 });
      await clock.advance(60_000);
      expect({ prepared, lives: lives() }).toEqual({ prepared: 2, lives: 4 });
      stop();
      await clock.advance(600_000);
      expect({ prepared, lives: lives() }).toEqual({ prepared: 2, lives: 4 });
    },
  );
});
