// Does `seq chaos` find no anomaly and clean up after itself? Thirty seconds on real processes, with another seed for
// every commit. `npm run test:long` runs ten minutes, as does `seq chaos --duration 10m`.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
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
}, 300_000);

test('chaos: an unknown fault → 64 with the known ones, nothing started', async () => {
  const ran = await runSeq(newHome(), ['chaos', '--faults', 'kill-sequencer,earthquake', '-o', 'json']);
  expect(ran.code).toBe(64);
  expect(JSON.parse(ran.stdout)).toMatchObject({ ok: false, error: { changed: 'nothing' } });
  expect(ran.stdout).toContain('wipe-node');
});

test('chaos: flags that name a real cluster → 64, nothing started', async () => {
  const ran = await runSeq(newHome(), ['chaos', '--node', 'redis://127.0.0.1:1', '-o', 'json']);
  expect(ran.code).toBe(64);
  expect(JSON.parse(ran.stdout)).toMatchObject({ ok: false, error: { changed: 'nothing' } });
});

test('chaos: Ctrl-C in the middle → 130, every process and file gone', async () => {
  const temporary = newHome();
  const ran = await runSeq(
    newHome(),
    ['chaos', '--duration', '5m', '--nodes', '1', '--sequencers', '1', '--faults', 'none'],
    {
      env: { TMPDIR: temporary },
      limitMs: 120_000,
      during: (child) =>
        new Promise<void>((resolve) => {
          let said = '';
          child.stderr?.on('data', (text: string) => {
            said += text;
            if (/leads under epoch/.test(said)) resolve();
          });
          child.once('close', () => resolve());
        }).then(() => void child.kill('SIGINT')),
    },
  );
  expect(ran.code).toBe(130);
  expect(readdirSync(temporary)).toEqual([]);
  const left = (existsSync('/proc') ? readdirSync('/proc') : [])
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(temporary);
      } catch {
        return false;
      }
    });
  expect(left).toEqual([]);
}, 300_000);
