// The runbooks of examples/, run as they are shipped, on a lab of real processes.
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../support/live-sequencers.js';
import { bin, environment, newHome, root, runSeq } from '../support/spawn-seq.js';
import { Redis } from 'ioredis';

const home = newHome();
const jq = spawnSync('jq', ['--version']).error === undefined;
const NO_JQ = 'jq is not installed: apt-get install jq';
/** A busy machine must not make a healthy node look silent. */
const env = { SEQ_NODE_TIMEOUT: '5s', SEQ: join(home, 'seq'), PATIENCE: '10m' };
interface Data {
  processes: { name: string; pid: number }[];
  nodes: { url: string }[];
  leader: unknown;
}
const seq = async (...args: string[]) => {
  const { code, stdout, stderr } = await runSeq(home, [...args, '-o', 'json'], { env });
  return { code, stderr, data: (JSON.parse(stdout) as { data: Data }).data };
};

function runbook(name: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      'bash',
      [join(root, 'examples', name), ...args],
      { env: environment(home, env) },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

function script(name: string, ...lines: string[]): string {
  const path = join(home, name);
  writeFileSync(path, ['#!/usr/bin/env bash', 'set -e', ...lines, ''].join('\n'));
  chmodSync(path, 0o755);
  return path;
}

beforeAll(async () => {
  script('seq', `exec "${process.execPath}" "${bin}" "$@"`);
  expect((await seq('lab', 'up', '--sequencers', '1')).code).toBe(0);
}, 300_000);
afterAll(async () => {
  await seq('lab', 'down');
}, 300_000);

test('runbook: a rolling restart → every node is another process, the cluster is healthy', async (context) => {
  if (!jq) return context.skip(NO_JQ);
  const restart = script('restart', `"${env.SEQ}" lab kill "$1" >/dev/null`, `"${env.SEQ}" lab start "$1" >/dev/null`);
  const pids = async () =>
    (await seq('lab', 'status')).data.processes.filter(({ name }) => name.startsWith('r')).map(({ pid }) => pid);
  const before = await pids();
  const { code, stderr } = await runbook('rolling-restart.sh', 'lab', restart);
  expect([code, stderr.match(/: restarted;/g)?.length]).toEqual([0, 3]);
  expect((await pids()).filter((pid) => before.includes(pid))).toEqual([]);
  expect((await runbook('rolling-restart.sh', 'nowhere', restart)).code).toBe(66);
}, 600_000);

test('runbook: an entry is gone on one node and nobody leads → repaired, proven; again → nothing to do', async (context) => {
  if (!jq) return context.skip(NO_JQ);
  expect((await seq('wait', '--for', 'height=5', '--timeout', '5m', '-c', 'lab')).code).toBe(0);
  await seq('lab', 'kill', 'seq-a');
  // Its lease stands for a while. A repair would be left to it.
  await until('nobody to lead', async () =>
    (await seq('status', '-c', 'lab')).data.leader === null ? true : undefined,
  );
  const { data } = await seq('node', 'list', '-c', 'lab');
  const redis = new Redis(data.nodes[2]!.url);
  const [[entry] = []] = await redis.xrange('seq:block:stream', '3', '3');
  expect(await redis.xdel('seq:block:stream', entry!)).toBe(1);
  redis.disconnect();
  expect((await seq('stream', 'verify', '-c', 'lab')).code).toBe(1);
  const repaired = await runbook('repair-divergent-stream.sh', 'lab');
  expect(repaired.code, `${repaired.stdout}\n${repaired.stderr}`).toBe(0);
  expect((await seq('stream', 'verify', '-c', 'lab')).code).toBe(0);
  expect((await runbook('repair-divergent-stream.sh', 'lab')).code).toBe(0);
}, 600_000);
