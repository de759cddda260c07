// Where a sequencer runs: who reads its log, what ends it, and what is around it. Real processes on real servers.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { freePorts } from '../../src/lab/free-port.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startSequencer, type SequencerOptions, type SequencerProcess } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

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

describe('environment', () => {
  test.each([
    { HOME: '' },
    { HOME: '.' },
    { HOME: undefined, XDG_CONFIG_HOME: '' },
    { HOME: '/nonexistent', XDG_CONFIG_HOME: '.' },
    { HOME: '/nonexistent', XDG_CONFIG_HOME: '.config' },
  ])('every command: %j → the config of the current directory is not read, its command is not run', async (env) => {
    const cwd = newHome();
    const ran = join(cwd, 'ran');
    const config = JSON.stringify({
      current: 'here',
      contexts: { here: { nodes: [{ url: 'redis://127.0.0.1:1' }], passwordCommand: `touch ${ran}` } },
    });
    for (const folder of ['seq', '.config/seq']) {
      mkdirSync(join(cwd, folder), { recursive: true });
      writeFileSync(join(cwd, folder, 'config.yaml'), config);
    }
    const said = await runSeq(home, ['status', '-o', 'json'], { cwd, env: { XDG_CONFIG_HOME: undefined, ...env } });
    expect(JSON.parse(said.stdout)).toMatchObject({ error: { code: 'NO_CLUSTER' } });
    expect(existsSync(ran)).toBe(false);
  });

  test('run: a store below a folder that cannot be made → 78 at once, with what to do', async () => {
    const one = start(['--store', '/proc/nowhere/store']);
    expect(await one.ended).toBe(78);
    expect(one.stderr()).toMatch(
      /^STORE_UNREADABLE: the directory \/proc\/nowhere\/store of the store cannot be made/m,
    );
    expect(one.stderr()).not.toMatch(/move it aside/);
  });

  test('run: a variable that is nearly a setting → named in the log', async () => {
    const one = start([], { env: { SEQ_NODES: 'redis://127.0.0.1:1', SEQ_SERVICE_HOST: '10.0.0.1' } });
    await one.line(/^SEQ_NODES is no setting and is ignored; did you mean SEQ_NODE\?/);
    await one.line(/^started as /);
    expect(one.lines().filter(({ message }) => /SEQ_SERVICE/.test(String(message)))).toEqual([]);
  });
});
