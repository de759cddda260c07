// What `seq run` refuses before it takes part in anything: exit code, error code, what is said, and that nothing was
// changed. Real servers; every case is a process of its own.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { newHome, runSeq, type Ran } from '../support/spawn-seq.js';

const servers: RedisServer[] = [];
const start = async (args: string[] = []) => {
  const server = await startRedis({ args });
  servers.push(server);
  return server;
};
let lab: PrivateCluster;
let foreign: RedisServer;
let empty: RedisServer[];
let busy: Server;
let busyPort = 0;
const home = newHome();
const foreignStore = join(home, 'foreign-store');

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 3000, blockTimeMs: 500 });
  empty = await Promise.all([start(), start(), start()]);
  foreign = await start();
  expect((await runSeq(home, ['cluster', 'init', '--node-timeout', '20s', '--node', `r3=${foreign.url}`])).code).toBe(
    0,
  );
  busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
  busyPort = (busy.address() as { port: number }).port;
  await lab.waitForLeader();
  // A store with a chain of its own: one node, one sequencer, made by --bootstrap.
  const ran = await run(
    [
      ...nodes(`o=${(await start()).url}`),
      '--bootstrap',
      '--store',
      foreignStore,
      '--ttl',
      '1s',
      '--block-time',
      '100ms',
      '--log-level',
      'debug',
    ],
    { during: (child) => until(child, /"event":"stored"/, 'SIGTERM') },
  );
  expect(ran.code, ran.stderr).toBe(0);
});
afterAll(async () => {
  await lab?.close();
  await Promise.all(servers.map((server) => server.stop()));
  busy?.close();
});

let runs = 0;
const nodes = (...list: string[]) => list.flatMap((node) => ['--node', node]);
const emptyNodes = () => nodes(...empty.map(({ url }, at) => `e${at + 1}=${url}`));
function run(args: string[], options: Parameters<typeof runSeq>[2] = {}): Promise<Ran> {
  runs += 1;
  const own = [
    ...(args.includes('--id') ? [] : ['--id', `x${runs}`]),
    ...(args.includes('--store') ? [] : ['--store', join(home, `store-${runs}`)]),
  ];
  return runSeq(home, ['run', ...own, ...args], { limitMs: 120_000, ...options });
}
/** Exit code, and code on stderr. It is also in the last line of the log, if the log had begun. */
function expectRefused(ran: Ran, exit: number, code: string, says: RegExp): void {
  expect(ran, `${ran.stdout}\n${ran.stderr}`).toMatchObject({ code: exit });
  expect(ran.stderr).toMatch(new RegExp(`^${code}: `, 'm'));
  expect(ran.stderr).toMatch(says);
  expect(ran.stderr).toMatch(/changed: nothing/);
  expect(ran.stderr).not.toMatch(/sesame/);
  const lines = ran.stdout.trim().split('\n').filter(Boolean);
  if (lines.length > 0) expect(JSON.parse(lines.at(-1)!)).toMatchObject({ event: 'stopped', code, level: 'fatal' });
}

describe('run: refused, and why', () => {
  test('run: the address of one node of three is a foreign server → said; the node is asked where the cluster has it', async () => {
    const [r1, r2] = lab.nodeFlags as [string, string];
    const says = new RegExp(`r3 .*${foreign.url}`);
    const ran = await run([...nodes(r1, r2, `r3=${foreign.url}`), '--log-level', 'debug'], {
      during: (child) => until(child, /"event":"stored"/, 'SIGTERM'),
    });
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/"level":"warn".*NODE_ADDRESS/);
    expect(ran.stdout).toMatch(says);
  });

  test.each([
    [
      'wants a password',
      'NODE_DENIED',
      ['config', 'set', 'requirepass', 'sesame-open'],
      ['config', 'set', 'requirepass', ''],
    ],
    [
      'evicts',
      'EVICTION',
      ['config', 'set', 'maxmemory-policy', 'allkeys-lru'],
      ['config', 'set', 'maxmemory-policy', 'noeviction'],
    ],
  ])('run: one node of three %s → %s is logged, and the sequencer goes on', async (_how, code, spoil, restore) => {
    const redis = (...args: string[]) => {
      const done = spawnSync('redis-cli', ['-u', lab.url('r3'), ...args], { encoding: 'utf8' });
      expect(`${done.stdout}${done.stderr}`).toMatch(/OK/);
    };
    redis(...spoil);
    try {
      const ran = await run([...nodes(...lab.nodeFlags), '--log-level', 'debug'], {
        during: (child) => until(child, /"event":"stored"/, 'SIGTERM'),
      });
      expect(ran.code, ran.stderr).toBe(0);
      expect(ran.stdout).toMatch(new RegExp(`"level":"warn".*"code":"${code}".*it goes on without r3`));
    } finally {
      redis(...(code === 'NODE_DENIED' ? ['-a', 'sesame-open'] : []), ...restore);
    }
  });

  test('run: swapped addresses → each node is asked at the address that the cluster knows', async () => {
    const [r1, r2, r3] = lab.nodes.map(({ name }) => lab.url(name)) as [string, string, string];
    const ran = await run([...nodes(`r1=${r2}`, `r2=${r1}`, `r3=${r3}`), '--log-level', 'debug'], {
      during: (child) => until(child, /"event":"stored"/, 'SIGTERM'),
    });
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/NODE_ADDRESS/);
  });

  test('run: case 24: a node in the list that the cluster does not have → 78, and who leads goes on undisturbed', async () => {
    const [r1, r2] = lab.nodeFlags as [string, string];
    const stranger = `r4=${empty[0]!.url}`;
    const says = new RegExp(`r4 \\(${empty[0]!.url}\\) is no member of cluster .*its nodes are r1, r2, r3`, 's');
    expectRefused(await run(nodes(r1, r2, stranger)), 78, 'NOT_MEMBER', says);
    expectRefused(await run(nodes(r1, ...lab.nodeFlags.slice(1), stranger)), 78, 'NOT_MEMBER', says);
    expect((await lab.status('seq-a'))?.['role']).toBe('leader');
  });

  test('run: one node of three in the list → it takes part in the cluster of three', async () => {
    const ran = await run([...nodes(lab.nodeFlags[2]!), '--log-level', 'debug'], {
      during: (child) => until(child, /"event":"stored"/, 'SIGTERM'),
    });
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(/"quorum":2.*not listed, and a member of the cluster: r1 \(.*\), r2 \(/);
  });

  test('run: nodes not initialised → 76; a password needed → 77; a Redis Cluster → 78', async () => {
    const [locked, clustered] = await Promise.all([
      start(['--requirepass', 'sesame-open']),
      start(['--cluster-enabled', 'yes']),
    ]);
    expectRefused(await run(emptyNodes()), 76, 'NOT_INITIALISED', /seq cluster init/);
    expectRefused(await run(nodes(locked.url)), 77, 'NODE_DENIED', /NOAUTH/);
    writeFileSync(join(home, 'wrong'), 'sesame-shut\n');
    expectRefused(
      await run(nodes(locked.url), { env: { SEQ_PASSWORD_FILE: join(home, 'wrong') } }),
      77,
      'NODE_DENIED',
      /WRONGPASS|NOAUTH/,
    );
    expectRefused(await run(nodes(clustered.url)), 78, 'REDIS_CLUSTER', /part of a Redis Cluster/);
    for (const { url } of empty)
      expect((await runSeq(home, ['status', '--node', url, '-o', 'json'])).stdout).toMatch(/pristine/);
  });

  test('run: a server that evicts, one server under two names → 78', async () => {
    const evicting = await start(['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru']);
    expectRefused(await run(nodes(evicting.url)), 78, 'EVICTION', /noeviction/);
    const { port } = empty[0]!;
    expectRefused(
      await run(nodes(`a=redis://127.0.0.1:${port}`, `b=redis://localhost:${port}`)),
      78,
      'SAME_SERVER',
      /same server|one server/,
    );
  });

  test('run: port in use → 78; the cluster is as it was', async () => {
    expectRefused(
      await run([...nodes(...lab.nodeFlags), '--http', `127.0.0.1:${busyPort}`]),
      78,
      'PORT_IN_USE',
      new RegExp(`${busyPort}: the port is in use`),
    );
  });

  test('run: a store that cannot be read → 78; one of another cluster → 76, untouched', async () => {
    mkdirSync(join(home, 'broken'));
    writeFileSync(join(home, 'broken', 'chain.mdb'), 'this is no database'.repeat(1000));
    expectRefused(
      await run([...nodes(...lab.nodeFlags), '--store', join(home, 'broken')]),
      78,
      'STORE_UNREADABLE',
      /broken/,
    );
    writeFileSync(join(home, 'a-file'), '');
    expectRefused(
      await run([...nodes(...lab.nodeFlags), '--store', join(home, 'a-file')]),
      78,
      'STORE_UNREADABLE',
      /a-file/,
    );
    expectRefused(
      await run([...nodes(...lab.nodeFlags), '--store', foreignStore]),
      76,
      'STORE_FOREIGN',
      /foreign-store/,
    );
  });

  test(
    'run: --bootstrap with a chain in the own store and empty nodes → 76: they have lost their ' +
      'memory, and stay empty',
    async () => {
      expectRefused(
        await run([...emptyNodes(), '--bootstrap', '--store', foreignStore]),
        76,
        'ALREADY_INITIALISED',
        /the nodes are empty, but the store .* holds \d+ blocks/,
      );
      expectRefused(
        await run([...emptyNodes(), '--bootstrap', '--peer', lab.url('seq-a')]),
        76,
        'ALREADY_INITIALISED',
        /the nodes are empty, but the peer .* holds \d+ blocks/,
      );
    },
  );

  test('run: --bootstrap and cluster init beside a sequencer of the chain that the nodes forgot → 76, by name', async () => {
    const wiped = [await start(), await start(), await start()];
    const list = nodes(...wiped.map(({ url }, at) => `w${at + 1}=${url}`));
    const wait = ['--node-timeout', '2s'];
    const timing = ['--ttl', '6s', '--block-time', '500ms', ...wait, '--log-level', 'debug'];
    const old = await run([...list, '--bootstrap', '--id', 'seq-old', '--http', '127.0.0.1:0', ...timing], {
      during: async (child) => {
        await until(child, /"event":"stored"/);
        for (const { url } of wiped) await command(url, 'flushall');
        for (const args of [
          ['run', ...list, '--bootstrap', '--id', 'seq-new', '--store', join(home, 'store-new'), ...timing],
          ['cluster', 'init', ...list, ...wait],
        ]) {
          const refused = await runSeq(home, args, { limitMs: 120_000 });
          expectRefused(refused, 76, 'CHAIN_EXISTS', /the nodes are empty, but seq-old .*runs with \d+ blocks/);
        }
        for (const { url } of wiped) expect(await command(url, 'exists', 'seq:node:admission')).toBe(0);
        child.kill('SIGTERM');
      },
    });
    expect(old.code, old.stderr).toBe(0);
  });

  test('run: --bootstrap without --store, and the usual place has a store with a chain → 76, it is named', async () => {
    const place = newHome();
    const node = await start();
    const args = [
      'run',
      '--bootstrap',
      '--id',
      'seq-a',
      '--node',
      `o=${node.url}`,
      '--ttl',
      '3s',
      '--log-level',
      'debug',
    ];
    const first = await runSeq(place, args, { during: (child) => until(child, /"event":"stored"/, 'SIGTERM') });
    expect(first.code, first.stderr).toBe(0);
    await command(node.url, 'flushall');
    const again = await runSeq(place, args, { limitMs: 120_000 });
    expectRefused(again, 76, 'ALREADY_INITIALISED', /the nodes are empty, but the store .*seq-a holds \d+ blocks/);
    expect(await command(node.url, 'dbsize')).toBe(0);
    const other = await runSeq(place, [...args, '--store', join(place, 'new')], {
      during: (child) => until(child, /"event":"stored"/, 'SIGTERM'),
    });
    expect(other.code, 'a store that is named is the one that counts').toBe(0);
  });

  test.each<[string, string[], number, string, RegExp]>([
    [
      'ttl below two block times and a node timeout',
      ['--ttl', '500ms', '--block-time', '250ms'],
      78,
      'TTL_TOO_SHORT',
      /below 2 × block-time \+ node-timeout = 600 ms/,
    ],
    ['beyond loopback, no token', ['--http', '0.0.0.0:7070'], 78, 'HTTP_NOT_LOOPBACK', /token/],
    ['no HOST:PORT', ['--http', 'here'], 78, 'HTTP_ADDRESS', /HOST:PORT/],
    [
      'a token file that is not there',
      ['--http', '127.0.0.1:0', '--http-token-file', '/nonexistent/token'],
      78,
      'HTTP_TOKEN_FILE',
      /cannot be read/,
    ],
    ['a peer that is no URL', ['--peer', 'not a url'], 78, 'PEER_URL', /HTTP address of a sequencer/],
    ['case 28: ttl of zero', ['--ttl', '0ms'], 78, 'TTL_TOO_SHORT', /ttl 0 ms/],
    ['case 28: a bare number for a duration', ['--ttl', '3000'], 64, 'BAD_VALUE', /ttl/],
    ['case 28: block time of zero', ['--block-time', '0ms'], 78, 'BAD_BLOCK_TIME', /at least 1ms/],
    ['case 28: nothing retained', ['--retain-blocks', '0'], 64, 'BAD_VALUE', /retain-blocks/],
    ['case 28: a count in exponent form', ['--retain-blocks', '1e3'], 64, 'BAD_VALUE', /retain-blocks/],
    ['case 28: a count in hex', ['--retain-blocks', '0x10'], 64, 'BAD_VALUE', /retain-blocks/],
    ['case 28: a count above 2^53', ['--retain-blocks', '9007199254740993'], 64, 'BAD_VALUE', /retain-blocks/],
    ['case 28: a negative size', ['--max-block-bytes=-1KiB'], 64, 'BAD_VALUE', /max-block-bytes/],
    ['case 28: blocks larger than any may be', ['--max-block-bytes', '17MiB'], 78, 'BAD_BLOCK_SIZE', /16MiB/],
    ['an id that cannot stand in a token', ['--id', 'a/b'], 78, 'BAD_ID', /letters, digits/],
    [
      'one node twice',
      ['--node', 'redis://127.0.0.1:1', '--node', 'redis://127.0.0.1:1'],
      78,
      'DUPLICATE_NODE',
      /counted twice/,
    ],
  ])('run: %s → refused at once', async (_, args, exit, code, says) => {
    const given = args.includes('--node') ? args : [...nodes('redis://127.0.0.1:1'), ...args];
    expectRefused(await run(given), exit, code, says);
  });
});

describe('run: --bootstrap', () => {
  test(
    'run: two start on empty nodes at once with --bootstrap → one cluster, one leader, both stop ' + 'with 0',
    async () => {
      const timing = ['--bootstrap', '--ttl', '1s', '--block-time', '100ms', '--http', '127.0.0.1:0'];
      let bothLive = (): void => undefined;
      const live = new Promise<void>((resolve) => {
        bothLive = resolve;
      });
      let ready = 0;
      const both = await Promise.all(
        [0, 1].map(() =>
          run([...emptyNodes(), ...timing], {
            during: async (child) => {
              await until(child, /"event":"started"/);
              if (++ready === 2) bothLive();
              await Promise.race([live, new Promise((resolve) => setTimeout(resolve, 8000))]);
              child.kill('SIGTERM');
            },
          }),
        ),
      );
      for (const ran of both) {
        expect(ran.code, `${ran.stdout}\n${ran.stderr}`).toBe(0);
        expect(ran.stdout).toMatch(/listening on/);
      }
      const clusters = new Set(both.map(({ stdout }) => /"cluster":"([^"]+)","lane"/.exec(stdout)?.[1]));
      expect(clusters.size).toBe(1);
    },
  );
});

/** Waits for text on its stdout, then sends the signal. */
async function command(url: string, ...words: string[]): Promise<unknown> {
  const redis = new Redis(url);
  try {
    return await redis.call(words[0]!, ...words.slice(1));
  } finally {
    redis.disconnect();
  }
}

async function until(
  child: Parameters<NonNullable<NonNullable<Parameters<typeof runSeq>[2]>['during']>>[0],
  pattern: RegExp,
  signal?: NodeJS.Signals,
): Promise<void> {
  let text = '';
  await new Promise<void>((resolve) => {
    child.stdout!.on('data', (more: string) => {
      text += more;
      if (pattern.test(text)) resolve();
    });
    child.on('close', () => resolve());
  });
  if (signal) child.kill(signal);
}
