// Are bootstrap and recovery safe in every interleaving? The tests run the real use cases and explore each space
// completely, within the bounds that its row names.
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
    'bootstrap: %s at any moment → one nonce admits, after every node has shown it; a used node is left alone, ' +
      'or its leader re-admits it',
    async (_, faults) => {
      const { why, endings } = await exploreProcesses(bootstrapConfig(1, faults, ['c']));
      expect(why).toBe('');
      expect([...endings].sort()).toEqual(['BOOTSTRAP_BROKEN_OFF', 'NODE_UNREACHABLE', 'made']);
    },
    300_000,
  );

  it('bootstrap: a late first try of phase 1, a repeated phase 2, the node used and flushed in between → it stays out', async () => {
    const { why } = await exploreProcesses(bootstrapConfig(1, { unknowns: 2, wipes: 1 }));
    expect(why).toBe('');
  }, 300_000);

  it(
    'recovery: the old generation stays active → no block that it committed is dropped, and it changes no node of ' +
      'the new generation',
    async () => {
      const { why, endings } = await exploreProcesses(recoveryConfig(1, { unknowns: 0 }));
      expect(why).toBe('');
      expect(endings).toContain('recovered model.2');
    },
    300_000,
  );

  it('recovery: nodes that changed after the plan was made are marked anyway → a committed block is dropped', async () => {
    const { why } = await exploreProcesses(recoveryConfig(1, { unknowns: 0 }, 'moved-nodes-are-marked'));
    expect(why).toMatch(/^I4: committed block 2/);
  }, 300_000);
});
