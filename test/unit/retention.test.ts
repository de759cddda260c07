// How much a leader keeps on nodes that run full, and when a follower is told that the window closes on it: rounds of
// facts in, steps out.
import { describe, expect, test } from 'vitest';
import { diagnose } from '../../src/core/report/doctor.js';
import type { CheckedNode } from '../../src/core/report/doctor-finding.js';
import { forecastOf } from '../../src/core/report/doctor-memory.js';
import { Retention } from '../../src/core/sequencer/lead/retention.js';
import { retentionMargin, type RetentionMargin } from '../../src/core/sequencer/follow/retention-margin.js';

/** A chain of `length` blocks; every round one more is committed between the facts and the next. */
function play(rounds: { used: number[]; refused?: string[] }[], length = 1000): string[] {
  let head = length;
  const said: string[] = [];
  const retention = new Retention({
    limits: { maxBlockBytes: 1, retainBlocks: 1000, retainBytes: 1e9 },
    spare: () => 1,
    head: () => head,
    blocksIn: ({ retainBlocks }) => Math.min(head, retainBlocks),
    changed: ({ from, to }) => void said.push(`${from} → ${to}`),
  });
  for (const { used, refused = [] } of rounds) {
    for (const node of refused) retention.refused(node);
    retention.learn(
      used.map((share, at) => ({ node: `r${at + 1}`, usedMemory: share * 100, maxMemory: share < 0 ? 0 : 100 })),
      head,
    );
    said.push(String(retention.limits().retainBlocks));
    head += 3;
  }
  return said;
}

describe('window: what the nodes say of their memory → how many blocks are kept', () => {
  test.each<[string, Parameters<typeof play>[0], string[]]>([
    ['room enough', [{ used: [0.5, 0.5, 0.89] }], ['1000']],
    ['no limit set', [{ used: [-1, -1, -1] }], ['1000']],
    ['all full', [{ used: [0.96, 0.96, 0.96] }], ['1000 → 833', '833']],
    [
      'still full after the next blocks',
      [{ used: [0.96, 0.96, 0.96] }, { used: [0.96, 0.96, 0.96] }],
      ['1000 → 833', '833', '833 → 694', '694'],
    ],
    [
      'no more than it was, no less than before',
      [{ used: [0.96, 0.96, 0.96] }, { used: [0.8, 0.8, 0.8] }],
      ['1000 → 833', '833', '833'],
    ],
    [
      'room to spare again',
      [{ used: [0.96, 0.96, 0.96] }, { used: [0.6, 0.6, 0.6] }],
      ['1000 → 833', '833', '833 → 1000', '1000'],
    ],
    [
      'little room: not worth a step',
      [{ used: [2, 2, 2] }, { used: [0.69, 0.69, 0.69] }],
      ['1000 → 400', '400', '400'],
    ],
    ['one node refuses once: what was set aside goes first', [{ used: [0.5, 0.5, 0.5], refused: ['r3'] }], ['1000']],
    ['one node refuses again', [{ used: [0.5, 0.5, 0.5], refused: ['r3', 'r3'] }], ['1000 → 800', '800']],
    [
      'one node alone is full of other things: not below 16',
      Array.from({ length: 40 }, () => ({ used: [0.2, 0.2, 1.5] })),
      expect.arrayContaining(['16']) as unknown as string[],
    ],
  ])('window: %s', (_, rounds, expected) => {
    expect(play(rounds)).toEqual(expected);
  });

  test('window: a quorum full of other things → down to two blocks, never less, each step once', () => {
    const said = play(Array.from({ length: 40 }, () => ({ used: [1.5, 1.5, 0.2] })));
    expect(said.at(-1)).toBe('2');
    expect(said.filter((text) => text.includes('→')).length).toBeLessThan(20);
    expect(play(Array.from({ length: 40 }, () => ({ used: [0.2, 0.2, 1.5] }))).at(-1)).toBe('16');
  });
});

describe('window: a follower at its edge', () => {
  test.each<[RetentionMargin, number, { floor: number; head: number }, RetentionMargin]>([
    ['inside', 500, { floor: 0, head: 500 }, 'inside'],
    ['inside', 995, { floor: 900, head: 1000 }, 'inside'],
    ['inside', 930, { floor: 900, head: 1000 }, 'inside'],
    ['inside', 920, { floor: 900, head: 1000 }, 'falling'],
    ['falling', 930, { floor: 900, head: 1000 }, 'falling'],
    ['falling', 960, { floor: 900, head: 1000 }, 'inside'],
    ['inside', 899, { floor: 900, head: 1000 }, 'outside'],
    ['inside', 900, { floor: 900, head: 1000 }, 'falling'],
    ['inside', 2, { floor: 0, head: 1000 }, 'inside'],
    ['inside', 97, { floor: 96, head: 101 }, 'inside'],
  ])('window: %s at %i of %j → %s', (before, mine, nodes, expected) => {
    expect(retentionMargin(before, mine, nodes)).toBe(expected);
  });
});

describe('doctor: the memory that will be needed', () => {
  const node = (maxmemory: number, extra: Record<string, string>): CheckedNode => ({
    id: 'r1',
    url: 'redis://r1',
    view: {
      outcome: 'accepted',
      incarnation: '',
      value: {
        admission: 'admitted',
        admissionWhy: '',
        head: 200,
        floor: 100,
        timeMs: 0,
        sequencers: [{ id: 'a', role: 'leader', configDigest: 'x', extra }],
      },
    } as unknown as CheckedNode['view'],
    checkup: {
      outcome: 'accepted',
      incarnation: '',
      value: {
        info: {
          redis_version: '7.0.15',
          aof_enabled: '1',
          uptime_in_seconds: '9000',
          used_memory: '10000000',
          maxmemory: String(maxmemory),
          total_system_memory: '1000000000',
        },
        config: { appendfsync: 'always', 'notify-keyspace-events': 'Exg' },
        user: 'default',
        denied: [],
        grant: '',
        roundTripsMs: [0.1],
        clockMs: 0,
        aclRule: '',
      },
    },
  });
  const told = { blockBytes: '99700', blockEveryMs: '1000', retainBlocks: '1000', retainBytes: '1000000000' };
  test.each<[string, CheckedNode, { fullBytes: number | null; reachedInMs: number | null }]>([
    ['fits', node(200_000_000, told), { fullBytes: 100_000_000, reachedInMs: null }],
    ['does not: in 800 s', node(100_000_000, told), { fullBytes: 100_000_000, reachedInMs: 800_000 }],
    [
      'the window ends by bytes',
      node(100_000_000, { ...told, retainBytes: '39880000' }),
      { fullBytes: 40_000_000, reachedInMs: null },
    ],
    ['nobody says how large blocks are', node(100_000_000, {}), { fullBytes: null, reachedInMs: null }],
  ])('doctor: %s', (_, one, expected) => {
    expect(forecastOf([one])[0]).toMatchObject(expected);
    const found = diagnose([one], {
      nodeTimeoutMs: 100,
      ttlMs: 3000,
      retainBytes: 1e6,
      maxBlockBytes: 1000,
      target: '',
    }).filter(({ check, what }) => check === 'memory' && what.includes('about'));
    expect(found.map(({ what }) => /in about (.*?);/.exec(what)?.[1])).toEqual(
      expected.reachedInMs === null ? [] : ['13 min'],
    );
  });
});
