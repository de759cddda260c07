// kill -9 in the middle of the commands that change a cluster, on real servers: run again, they finish. Every moment
// of every one: test/long.
import { describe, test } from 'vitest';
import { BROKEN_OFF } from '../support/broken-off.js';

describe('broken off', () => {
  test.each(BROKEN_OFF.filter((row) => row.short).map((row) => [row.name, row] as const))(
    'broken off: %s → run again it finishes, nothing is left half done',
    async (_, row) => {
      await row.run();
    },
    300_000,
  );
});
