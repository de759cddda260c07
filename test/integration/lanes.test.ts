// `seq lane add|ls|rm` against real servers: what counts stands on a quorum, what was broken off goes on, and what is
// refused changes nothing.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { schemaProblems } from '../support/schemas.js';
import { startSequencer } from '../support/sequencer-process.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

const home = newHome();
let lab: PrivateCluster;
let clients: Redis[];

interface Lane {
  name: string;
  how: string;
  state: string;
  leader: string | null;
  verdict: string;
  reasonCode: string;
}

async function seq(args: string[], input?: string) {
  const ran = await runSeq(
    home,
    [...args, ...lab.nodeFlags.flatMap((flag) => ['--node', flag]), '--node-timeout', '1s', '-o', 'json'],
    input === undefined ? {} : { input },
  );
  const document = JSON.parse(ran.stdout) as {
    data: { lanes: Lane[]; digest: string } | null;
    error: { code: string; message: string; changed: string; next: string[] } | null;
    warnings: string[];
  };
  expect(schemaProblems(document)).toEqual([]);
  return { ...ran, ...document };
}
const lanesOf = async () => (await seq(['lane', 'ls'])).data!.lanes.map(({ name }) => name);
const entries = (client: Redis) => client.hgetall('seq:lanes');

beforeAll(async () => {
  lab = await PrivateCluster.start({ nodes: 3, sequencers: 1, ttlMs: 2000, blockTimeMs: 200 });
  await lab.waitForLeader();
  clients = lab.nodes.map(({ port }) => new Redis({ port, retryStrategy: () => null }));
  for (const client of clients) client.on('error', () => undefined);
}, 300_000);
afterAll(async () => {
  for (const client of clients ?? []) client.disconnect();
  await lab?.close();
});

describe('lanes that are added', () => {
  test('lane add: many in one go, from a file too → made on every node, listed, each of the cluster', async () => {
    const { code, data } = await seq(
      ['lane', 'add', 'one', 'two', '--from-file', '-'],
      `# tiles\n${Array.from({ length: 150 }, (_, i) => `tile-${i}`).join('\n')}\n\ntile-0\n`,
    );
    expect(code).toBe(0);
    expect(data!.lanes).toHaveLength(152);
    expect(new Set(data!.lanes.map(({ how }) => how))).toEqual(new Set(['made']));
    const own = await clients[0]!.hget('seq:node:admission', 'cluster');
    for (const client of clients) {
      expect(Object.keys(await entries(client))).toHaveLength(152);
      expect(await client.hget('seq:tile-149:node:admission', 'cluster')).toBe(own);
      expect(await client.hget('seq:tile-149:node:admission', 'pending')).toBeNull();
    }
    const history = await seq(['history']);
    expect(history.stdout).toContain('lane add');
  });

  test('lane add: the same again → nothing is changed', async () => {
    const before = await entries(clients[0]!);
    const { code, data } = await seq(['lane', 'add', 'one', 'tile-7']);
    expect([code, data!.lanes.map(({ how }) => how)]).toEqual([0, ['listed', 'listed']]);
    expect(await entries(clients[0]!)).toEqual(before);
  });

  test('lane add: made before and not listed, as after a break → found', async () => {
    for (const client of clients) await client.hdel('seq:lanes', 'two');
    const { data } = await seq(['lane', 'add', 'two']);
    expect(data!.lanes).toEqual([{ name: 'two', how: 'found' }]);
  });

  test('lane ls: nobody leads them → CRIT each, trouble first, with the command that shows more', async () => {
    const { data, stdout } = await seq(['lane', 'ls', '--lanes', 'tile-1?', '--sort', 'trouble']);
    expect(data!.lanes.map(({ name }) => name)).toEqual(Array.from({ length: 10 }, (_, i) => `tile-1${i}`));
    expect(data!.lanes[0]).toMatchObject({ state: 'open', leader: null, verdict: 'CRIT' });
    expect(stdout).not.toContain('tile-2');
    const status = await seq(['status', '--lanes', 'tile-1?']);
    expect([status.code, status.data!.lanes.map(({ name }) => name)]).toEqual([0, data!.lanes.map(({ name }) => name)]);
    expect(status.data).toMatchObject({ verdict: 'CRIT' });
  });

  test('lane ls: what one node alone says → counts for nothing; what two say, does', async () => {
    const shown = async () => (await seq(['lane', 'ls', '--lanes', 'one'])).data!.lanes[0];
    await clients[2]!.hset('seq:lanes', 'one', '9 closed ff at=1 by=x');
    expect(await shown()).toMatchObject({ state: 'open' });
    await clients[1]!.hset('seq:lanes', 'one', '9 closed ff at=1 by=x');
    expect(await shown()).toMatchObject({ state: 'closed', verdict: 'OK' });
    for (const client of clients) await client.hset('seq:lanes', 'one', '10 open ff at=1 by=x');
  });
});

describe('lanes that are refused', () => {
  test.each([
    ['no name', ['lane', 'add'], 64, 'USAGE'],
    ['a name that cannot be one', ['lane', 'add', 'Tile'], 64, 'BAD_VALUE'],
    ['a lane of the flags', ['lane', 'ls', '--lane', 'one'], 64, 'USAGE'],
    ['a pattern that cannot be one', ['lane', 'ls', '--lanes', 'tile[1]'], 78, 'BAD_LANE'],
    ['a pattern that no lane fits', ['lane', 'ls', '--lanes', 'nowhere-*'], 66, 'LANE_NOT_FOUND'],
    ['status of a pattern that no lane fits', ['status', '--lanes', 'nowhere-*'], 66, 'LANE_NOT_FOUND'],
    ['status of many lanes and of one', ['status', '--lanes', 'one', '--lane', 'one'], 64, 'USAGE'],
    ['a lane that is not there', ['lane', 'rm', 'nowhere', '--dry-run'], 66, 'LANE_NOT_FOUND'],
  ])('lane: %s → refused, nothing changed', async (_, args, code, error) => {
    const before = await entries(clients[0]!);
    const ran = await seq(args);
    expect([ran.code, ran.error!.code, ran.error!.changed]).toEqual([code, error, 'nothing']);
    expect(await entries(clients[0]!)).toEqual(before);
  });

  test('lane add: a lane that has a cluster id of its own → LANE_OTHER_CLUSTER', async () => {
    expect((await seq(['cluster', 'init', '--lane', 'alone'])).code).toBe(0);
    const { code, error } = await seq(['lane', 'add', 'alone']);
    expect([code, error!.code, error!.changed]).toEqual([76, 'LANE_OTHER_CLUSTER', 'nothing']);
    expect(await lanesOf()).not.toContain('alone');
  });
});

describe('lanes that are removed', () => {
  const led = ['--id', 'seq-one', '--lane', 'one', '--ttl', '2s', '--block-time', '200ms'];

  test('lane rm: without the digest → says it, and changes nothing', async () => {
    const { code, error } = await seq(['lane', 'rm', 'one', 'tile-3']);
    expect([code, error!.code, error!.changed]).toEqual([81, 'CONFIRMATION_NEEDED', 'nothing']);
    expect((await seq(['lane', 'ls', '--lanes', 'one,tile-3'])).data!.lanes.map(({ state }) => state)).toEqual([
      'open',
      'open',
    ]);
  });

  test('lane rm: while a sequencer is there → closed, LANE_IN_USE, its blocks are kept; then it is removed', async () => {
    const { data } = await seq(['lane', 'rm', 'one', '--dry-run']);
    const remove = ['lane', 'rm', 'one', '--confirm', data!.digest, '--timeout'];
    const running = startSequencer(home, [...led, ...lab.nodeFlags.flatMap((flag) => ['--node', flag])]);
    await running.line(/leads|leader/);
    const refused = await seq([...remove, '1s']);
    expect([refused.code, refused.error!.code]).toEqual([75, 'LANE_IN_USE']);
    expect(refused.error!.message).toContain('seq-one');
    expect(await clients[0]!.exists('seq:one:block:stream')).toBe(1);
    expect(await running.stop()).toBe(0);
    const done = await seq([...remove, '60s']);
    expect([done.code, done.error]).toEqual([0, null]);
    for (const client of clients) {
      expect((await client.keys('seq:one:*')).sort()).toEqual(['seq:one:node:admission']);
      expect(await client.hget('seq:one:node:admission', 'cluster')).toMatch(/^retired:/);
    }
    expect(await lanesOf()).not.toContain('one');
  });

  test.each(['run', 'run --bootstrap', 'run --no-readmit'])(
    '%s: of a removed lane → it ends with LANE_REMOVED, and says what lists the others',
    async (command) => {
      const args = [...command.split(' '), '--id', 'seq-one', '--lane', 'one', '--store', `${home}/again`];
      const ran = await runSeq(home, [...args, ...lab.nodeFlags.flatMap((flag) => ['--node', flag])]);
      expect([ran.code, ran.signal], ran.stdout).toEqual([76, null]);
      expect(JSON.parse(ran.stdout.trim().split('\n').at(-1)!)).toMatchObject({
        event: 'stopped',
        code: 'LANE_REMOVED',
      });
      expect(ran.stderr).toMatch(/^LANE_REMOVED: lane one was removed.*\n[^]*changed: nothing\n[^]*seq lane ls/);
    },
  );

  test.each(['status', 'check quorum', 'doctor', 'stream tail', 'repair plan', 'stepdown --yes'])(
    '%s: of a removed lane → that is said, and not that the servers are of another cluster',
    async (command) => {
      const args = [...command.split(' '), '--lane', 'one', ...lab.nodeFlags.flatMap((flag) => ['--node', flag])];
      const { stdout, stderr } = await runSeq(home, [...args, '--node-timeout', '1s']);
      expect(stdout + stderr).toContain('the lane was removed');
      expect(stdout + stderr).not.toContain('another cluster');
    },
  );

  test('lane ls, status: one node of a lane left it → the lane is not called removed', async () => {
    await clients[2]!.hset('seq:tile-9:node:admission', 'moved_to', '-');
    const named = String(await clients[2]!.hget('seq:tile-9:node:admission', 'cluster'));
    await clients[2]!.hset('seq:tile-9:node:admission', 'cluster', `retired:${named}`);
    const { stdout } = await seq(['status', '--lane', 'tile-9']);
    expect(stdout).toContain(`it was retired from cluster ${named} and counts for nothing`);
    expect(stdout).not.toContain('LANE_REMOVED');
    const again = await seq(['lane', 'add', 'tile-9']);
    expect([again.code, again.error]).toEqual([0, null]);
  });

  test('lane rm: again → there is nothing left to do', async () => {
    const { data } = await seq(['lane', 'rm', 'one', '--dry-run']);
    expect((await seq(['lane', 'rm', 'one', '--confirm', data!.digest])).code).toBe(0);
  });

  test('lane add: the name of a removed lane → LANE_REMOVED, also where the registry has forgotten it', async () => {
    const again = await seq(['lane', 'add', 'one']);
    expect([again.code, again.error!.code, again.error!.changed]).toEqual([76, 'LANE_REMOVED', 'nothing']);
    for (const client of clients) await client.hdel('seq:lanes', 'one');
    const forgotten = await seq(['lane', 'add', 'one']);
    expect([forgotten.code, forgotten.error!.code]).toEqual([76, 'LANE_REMOVED']);
  });

  test('lane ls: one node is empty → a quorum still shows every lane; two → no answer rather than a short list', async () => {
    const all = await lanesOf();
    await lab.kill('r3');
    const { code, data, warnings } = await seq(['lane', 'ls']);
    expect([code, data!.lanes.map(({ name }) => name)]).toEqual([0, all]);
    expect(warnings.join()).toContain('r3');
    await lab.kill('r2');
    const few = await seq(['lane', 'ls', '--timeout', '20s']);
    expect(few.code).not.toBe(0);
    expect(few.data).toBeNull();
  });
});
