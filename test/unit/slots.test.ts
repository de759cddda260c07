import { expect, test } from 'vitest';
import { Slots } from '../../src/core/fleet/slots.js';

test('slots: so many at once; who waits is told in the order of asking, one for each slot that is given back', () => {
  const slots = new Slots(2);
  const told: string[] = [];
  const ask = (who: string) => slots.take(() => told.push(who));
  const [a, b] = [ask('a'), ask('b')];
  expect([ask('c'), ask('d'), ask('e')]).toEqual([null, null, null]);
  a!();
  expect(told).toEqual(['c']);
  // It is told that it may ask again. Whoever asks first gets the slot.
  const c = ask('c');
  expect(c).not.toBeNull();
  expect(ask('f')).toBeNull();
  b!();
  c!();
  expect(told).toEqual(['c', 'd', 'e']);
});

test('slots: given back twice → counts once', () => {
  const slots = new Slots(1);
  const first = slots.take(() => undefined)!;
  first();
  first();
  expect(slots.take(() => undefined)).not.toBeNull();
  expect(slots.take(() => undefined)).toBeNull();
});
