// `seq status` and `seq node list` on real servers that are up, hung, gone, empty, restarted, locked
// (docs/PROTOCOL.md section 9, case 31).
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inspectCluster } from '../../src/core/view/inspect.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { runSeq } from '../support/run-seq.js';
import { schemaProblems } from '../support/schema.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
/** Longer than a busy machine takes to start every command of a case. A server that answers is not waited for. */
const PATIENCE_MS = 60_000;
const patient = ['--node-timeout', `${PATIENCE_MS}ms`];
let servers: RedisServer[] = [];
let nodes: RedisNode[] = [];
let writer: ChainWriter;
let flags: string[] = [];

async function begin(args: string[] = []): Promise<void> {
  servers = await Promise.all([startRedis({ args }), startRedis({ args }), startRedis({ args })]);
  nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  flags = servers.flatMap((server) => ['--node', server.url]);
  writer = new ChainWriter(nodes, CLUSTER);
}
beforeEach(() => begin());
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(
    servers.map((server) => {
      server.unpause();
      return server.stop();
    }),
  );
});

const probe = (limitMs = 1000) => inspectCluster({ nodes, limitMs, clock: systemClock });
async function json(...args: string[]) {
  const limit = args.includes('--node-timeout') ? [] : patient;
  const answer = await runSeq([...args, ...flags, ...limit, '-o', 'json']);
  const document = JSON.parse(answer.stdout);
  if (document.ok) expect(schemaProblems(document)).toBe('');
  return { ...answer, document };
}

describe('status: real servers', () => {
  test(
    'status: empty, then bootstrapped, then led → NOT_INITIALISED, NO_LEADER, OK with everything a ' + 'script needs',
    async () => {
      const empty = await json('status');
      expect([empty.code, empty.document.data.verdict, empty.document.data.reasonCode]).toEqual([
        0,
        'CRIT',
        'NOT_INITIALISED',
      ]);
      expect(empty.document.data.next[0]).toMatch(/^seq cluster init --node /);
      await writer.bootstrap();
      expect((await probe()).reasonCode).toBe('NO_LEADER');
      await writer.lead();
      for (let i = 0; i < 3; i++) await writer.write();
      await nodes[0]!.call(
        {
          script: 'announce',
          ttlMs: PATIENCE_MS,
          presence: {
            id: 'seq-a',
            role: 'leader',
            height: 3,
            version: '0.1.0',
            url: 'http://127.0.0.1:1',
            pid: 42,
            configDigest: 'd',
            extra: { seenAtMs: String(Date.now()) },
          },
        },
        1000,
      );
      const { code, document } = await json('status');
      expect(code).toBe(0);
      expect(document.meta).toMatchObject({ nodesAsked: 3, nodesAnswered: 3, quorum: 2 });
      expect(document.data).toMatchObject({
        verdict: 'OK',
        reasonCode: 'OK',
        quorum: 2,
        margin: 1,
        leader: { id: 'seq-a', epoch: '1', owner: writer.owner, nodes: ['r1', 'r2', 'r3'] },
        committed: { height: '3', hash: writer.chain.hash },
        nodes: ['r1', 'r2', 'r3'].map((id) => ({
          id,
          state: 'OK',
          admitted: true,
          holder: 'seq-a',
          epoch: '1',
          floor: '0',
          head: '3',
          lag: 0,
          error: null,
        })),
        sequencers: [{ id: 'seq-a', role: 'leader', height: '3', lag: 0, pid: 42 }],
      });
      const table = await runSeq(['status', ...flags, ...patient, '-o', 'table']);
      expect(table.stdout.split('\n')[0]).toMatch(/^OK {2}seq-a leads under epoch 1, height 3 is committed/);
      const twice = ['--watch', '--interval', '10ms', '--count', '2'];
      const watched = await runSeq(['status', ...flags, ...patient, ...twice, '-o', 'json']);
      expect(
        watched.stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).data.verdict),
      ).toEqual(['OK', 'OK']);
      // A killed leader has announced that it leads, but it no longer does.
      await nodes[0]!.call(
        {
          script: 'announce',
          ttlMs: PATIENCE_MS,
          presence: {
            id: 'seq-z',
            role: 'leader',
            height: 2,
            version: '0.1.0',
            url: '',
            pid: 43,
            configDigest: 'd',
            extra: {},
          },
        },
        1000,
      );
      expect((await runSeq(['status', ...flags, ...patient, '-o', 'table'])).stdout).toMatch(/seq-z\W+leader\?/);
      const list = await json('node', 'list', '--on', 'r2');
      expect(list.document.data.nodes.map((n: { id: string }) => n.id)).toEqual(['r2']);
    },
  );

  test(
    'status: one node hangs (SIGSTOP) → a row with step and limit, and the others wait no longer ' + 'than its limit',
    async () => {
      await writer.bootstrap();
      await writer.lead();
      await writer.write();
      await probe();
      servers[2]!.pause();
      const startedAt = performance.now();
      const view = await probe(100);
      const elapsed = performance.now() - startedAt;
      expect([view.verdict, view.reasonCode, view.margin, view.leader?.nodes]).toEqual([
        'WARN',
        'NODE_DOWN',
        0,
        ['r1', 'r2'],
      ]);
      expect(view.nodes[2]).toMatchObject({ id: 'r3', state: 'DOWN', error: { code: 'NO_ANSWER', limitMs: 100 } });
      expect(elapsed).toBeLessThan(300);
      const { code, document } = await json('status', '--node-timeout', '1s');
      expect([code, document.data.reasonCode, document.meta.nodesAnswered]).toEqual([0, 'NODE_DOWN', 2]);
    },
  );

  test('status: two nodes gone, then all → CRIT NO_QUORUM and exit 0; then 69', async () => {
    await writer.bootstrap();
    await writer.lead();
    await writer.write();
    await Promise.all([servers[1]!.kill(), servers[2]!.kill()]);
    const one = await json('status');
    expect([
      one.code,
      one.document.ok,
      one.document.data.verdict,
      one.document.data.reasonCode,
      one.document.data.margin,
    ]).toEqual([0, true, 'CRIT', 'NO_QUORUM', -1]);
    expect(one.document.data.nodes).toHaveLength(3);
    await servers[0]!.kill();
    const none = await json('status');
    expect([none.code, none.document.ok, none.document.error.code]).toEqual([69, false, 'NO_ANSWER']);
    const text = await runSeq(['status', ...flags]);
    expect([text.code, text.stdout.match(/DOWN/g)?.length]).toEqual([69, 3]);
  });

  test('status: one node restarted, one emptied → not admitted, and what to do', async () => {
    await writer.bootstrap();
    await writer.lead();
    await writer.write();
    await servers[2]!.restart();
    const view = await probe();
    expect([view.verdict, view.reasonCode, view.nodes[2]?.state]).toEqual(['WARN', 'NODE_NOT_ADMITTED', 'EMPTY']);
    expect(view.next[0]).toBe('seq node admit --on r3');
    await servers[1]!.restart();
    expect((await probe()).reasonCode).toBe('NO_QUORUM');
  });

  test('one node emptied, one silent → every verb brings the silent one back before it speaks of a recovery', async () => {
    await writer.bootstrap();
    await writer.lead();
    await writer.write();
    await servers[1]!.restart();
    await servers[2]!.kill();
    const back = `redis-cli -u ${servers[2]!.url} ping`;
    for (const words of ['status', 'epoch show', 'history', 'repair plan', 'cluster recover --dry-run']) {
      const { stdout } = await runSeq([...words.split(' '), ...flags, '--node-timeout', '500ms', '-o', 'plain']);
      const next = [...stdout.matchAll(/^next\t(.+)$/gm)].map(([, line]) => line);
      expect(next[0], `${words}: ${stdout}`).toBe(back);
      expect(next.slice(1).join(), words).not.toContain('cluster recover --dry-run');
    }
  }, 120_000);

  test('status: a block on one node only → pending, not committed; the node behind is named', async () => {
    await writer.bootstrap();
    await writer.lead();
    await writer.write();
    const block = await writer.write([], [nodes[0]!]);
    const pending = await probe();
    expect([pending.reasonCode, pending.committed?.height, pending.pending]).toMatchObject([
      'PENDING_BLOCK',
      1,
      { height: 2, hash: block.hash, nodes: ['r1'], mayBeCommitted: false },
    ]);
    await writer.put(block, [nodes[1]!]);
    const lagging = await probe();
    expect([lagging.reasonCode, lagging.committed, lagging.nodes[2]?.lag]).toEqual([
      'NODE_LAGGING',
      { height: 2, hash: block.hash },
      1,
    ]);
  });

  test('status: servers that need a password → 77, and the password is never shown', async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await begin(['--requirepass', 's3cret']);
    const { code, document } = await json('status');
    expect([code, document.error.code]).toEqual([77, 'NODE_DENIED']);
    const let_in = await runSeq(['status', ...flags, ...patient, '-o', 'json', '-v'], {
      SEQ_PASSWORD: 's3cret',
    });
    expect([let_in.code, JSON.parse(let_in.stdout).data.reasonCode]).toEqual([0, 'NOT_INITIALISED']);
    expect(let_in.stdout + let_in.stderr).not.toContain('s3cret');
  });
});
