// Locks that no lease explains: a server's clock stepped back, or somebody wrote them (docs/PROTOCOL.md section 4, "A
// stuck lock"). Real servers. Every verb says that nobody can lead, one command frees the locks, and whoever held them
// can do nothing with what it believed.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { freeLocks, type FreeLocksOptions } from '../../src/core/operate/free-locks.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { ChainWriter } from '../support/chain-writer.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { runSeq } from '../support/run-seq.js';
import { schemaProblems } from '../support/schema.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const HOUR = 3_600_000;
let servers: RedisServer[] = [];
let clients: Redis[] = [];
let nodes: RedisNode[] = [];
let a: ChainWriter;
let b: ChainWriter;

beforeEach(async () => {
  servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  clients = servers.map((server) => new Redis({ port: server.port }).on('error', () => undefined));
  nodes = servers.map(
    (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
  );
  a = new ChainWriter(nodes, CLUSTER, '', 'seq-a', 60_000);
  b = new ChainWriter(nodes, CLUSTER, '', 'seq-b', 60_000);
  await a.bootstrap();
  await a.lead();
  await a.write();
  Object.assign(b.chain, { height: a.chain.height, hash: a.chain.hash });
});
afterEach(async () => {
  for (const client of clients) client.disconnect();
  await Promise.all(nodes.map((node) => node.close()));
  await Promise.all(servers.map((server) => server.stop()));
});

async function seq(...args: string[]) {
  const flags = servers.flatMap((server, i) => ['--node', `r${i + 1}=${server.url}`]);
  const ran = await runSeq([...args, ...flags, '--node-timeout', '1s', '-o', 'json']);
  const document = JSON.parse(ran.stdout);
  if (document.ok) expect(schemaProblems(document)).toBe('');
  return { code: ran.code, data: document.data, error: document.error };
}

/** As a server does whose clock steps back by an hour. */
const stretch = (...at: number[]) => Promise.all(at.map((i) => clients[i]!.pexpire('seq:leader:lock', HOUR)));
const owners = () => Promise.all(clients.map((client) => client.get('seq:leader:lock')));

describe('stuck locks', () => {
  test('the leader is dead, and its locks outlive every lease → every verb says so, and one command frees them', async () => {
    await stretch(0, 1, 2);
    const said = {
      status: await seq('status'),
      leader: await seq('check', 'leader'),
      stream: await seq('check', 'stream'),
      all: await seq('check', 'all'),
      doctor: await seq('doctor'),
      epochs: await seq('epoch', 'show'),
      repair: await seq('repair', 'plan'),
      recover: await seq('cluster', 'recover', '--dry-run'),
      wait: await seq('wait', '--for', 'leader', '--timeout', '1ms'),
    };
    expect([said.status.data.verdict, said.status.data.reasonCode, said.status.data.leader]).toEqual([
      'CRIT',
      'LOCK_STUCK',
      null,
    ]);
    expect([said.status.data.restart.safe, said.wait.code]).toEqual([false, 1]);
    expect([said.leader.code, said.stream.code, said.all.code]).toEqual([2, 2, 2]);
    for (const { data } of [said.leader, said.stream, said.all, said.epochs, said.repair])
      expect(data).toMatchObject({ verdict: 'CRIT', reasonCode: 'LOCK_STUCK' });
    expect(said.doctor.data.verdict).toBe('CRIT');
    expect(said.recover.data).toMatchObject({ result: 'not-needed', standstill: { code: 'LOCK_STUCK' } });
    expect(said.status.data.next[0]).toMatch(/^seq stepdown --revoke --node /);

    const refused = await seq('stepdown', '--revoke');
    expect([refused.code, refused.error.code, await owners()]).toEqual([
      81,
      'CONFIRMATION_NEEDED',
      [a.owner, a.owner, a.owner],
    ]);
    const other = await seq('stepdown', '--revoke', '--yes', '--expect-leader', 'seq-z');
    expect([other.code, other.error.code]).toEqual([76, 'EXPECTATION']);
    const plan = await seq('stepdown', '--revoke', '--dry-run');
    expect([plan.code, plan.data.dryRun, await owners()]).toEqual([0, true, [a.owner, a.owner, a.owner]]);

    const freed = await seq('stepdown', '--revoke', '--yes', '--reason', 'clock');
    expect([freed.code, freed.data.nodes.map((one: { outcome: string }) => one.outcome)]).toEqual([
      0,
      ['accepted', 'accepted', 'accepted'],
    ]);
    expect(await owners()).toEqual([null, null, null]);
    const { data } = await seq('history');
    expect(data.changes[0]).toMatchObject({ what: 'stepdown --revoke', reason: 'clock' });
  }, 120_000);

  test('two dead owners → both are freed; the next leader is above them, and the old ones are refused', async () => {
    // b was promoted on r3 alone, and died there.
    await clients[2]!.del('seq:leader:lock');
    const promoted = await nodes[2]!.call(
      { script: 'promote_leader', owner: b.owner, expectedEpoch: 1, ttlMs: 60_000 },
      1000,
    );
    expect(promoted.outcome).toBe('accepted');
    await stretch(0, 1, 2);
    expect((await seq('status')).data.reasonCode).toBe('LOCK_STUCK');
    const freed = await seq('stepdown', '--revoke', '--yes');
    expect([freed.code, freed.data.locks.map((lock: { holder: string }) => lock.holder)]).toEqual([
      0,
      ['seq-a', 'seq-a', 'seq-b'],
    ]);

    const c = new ChainWriter(nodes, CLUSTER, '', 'seq-c', 60_000);
    Object.assign(c.chain, { height: a.chain.height, hash: a.chain.hash });
    c.epoch = 1;
    const [r1, r2, r3] = nodes as [RedisNode, RedisNode, RedisNode];
    await c.lead([r1, r2]);
    await c.write([], [r1, r2]);
    const late = a.chain.block([], { epoch: 1 });
    for (const node of [r1, r2, r3]) {
      const reply = await node.call(
        { script: 'write_block', owner: a.owner, epoch: 1, ttlMs: 1000, mode: 'append', block: late, entryEpoch: 1 },
        1000,
      );
      expect(reply).toMatchObject({ outcome: 'refused', reason: 'FENCING_ERROR' });
    }
  }, 120_000);

  test('on one node alone, while somebody leads → that node is named, and its lock alone is freed', async () => {
    await clients[2]!.set('seq:leader:lock', 'seq-z/0123456789abcdef');
    const { data } = await seq('status');
    expect([data.verdict, data.leader.id, data.nodes[2].note]).toEqual([
      'WARN',
      'seq-a',
      'the lock of seq-z never expires: no sequencer writes such a lock',
    ]);
    expect(data.findings.find((one: { code: string }) => one.code === 'LOCK_STUCK').next[0]).toMatch(
      /^seq stepdown --revoke /,
    );
    expect((await seq('stepdown', '--revoke', '--yes')).code).toBe(0);
    expect(await owners()).toEqual([a.owner, a.owner, null]);
    const { terms } = (await seq('history')).data;
    expect(terms[0]).toMatchObject({ leader: 'seq-a', current: true });
    await clients[0]!.del('seq:leader:lock');
    await clients[1]!.del('seq:leader:lock');
    expect((await seq('history')).data.terms[0]).toMatchObject({ current: false, ended: '' });
  }, 120_000);

  test('the holder writes while it is watched → nothing is freed', async () => {
    await stretch(0, 1, 2);
    const options: FreeLocksOptions = {
      nodes,
      limitMs: 1000,
      clock: systemClock,
      target: '',
      expectedCluster: CLUSTER,
      reason: '',
      operator: { by: 'ann', host: 'h', command: 'stepdown --revoke' },
      dryRun: false,
      confirm: () => Promise.resolve(),
      changing: () => undefined,
      step: (doing) => void (doing.startsWith('watching') && void a.write()),
    };
    await expect(freeLocks(options)).rejects.toMatchObject({ code: 'LEADER_ANSWERS', exit: 81, changed: 'nothing' });
    expect(await owners()).toEqual([a.owner, a.owner, a.owner]);
  });

  test('a node waits for admission, and nobody can lead → what stands in the way, and the command that helps', async () => {
    await stretch(0, 1);
    await clients[2]!.flushall();
    const { code, error } = await seq('node', 'admit', '--on', 'r3', '--timeout', '300ms');
    expect([code, error.code]).toEqual([75, 'NO_LEADER']);
    expect(error.why).toMatch(/^only a leader admits, and nobody can lead: the lock of seq-a expires in 60 min/);
    expect(error.next[0]).toMatch(/^seq stepdown --revoke /);
  }, 60_000);

  test('no lock is stuck → null: the command goes on as it always did', async () => {
    const { code, error } = await seq('stepdown', '--revoke', '--yes');
    expect([code, error.code]).toEqual([76, 'NO_SUCCESSOR']);
  });
});

test('status: no node answers → the rows, in every format', async () => {
  await Promise.all(servers.map((server) => server.stop()));
  const { code, data, error } = await seq('status');
  expect([code, error.code, data.nodes.map((one: { id: string; state: string }) => `${one.id} ${one.state}`)]).toEqual([
    69,
    'NO_ANSWER',
    ['r1 DOWN', 'r2 DOWN', 'r3 DOWN'],
  ]);
}, 60_000);
