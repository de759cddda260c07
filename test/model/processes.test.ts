// Bootstrap and recovery: the shipped use cases, every interleaving within the bounds named in each row, explored to
// the end. The counts are the spaces' own; they change with the use cases.
import { describe, expect, it } from 'vitest';
import { bootstrapConfig } from './bootstrap.js';
import { exploreProcesses } from './processes.js';
import { recoveryConfig } from './recovery.js';

describe('model', () => {
  it.each([
    ['two answers lost', { unknowns: 2 }],
    ['an answer lost and a node wiped', { unknowns: 1, wipes: 1 }],
    ['an answer lost and a node restarted', { unknowns: 1, restarts: 1 }],
  ])(
    'bootstrap: %s at any moment → one nonce admits, and only what every node has shown; a used node ' +
      'is left alone, or taken by its leader',
    async (_, faults) => {
      const { why, endings } = await exploreProcesses(bootstrapConfig(1, faults, ['c']));
      expect(why).toBe('');
      expect([...endings].sort()).toEqual(['BOOTSTRAP_BROKEN_OFF', 'NODE_UNREACHABLE', 'made']);
    },
    300_000,
  );

  it(
    'bootstrap: a late first try of phase 1 and a repeated phase 2, the node used and flushed in ' +
      'between → it stays out',
    async () => {
      const { why } = await exploreProcesses(bootstrapConfig(1, { unknowns: 2, wipes: 1 }));
      expect(why).toBe('');
    },
    300_000,
  );

  it(
    'recovery: the old life goes on meanwhile → nothing it committed is dropped, and it changes no ' +
      'node of the new generation',
    async () => {
      const { why, endings } = await exploreProcesses(recoveryConfig(1, { unknowns: 0 }));
      expect(why).toBe('');
      expect(endings).toContain('recovered model.2');
    },
    300_000,
  );

  it(
    'recovery: nodes that moved since the plan was made are marked all the same → a committed block ' + 'is dropped',
    async () => {
      const { why } = await exploreProcesses(recoveryConfig(1, { unknowns: 0 }, 'moved-nodes-are-marked'));
      expect(why).toMatch(/^I4: committed block 2/);
    },
    300_000,
  );
});
