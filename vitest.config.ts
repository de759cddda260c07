import { defineConfig } from 'vitest/config';

// Real Redis servers run beside the tests: files run one after another, each in a process of its own. The two limits say
// nothing about speed: on a machine that others use a test may take ten times longer. Only what stands still reaches them.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts', 'test/**/*.test.tsx'],
    globalSetup: 'test/support/temporary-folder.ts',
    disableConsoleIntercept: true,
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
});
