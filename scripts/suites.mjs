// The suites of `npm test`, in order, each with its budget in seconds; `long` ones only with `npm run test:long`,
// `processes` where real servers and processes run beside the test, `pure` where neither does: two of these run side
// by side. `workers`: files at a time, where the time goes into starting programs and waiting for them. A suite whose
// folders hold no test file yet is not listed by itself: every folder of test/ must be named here (checked by
// test/unit/suites.test.ts).
export const suites = [
  { name: 'sim', pure: true, paths: ['test/sim', 'test/scenarios'], budget: 180 },
  { name: 'unit', pure: true, paths: ['test/unit'], budget: 120 },
  { name: 'property', pure: true, paths: ['test/property'], budget: 120 },
  { name: 'model', pure: true, paths: ['test/model'], budget: 180 },
  { name: 'lua', processes: true, paths: ['test/lua'], budget: 120 },
  { name: 'contract', processes: true, workers: 2, paths: ['test/contract'], budget: 120 },
  { name: 'integration', processes: true, workers: 2, paths: ['test/integration'], budget: 480 },
  { name: 'cli', processes: true, workers: 2, paths: ['test/cli'], budget: 420 },
  { name: 'terminal', processes: true, paths: ['test/terminal'], budget: 120 },
  { name: 'chaos', paths: ['test/chaos'], budget: 300 },
  { name: 'long', paths: ['test/long'], budget: 1800, long: true },
];

/** Folders of test/ that hold helpers, not tests. */
export const helpers = ['support', 'fixtures'];
