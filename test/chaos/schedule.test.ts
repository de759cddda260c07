// Does the chaos scheduler draw everything from the seed, and does it never let a quorum forget?
import { describe, expect, test } from 'vitest';
import type { NodePort } from '../../src/core/ports.js';
import { Memory } from '../../src/lab/chaos/memory.js';
import { rounds, type Round } from '../../src/lab/chaos/schedule.js';

const FAULTS = ['a', 'b', 'c', 'd', 'e'];
function first(seed: number, count: number): Round[] {
  const all = rounds(seed, FAULTS, 500);
  return Array.from({ length: count }, () => all.next().value as Round);
}

describe('chaos schedule', () => {
  test('chaos schedule: one seed → the same rounds; another seed → other rounds', () => {
    expect(first(7, 20)).toEqual(first(7, 20));
    expect(first(7, 20)).not.toEqual(first(8, 20));
  });

  test('chaos schedule: many rounds → every fault comes up equally often, steps in order within the round', () => {
    const many = first(3, 50);
    const times = new Map<string, number>();
    for (const { steps, lengthMs } of many) {
      for (const [at, step] of steps.entries()) {
        times.set(step.fault, (times.get(step.fault) ?? 0) + 1);
        expect(step.atMs).toBeGreaterThanOrEqual(steps[at - 1]?.atMs ?? 0);
        expect(step.atMs).toBeLessThanOrEqual(lengthMs);
      }
    }
    const counts = FAULTS.map((fault) => times.get(fault) ?? 0);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    expect(Math.min(...counts)).toBeGreaterThan(50);
  });
});

describe('chaos memory', () => {
  test.each([
    [3, 1],
    [4, 1],
    [5, 2],
  ])(
    'chaos memory: %i nodes → %i may be without memory at once, and again only after re-admission',
    async (count, most) => {
      let admission = 'wiped';
      const nodes = Array.from({ length: count }, (_, at) => ({
        id: `r${at + 1}`,
        call: () => Promise.resolve({ outcome: 'accepted', incarnation: '', value: { admission } }),
      })) as unknown as NodePort[];
      const restored: string[] = [];
      const memory = new Memory(nodes, 100, (node) => restored.push(node));
      const gone: (() => void)[] = [];
      for (let at = 0; at < most; at++) {
        expect(memory.mayLose(nodes[at]!.id)).toBe(true);
        gone.push(memory.lose(nodes[at]!.id));
      }
      expect(memory.mayLose(nodes[most]!.id)).toBe(false);
      // A node that is already without memory may lose it again.
      expect(memory.mayLose(nodes[0]!.id)).toBe(true);
      memory.start();
      try {
        for (const done of gone) done();
        admission = 'admitted';
        await expect.poll(() => restored.length, { timeout: 120_000 }).toBe(most);
        expect(memory.mayLose(nodes[most]!.id)).toBe(true);
      } finally {
        await memory.stop();
      }
    },
  );

  test('chaos memory: a reply from a server that is about to be killed → ignored', async () => {
    const nodes = ['r1', 'r2', 'r3'].map((id) => ({
      id,
      call: () => Promise.resolve({ outcome: 'accepted', incarnation: '', value: { admission: 'admitted' } }),
    })) as unknown as NodePort[];
    const memory = new Memory(nodes, 100, () => undefined);
    const gone = memory.lose('r1');
    memory.start();
    try {
      await new Promise((resolve) => setTimeout(resolve, 250));
      expect(memory.without).toEqual(['r1']);
      gone();
      await expect.poll(() => memory.without, { timeout: 120_000 }).toEqual([]);
    } finally {
      await memory.stop();
    }
  });
});
