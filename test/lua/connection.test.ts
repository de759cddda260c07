// Servers that are away, silent, foreign or half-dead: every call ends within its limit and says what is not known,
// and at which step.
import { createServer, connect, type Server, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { connectNode, type RedisNode } from '../../src/core/redis/node.js';
import { scriptText } from '../../src/core/redis/scripts.js';
import type { NodeReply, Step } from '../../src/core/protocol/types.js';
import { freePort } from '../../src/lab/free-port.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { A, chain, IDENTITY, lead, LIMIT, must, nodeOf, openNode, picture, plainClient, write } from './fixture.js';

/** Only a call that hangs is later than its limit by this much. */
const SLACK_MS = 60_000;
const closers: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function redisServer(args: string[] = []): Promise<RedisServer> {
  const server = await startRedis({ args });
  closers.push(() => server.stop());
  return server;
}
function nodeAt(port: number, over: { password?: string; username?: string } = {}): RedisNode {
  const node = nodeOf({ url: `redis://127.0.0.1:${port}`, ...over });
  closers.push(() => node.close());
  return node;
}
async function listener(onSocket: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  closers.push(
    () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  );
  return (server.address() as { port: number }).port;
}
async function timed<T>(work: Promise<T>): Promise<{ reply: T; ms: number }> {
  const startedAt = performance.now();
  const reply = await work;
  return { reply, ms: performance.now() - startedAt };
}
function expectUnknown(reply: NodeReply<unknown>, step: Step): void {
  expect(reply).toMatchObject({ outcome: 'unknown', step });
}

test('SIGSTOPped server, connected before → unknown at call within the limit, then fast, then well again', async () => {
  const server = await redisServer();
  const node = nodeAt(server.port);
  await lead(node, chain(2));
  server.pause();
  const first = await timed(node.call({ script: 'inspect' }, 100));
  expectUnknown(first.reply, 'call');
  expect(first.reply).toMatchObject({ cause: 'no answer', limitMs: 100 });
  expect(first.ms).toBeGreaterThan(95);
  expect(first.ms).toBeLessThan(100 + SLACK_MS);
  expect(node.connectionGeneration, 'one late answer does not cost the others their connection').toBe(0);
  expectUnknown(await node.call({ script: 'inspect' }, 100), 'call');
  expect(node.connectionGeneration).toBe(1);
  const second = await timed(node.call({ script: 'inspect' }, 100));
  expectUnknown(second.reply, 'handshake');
  expect(second.ms).toBeLessThan(100 + SLACK_MS);
  for (let i = 0; i < 5; i += 1) {
    // It waits for nothing: with a limit of an hour it would stand still.
    expectUnknown(await node.call({ script: 'inspect' }, 3_600_000), 'handshake');
  }
  server.unpause();
  await expect
    .poll(() => node.call({ script: 'inspect' }, 100), { timeout: 120_000 })
    .toMatchObject({ outcome: 'accepted', value: { admission: 'admitted', head: 2 } });
});

test('closed port → unknown at connect at once, and again without a connection attempt', async () => {
  const node = nodeAt(await freePort());
  // Neither waits for its limit: with one of an hour the test would stand still.
  expect(await node.call({ script: 'inspect' }, 3_600_000)).toMatchObject({
    outcome: 'unknown',
    step: 'connect',
    cause: 'ECONNREFUSED',
  });
  expect(await node.call({ script: 'inspect' }, 3_600_000)).toMatchObject({
    outcome: 'unknown',
    step: 'connect',
    cause: 'ECONNREFUSED',
    retryInMs: expect.any(Number),
  });
  for (const reply of [
    await node.read({ from: 1, to: 2, limit: 1, data: false }, 100),
    await node.tail('', 20, 1),
    await node.probe(100),
  ])
    expectUnknown(reply, 'connect');
  const [unsent] = await node.backfill(
    { owner: A, epoch: 1, ttlMs: 1000, mode: 'repair', blocks: [{ block: chain(1)[0]!, entryEpoch: 1 }] },
    100,
  );
  expectUnknown(unsent as NodeReply<unknown>, 'connect');
});

test('a name that does not resolve → unknown at resolve', async () => {
  const node = nodeOf({ url: 'redis://no-such-host.invalid:6390' });
  closers.push(() => node.close());
  const { reply, ms } = await timed(node.call({ script: 'inspect' }, 3000));
  expectUnknown(reply, 'resolve');
  expect(ms).toBeLessThan(3000 + SLACK_MS);
});

test('server that accepts and stays silent (half-alive node) → unknown at handshake within the limit', async () => {
  const node = nodeAt(await listener(() => undefined));
  const { reply, ms } = await timed(node.call({ script: 'inspect' }, 100));
  expectUnknown(reply, 'handshake');
  expect(ms).toBeLessThan(100 + SLACK_MS);
});

test.each([
  ['HTTP', 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'],
  ['an SSH banner', 'SSH-2.0-OpenSSH_9.2p1\r\n'],
  ['binary noise', '\x00\xff\x13\x37noise\r\n'],
  ['a wrong PONG', '+HELLO\r\n'],
  ['a number', ':1\r\n'],
])('garbage-speaking server (%s) → unknown at handshake', async (_what, garbage) => {
  const node = nodeAt(await listener((socket) => socket.on('data', () => socket.write(garbage, 'latin1'))));
  const { reply, ms } = await timed(node.call({ script: 'inspect' }, 150));
  expect(reply.outcome).toBe('unknown');
  expect(reply).toMatchObject({ step: 'handshake' });
  expect(ms).toBeLessThan(150 + SLACK_MS);
});

test('garbage after a good handshake → unknown with an alarm or a lost connection, never a value', async () => {
  const answers = [
    '+OK\r\n',
    '*1\r\n$2\r\nhi\r\n',
    '*2\r\n$8\r\naccepted\r\n:1\r\n',
    '*3\r\n$7\r\nrefused\r\n$4\r\nFOO!\r\n$0\r\n\r\n',
    '$-1\r\n',
    '-ERR odd\r\n',
    '*0\r\n',
    '?!\r\n',
  ];
  for (const answer of answers) {
    const node = nodeAt(
      await listener((socket) =>
        socket.on('data', (chunk) =>
          socket.write(chunk.toString().toLowerCase().includes('ping') ? '+PONG\r\n' : answer),
        ),
      ),
    );
    expect(await node.call({ script: 'claim', owner: A, epoch: 1 }, 200), answer).toMatchObject({ outcome: 'unknown' });
    await node.close();
  }
});

test('password needed, wrong, right → NOAUTH twice, then accepted; no secret in any answer or url', async () => {
  const server = await redisServer(['--requirepass', 's3cret-pw']);
  for (const [node, outcome] of [
    [nodeAt(server.port), 'refused'],
    [nodeAt(server.port, { password: 'wr0ng-pw' }), 'refused'],
    [nodeAt(server.port, { password: 's3cret-pw' }), 'accepted'],
    [nodeOf({ url: `redis://default:s3cret-pw@127.0.0.1:${server.port}/3` }), 'accepted'],
  ] as const) {
    closers.push(() => node.close());
    for (let i = 0; i < 2; i += 1) {
      const reply = await node.call({ script: 'inspect' }, LIMIT);
      expect(reply.outcome).toBe(outcome);
      if (reply.outcome === 'refused') expect(reply.reason).toBe('NOAUTH');
      expect(JSON.stringify(reply) + node.url).not.toMatch(/s3cret|wr0ng/);
    }
  }
  await expect(
    connectNode({ id: 'r1', url: `redis://:wr0ng-pw@127.0.0.1:${server.port}`, identity: IDENTITY }, LIMIT),
  ).rejects.toMatchObject({ code: 'NODE_DENIED', exit: 77 });
});

test('a password for a server that needs none → used without it', async () => {
  const server = await redisServer();
  expect((await nodeAt(server.port, { password: 'x' }).probe(LIMIT)).outcome).toBe('accepted');
});

test(
  'lost reply: the call ran, the answer is unknown; asked again the same block is accepted and ' +
    'there once (case: write applied, reply lost)',
  async () => {
    const server = await redisServer();
    let swallow = false;
    const port = await listener((socket) => {
      const upstream = connect(server.port, '127.0.0.1');
      upstream.on('error', () => undefined);
      socket.on('data', (chunk) => upstream.write(chunk));
      upstream.on('data', (chunk) => {
        if (swallow) socket.destroy();
        else socket.write(chunk);
      });
      socket.on('close', () => upstream.destroy());
    });
    const node = nodeAt(port);
    await lead(node, chain(1));
    swallow = true;
    const block = chain(2)[1]!;
    const lost = await node.call(write(block), LIMIT);
    expect(lost).toMatchObject({ outcome: 'unknown', step: 'call', cause: 'the connection was lost' });
    swallow = false;
    const redis = plainClient(server);
    closers.push(() => redis.disconnect());
    expect(await redis.xlen('seq:block:stream')).toBe(2);
    expect(await must(node, write(block))).toMatchObject({ value: { head: 2 } });
    expect(await redis.xlen('seq:block:stream')).toBe(2);
  },
);

test('server killed and started again: nothing is resent, the next call connects by itself', async () => {
  const server = await redisServer();
  const node = nodeAt(server.port);
  await must(node, { script: 'audit', record: { n: '1' }, maxRecords: 99 });
  server.pause();
  const pending = node.call({ script: 'audit', record: { n: '2' }, maxRecords: 99 }, LIMIT);
  await server.restart();
  expectUnknown(await pending, 'call');
  await expect
    .poll(async () => (await node.call({ script: 'inspect' }, 100)).outcome, { timeout: 120_000 })
    .toBe('accepted');
  const redis = plainClient(server);
  closers.push(() => redis.disconnect());
  expect(await redis.exists('seq:ops:audit')).toBe(0);
});

test('a silent tail is given up soon after its wait, and does not hold up calls', async () => {
  const server = await redisServer();
  const node = nodeAt(server.port);
  await lead(node, chain(1));
  expect((await node.tail('1-1', 10, 5)).outcome).toBe('accepted');
  let isTailOpen = true;
  const tail = timed(node.tail('1-1', 300, 5));
  void tail.finally(() => (isTailOpen = false));
  expect((await node.call({ script: 'inspect' }, LIMIT)).outcome).toBe('accepted');
  expect(isTailOpen, 'the call was answered while the tail waits').toBe(true);
  server.pause();
  const { reply, ms } = await tail;
  expectUnknown(reply, 'call');
  expect(ms).toBeLessThan(300 + 250 + SLACK_MS);
  server.unpause();
});

test('close: whatever waits ends as unknown, later calls too', async () => {
  const server = await redisServer();
  const node = openNode(server);
  await lead(node, chain(1));
  const tail = node.tail('1-1', 10_000, 5);
  await must(node, { script: 'inspect' });
  await node.close();
  expect((await tail).outcome).toBe('unknown');
  expect(await node.call({ script: 'inspect' }, LIMIT)).toMatchObject({
    outcome: 'unknown',
    step: 'connect',
    cause: 'the connection is closed',
  });
});

test(
  'prepare: what a takeover will use is loaded and connected, nothing on the node changes; on a ' +
    'server without scripts a promotion then needs no load',
  async () => {
    const server = await redisServer();
    const node = nodeAt(server.port);
    await lead(node, chain(2));
    const plain = plainClient(server);
    closers.push(() => plain.disconnect());
    await plain.script('FLUSH');
    const before = await picture(plain);
    await node.prepare(LIMIT);
    expect(await picture(plain)).toEqual(before);
    expect(
      await plain.script(
        'EXISTS',
        ...(['promote_leader', 'claim', 'write_block', 'release_lock'] as const).map((name) => scriptText(name).sha),
      ),
    ).toEqual([1, 1, 1, 1]);
  },
);
