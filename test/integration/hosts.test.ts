// Where a sequencer runs: who reads its log, what ends it, and what is around it. Real processes on real servers.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { freePorts } from '../../src/lab/free-port.js';
import { mayNetwork, TwoHosts } from '../support/namespaces.js';
import { STANDSTILL_MS } from '../support/patience.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { startSequencer, type SequencerOptions, type SequencerProcess } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

let lab: PrivateCluster;
const home = newHome();
const started: SequencerProcess[] = [];
let runs = 0;

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 600, blockTimeMs: 100 });
  await lab.waitForLeader();
  // No sequencers here: each test starts its own.
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
    // Far more lines than a pipe can hold.
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

describe('ports', () => {
  test('run: --admin → health and metrics on a port of their own; without --http → 64', async () => {
    const one = start(['--http', '127.0.0.1:0', '--admin', '127.0.0.1:0']);
    const { admin } = await one.line(/^health and metrics alone on /);
    expect((await fetch(`${String(admin)}/livez`)).status).toBe(200);
    expect((await fetch(`${String(admin)}/v1/status`)).status).toBe(404);
    expect(await one.stop()).toBe(0);
    const alone = start(['--admin', '127.0.0.1:0']);
    expect(await alone.ended).toBe(64);
    expect(alone.stderr()).toMatch(/--admin needs --http/);
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

describe('secrets', () => {
  const redis = (name: string, password: string, ...args: string[]) => {
    const auth = password === '' ? [] : ['-a', password, '--no-auth-warning'];
    const { stdout, stderr } = spawnSync('redis-cli', ['-u', lab.url(name), ...auth, ...args], { encoding: 'utf8' });
    expect(`${stdout}${stderr}`).toMatch(/OK|^\d+$/m);
  };

  test.each(['SEQ_PASSWORD_FILE', 'SEQ_PASSWORD_COMMAND'])(
    'run: the password of every node is changed (%s), and connections are cut → it goes on with the new one',
    async (variable) => {
      const file = join(home, `password-${runs}`);
      const nodes = lab.nodes.map(({ name }) => name);
      let password = '';
      const change = (to: string) => {
        for (const name of nodes) redis(name, password, 'config', 'set', 'requirepass', to);
        password = to;
        if (to !== '') writeFileSync(file, `${to}\n`);
      };
      change('sesame-first');
      try {
        const one = start(['--http', '127.0.0.1:0'], {
          env: { [variable]: variable.endsWith('FILE') ? file : `cat ${file}` },
        });
        const url = await one.url();
        await eventually(async () => expect((await statusOf(url))['role']).toBe('leader'));
        change('sesame-second');
        for (const name of nodes) redis(name, password, 'client', 'kill', 'type', 'normal', 'skipme', 'yes');
        const { height } = await statusOf(url);
        await eventually(async () => {
          expect((await statusOf(url))['height']).toBeGreaterThan(Number(height) + 3);
          expect((await statusOf(url))['role']).toBe('leader');
        });
        expect(await one.stop()).toBe(0);
        expect(JSON.stringify(one.lines())).not.toMatch(/sesame/);
      } finally {
        change('');
      }
    },
  );
});

describe('identity', () => {
  test('run: two processes with one id → the one that leads goes on, the other one ends with 78 and names it', async () => {
    const first = start(['--id', 'same', '--http', '127.0.0.1:0']);
    const url = await first.url();
    await eventually(async () => expect((await statusOf(url))['role']).toBe('leader'));
    const second = start(['--id', 'same']);
    expect(await second.ended).toBe(78);
    expect(second.stderr()).toMatch(
      new RegExp(`^DUPLICATE_ID: another process runs as same: pid ${first.pid} on `, 'm'),
    );
    expect((await statusOf(url))['role']).toBe('leader');
    // A record that a killed process left behind is no second process.
    first.child.kill('SIGKILL');
    await first.ended;
    const again = start(['--id', 'same', '--http', '127.0.0.1:0']);
    const next = await again.url();
    await eventually(async () => expect((await statusOf(next))['role']).toBe('leader'));
    expect(await again.stop()).toBe(0);
  });
});

// Needs root, for the network namespaces.
describe.skipIf(!mayNetwork)('two hosts', () => {
  let hosts: TwoHosts;
  let nodes: string[];
  const servers: RedisServer[] = [];
  const token = join(home, 'token');

  beforeAll(async () => {
    hosts = new TwoHosts();
    for (let at = 0; at < 3; at += 1)
      servers.push(await startRedis({ args: ['--bind', '127.0.0.1', hosts.here, '--protected-mode', 'no'] }));
    nodes = servers.flatMap(({ port }, at) => ['--node', `r${at + 1}=redis://${hosts.here}:${port}`]);
    expect((await runSeq(home, ['cluster', 'init', ...nodes])).code).toBe(0);
    writeFileSync(token, 'one-token-for-all\n');
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    hosts.close();
  });

  /** The same start command on both hosts. Resolves when the first one leads and the second one follows it. */
  async function both(args: string[]): Promise<[SequencerProcess, SequencerProcess]> {
    const at = (host: number) =>
      startSequencer(
        home,
        [
          ...nodes,
          '--id',
          `seq-${'ab'[host]}`,
          '--store',
          join(home, `host-${host}-${runs++}`),
          '--ttl',
          '1s',
          '--block-time',
          '200ms',
          ...args,
        ],
        { before: hosts.on(host) },
      );
    const one = at(0);
    started.push(one);
    await one.line(/→ leader/);
    const two = at(1);
    started.push(two);
    await two.line(/^listening on /);
    return [one, two];
  }
  const submit = (host: number, port: number, url = `http://${hosts.address(host)}:${port}`) =>
    spawnSync(
      'ip',
      [
        'netns',
        'exec',
        hosts.names[host]!,
        'curl',
        '-sS',
        '-m',
        '20',
        '-H',
        'Authorization: Bearer one-token-for-all',
        '--data',
        'x',
        `${url}/v1/submit`,
      ],
      { encoding: 'utf8' },
    ).stdout;

  test('run: --http 0.0.0.0 on both → each announces the address that the nodes see, and the follower forwards', async () => {
    await both(['--http', '0.0.0.0:7171', '--http-token-file', token]);
    await eventually(() => expect(submit(1, 7171)).toMatch(/^\{"height":\d+,"index":0,/));
    await eventually(async () => {
      const said = await runSeq(home, ['status', ...nodes, '--node-timeout', '5s', '-o', 'json']);
      const { data } = JSON.parse(said.stdout) as { data: { sequencers: { url: string }[] } | null };
      expect(
        data?.sequencers.map(({ url }) => url),
        said.stdout,
      ).toEqual([0, 1].map((host) => `http://${hosts.address(host)}:7171`));
    });
  });

  test('run: --http 127.0.0.1 beside other hosts → no address is announced, and both say so', async () => {
    const [one] = await both(['--http', '127.0.0.1:7172']);
    await one.line(/an address of this machine alone.*--advertise URL/);
    await eventually(() =>
      expect(submit(1, 7172, 'http://127.0.0.1:7172')).toMatch(/the leader seq-a has no address to forward to/),
    );
  });

  test('run: both advertise one address → the answer names who answers there, and doctor finds it', async () => {
    await both(['--http', '127.0.0.1:7173', '--advertise', 'http://127.0.0.1:7173']);
    await eventually(() =>
      expect(submit(1, 7173, 'http://127.0.0.1:7173')).toMatch(
        /LEADER_ADDRESS.*seq-a announces http:\/\/127.0.0.1:7173, and seq-b answers there/,
      ),
    );
    const doctor = (await runSeq(home, ['doctor', ...nodes])).stdout;
    expect(doctor).toMatch(/seq-a and seq-b announce one address, http:\/\/127.0.0.1:7173/);
  });
});
