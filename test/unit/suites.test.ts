// No test may be forgotten: every folder of test/ belongs to a suite of scripts/suites.mjs, and every file that
// `npm test` leaves out is there with a reason.
import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { helpers, isLong, LONG, suites } from '../../scripts/suites.mjs';

const root = resolve(import.meta.dirname, '../..');
const folders = readdirSync(resolve(root, 'test'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name);

test('suites: every folder of test/ is run by one suite', () => {
  const named = suites.flatMap((suite) => suite.paths).map((path) => path.replace(/^test\//, ''));
  expect(folders.filter((folder) => !named.includes(folder) && !helpers.includes(folder))).toEqual([]);
  expect(named.length).toBe(new Set(named).size);
});

test('suites: what npm test leaves out exists, and has a reason', () => {
  expect(Object.keys(LONG).filter((file) => !existsSync(resolve(root, file)))).toEqual([]);
  expect(Object.entries(LONG).filter(([, reason]) => reason.length < 20)).toEqual([]);
  expect(isLong('test/long/chaos.test.ts')).toBe(true);
  expect(isLong('test/unit/suites.test.ts')).toBe(false);
});

test('suites: real servers, a simulation, a terminal and the model are part of npm test', () => {
  const files = folders.flatMap((folder) =>
    readdirSync(resolve(root, 'test', folder), { encoding: 'utf8' }).map((file) => `test/${folder}/${file}`),
  );
  const short = files.filter((file) => /\.test\.tsx?$/.test(file) && !isLong(file));
  for (const kept of ['integration/run-faults', 'sim/sim', 'terminal/watch', 'model/model', 'cli/contract'])
    expect(short).toContain(`test/${kept}.test.ts`);
});
