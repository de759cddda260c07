// `seq run` on real servers that fail themselves, one cluster of five for all: hung, restarted with their data,
// emptied, gone for good, and a quorum lost. What was acknowledged is there once and in order, nobody commits without
// a quorum, healed nodes are identical.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PrivateCluster } from '../../src/lab/private-cluster.js';
import { checkAll, logLines, Traffic } from '../support/traffic.js';

let lab: PrivateCluster;
const clients: Traffic[] = [];

beforeAll(async () => {
  lab = await PrivateCluster.start({
    nodes: 5,
    sequencers: 2,
    ttlMs: 500,
    blockTimeMs: 100,
    persist: 'everysec',
    runArgs: ['--node-timeout', '150ms'],
  });
  await lab.waitForLeader();
});
afterAll(async () => lab?.close());
afterEach(async ({ task }) => {
  if (task.result?.state !== 'fail' || !lab) return;
  for (const { name } of lab.sequencers)
    process.stderr.write(`--- ${name} (${lab.state(name)})\n${lab.log(name, 25).join('\n')}\n`);
  for (const { name } of lab.nodes) if (lab.state(name) === 'paused') lab.unpause(name);
  await Promise.all(clients.splice(0).map((client) => client.stop()));
});

function traffic(name: string): Traffic {
  const client = new Traffic(lab, name);
  clients.push(client);
  return client;
}
interface Row {
  id: string;
  state: string;
  admitted: boolean;
}
const rows = async (): Promise<Row[]> =>
  ((await lab.ask(['status', '--node-timeout', '500ms'])) as { nodes: Row[] }).nodes;
const admitted = (names: string[]) =>
  lab.waitFor(`${names.join(', ')} to be admitted again`, 120_000, async () => {
    const seen = await rows();
    return names.every((name) => seen.find(({ id }) => id === name)?.admitted) ? true : undefined;
  });

test('run: a node hangs (SIGSTOP) and goes on → no term ends, it is brought up to the same chain', async () => {
  const client = traffic('hang');
  await client.more(3);
  const leader = await lab.waitForLeader();
  const { height } = (await lab.status(leader)) as { height: number };
  await lab.pause('r5');
  await client.more(9);
  expect(Number((await lab.status(await lab.waitForLeader()))!['height'])).toBeGreaterThan(height);
  lab.unpause('r5');
  await client.more(3);
  await client.stop();
  await checkAll(lab, clients, { tail: false });
});

test(
  'run: a node is killed and started again with all its data → left out by name, re-admitted, ' + 'identical',
  async () => {
    const client = traffic('back');
    await client.more(3);
    await lab.kill('r1', 'SIGKILL');
    await client.more(6);
    await lab.startProcess('r1');
    await client.more(3);
    await admitted(['r1']);
    await client.stop();
    await checkAll(lab, clients);
    const said = lab.sequencers
      .flatMap(({ name }) => logLines(lab, name))
      .filter(({ event, node }) => event === 'node' && node === 'r1')
      .map(({ why }) => String(why));
    expect(said.join('\n')).toMatch(/restarted/);
  },
);

test(
  'run: two nodes restart empty, one after the other → each takes part again only after ' +
    're-admission; nothing is lost',
  async () => {
    const client = traffic('empty');
    for (const name of ['r2', 'r3']) {
      await client.more(3);
      await lab.wipe(name);
      await client.more(3);
      await admitted([name]);
    }
    await client.stop();
    await checkAll(lab, clients);
  },
);

test('run: the leader dies while a node is not admitted → the successor brings it back', async () => {
  const client = traffic('both');
  await client.more(3);
  const leader = await lab.waitForLeader();
  await Promise.all([lab.kill(leader), lab.wipe('r4')]);
  await client.more(6);
  await admitted(['r4']);
  await lab.startProcess(leader);
  await client.stop();
  await checkAll(lab, clients);
});

test(
  'run: case 24: only two of five nodes answer → nothing is committed until a third does, then all ' + 'goes on',
  async () => {
    const client = traffic('quorum');
    await client.more(3);
    for (const name of ['r3', 'r4', 'r5']) await lab.pause(name);
    // Writes under way when the nodes hung may still be committed. After that two nodes answer, which is no quorum.
    await lab.waitFor('nobody to lead', 120_000, async () => ((await lab.leader()) === null ? true : undefined));
    const heights = async () =>
      Promise.all(lab.sequencers.map(async ({ name }) => Number((await lab.status(name))?.['height'])));
    const before = Math.max(...(await heights()));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(Math.max(...(await heights()))).toBe(before);
    expect(await lab.ask(['status', '--node-timeout', '500ms'])).toMatchObject({ verdict: 'CRIT' });
    lab.unpause('r3');
    await client.more(3);
    for (const name of ['r4', 'r5']) lab.unpause(name);
    await client.more(3);
    await client.stop();
    await checkAll(lab, clients);
  },
);

test(
  'run: two nodes gone for good → three of five go on, also after a change of leader; the stores ' + 'are equal',
  async () => {
    const client = traffic('gone');
    await client.more(3);
    await Promise.all([lab.kill('r4'), lab.kill('r5')]);
    await client.more(6);
    const leader = await lab.waitForLeader();
    await lab.kill(leader);
    await client.more(6);
    await lab.startProcess(leader);
    await client.stop();
    await checkAll(lab, clients, { nodes: ['r1', 'r2', 'r3'] });
  },
);
