// A node behind Sentinel, on a real sentinel, master and replica: the sequencer finds the master, and a replica that
// lagged when it was promoted is a node that forgot: left out by name, re-admitted by the leader, identical to its
// peers (docs/PROTOCOL.md section 8).
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Entry, NodeView } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { differences } from '../support/lab.js';
import { launchServer, onFreePort, startRedis, type RedisServer } from '../support/redis-server.js';
import { bin, environment, newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
const servers: RedisServer[] = [];
const children: ChildProcess[] = [];
const listeners: Server[] = [];
let log = '';
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

async function until<T>(what: string, limitMs: number, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + limitMs; ;) {
    const found = await look().catch(() => undefined);
    if (found !== undefined) return found;
    if (Date.now() > end)
      throw new Error(`not within ${limitMs} ms: ${what}\n${log.split('\n').slice(-30).join('\n')}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function withRedis<T>(port: number, act: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(port, '127.0.0.1', { protocol: 2 });
  redis.on('error', () => undefined);
  try {
    return await act(redis);
  } finally {
    redis.disconnect();
  }
}

async function startSentinel(master: number): Promise<number> {
  const file = join(home, 'sentinel.conf');
  const port = await onFreePort(async (free) => {
    writeFileSync(
      file,
      `port ${free}\nbind 127.0.0.1\ndir ${home}\nsentinel monitor main 127.0.0.1 ${master} ` +
        `1\nsentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 4000\n`,
    );
    children.push(await launchServer([file, '--sentinel'], /\+monitor master/));
    return free;
  });
  await until('the sentinel to know the replica', 15_000, () =>
    withRedis(port, async (redis) => {
      const found = (await redis.call('SENTINEL', 'replicas', 'main')) as string[][];
      return found.some(
        (fields) =>
          fields[fields.indexOf('flags') + 1] === 'slave' && fields[fields.indexOf('master-link-status') + 1] === 'ok',
      )
        ? true
        : undefined;
    }),
  );
  return port;
}

/** Listens where a sentinel was. It says nothing, or still names the former master. */
async function falseSentinel(names?: number): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const calls = chunk.toString('latin1').match(/^\*\d+\r$/gm)?.length ?? 0;
      if (names !== undefined)
        socket.write(`*2\r\n$9\r\n127.0.0.1\r\n$${String(names).length}\r\n${names}\r\n`.repeat(calls));
    });
  });
  listeners.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return (server.address() as AddressInfo).port;
}

/** What the node on this port says of itself. */
async function view(port: number): Promise<NodeView> {
  const node = new RedisNode({ id: 'r3', url: `redis://127.0.0.1:${port}`, identity: { cluster: '', lane: '' } });
  try {
    const reply = await node.call({ script: 'inspect' }, 3000);
    if (reply.outcome !== 'accepted') throw new Error(JSON.stringify(reply));
    return reply.value;
  } finally {
    await node.close();
  }
}

async function entries(port: number): Promise<Entry[]> {
  const node = new RedisNode({ id: 'any', url: `redis://127.0.0.1:${port}`, identity: { cluster: '', lane: '' } });
  try {
    const read = await node.read({ from: 1, to: Number.MAX_SAFE_INTEGER, limit: 100_000, data: true }, 3000);
    if (read.outcome !== 'accepted') throw new Error(JSON.stringify(read));
    return read.value.entries;
  } finally {
    await node.close();
  }
}

let sentinels: Record<'good' | 'silent' | 'late' | 'wrong', string>;
let cluster: { r1: RedisServer; r2: RedisServer; master: RedisServer; replica: RedisServer };

beforeAll(async () => {
  const [r1, r2, master] = await Promise.all([
    startRedis(),
    startRedis(),
    startRedis({ args: ['--repl-diskless-sync-delay', '0'] }),
  ]);
  servers.push(r1, r2, master);
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
  servers.push(replica);
  cluster = { r1, r2, master, replica };
  const sentinel = await startSentinel(master.port);
  sentinels = {
    good: `127.0.0.1:${sentinel}`,
    silent: `127.0.0.1:${await falseSentinel()}`,
    late: `127.0.0.1:${await falseSentinel(master.port)}`,
    wrong: `127.0.0.1:${await falseSentinel(replica.port)}`,
  };
}, 300_000);
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const server of listeners) server.close();
  await Promise.all(servers.map((server) => server.stop()));
});

it(
  'sentinel: one is silent, one names a replica → the others are asked within the same call; when ' +
    'all are wrong, the cause says so',
  async () => {
    const ask = async (...nodes: string[]) => {
      const node = new RedisNode({
        id: 'r3',
        url: 'redis://127.0.0.1',
        identity: { cluster: '', lane: '' },
        sentinel: { name: 'main', nodes },
      });
      try {
        return await node.probe(10_000);
      } finally {
        await node.close();
      }
    };
    expect(await ask(sentinels.wrong, sentinels.silent, sentinels.good)).toMatchObject({
      outcome: 'accepted',
      value: { role: 'master' },
    });
    expect(await ask(sentinels.wrong, sentinels.wrong)).toMatchObject({
      outcome: 'unknown',
      step: 'handshake',
      cause: expect.stringContaining('no master'),
    });
  },
  300_000,
);

it('sentinel: its own password is replaced → read again at the next connect', async () => {
  const [host, port] = sentinels.good.split(':') as [string, string];
  const acl = (...rules: string[]) =>
    execFileSync('redis-cli', ['-h', host, '-p', port, 'acl', 'setuser', 'default', ...rules], { stdio: 'pipe' });
  const ask = async (renew?: () => Promise<{ sentinelPassword: string }>) => {
    const node = new RedisNode({
      id: 'r3',
      url: `redis://${sentinels.good}`,
      identity: { cluster: '', lane: '' },
      sentinel: { name: 'main', nodes: [sentinels.good], password: 'sesame-first' },
      ...(renew === undefined ? {} : { renew }),
    });
    try {
      return (await node.probe(10_000)).outcome;
    } finally {
      await node.close();
    }
  };
  acl('resetpass', '>sesame-second');
  try {
    expect(await ask()).toBe('unknown');
    expect(await ask(async () => ({ sentinelPassword: 'sesame-second' }))).toBe('accepted');
  } finally {
    execFileSync(
      'redis-cli',
      ['-h', host, '-p', port, '-a', 'sesame-second', '--no-auth-warning', 'acl', 'setuser', 'default', 'nopass'],
      {
        stdio: 'pipe',
      },
    );
  }
}, 300_000);

it('sentinel: a node that is moved to an address of sentinels → found through them, under that name', async () => {
  const { r1 } = cluster;
  const node = new RedisNode({ id: 'r3', url: r1.url, identity: { cluster: '', lane: '' } });
  try {
    node.moveTo(`sentinel://${sentinels.good}/main`);
    expect(node.url).toBe(`sentinel://${sentinels.good}/main`);
    const master = await node.probe(10_000);
    expect(master).toMatchObject({
      outcome: 'accepted',
      value: { role: 'master', info: { tcp_port: String(cluster.master.port) } },
    });
    node.moveTo(r1.url);
    expect(await node.probe(10_000)).toMatchObject({
      outcome: 'accepted',
      value: { info: { tcp_port: String(r1.port) } },
    });
  } finally {
    await node.close();
  }
}, 300_000);

it(
  'sentinel: sentinel and master speak TLS alone, with client certificates → found and asked; ' +
    'plainly, or without the certificate → no answer',
  async () => {
    const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: home, stdio: 'pipe' });
    openssl(
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-days',
      '2',
      '-subj',
      '/CN=seq test CA',
    );
    openssl(
      'req',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      'one.key',
      '-out',
      'one.csr',
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=IP:127.0.0.1,DNS:localhost',
    );
    openssl(
      'x509',
      '-req',
      '-in',
      'one.csr',
      '-CA',
      'ca.crt',
      '-CAkey',
      'ca.key',
      '-CAcreateserial',
      '-out',
      'one.crt',
      '-days',
      '2',
      '-copy_extensions',
      'copy',
    );
    const [ca, cert, key] = ['ca.crt', 'one.crt', 'one.key'].map((name) => join(home, name)) as [
      string,
      string,
      string,
    ];
    const secured = (port: number): [string, string][] => [
      ['port', '0'],
      ['tls-port', String(port)],
      ['tls-cert-file', cert],
      ['tls-key-file', key],
      ['tls-ca-cert-file', ca],
      ['tls-auth-clients', 'yes'],
      ['tls-replication', 'yes'],
    ];
    const { port: masterPort } = await onFreePort(async (port) => {
      children.push(
        await launchServer(
          [...secured(port).flatMap(([name, value]) => [`--${name}`, value]), '--dir', home, '--save', ''],
          /ready to accept connections/i,
        ),
      );
      return { port };
    });
    const port = await onFreePort(async (free) => {
      const file = join(home, 'tls-sentinel.conf');
      writeFileSync(
        file,
        [
          ...secured(free).map((line) => line.join(' ')),
          'bind 127.0.0.1',
          `dir ${home}`,
          `sentinel monitor main 127.0.0.1 ${masterPort} 1`,
          '',
        ].join('\n'),
      );
      children.push(await launchServer([file, '--sentinel'], /\+monitor master/));
      return free;
    });
    const pem = (file: string) => readFileSync(file, 'utf8');
    const probe = async (tls?: { ca: string; cert?: string; key?: string }) => {
      const node = new RedisNode({
        id: 'r3',
        url: `sentinel://127.0.0.1:${port}/main`,
        identity: { cluster: '', lane: '' },
        sentinel: { name: 'main', nodes: [`127.0.0.1:${port}`] },
        ...(tls === undefined ? {} : { tls }),
      });
      try {
        return await node.probe(10_000);
      } finally {
        await node.close();
      }
    };
    const reply = await probe({ ca: pem(ca), cert: pem(cert), key: pem(key) });
    expect(reply).toMatchObject({
      outcome: 'accepted',
      value: { role: 'master', info: { tcp_port: String(masterPort) } },
    });
    expect(await probe()).toMatchObject({ outcome: 'unknown' });
    expect(await probe({ ca: pem(ca) })).toMatchObject({ outcome: 'unknown' });

    // The whole way from the command line, with the address that an operator types.
    const flags = ['--node', `r3=sentinel://127.0.0.1:${port}/main`, '--node-timeout', '5s'];
    const env = { SEQ_TLS_CA: ca, SEQ_TLS_CERT: cert, SEQ_TLS_KEY: key };
    expect((await runSeq(home, ['cluster', 'init', ...flags], { env })).code).toBe(0);
    const listed = await runSeq(home, ['node', 'list', ...flags, '--json'], { env });
    expect(JSON.parse(listed.stdout)).toMatchObject({ data: { nodes: [{ id: 'r3', admission: 'admitted' }] } });
  },
  300_000,
);

it(
  'sentinel: a failover to a replica that lagged → named as restarted, re-admitted, identical; a ' +
    'sentinel that did not hear of it is passed over',
  async () => {
    const { r1, r2, master, replica } = cluster;
    const flags = (watchers: string) =>
      [`r1=${r1.url}`, `r2=${r2.url}`, `r3=sentinel://${watchers}/main`].flatMap((each) => ['--node', each]);
    const child = spawn(
      process.execPath,
      [
        bin,
        'run',
        ...flags(`${sentinels.late},${sentinels.good}`),
        '--bootstrap',
        '--id',
        'a',
        '--ttl',
        '1s',
        '--block-time',
        '100ms',
        '--node-timeout',
        '400ms',
        '--store',
        join(home, 'store'),
      ],
      { env: environment(home), cwd: home, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    children.push(child);
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
    const head = async (port: number, above: number) =>
      until(`a head above ${above} on ${port}`, 20_000, async () => {
        const { head: at } = await view(port);
        return at > above ? at : undefined;
      });
    await head(replica.port, 5);

    // Only the replica's link is cut. Everybody else keeps the connection to the master.
    await withRedis(master.port, async (redis) => {
      await redis.call('ACL', 'SETUSER', 'default', '-psync', '-sync');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'replica');
    });
    const { head: lagging } = await view(replica.port);
    const before = await view(master.port);
    await head(master.port, lagging + 5);
    await master.kill();

    const after = await until('the replica to be admitted as the node', 30_000, async () => {
      const seen = await view(replica.port);
      return seen.admission === 'admitted' && seen.incarnation !== before.incarnation ? seen : undefined;
    });
    expect(after.runId).toBe(after.admittedRunId);
    expect(after.runId).not.toBe(before.runId);
    expect(after.epoch, 'its promise never falls').toBeGreaterThanOrEqual(before.epoch);
    const told = log.split('\n').filter((line) => line.includes('"r3"'));
    expect(told.join('\n')).toMatch(/restarted/);
    await until('identical nodes', 10_000, async () => {
      const streams = new Map(
        await Promise.all(
          (
            [
              ['r1', r1.port],
              ['r2', r2.port],
              ['r3', replica.port],
            ] as const
          ).map(async ([id, port]) => [id, await entries(port)] as const),
        ),
      );
      const heads = [...streams.values()].map((of) => of.at(-1)?.height ?? 0);
      return differences(streams).length === 0 &&
        Math.min(...heads) > lagging + 5 &&
        Math.max(...heads) - Math.min(...heads) <= 1
        ? true
        : undefined;
    });
    const status = await runSeq(home, ['status', ...flags(sentinels.good), '--node-timeout', '3s', '--json']);
    const { data } = JSON.parse(status.stdout) as { data: { nodes: { id: string; admission: string }[] } };
    expect(data.nodes.map(({ id, admission }) => ({ id, admission }))).toEqual(
      ['r1', 'r2', 'r3'].map((id) => ({ id, admission: 'admitted' })),
    );
  },
  300_000,
);
