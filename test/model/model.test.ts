// The short form of the exhaustive model, through the very command that people run.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../scripts/model.mjs', import.meta.url));

it('model: every interleaving within the short bounds → no invariant breaks, a lone leader gets through (n=3)', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--short']);
  const lines = stdout.trim().split('\n');
  expect(lines.at(-1)).toMatch(/^\d+ states$/);
  expect(Number.parseInt(lines.at(-1)!, 10)).toBeGreaterThan(300_000);
  expect(stdout).toMatch(/^pair: 89508 states \(all\)/m); // without a bound on losses and late calls: the count is the space's own
  expect(stdout).not.toContain('VIOLATION');
}, 120_000);
