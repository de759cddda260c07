// Half a minute of chaos on real processes, another seed for every commit. Ten minutes: `npm run test:long`, or `seq chaos --duration 10m`.
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runChaosCommand, seedOfCommit } from '../support/chaos.js';
import { newHome, runSeq } from '../support/spawn-seq.js';
import { schemaProblems } from '../support/schemas.js';

test('chaos: half a minute of every fault → no anomaly, exit 0, nothing left behind', async () => {
  const seed = seedOfCommit();
  process.stdout.write(`chaos seed ${seed}\n`);
  const { ran, temporary, document } = await runChaosCommand(['--duration', '30s', '--seed', String(seed)], 200_000);
  expect(ran.code).toBe(0);
  expect(schemaProblems(document)).toEqual([]);
  expect(document.data.rounds).toBeGreaterThan(0);
  expect(document.data.faults.reduce((sum, { injected }) => sum + injected, 0)).toBeGreaterThan(10);
  expect(document.data.counts['acknowledged']).toBeGreaterThan(20);
  expect(ran.stderr).toMatch(/leads under epoch \d+/);
  expect(readdirSync(temporary)).toEqual([]);
}, 240_000);

test('chaos: a fault that there is not → 64 with the ones there are, nothing started', async () => {
  const ran = await runSeq(newHome(), ['chaos', '--faults', 'kill-sequencer,earthquake', '-o', 'json']);
  expect(ran.code).toBe(64);
  expect(JSON.parse(ran.stdout)).toMatchObject({ ok: false, error: { changed: 'nothing' } });
  expect(ran.stdout).toContain('wipe-node');
});
