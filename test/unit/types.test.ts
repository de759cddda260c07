// Heights, epochs, hashes, owners and incarnations do not mix: `tsc -p test` refuses a line below whose marked error is
// gone. The assertion at run time only shows that the mark exists for the compiler alone.
import { expect, test } from 'vitest';
import type { Epoch, Hash, Height, Incarnation, Owner } from '../../src/core/protocol/types.js';

const height: Height = 7;
const epoch: Epoch = 3;
const hash: Hash = 'ab';
const owner: Owner = 's1/0123456789abcdef';
const incarnation: Incarnation = 'boot';

// @ts-expect-error a height is no epoch
const epochOfHeight: Epoch = height;
// @ts-expect-error an epoch is no height
const heightOfEpoch: Height = epoch;
// @ts-expect-error an owner is no hash
const hashOfOwner: Hash = owner;
// @ts-expect-error a hash is no incarnation
const incarnationOfHash: Incarnation = hash;
// @ts-expect-error an incarnation is no owner
const ownerOfIncarnation: Owner = incarnation;

test('types: values of one kind, at run time → plain numbers and texts', () => {
  expect([epochOfHeight, heightOfEpoch, hashOfOwner, incarnationOfHash, ownerOfIncarnation]).toEqual([
    7,
    3,
    's1/0123456789abcdef',
    'ab',
    'boot',
  ]);
  const next: Height = height + 1;
  expect(next).toBe(8);
});
