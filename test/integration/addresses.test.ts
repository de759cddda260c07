// Where is a node asked, when a sequencer's list and the configuration of the cluster name two addresses for it
// (docs/PROTOCOL.md section 8)? The memory decides: neither address makes a wrong server a node, and none leaves the
// right server out. On real servers and processes; links stand for addresses that not everybody reaches.
import { expect, test } from 'vitest';
import { freePort } from '../../src/lab/free-port.js';
import {
  client,
  endAllAfterEach,
  flagsOf,
  initialise,
  Link,
  redis,
  start,
  until,
  view,
  type LiveSequencer,
  type Nodes,
} from '../support/live-sequencers.js';
import type { RedisServer } from '../support/redis-server.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

const nowhere = async () => ({ url: `redis://127.0.0.1:${await freePort()}` });

async function seq(words: string[], nodes: Nodes): Promise<void> {
  const ran = await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s', '--timeout', '60s']);
  expect(ran.code, ran.stdout + ran.stderr).toBe(0);
}

async function replace(to: string, nodes: Nodes): Promise<void> {
  const words = ['node', 'replace', '--on', 'r3', '--to', to];
  const plan = await runSeq(newHome(), [
    ...words,
    '--dry-run',
    '-o',
    'json',
    ...flagsOf(nodes),
    '--node-timeout',
    '2s',
  ]);
  const { digest } = (JSON.parse(plan.stdout) as { data: { digest: string } }).data;
  await seq([...words, '--confirm', digest], nodes);
}

async function leads(sequencer: LiveSequencer): Promise<void> {
  await until(`${sequencer.id} to lead`, sequencer.leads);
  await until(`a key to be sequenced by ${sequencer.id}`, () => sequencer.submit(`by ${sequencer.id}`));
}

/** The server has every block of the leader, under the memory that the configuration names. */
async function counts(server: RedisServer, id: string, like: RedisServer): Promise<void> {
  await until(`${id} to count at ${server.url}`, async () => {
    const [one, other] = [await view(server), await view(like)];
    const named = other.config.includes(` ${id}=${one.incarnation}@`);
    return one.admission === 'admitted' && named && one.head >= other.head && one.config === other.config
      ? true
      : undefined;
  });
}

async function end(sequencer: LiveSequencer): Promise<void> {
  sequencer.child.kill('SIGKILL');
  await until(`${sequencer.id} to end`, async () => (sequencer.child.signalCode === null ? undefined : true));
}

test('a list names an address where nobody is, and the node answers at the agreed one only later → it counts', async () => {
  const [r1, r2, r3] = [await redis(), await redis(), await redis()];
  const agreed = await Link.to(r3);
  await initialise({ r1, r2, r3: agreed });
  agreed.cut();
  const b = await start('b', { r1, r2, r3: await nowhere() });
  await leads(b);
  agreed.heal();
  await counts(r3, 'r3', r1);
}, 180_000);

test('… and has lost its memory → an empty server is taken at the address of the list alone, and that is said', async () => {
  const [r1, r2, r3] = [await redis(), await redis(), await redis()];
  const agreed = await Link.to(r3);
  await initialise({ r1, r2, r3: agreed });
  await client(r3).flushall();
  const old = await nowhere();
  const b = await start('b', { r1, r2, r3: old });
  await leads(b);
  const said = await until('it to be said', async () => b.log.find((line) => line.includes('NODE_ADDRESS')));
  for (const words of [old.url, agreed.url, 'taken back once the list names it']) expect(said).toContain(words);
  await until('some more blocks', async () => ((await view(r1)).head > 20 ? true : undefined));
  expect((await view(r3)).admission).toBe('pristine');
  await end(b);
  await leads(await start('c', { r1, r2, r3: agreed }));
  await counts(r3, 'r3', r1);
}, 180_000);

test('a replaced node is reached at the address of the list alone → it counts there', async () => {
  const [r1, r2, r3, fresh] = [await redis(), await redis(), await redis(), await redis()];
  await initialise({ r1, r2, r3 });
  const a = await start('a', { r1, r2, r3 });
  await leads(a);
  const agreed = await Link.to(fresh);
  await replace(agreed.url, { r1, r2, r3 });
  await end(a);
  agreed.cut();
  const b = await start('b', { r1, r2, r3: fresh });
  await leads(b);
  await counts(fresh, 'r3', r1);
}, 180_000);

/** r3 leaves, and is a member again on another server. The old server is emptied, as the runbook allows. */
async function movedByResize(nodes: Record<'r1' | 'r2' | 'r3', RedisServer>): Promise<Link> {
  const next = await Link.to(await redis());
  await seq(['cluster', 'resize', '--remove', 'r3', '--yes'], nodes);
  await client(nodes.r3).flushall();
  const { r1, r2 } = nodes;
  await seq(['cluster', 'resize', '--add', `r3=${next.url}`, '--yes'], { r1, r2 });
  return next;
}

test('a member leaves and joins on another server while a follower has the old list → it goes there, too', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes);
  await leads(a);
  const b = await start('b', nodes);
  await until('b to follow', async () => ((await b.get<{ height: number }>('/v1/status'))?.height ? true : undefined));
  const next = await movedByResize(nodes);
  await end(a);
  await leads(b);
  await until('r3 to be claimed by b at its new address', async () => {
    const state = await b.get<{ nodes: { id: string; state: string }[] }>('/v1/status');
    return state?.nodes.find(({ id }) => id === 'r3')?.state === 'claimed' ? true : undefined;
  });
  expect((await view(next)).head).toBeGreaterThan(0);
  expect((await view(nodes.r3)).admission, 'the old server').toBe('pristine');
}, 180_000);

test('… and one starts with the old list while the new server is away → the old server is left alone', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes);
  await leads(a);
  const next = await movedByResize(nodes);
  await end(a);
  next.cut();
  const b = await start('b', nodes);
  await leads(b);
  await until('some more blocks', async () => ((await view(nodes.r1)).head > 20 ? true : undefined));
  expect((await view(nodes.r3)).admission, 'the old server').toBe('pristine');
  next.heal();
  await until('r3 to be claimed by b at its new address', async () => {
    const state = await b.get<{ nodes: { id: string; state: string }[] }>('/v1/status');
    return state?.nodes.find(({ id }) => id === 'r3')?.state === 'claimed' ? true : undefined;
  });
  expect((await view(nodes.r3)).admission, 'the old server').toBe('pristine');
}, 180_000);

test.each([
  ['answers that it was retired', async (): Promise<void> => undefined],
  ['was stopped', (server: RedisServer) => server.stop()],
])(
  'a list still names a removed node, whose server %s → the sequencer starts without it, and says so',
  async (_, act) => {
    const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
    await initialise(nodes);
    const a = await start('a', nodes);
    await leads(a);
    await seq(['cluster', 'resize', '--remove', 'r3', '--yes'], nodes);
    await end(a);
    await act(nodes.r3);
    const b = await start('b', nodes);
    await leads(b);
    expect(b.log.find((line) => line.includes('NOT_MEMBER'))).toMatch(/"warn".*r3 .*is no member of the cluster/);
  },
  180_000,
);

test('a server was started with a copy of another node’s data → a sequencer starts on the others, and says so', async () => {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes);
  await leads(a);
  await end(a);
  const [from, to] = [client(nodes.r3), client(nodes.r2)];
  await to.flushall();
  for (const key of await from.keys('*')) await to.restore(key, 0, (await from.dumpBuffer(key))!);
  const b = await start('b', nodes);
  await leads(b);
  expect(b.log.find((line) => line.includes('its own record says r3'))).toMatch(/"warn".*it goes on without r2/);
}, 180_000);
