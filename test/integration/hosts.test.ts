// Where a sequencer runs: who reads its log, what ends it, and what is around it. Real processes on real servers.
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { freePorts } from '../../src/lab/free-port.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startSequencer, type SequencerOptions, type SequencerProcess } from '../support/sequencer-process.js';
import { newHome } from '../support/spawn-seq.js';

let lab: PrivateCluster;
const home = newHome();
const started: SequencerProcess[] = [];
let runs = 0;

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 600, blockTimeMs: 100 });
  await lab.waitForLeader();
  // The tests bring sequencers of their own.
  await lab.kill('seq-a', 'SIGTERM');
});
afterAll(async () => lab?.close());
afterEach(async () => {
  for (const one of started.splice(0)) {
    one.child.stdout!.resume();
    one.child.kill('SIGKILL');
    await one.ended;
  }
});

function start(args: string[] = [], options: SequencerOptions = {}): SequencerProcess {
  runs += 1;
  const own = Object.entries({
    '--ttl': '600ms',
    '--block-time': '100ms',
    '--node-timeout': '150ms',
    '--log-level': 'debug',
    '--id': `h${runs}`,
    '--store': join(home, `store-${runs}`),
  }).flatMap(([flag, value]) => (args.includes(flag) ? [] : [flag, value]));
  const one = startSequencer(home, [...lab.nodeFlags.flatMap((node) => ['--node', node]), ...own, ...args], options);
  started.push(one);
  return one;
}
const eventually = (check: () => Promise<void> | void) => vi.waitFor(check, { timeout: STANDSTILL_MS, interval: 20 });
const statusOf = async (url: string) => (await (await fetch(`${url}/v1/status`)).json()) as Record<string, unknown>;

describe('log', () => {
  test('run: nobody reads its log → it goes on committing, and SIGTERM ends it with 0', async () => {
    const [port] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const one = start(['--http', `127.0.0.1:${port}`, '--block-time', '5ms'], {
      reads: false,
    });
    await eventually(async () => expect((await statusOf(url))['role']).toBe('leader'));
    const { height } = await statusOf(url);
    // Far more lines than a pipe takes.
    await eventually(async () => expect((await statusOf(url))['height']).toBeGreaterThan(Number(height) + 300));
    expect(await one.stop()).toBe(0);
  });
});

describe('signals', () => {
  test('run: SIGHUP → it goes on; SIGTERM → 0', async () => {
    const one = start(['--http', '127.0.0.1:0']);
    const url = await one.url();
    process.kill(one.pid, 'SIGHUP');
    await one.line(/SIGHUP/);
    process.kill(one.pid, 'SIGHUP');
    await eventually(async () => expect((await statusOf(url))['role']).toBe('leader'));
    expect(await one.stop()).toBe(0);
  });
});
