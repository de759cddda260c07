// What one look at the nodes lets a follower conclude: who would vote for it, and when the lease is over.
import { describe, expect, test } from 'vitest';
import { untilFreeMs, votesOf, type ProbeResult } from '../../src/core/nodes/probe.js';
import { generationOf } from '../../src/core/generation.js';
import type { NodePort } from '../../src/core/ports.js';
import type { NodeView } from '../../src/core/protocol/types.js';

const NODES = ['r1', 'r2', 'r3'].map((id) => ({ id }) as NodePort);
const AT = 1000;

/** A lock's ms left; null: free; undefined: no answer. */
function seen(...locks: (number | null | undefined)[]): ProbeResult {
  return {
    sentAt: AT,
    at: AT,
    heardAt: locks.map(() => AT),
    replies: locks.map((left) =>
      left === undefined
        ? { outcome: 'unknown', step: 'call', cause: 'no answer' }
        : {
            outcome: 'accepted',
            incarnation: 'i',
            value: {
              admission: 'admitted',
              epoch: 4,
              lock: left === null ? null : { owner: 'seq-a/1', pttlMs: left },
              hold: null,
              handover: null,
            } as NodeView,
          },
    ),
  };
}

describe('votes', () => {
  test.each([
    ['all free', seen(null, null, null), 0, [0, 1, 2]],
    ['held, at once', seen(3, 3, 3), 0, []],
    ['held, in the last of the ms that it named', seen(3, 3, 3), 3, []],
    ['held, once they are over', seen(3, 3, 3), 3.5, [0, 1, 2]],
    ['some for longer', seen(3, 900, 2), 4, [0, 2]],
    ['in its last millisecond', seen(0, 0, null), 0, [2]],
    ['a lock that does not run out', seen(-1, -1, null), 5, [2]],
    ['silent is not free', seen(undefined, 2, 2), 5, [1, 2]],
  ] as const)('look: %s → who would vote', (_name, probe, afterMs, nodes) => {
    expect(votesOf(probe, NODES, 'seq-b', { at: AT + afterMs }).votes.map(({ node }) => node)).toEqual(nodes);
  });
});

describe('an epoch that was written by hand', () => {
  const LEAP = 2 ** 32;
  test.each([
    ['in step', [4, 4, 4], [0, 1, 2]],
    ['one a leap ahead', [4, 4, 4 + LEAP], [0, 1, 2]],
    ['one further ahead than any leap', [4, 4, 5 + LEAP], [0, 1]],
    ['one at the end of the numbers', [2 ** 48, 4, 4], [1, 2]],
    ['one just below it', [4, 2 ** 48 - 1, 4], [0, 2]],
    ['a quorum is never made smaller', [4, 2 ** 47, undefined], [0, 1]],
    ['most are ahead', [2 ** 47, 4, 2 ** 47], [0, 1, 2]],
  ] as const)('%s → who would vote', (_name, epochs, nodes) => {
    const probe = seen(...epochs.map((epoch) => (epoch === undefined ? undefined : null)));
    probe.replies.forEach((reply, i) => {
      if (reply?.outcome === 'accepted') reply.value.epoch = epochs[i]!;
    });
    expect(votesOf(probe, NODES, 'seq-b').votes.map(({ node }) => node)).toEqual(nodes);
  });
});

test('a generation that no recovery can have reached is none', () => {
  expect(['a.1', 'a.2147483648', 'a.2147483649', 'a.x', 'a'].map(generationOf)).toEqual([1, 2 ** 31, 0, 0, 0]);
});

describe('the end of the lease', () => {
  test.each([
    ['all free', seen(null, null, null), 0],
    ['the second to run out counts', seen(10, 400, 90), 90],
    ['a lock in its last millisecond is held still', seen(0, 0, 0), 1],
    ['one free, one silent', seen(null, undefined, 40), 40],
    ['two silent', seen(null, undefined, undefined), 500],
    ['a lock that does not run out', seen(-1, -1, 5), 500],
  ] as const)('look: %s → so many ms', (_name, probe, ms) => {
    expect(untilFreeMs(probe, 2, 500)).toBe(ms);
  });
});
