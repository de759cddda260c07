// Ten minutes of chaos with three nodes and two with five, a seed of this commit each.
import { expect, test } from 'vitest';
import { runChaosCommand, seedOfCommit } from '../support/chaos.js';

test.each([
  ['10m', '3'],
  ['2m', '5'],
])(
  'chaos: %s of every fault, %s nodes → no anomaly',
  async (duration, nodes) => {
    const seed = seedOfCommit() + Number(nodes);
    process.stdout.write(`chaos seed ${seed}\n`);
    const { ran, document } = await runChaosCommand(
      ['--duration', duration, '--nodes', nodes, '--seed', String(seed)],
      1_500_000,
    );
    expect(ran.code).toBe(0);
    expect(document.data.rounds).toBeGreaterThan(3);
  },
  1_600_000,
);
