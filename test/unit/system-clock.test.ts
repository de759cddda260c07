// The machine's clock: a wait ends at the very moment that was asked for.
import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/nodes/system-clock.js';

test.each([0, 0.3, 1.5, 6.2])('clock: a moment %f ms ahead → called back once, not before it', async (ms) => {
  const time = systemClock.now() + ms;
  let calls = 0;
  const at = await new Promise<number>((resolve) =>
    systemClock.at!(time, () => {
      calls++;
      resolve(systemClock.now());
    }),
  );
  expect(at).toBeGreaterThanOrEqual(time);
  expect(calls).toBe(1);
});

test.each([0, 1.5, 6.2])('clock: a moment %f ms ahead, given up at once → not called back', async (ms) => {
  let calls = 0;
  systemClock.at!(systemClock.now() + ms, () => calls++)();
  await new Promise<void>((resolve) => systemClock.at!(systemClock.now() + ms + 1, resolve));
  expect(calls).toBe(0);
});
