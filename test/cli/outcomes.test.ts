// The three exits that say how far a change has come: 75 nothing, 79 some nodes, 80 not known. Made on real servers,
// with answers lost on the way.
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { schemaProblems } from '../support/schemas.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const home = newHome();
let servers: RedisServer[] = [];
let proxies: { url: string; close(): void }[] = [];

/**
 * Passes everything on until a client sends `word`: from then on that client hears nothing any more, whatever the
 * server did.
 */
async function loseAnswersAfter(word: string, port: number): Promise<{ url: string; close(): void }> {
  const server: Server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    let heard = true;
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
    client.on('data', (chunk) => {
      if (chunk.includes(word)) heard = false;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (heard) client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
    },
  };
}

beforeAll(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  const writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  await writer.write([]);
  await Promise.all(nodes.map((node) => node.close()));
  proxies = await Promise.all(servers.map((server) => loseAnswersAfter('lose this answer', server.port)));
});
afterAll(async () => {
  for (const proxy of proxies) proxy.close();
  await Promise.all(
    servers.map((server) => {
      server.unpause();
      return server.stop();
    }),
  );
});

const REASON = ['--reason', 'lose this answer'];
const HOLD = ['hold', '--for', '1m', ...REASON];
async function ask(args: string[], through: (at: number) => boolean) {
  const nodes = servers.flatMap((server, at) => [
    '--node',
    `r${at + 1}=${through(at) ? (proxies[at]?.url ?? '') : server.url}`,
  ]);
  const ran = await runSeq(home, [...args, ...nodes, '--node-timeout', '1s', '--timeout', '15s', '-o', 'json'], {
    limitMs: 120_000,
  });
  const document = JSON.parse(ran.stdout) as {
    error: { code: string; exit: number; changed: string; changedNodes: string[]; next: string[] } | null;
    meta: { nodesAnswered: number };
  };
  expect(schemaProblems(document), ran.stdout).toEqual([]);
  return { code: ran.code, ...document };
}

describe('how far a change has come', () => {
  test('hold: one node of three answers, two answers are lost → 79, and that node is named', async () => {
    const { code, error } = await ask(HOLD, (at) => at > 0);
    expect([code, error]).toMatchObject([79, { code: 'PARTIAL', exit: 79, changed: 'some', changedNodes: ['r1'] }]);
  });

  test('hold: every answer is lost → 80, unknown, and how to find out', async () => {
    const { code, error, meta } = await ask(HOLD, () => true);
    expect([code, error]).toMatchObject([
      80,
      { code: 'OUTCOME_UNKNOWN', exit: 80, changed: 'unknown', changedNodes: [] },
    ]);
    expect(error?.next[0]).toMatch(/^seq status/);
    expect(meta.nodesAnswered).toBe(3);
  });

  test('hold: one answer is lost, a quorum took it → 0, and said in a warning', async () => {
    const { code, error } = await ask(HOLD, (at) => at === 2);
    expect([code, error]).toEqual([0, null]);
    expect((await ask(['resume'], () => false)).code).toBe(0);
  });

  test('hold: the nodes hang before anything is sent → 75, nothing changed', async () => {
    for (const server of servers) server.pause();
    const nodes = servers.flatMap((server, at) => ['--node', `r${at + 1}=${server.url}`]);
    const ran = await runSeq(home, [...HOLD, ...nodes, '--node-timeout', '10s', '--timeout', '500ms', '-o', 'json'], {
      limitMs: 120_000,
    });
    for (const server of servers) server.unpause();
    const { error } = JSON.parse(ran.stdout) as { error: { code: string; changed: string; message: string } };
    expect([ran.code, error.code, error.changed]).toEqual([75, 'DEADLINE', 'nothing']);
    expect(error.message).toContain('500 ms');
  });
});
