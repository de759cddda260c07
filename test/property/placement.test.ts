// Placement of lanes over sequencers: everybody computes the same order, each has its share, and who comes or goes
// moves its own share alone.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { placementKey, placementOrder } from '../../src/core/fleet/placement.js';

const ids = fc.uniqueArray(fc.stringMatching(/^[a-z0-9-]{1,12}$/), { minLength: 2, maxLength: 8 });
const lane = fc.stringMatching(/^[a-z0-9-]{1,32}$/);

test('placement: the order does not depend on the order in which sequencers are named', () => {
  fc.assert(
    fc.property(lane, ids, (name, all) => {
      expect(placementOrder(name, [...all].reverse())).toEqual(placementOrder(name, all));
    }),
  );
});

test('placement: without one sequencer, the others keep their order', () => {
  fc.assert(
    fc.property(lane, ids, fc.nat(), (name, all, which) => {
      const gone = all[which % all.length]!;
      const rest = all.filter((id) => id !== gone);
      expect(placementOrder(name, rest)).toEqual(placementOrder(name, all).filter((id) => id !== gone));
    }),
  );
});

test('placement: the key of the turns gives the same order', () => {
  fc.assert(
    fc.property(lane, ids, (name, all) => {
      const byKey = [...all].sort((a, b) => (placementKey(name, a) < placementKey(name, b) ? -1 : 1));
      expect(placementOrder(name, all)).toEqual(byKey);
    }),
  );
});

test('placement: 1,000 lanes over 2 to 5 sequencers → each is first for its share, within a fifth', () => {
  for (let count = 2; count <= 5; count++) {
    const all = Array.from({ length: count }, (_, i) => `seq-${String.fromCharCode(97 + i)}`);
    const firsts = new Map(all.map((id) => [id, 0]));
    for (let i = 0; i < 1000; i++) {
      const [first] = placementOrder(`tile-${i}`, all);
      firsts.set(first!, firsts.get(first!)! + 1);
    }
    for (const [id, share] of firsts)
      expect(Math.abs(share - 1000 / count), `${id} of ${count}`).toBeLessThan(1000 / count / 5);
  }
});
