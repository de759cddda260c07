// `seq run` on real servers under faults of processes and of the network, one cluster for all: after each fault
// everything that was acknowledged is there once and in order, stores are equal and nodes identical. Servers
// themselves fail in run-nodes.test.ts.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { sequencerOf } from '../../src/core/protocol/types.js';
import { meddle } from '../support/node-hands.js';
import { checkAll, itemsOf, logLines, Traffic } from '../support/traffic.js';

const TTL_MS = 500;
const HOUR_MS = 3_600_000;
let lab: PrivateCluster;
const clients: Traffic[] = [];

beforeAll(async () => {
  lab = await PrivateCluster.start({
    nodes: 3,
    sequencers: 2,
    ttlMs: TTL_MS,
    blockTimeMs: 100,
    proxies: true,
    // The faults are those of the listed addresses.
    runArgs: ['--log-level', 'debug', '--node-timeout', '150ms', '--listed-addresses'],
  });
  await lab.waitForLeader();
});
afterAll(async () => lab?.close());
afterEach(async ({ task }) => {
  if (task.result?.state !== 'fail' || !lab) return;
  for (const { name } of lab.sequencers)
    process.stderr.write(
      `--- ${name} (${lab.state(name)})\n${lab
        .log(name, 400)
        .filter((line) => !/"level":"debug"/.test(line))
        .slice(-25)
        .join('\n')}\n`,
    );
  // A test that failed must not fail the tests after it.
  for (const { name } of lab.nodes) {
    if (lab.state(name) === 'paused') lab.unpause(name);
    await meddle(lab, name, (redis) => redis.call('ACL', 'SETUSER', 'default', '+@all'));
  }
  for (const { name } of lab.sequencers) {
    if (lab.state(name) === 'paused') lab.unpause(name);
    for (const proxy of lab.proxiesOf(name)) {
      proxy.cut();
      proxy.heal();
    }
    if (lab.state(name) === 'dead') await lab.startProcess(name);
  }
  await Promise.all(clients.splice(0).map((client) => client.stop()));
});

/** A client of its own for this fault; those of earlier faults count in every check. */
function traffic(name: string): Traffic {
  const client = new Traffic(lab, name);
  clients.push(client);
  return client;
}
const other = (name: string): string => lab.sequencers.find((one) => one.name !== name)!.name;
const since = (name: string, at: number) => logLines(lab, name).filter(({ time }) => Date.parse(String(time)) >= at);
/** Blocks that this process says it committed as leader since then. */
const led = (name: string, at: number) =>
  since(name, at).filter(({ event, by }) => event === 'committed' && by === 'leader');

/** Waits until it follows, with nothing to catch up. Returns how long that took. */
async function warm(name: string, limitMs: number): Promise<number> {
  const startedAt = performance.now();
  await lab.waitFor(
    `${name} to be a warm follower`,
    limitMs,
    async () => {
      const [mine, leader] = await Promise.all([lab.status(name), lab.status(other(name))]);
      return mine?.['role'] === 'follower' && Number(mine['height']) + 2 >= Number(leader?.['height'])
        ? true
        : undefined;
    },
    5,
  );
  return performance.now() - startedAt;
}

test(
  'run: kill -9 of the leader → the other leads; case 8: started again, it follows at once without ' +
    'waiting for anybody',
  async () => {
    const client = traffic('kill');
    await client.more(6);
    const leader = await lab.waitForLeader();
    await lab.kill(leader);
    await client.more(9);
    expect(await lab.leader()).toBe(other(leader));
    const at = Date.now();
    await lab.startProcess(leader);
    await warm(leader, 5000);
    await client.stop();
    await checkAll(lab, clients);
    const lines = since(leader, at);
    const [started, committed] = [
      lines.find(({ event }) => event === 'started'),
      lines.find(({ event }) => event === 'stored'),
    ];
    expect(Date.parse(String(committed!['time'])) - Date.parse(String(started!['time']))).toBeLessThan(1000);
  },
);

test(
  'run: case 26: a pause longer than the lease → the old leader writes nothing, and is a warm ' +
    'follower within a second',
  async () => {
    const client = traffic('pause');
    await client.more(6);
    const leader = await lab.waitForLeader();
    const epoch = Number((await lab.status(leader))!['epoch']);
    await lab.pause(leader);
    await lab.waitForLeader(10_000, [leader]);
    await client.more(9);
    const at = Date.now();
    lab.unpause(leader);
    expect(await warm(leader, 5000)).toBeLessThan(1000);
    await client.more(3);
    await client.stop();
    const chain = await checkAll(lab, clients);
    expect(led(leader, at).filter((line) => line['epoch'] === epoch)).toEqual([]);
    expect(since(leader, at).filter(({ event }) => event === 'leadership-ended')).toMatchObject([
      { epoch, code: expect.stringMatching(/LEASE_EXPIRED|FENCED/) as string },
    ]);
    // Epochs never fall along the chain: no block of the old term comes after the successor's first block.
    const epochs = chain.map((block) => block.epoch).filter((one) => one > 0);
    expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
  },
);

test(
  'run: case 25: the clocks of two servers jump forward under a leader, then back before it dies → ' +
    'locks end early, or stay long; nobody forks, nothing is lost',
  async () => {
    const client = traffic('clock');
    await client.more(3);
    // A server uses its clock only to decide when a key expires.
    const jump = async (ms: number) =>
      Promise.all(['r1', 'r2'].map((name) => meddle(lab, name, (redis) => redis.pexpire('seq:leader:lock', ms))));
    for (let round = 0; round < 3; round++) {
      await jump(1);
      await client.more(3);
    }
    const holders = async (...names: string[]) =>
      Promise.all(
        names.map((name) =>
          meddle(lab, name, async (redis) => sequencerOf((await redis.get('seq:leader:lock')) ?? 'nobody')),
        ),
      );
    // On a busy machine its lease may end before the clocks jump, and the other takes the locks. Then: once more.
    const leader = await lab.waitFor('two locks of a leader that says nothing more', 120_000, async () => {
      const one = await lab.waitForLeader();
      await lab.pause(one);
      // What it sent before must not renew a lock after the jump.
      for (const proxy of lab.proxiesOf(one)) proxy.cut();
      await jump(HOUR_MS);
      if ((await holders('r1', 'r2')).every((holder) => holder === one)) return one;
      await jump(1);
      lab.unpause(one);
      return undefined;
    });
    await lab.kill(leader);
    // Its lock on r3 ends, and the other sees again and again that r3 is free. The two locks that stand are a quorum.
    await lab.waitFor('its lease on r3 to end', 120_000, async () =>
      (await holders('r3'))[0] === leader ? undefined : true,
    );
    const probes = () =>
      meddle(lab, 'r3', async (redis) =>
        Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]),
      );
    const before = await probes();
    await lab.waitFor('the other to probe r3', 120_000, async () =>
      (await probes()) > before + 10 ? true : undefined,
    );
    const freedAt = Date.now();
    await jump(1);
    await client.more(3);
    const took = since(other(leader), 0).findLast(({ event, to }) => event === 'role' && to === 'leader');
    expect(Date.parse(String(took!['time'])), 'nobody led while q locks stood').toBeGreaterThanOrEqual(freedAt);
    await lab.startProcess(leader);
    await warm(leader, 10_000);
    await client.stop();
    await checkAll(lab, clients);
  },
  300_000,
);

test(
  'run: case 6: the successor cannot read the only block that its claim shows → it proposes ' +
    'nothing, and is held to that block once it can',
  async () => {
    const client = traffic('read');
    await client.more(3);
    const leader = await lab.waitForLeader();
    const next = other(leader);
    // The next blocks are on r1 and r2 alone, and the successor has not seen them.
    for (const { name } of lab.sequencers) {
      lab.proxy(name, 'r3').blackHole();
      lab.proxy(name, 'r3').onConnect('silent');
    }
    await lab.pause(next);
    const heads = async (...names: string[]) =>
      Promise.all(
        names.map((name) => meddle(lab, name, async (redis) => Number(await redis.hget('seq:node:admission', 'head')))),
      );
    // What the paused process has read, or still has in its sockets, is at most one block above r2's head of now.
    const [behind, seen] = (await heads('r3', 'r2')) as [number, number];
    await lab.waitFor(
      'blocks on two nodes alone',
      120_000,
      async () => ((await heads('r2'))[0]! > seen + 3 ? true : undefined),
      10,
    );
    await lab.pause(leader);
    const [there] = (await heads('r2')) as [number];
    const hashOf = (name: string, height: number) =>
      meddle(lab, name, async (redis) => {
        const [found] = await redis.xrange('seq:block:stream', `${height}-0`, `${height}-18446744073709551615`);
        return found?.[1][found[1].indexOf('hash') + 1];
      });
    const committed = await hashOf('r1', there - 1);
    await lab.kill(leader);
    await lab.pause('r1');
    await meddle(lab, 'r2', (redis) => redis.call('ACL', 'SETUSER', 'default', '-xrange', '-xread'));
    for (const { name } of lab.sequencers) {
      lab.proxy(name, 'r3').cut();
      lab.proxy(name, 'r3').heal();
    }
    const at = Date.now();
    lab.unpause(next);
    await lab.waitFor(
      'four leases to pass',
      120_000,
      async () => {
        expect(await heads('r2', 'r3'), 'nothing new anywhere').toEqual([there, behind]);
        return Date.now() - at > 4 * TTL_MS ? true : undefined;
      },
      50,
    );
    await meddle(lab, 'r2', (redis) => redis.call('ACL', 'SETUSER', 'default', '+xrange', '+xread'));
    lab.unpause('r1');
    await client.more(3);
    expect(await lab.waitFor('r3 to be brought up', 120_000, () => hashOf('r3', there - 1), 20)).toBe(committed);
    await lab.startProcess(leader);
    await warm(leader, 10_000);
    await client.stop();
    await checkAll(lab, clients);
  },
  300_000,
);

test('run: open connections of everybody are reset, again and again → nothing is lost', async () => {
  const client = traffic('cut');
  for (let round = 0; round < 5; round++) {
    await client.more(3);
    for (const proxy of lab.proxiesOf()) proxy.cut();
  }
  await client.more(3);
  await client.stop();
  await checkAll(lab, clients, { tail: false });
});

test(
  'run: the leader is cut off from every node (black hole) → it steps down by itself, the other ' +
    'leads, it follows when healed',
  async () => {
    const client = traffic('hole');
    await client.more(3);
    const leader = await lab.waitForLeader();
    const at = Date.now();
    for (const proxy of lab.proxiesOf(leader)) {
      proxy.blackHole();
      proxy.onConnect('silent');
    }
    await lab.waitForLeader(10_000, [leader]);
    await client.more(9);
    expect((await lab.status(leader))!['role']).not.toBe('leader');
    expect(since(leader, at).find(({ event }) => event === 'leadership-ended')).toMatchObject({
      code: 'LEASE_EXPIRED',
    });
    for (const proxy of lab.proxiesOf(leader)) {
      proxy.cut();
      proxy.heal();
    }
    await warm(leader, 5000);
    await client.stop();
    await checkAll(lab, clients, { tail: false });
  },
);

test(
  'run: case 12: writes are applied and their replies lost → the same block is taken for ' + 'committed, nothing twice',
  async () => {
    const client = traffic('lost');
    for (let round = 0; round < 4; round++) {
      await client.more(3);
      const leader = await lab.waitForLeader();
      for (const proxy of lab.proxiesOf(leader)) proxy.dropReplies();
      // Long enough for a write to arrive and to time out, short enough for the lease to be renewed.
      await new Promise((resolve) => setTimeout(resolve, 180));
      for (const proxy of lab.proxiesOf(leader)) {
        proxy.cut();
        proxy.heal();
      }
    }
    await client.more(6);
    await client.stop();
    const items = itemsOf(await checkAll(lab, clients));
    expect(items.filter(({ key }) => key.startsWith('lost:')).length).toBe(client.acknowledged.length);
  },
);

test(
  'run: case 1: a node that accepts connections and never answers → commits go on, the node and ' +
    'the step are named',
  async () => {
    const client = traffic('half');
    await client.more(3);
    const at = Date.now();
    for (const { name } of lab.sequencers) {
      lab.proxy(name, 'r3').onConnect('silent');
      lab.proxy(name, 'r3').cut();
    }
    await client.more(9);
    const leader = await lab.waitForLeader();
    await lab.waitFor('the log to name r3', 120_000, () =>
      since(leader, at).find(
        ({ event, node, why }) => event === 'node' && node === 'r3' && /handshake|connect/.test(String(why)),
      ),
    );
    expect(
      since(leader, at).filter(({ event }) => event === 'leadership-ended').length,
      'one node does not end a term',
    ).toBe(0);
    for (const { name } of lab.sequencers) lab.proxy(name, 'r3').heal();
    await client.more(3);
    await client.stop();
    await checkAll(lab, clients, { tail: false });
  },
);

test(
  'run: case 27: the lead is held on two nodes of three and one of them fails → the third was ' +
    'taken back, blocks go on',
  async () => {
    const client = traffic('minority');
    const old = await lab.waitForLeader();
    const next = other(old);
    // The successor promotes while it does not reach r3.
    lab.proxy(next, 'r3').blackHole();
    lab.proxy(next, 'r3').onConnect('silent');
    await lab.kill(old, 'SIGTERM');
    await lab.waitForLeader(10_000, [old]);
    await client.more(3);
    lab.proxy(next, 'r3').cut();
    lab.proxy(next, 'r3').heal();
    const leads = async () =>
      (await lab.ask(['status', '--node-timeout', '500ms'])) as { leader: { id: string; nodes: string[] } | null };
    await lab.waitFor('all three nodes to be held', 120_000, async () =>
      (await leads()).leader?.nodes.length === 3 ? true : undefined,
    );
    const at = Date.now();
    lab.proxy(next, 'r1').blackHole();
    lab.proxy(next, 'r1').onConnect('silent');
    await client.more(9);
    expect(since(next, at).filter(({ event }) => event === 'leadership-ended')).toEqual([]);
    lab.proxy(next, 'r1').cut();
    lab.proxy(next, 'r1').heal();
    await lab.startProcess(old);
    await client.stop();
    await checkAll(lab, clients, { tail: false });
  },
);

test(
  'run: SIGTERM → 0, the lock is released at once, the last line says reason and code, every line ' + 'is JSON',
  async () => {
    const client = traffic('term');
    await client.more(3);
    const leader = await lab.waitForLeader();
    const at = Date.now();
    await lab.kill(leader, 'SIGTERM');
    await lab.waitForLeader(10_000, [leader]);
    await client.more(3);
    await client.stop();
    const lines = logLines(lab, leader);
    expect(lines.at(-1)).toMatchObject({
      level: 'info',
      event: 'stopped',
      code: expect.stringMatching(/SIGTERM|STOPPED/) as string,
      reason: expect.stringMatching(/./) as string,
    });
    for (const line of lines)
      expect(line).toMatchObject({
        level: expect.any(String) as string,
        time: expect.stringMatching(/^\d{4}-/) as string,
        id: leader,
        message: expect.any(String) as string,
      });
    // A lease that ended by itself would have taken longer than this on every node.
    const took = since(other(leader), at).find(({ event, to }) => event === 'role' && to === 'leader');
    expect(Date.parse(String(took!['time'])) - at).toBeLessThan(TTL_MS);
    await lab.startProcess(leader);
    await checkAll(lab, clients);
  },
);
