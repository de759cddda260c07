// No test may be forgotten: every folder of test/ belongs to a suite of scripts/suites.mjs.
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { helpers, suites } from '../../scripts/suites.mjs';

test('suites: every folder of test/ is run by one suite', () => {
  const folders = readdirSync(resolve(import.meta.dirname, '..'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
  const named = suites.flatMap((suite) => suite.paths).map((path) => path.replace(/^test\//, ''));
  expect(folders.filter((folder) => !named.includes(folder) && !helpers.includes(folder))).toEqual([]);
  expect(named.length).toBe(new Set(named).size);
});
