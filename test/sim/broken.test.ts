// Does the simulation notice a broken rule? Each row of broken.mjs breaks one rule, and the run that the row names must
// find it. The plays of acts.ts must be clean while every rule is kept.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { PLAYS } from './acts.js';
import { broken, editsOf } from './broken.mjs';
import { check } from './checkers/index.js';
import { playScenario } from './plan.js';
import { run } from './world.js';

const script = fileURLToPath(new URL('../../scripts/sim.mjs', import.meta.url));

function simulate(args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [script, '--first', ...args], { maxBuffer: 64 * 1024 * 1024 }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
}

describe('simulation', () => {
  it.each(broken.flatMap((rule) => editsOf(rule).map(({ file, from }) => ({ name: rule.name, file, from }))))(
    '$name → its source text occurs exactly once in $file',
    async ({ file, from }) => {
      const text = await readFile(new URL(`../../src/core/${file}`, import.meta.url), 'utf8');
      expect(text.split(from).length - 1).toBe(1);
    },
  );

  it.each(broken.filter(({ by }) => by !== ''))(
    '$name → found by $by',
    async ({ name, args, by }) => {
      const said = await simulate(['--break', name, ...args]);
      expect(said).toMatch(new RegExp(`^  ${by}: `, 'm'));
    },
    300_000,
  );

  it.each(Object.entries(PLAYS))('%s, with every rule kept → plays to its end without an anomaly', async (_, acts) => {
    const { history } = await run(playScenario(acts, 1));
    expect(check(history)).toEqual([]);
    const notes = history.entries.flatMap((entry) => (entry.is === 'fault' ? [entry.text] : []));
    expect(notes.filter((text) => text.startsWith('act ')).length).toBe(acts.length);
    expect(notes.join()).not.toContain('does not come to its end');
  });
});
