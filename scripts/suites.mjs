// The suites, in the order in which they run, and the test files that only `npm run test:long` runs. `npm test` runs
// every file that LONG does not name.
// `beside`: two suites of the same word run side by side, the longest first. `processor`: they start no servers.
// `workers`: how many files run at a time, for suites that mostly start programs and wait for them.
// Every folder of test/ must be named here. test/unit/suites.test.ts checks this, and that LONG names files that exist.
export const suites = [
  { name: 'model', beside: 'processor', paths: ['test/model'] },
  { name: 'sim', beside: 'processor', paths: ['test/sim', 'test/scenarios'] },
  { name: 'unit', beside: 'processor', paths: ['test/unit'] },
  { name: 'property', beside: 'processor', paths: ['test/property'] },
  { name: 'lua', beside: 'servers', workers: 2, paths: ['test/lua'] },
  { name: 'contract', beside: 'servers', workers: 2, paths: ['test/contract'] },
  { name: 'integration', workers: 3, paths: ['test/integration'] },
  { name: 'cli', beside: 'programs', workers: 2, paths: ['test/cli'] },
  { name: 'terminal', beside: 'programs', workers: 2, paths: ['test/terminal'] },
  { name: 'chaos', beside: 'programs', workers: 2, paths: ['test/chaos'] },
  { name: 'long', workers: 1, paths: ['test/long'], ci: false },
];

/** Folders of test/ that hold helpers, not tests. */
export const helpers = ['support', 'fixtures'];

/** Why a file is not part of `npm test`: it takes long for what it adds, and the rest already convinces a newcomer. */
const COMMANDS = 'runs every command or runbook in processes of their own: minutes';
const LEASES = 'waits for many leases to end, on real servers';
const COMBINATIONS = 'the same mechanism as a file of npm test, in more combinations';
const SEARCH = 'a search: how much it finds depends on how long it runs';
export const LONG = {
  'test/sim/broken.test.ts': SEARCH,
  'test/model/mutants.test.ts': SEARCH,
  'test/model/processes.test.ts': SEARCH,
  'test/chaos/chaos.test.ts': SEARCH,
  'test/cli/alerts.test.ts': COMMANDS,
  'test/cli/client-package.test.ts': COMMANDS,
  'test/cli/every-command.test.ts': COMMANDS,
  'test/cli/launcher.test.ts': COMMANDS,
  'test/cli/package.test.ts': COMMANDS,
  'test/cli/runbooks.test.ts': COMMANDS,
  'test/integration/acl.test.ts': COMMANDS,
  'test/integration/addresses.test.ts': LEASES,
  'test/integration/agreed-settings.test.ts': LEASES,
  'test/integration/broken-off.test.ts': LEASES,
  'test/integration/bundle.test.ts': COMMANDS,
  'test/integration/copied-node.test.ts': LEASES,
  'test/integration/example-runbooks.test.ts': COMMANDS,
  'test/integration/first-configuration.test.ts': LEASES,
  'test/integration/fuel.test.ts': COMMANDS,
  'test/integration/hosts.test.ts': LEASES,
  'test/integration/hung-disk.test.ts': LEASES,
  'test/integration/lab-processes.test.ts': COMBINATIONS,
  'test/integration/lab.test.ts': COMMANDS,
  'test/integration/lanes-registry.test.ts': LEASES,
  'test/integration/lanes-run.test.ts': LEASES,
  'test/integration/lanes.test.ts': COMMANDS,
  'test/integration/membership-readers.test.ts': COMMANDS,
  'test/integration/membership.test.ts': LEASES,
  'test/integration/memory-forgets.test.ts': COMBINATIONS,
  'test/integration/memory-full.test.ts': COMBINATIONS,
  'test/integration/memory-identity.test.ts': LEASES,
  'test/integration/memory-quorum.test.ts': COMBINATIONS,
  'test/integration/missing-right.test.ts': COMMANDS,
  'test/integration/node-change.test.ts': LEASES,
  'test/integration/node-replace.test.ts': LEASES,
  'test/integration/numbers-by-hand.test.ts': COMMANDS,
  'test/integration/ops-check-wait.test.ts': LEASES,
  'test/integration/ops-hold-epoch.test.ts': LEASES,
  'test/integration/ops-matrix.test.ts': COMBINATIONS,
  'test/integration/ops-stepdown.test.ts': LEASES,
  'test/integration/readyz.test.ts': LEASES,
  'test/integration/recover.test.ts': LEASES,
  'test/integration/repair-leader.test.ts': LEASES,
  'test/integration/repair.test.ts': LEASES,
  'test/integration/resize.test.ts': LEASES,
  'test/integration/rotation.test.ts': LEASES,
  'test/integration/run-nodes.test.ts': LEASES,
  'test/integration/run-refusals.test.ts': COMMANDS,
  'test/integration/sentinel.test.ts': LEASES,
  'test/integration/service.test.ts': COMMANDS,
  'test/integration/setups.test.ts': COMBINATIONS,
  'test/integration/slow-links.test.ts': LEASES,
  'test/integration/status.test.ts': LEASES,
  'test/integration/store-damage.test.ts': LEASES,
  'test/integration/stuck-locks.test.ts': LEASES,
  'test/terminal/watch-changes.test.ts': LEASES,
  'test/terminal/watch-cost.test.ts': 'measures what the screen costs',
  'test/terminal/watch-crowd.test.ts': COMBINATIONS,
  'test/terminal/watch-live.test.ts': LEASES,
};

/** True for a file that only `npm run test:long` runs. */
export const isLong = (file) => file in LONG || file.startsWith('test/long/');
