// Do the invariants hold in the short form of the exhaustive model? The first test runs the same command that people
// run. The second compares the fast exploration with the direct one.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { explore, exploreDirectly } from './explore.js';
import { BASE, type ModelConfig } from './state.js';

const script = fileURLToPath(new URL('../../scripts/model.mjs', import.meta.url));

it('model: every interleaving within the short bounds → no invariant breaks, a lone leader makes progress (n=3)', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--short']);
  const lines = stdout.trim().split('\n');
  expect(lines.at(-1)).toMatch(/^\d+ states$/);
  expect(Number.parseInt(lines.at(-1)!, 10)).toBeGreaterThan(700_000);
  // This space has no bound on losses and late calls, so its size depends on the protocol alone.
  expect(stdout).toMatch(/^pair: 39862 states \(all\)/m);
  expect(stdout).not.toContain('VIOLATION');
}, 300_000);

it.each<[string, Partial<ModelConfig>]>([
  ['lost calls and late ones', { strays: 1, giveUps: 1 }],
  ['an expired lock', { strays: 0, giveUps: 0, expiries: 1, staleStores: false }],
  ['a raised epoch', { strays: 0, giveUps: 0, raises: 1, staleStores: false }],
  ['a second server behind one id', { strays: 1, giveUps: 0, twins: 1, staleStores: false }],
  ['other lists of nodes', { strays: 0, giveUps: 0, otherLists: true, staleStores: false }],
  ['one member more or less', { nodes: 2, strays: 0, giveUps: 0, heights: 2, resizes: 1, staleStores: false }],
  ['a wipe', { strays: 0, giveUps: 0, wipes: 1, staleStores: false }],
])(
  'model: %s, explored in pieces and as whole states → the same number of states',
  (_, bounds) => {
    const cfg: ModelConfig = { ...BASE, name: 'equal', sameTerms: false, patient: false, ...bounds };
    expect(explore(cfg).states).toBe(exploreDirectly(cfg).states);
  },
  300_000,
);
