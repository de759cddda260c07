// `seq cluster init`: all or nothing, on real servers and on the in-memory node (docs/PROTOCOL.md section 8).
import { afterEach, describe, expect, test } from 'vitest';
import { bootstrap, sizeWarnings } from '../../src/core/operate/bootstrap.js';
import { systemClock, systemRandom } from '../../src/core/nodes/system-clock.js';
import type { SeqError } from '../../src/core/errors.js';
import type { NodePort } from '../../src/core/ports.js';
import type { NodeCall, NodeView } from '../../src/core/protocol/types.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { MemoryNode, MemoryServer } from '../support/memory-node.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { runSeq } from '../support/run-seq.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const servers: RedisServer[] = [];
const open: NodePort[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((node) => node.close()));
  await Promise.all(servers.splice(0).map((server) => server.stop()));
});

const memoryNodes = (n: number) =>
  Array.from(
    { length: n },
    (_, i) =>
      new MemoryNode(
        new MemoryServer(`r${i + 1}`, () => performance.now()),
        { cluster: CLUSTER, lane: '' },
        systemClock,
      ),
  );
const run = (nodes: readonly NodePort[], more = {}) =>
  bootstrap({ nodes, cluster: CLUSTER, limitMs: 20_000, clock: systemClock, random: systemRandom, ...more });
const failure = (nodes: readonly NodePort[], more = {}): Promise<SeqError> =>
  run(nodes, more).then(
    () => {
      throw new Error('it succeeded');
    },
    (error: SeqError) => error,
  );
const stateOf = async (node: NodePort) => {
  const reply = await node.call({ script: 'inspect' }, 500);
  return reply.outcome === 'accepted' ? reply.value.admission : reply.outcome;
};

/** A port whose calls of one script go nowhere, or whose view is changed. */
function bent(node: NodePort, how: { lose?: NodeCall['script']; view?: Partial<NodeView> }): NodePort {
  return Object.assign(Object.create(node) as NodePort, {
    async call(call: NodeCall, limitMs: number) {
      if (call.script === how.lose) return { outcome: 'unknown', step: 'call', cause: 'lost', limitMs };
      const reply = await node.call(call, limitMs);
      if (call.script === 'inspect' && reply.outcome === 'accepted')
        Object.assign(reply.value as NodeView, how.view ?? {});
      return reply;
    },
  });
}

describe('bootstrap', () => {
  test.each([1, 2, 3, 4, 5])(
    'bootstrap: n=%i empty nodes → all admitted under one nonce, at floor 0 and epoch 0',
    async (n) => {
      const nodes = memoryNodes(n);
      const made = await run(nodes);
      expect([made.how, made.quorum, made.margin]).toEqual(['new', Math.floor(n / 2) + 1, n - Math.floor(n / 2) - 1]);
      for (const node of nodes) {
        const reply = await node.call({ script: 'inspect' }, 100);
        expect(reply).toMatchObject({
          outcome: 'accepted',
          incarnation: expect.stringMatching(new RegExp(`^${made.nonce}\\.`)) as string,
          value: { admission: 'admitted', cluster: CLUSTER, head: 0, floor: 0, epoch: 0 },
        });
      }
      expect((await failure(nodes)).code).toBe('ALREADY_INITIALISED');
    },
  );

  test('bootstrap: an even number of nodes → said what it costs', () => {
    expect(sizeWarnings(4)[0]).toMatch(/4 nodes need 3 .* survive 1 failure: no more than 3 nodes/);
    expect([sizeWarnings(3), sizeWarnings(5)]).toEqual([[], []]);
  });

  // p prepared with nonce aa, a admitted by it, . pristine, b prepared with another nonce, w wiped (data without a
  // record)
  test.each([
    ['p . .', 'finished'],
    ['p p p', 'finished'],
    ['a p p', 'finished'],
    ['a a p', 'finished'],
    ['a . p', 'ALREADY_INITIALISED'],
    ['a a .', 'ALREADY_INITIALISED'],
    ['a a a', 'ALREADY_INITIALISED'],
    ['p b .', 'BOOTSTRAP_MIXED'],
    ['. . w', 'NOT_PRISTINE'],
  ])('bootstrap: broken off at %s → %s', async (word, expected) => {
    const nodes = memoryNodes(3);
    for (const [i, letter] of word.split(' ').entries()) {
      const node = nodes[i]!;
      const nonce = letter === 'b' ? 'bb' : 'aa';
      if ('pab'.includes(letter)) await node.call({ script: 'bootstrap_prepare', nonce }, 100);
      if (letter === 'a') await node.call({ script: 'bootstrap_commit', nonce }, 100);
      if (letter === 'w') node.server.state.epoch = 7;
    }
    const before = await Promise.all(nodes.map(stateOf));
    const outcome = await run(nodes).then(
      (made) => {
        expect(made.nonce).toBe('aa');
        return made.how;
      },
      (error: SeqError) => {
        expect([error.exit, error.changed]).toEqual([76, 'nothing']);
        return error.code;
      },
    );
    expect(outcome).toBe(expected);
    expect(await Promise.all(nodes.map(stateOf))).toEqual(
      expected === 'finished' ? ['admitted', 'admitted', 'admitted'] : before,
    );
  });

  test('bootstrap: a node that does not answer → 69, nothing written anywhere', async () => {
    const nodes = memoryNodes(3);
    const error = await failure([nodes[0]!, nodes[1]!, bent(nodes[2]!, { lose: 'inspect' })]);
    expect([error.code, error.exit, error.changed]).toEqual(['NODE_UNREACHABLE', 69, 'nothing']);
    expect(await Promise.all(nodes.map(stateOf))).toEqual(['pristine', 'pristine', 'pristine']);
  });

  test.each(['bootstrap_prepare', 'bootstrap_commit'] as const)(
    'bootstrap: %s lost on one node → 79, and the next run finishes it',
    async (lose) => {
      const nodes = memoryNodes(3);
      const error = await failure([nodes[0]!, nodes[1]!, bent(nodes[2]!, { lose })]);
      expect([error.code, error.exit, error.changed, error.changedNodes]).toEqual([
        'BOOTSTRAP_BROKEN_OFF',
        79,
        'some',
        ['r1', 'r2'],
      ]);
      if (lose === 'bootstrap_prepare') expect(await Promise.all(nodes.map(stateOf))).not.toContain('admitted');
      expect((await run(nodes)).how).toBe('finished');
      expect(await Promise.all(nodes.map(stateOf))).toEqual(['admitted', 'admitted', 'admitted']);
    },
  );

  test(
    'bootstrap: broken off with fewer than a quorum admitted, one of them used since → left to a ' +
      'recovery: no leader could admit the others',
    async () => {
      const nodes = memoryNodes(3);
      for (const node of nodes) await node.call({ script: 'bootstrap_prepare', nonce: 'aa.1' }, 100);
      await nodes[0]!.call({ script: 'bootstrap_commit', nonce: 'aa.1' }, 100);
      await nodes[0]!.call({ script: 'raise_epoch', value: 1, highestSeen: 0, mayDepose: true }, 100);
      const { code, exit, changed, next } = await failure(nodes);
      expect([code, exit, changed, next]).toEqual([
        'ALREADY_INITIALISED',
        76,
        'nothing',
        ['seq cluster recover --dry-run', 'seq status'],
      ]);
    },
  );

  test('bootstrap: somebody else who finishes the same one is a step ahead on a node → both are done', async () => {
    const nodes = memoryNodes(3);
    for (const node of nodes) await node.call({ script: 'bootstrap_prepare', nonce: 'aa.1' }, 100);
    let probes = 0;
    const overtaken = Object.assign(Object.create(nodes[0]!) as NodePort, {
      async call(call: NodeCall, limitMs: number) {
        if (call.script === 'inspect' && ++probes === 2)
          await nodes[0]!.call({ script: 'bootstrap_commit', nonce: 'aa.1' }, limitMs);
        return nodes[0]!.call(call, limitMs);
      },
    });
    expect(await run([overtaken, nodes[1]!, nodes[2]!])).toMatchObject({ how: 'finished', nonce: 'aa' });
    expect(await Promise.all(nodes.map(stateOf))).toEqual(['admitted', 'admitted', 'admitted']);
  });

  test.each([
    ['begun with it', false],
    ['admitted it', true],
  ])(
    'bootstrap: a leader was elected by the first two before the last node had its phase 2, and has %s → done',
    async (_, finishes) => {
      const nodes = memoryNodes(3);
      const owner = 'seq-a/1';
      const genesis = '0'.repeat(64);
      const overtaken = Object.assign(Object.create(nodes[2]!) as NodePort, {
        async call(call: NodeCall, limitMs: number) {
          if (call.script === 'bootstrap_commit') {
            for (const node of nodes.slice(0, 2)) {
              await node.call(
                { ...call, nonce: node.server.state.record!.pending.replace('bootstrap:', '') || call.nonce },
                limitMs,
              );
              await node.call({ script: 'promote_leader', owner, expectedEpoch: 0, ttlMs: 1000 }, limitMs);
            }
            await nodes[2]!.call(
              { script: 'begin_admission', owner, epoch: 1, nonce: '1-1', floor: 0, floorHash: genesis, keepMs: 1 },
              limitMs,
            );
            if (finishes)
              await nodes[2]!.call(
                { script: 'admit', owner, epoch: 1, nonce: '1-1', ttlMs: 1000, head: 0, headHash: genesis },
                limitMs,
              );
          }
          return nodes[2]!.call(call, limitMs);
        },
      });
      expect(await run([nodes[0]!, nodes[1]!, overtaken])).toMatchObject({ how: 'new' });
      expect(await Promise.all(nodes.map(stateOf))).toEqual([
        'admitted',
        'admitted',
        finishes ? 'admitted' : 'admitting',
      ]);
    },
  );

  test(
    'bootstrap: two of three admitted and used, the last one marked → the leader takes it; no key is ' +
      'to be removed',
    async () => {
      const nodes = memoryNodes(3);
      for (const node of nodes) await node.call({ script: 'bootstrap_prepare', nonce: 'aa.1' }, 100);
      for (const node of nodes.slice(0, 2)) {
        await node.call({ script: 'bootstrap_commit', nonce: 'aa.1' }, 100);
        await node.call({ script: 'promote_leader', owner: 'seq-a/1', expectedEpoch: 0, ttlMs: 1000 }, 100);
      }
      for (const begun of [false, true]) {
        if (begun)
          await nodes[2]!.call(
            {
              script: 'begin_admission',
              owner: 'seq-a/1',
              epoch: 1,
              nonce: '1-1',
              floor: 0,
              floorHash: '0'.repeat(64),
              keepMs: 1,
            },
            100,
          );
        const { code, exit, changed, next } = await failure(nodes);
        expect([code, exit, changed, next]).toEqual(['ALREADY_INITIALISED', 76, 'nothing', ['seq status']]);
      }
    },
  );

  test.each([
    ['REDIS_TOO_OLD', { info: { redis_version: '6.0.16' } }],
    ['REDIS_CLUSTER', { info: { cluster_enabled: '1' } }],
    ['EVICTION', { info: { maxmemory_policy: 'allkeys-lru' } }],
    ['REPLICA', { info: { role: 'slave' } }],
    ['SAME_SERVER', { runId: 'run-r1-0' }],
  ])('bootstrap: an unfit server → %s, 78, nothing written', async (code, view) => {
    const nodes = memoryNodes(3);
    const error = await failure([nodes[0]!, nodes[1]!, bent(nodes[2]!, { view })]);
    expect([error.code, error.exit, error.changed]).toEqual([code, 78, 'nothing']);
    expect(await Promise.all(nodes.map(stateOf))).toEqual(['pristine', 'pristine', 'pristine']);
  });

  test('bootstrap: a node of another cluster → 76', async () => {
    const nodes = memoryNodes(3);
    await run([new MemoryNode(nodes[2]!.server, { cluster: 'other.1', lane: '' }, systemClock)], {
      cluster: 'other.1',
    });
    const error = await failure(nodes);
    expect([error.code, error.exit, error.changed]).toEqual(['WRONG_CLUSTER', 76, 'nothing']);
  });

  test('bootstrap: dry run → checked, nothing written', async () => {
    const nodes = memoryNodes(3);
    expect((await run(nodes, { dryRun: true })).how).toBe('planned');
    expect(await Promise.all(nodes.map(stateOf))).toEqual(['pristine', 'pristine', 'pristine']);
  });

  test(
    'bootstrap: real servers, broken off after one node was prepared → seq cluster init finishes it, ' +
      'a second one is refused',
    async () => {
      servers.push(...(await Promise.all([startRedis(), startRedis(), startRedis()])));
      const flags = servers.flatMap((server, i) => ['--node', `r${i + 1}=${server.url}`]);
      const first = new RedisNode({ id: 'r2', url: servers[1]!.url, identity: { cluster: CLUSTER, lane: '' } });
      open.push(first);
      expect((await first.call({ script: 'bootstrap_prepare', nonce: 'aa' }, 1000)).outcome).toBe('accepted');
      const limit = ['--node-timeout', '2s'];
      const done = await runSeq(['cluster', 'init', ...flags, ...limit, '-o', 'json']);
      expect(done.stderr).toBe('');
      expect(JSON.parse(done.stdout)).toMatchObject({
        ok: true,
        kind: 'cluster.init',
        data: { how: 'finished', cluster: CLUSTER, nonce: 'aa', quorum: 2, margin: 1 },
      });
      expect((await runSeq(['cluster', 'init', ...flags, ...limit])).code).toBe(76);
      // The same server by two names: refused before anything is written.
      const twice = await runSeq([
        'cluster',
        'init',
        '--lane',
        'x',
        '--node',
        servers[0]!.url,
        '--node',
        servers[0]!.url.replace('127.0.0.1', 'localhost'),
        ...limit,
      ]);
      expect([twice.code, twice.stderr]).toEqual([78, expect.stringContaining('SAME_SERVER')]);
      await servers[2]!.kill();
      expect((await runSeq(['cluster', 'init', '--lane', 'y', ...flags, ...limit])).code).toBe(69);
    },
  );

  test('bootstrap: real server that evicts → 78 with the command that mends it', async () => {
    servers.push(await startRedis({ args: ['--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru'] }));
    const refused = await runSeq(['cluster', 'init', '--node', servers[0]!.url, '--node-timeout', '2s', '-o', 'json']);
    expect(refused.code).toBe(78);
    expect(JSON.parse(refused.stdout).error).toMatchObject({
      code: 'EVICTION',
      changed: 'nothing',
      next: [expect.stringContaining('maxmemory-policy noeviction')],
    });
  });
});
