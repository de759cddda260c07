// Bootstrap and recovery, explored to the end with more going wrong than test/model has time for.
import { describe, expect, it } from 'vitest';
import { bootstrapConfig } from '../model/bootstrap.js';
import { exploreProcesses } from '../model/processes.js';
import { recoveryConfig } from '../model/recovery.js';

describe('model', () => {
  it('bootstrap: two at once → one nonce admits', async () => {
    const { why, states } = await exploreProcesses(bootstrapConfig(2, { unknowns: 0 }));
    expect(why).toBe('');
    expect(states).toBeGreaterThan(100_000);
  }, 600_000);

  it.each([
    ['an answer lost', { unknowns: 1 }],
    ['a node restarted', { unknowns: 0, restarts: 1 }],
  ])(
    'recovery: the old life goes on meanwhile, %s → nothing it committed is dropped',
    async (_, faults) => {
      const { why, endings } = await exploreProcesses(recoveryConfig(1, faults));
      expect(why).toBe('');
      expect(endings).toContain('recovered model.2');
    },
    600_000,
  );
});
