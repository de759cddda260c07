import { defineConfig } from 'vitest/config';

// Two cores, real Redis servers beside the tests: files run one after another in forks, so that timing faults are the tests' own.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
    disableConsoleIntercept: true,
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
