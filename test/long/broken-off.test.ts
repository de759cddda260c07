// Ctrl-C and kill -9 in the middle of every command that changes a cluster: whatever one node has and the others have
// not, the same command, run again, finishes it, and no hand at a server is needed.
import { describe, test } from 'vitest';
import { BROKEN_OFF } from '../support/broken-off.js';

describe('broken off', () => {
  test.each(BROKEN_OFF.map((row) => [row.name, row] as const))(
    'broken off: %s → run again it finishes, nothing is left half done',
    async (_, row) => {
      await row.run();
    },
    300_000,
  );
});
