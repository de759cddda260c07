// The first height at which a store and a node's stream differ: `store | node` as one letter a height, a dot for what
// the node has trimmed.
import { describe, expect, test } from 'vitest';
import { whereTheyPart } from '../../src/core/stream/divergence.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import type { ChainStore, NodePort } from '../../src/core/ports.js';

const hash = (letter: string, height: number): string => `${letter}${height}`.padEnd(64, '0');

function node(id: string, chain: string | null): NodePort {
  const floor = chain?.lastIndexOf('.') ?? 0;
  const letters = (chain ?? '').replaceAll('.', chain?.[floor + 1] ?? '');
  return {
    id,
    url: id,
    call: () =>
      Promise.resolve(
        chain === null
          ? { outcome: 'unknown', step: 'connect', cause: 'refused' }
          : {
              outcome: 'accepted',
              incarnation: 'i',
              value: {
                cluster: 'c.1',
                floor: floor + 1,
                floorHash: floor < 0 ? hash('g', 0) : hash(letters[floor]!, floor + 1),
                head: letters.length,
              },
            },
      ),
    read: ({ from }: { from: number }) =>
      Promise.resolve({
        outcome: 'accepted',
        incarnation: 'i',
        value: {
          entries: from <= letters.length ? [{ height: from, hash: hash(letters[from - 1]!, from) }] : [],
          damaged: [],
          lastId: '',
        },
      }),
  } as unknown as NodePort;
}

const store = (chain: string) =>
  ({
    head: () => ({ height: chain.length, hash: '' }),
    header: (height: number) =>
      height >= 1 && height <= chain.length ? { height, hash: hash(chain[height - 1]!, height), epoch: 7 } : undefined,
  }) as unknown as ChainStore;

describe('where they part', () => {
  test.each<[string, string, (string | null)[], RegExp]>([
    ['the same', 'aaaaa', ['aaaaa', 'aaa', 'aaaaaaa'], /^$/],
    [
      'from 4 on',
      'aaabbbbb',
      ['aaacccc', 'aaaccc', null],
      /^the first height at which they differ is 4: this store has b4\w* of epoch 7, r1, r2 have c4/,
    ],
    ['at the head alone', 'aaab', ['aaac'], /differ is 4: .* r1 has c4/],
    ['from the first on', 'bbbb', ['aaaaaa'], /differ is 1: /],
    ['before what is retained', 'bbbbbbbb', ['...aaaaa'], /differ is 3 or lower/],
    ['within a window', 'aaaaabbb', ['...aaccc'], /differ is 6: /],
    ['the store ends below the window', 'ab', ['...aaaaa'], /^$/],
    ['nobody answers', 'ab', [null, null], /^$/],
  ])('parting: %s', async (_, mine, theirs, expected) => {
    expect(
      await whereTheyPart(
        theirs.map((chain, at) => node(`r${at + 1}`, chain)),
        store(mine),
        100,
        systemClock,
      ),
    ).toMatch(expected);
  });
});
