// No value is fatal: a number that somebody wrote by hand on one node of three stops nobody, for every number that the
// protocol carries. Either the leader takes the node back by itself, or status and doctor name the node and a command
// that ends it. The rows for the epoch are in memory-identity.test.ts. On real servers and processes.
import { spawnSync } from 'node:child_process';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { blockHash } from '../../src/core/chain/block.js';
import {
  client,
  endAllAfterEach,
  flagsOf,
  initialise,
  redis,
  start,
  until,
  view,
  type LiveSequencer,
} from '../support/live-sequencers.js';
import type { RedisServer } from '../support/redis-server.js';
import { newHome, runSeq } from '../support/spawn-seq.js';

endAllAfterEach();

const RECORD = 'seq:node:admission';
const STREAM = 'seq:block:stream';
const END = '9007199254740991'; // 2^53 − 1
const CEILING = '281474976710656'; // 2^48, the greatest number that a script takes

type Three = Record<'r1' | 'r2' | 'r3', RedisServer>;

async function led(): Promise<{ a: LiveSequencer; nodes: Three }> {
  const nodes = { r1: await redis(), r2: await redis(), r3: await redis() };
  await initialise(nodes);
  const a = await start('a', nodes);
  await until('a to lead', a.leads);
  await until('a key to be sequenced', () => a.submit('first'));
  return { a, nodes };
}

/** r3 counts, has what the others have, and knows the same configuration. */
async function inStep({ r1, r3 }: Three): Promise<true | undefined> {
  const [one, three] = [await view(r1), await view(r3)];
  const same = three.epoch === one.epoch && three.head >= one.head && three.config === one.config;
  return three.admission === 'admitted' && same && three.incarnation !== '' ? true : undefined;
}

const REPAIRED: [string, (r3: Redis) => Promise<unknown>][] = [
  ['the height of the head: 2^53-1', (r3) => r3.hset(RECORD, 'head', END)],
  ['the height of an entry: 2^53-1', (r3) => r3.xadd(STREAM, `${END}-1`, 'height', END, 'epoch', '1')],
  ['the floor: 2^53-1', (r3) => r3.hset(RECORD, 'floor', END)],
  ['the floor: 2^48', (r3) => r3.hset(RECORD, 'floor', CEILING)],
  ['the epoch of the head: 2^53-1', (r3) => r3.hset(RECORD, 'head_epoch', END)],
];

test.each(REPAIRED)(
  '%s → damage: the leader takes the node back by itself',
  async (_, write) => {
    const { a, nodes } = await led();
    const { incarnation } = await view(nodes.r3);
    await write(client(nodes.r3));
    await until('r3 to have a new memory', async () =>
      (await inStep(nodes)) && (await view(nodes.r3)).incarnation !== incarnation ? true : undefined,
    );
    await until('a key to be sequenced all the same', () => a.submit('second'));
  },
  180_000,
);

test.each([`${END}.0`, `${CEILING}.999999`, '1.9999999'])(
  'the version of the configuration: %s → nobody follows it; the command that is named ends it',
  async (version) => {
    const { a, nodes } = await led();
    const r3 = client(nodes.r3);
    const text = (await r3.hget(RECORD, 'config')) ?? '';
    await r3.hset(RECORD, 'config', text.replace(/^\S+/, version));
    await until('a key to be sequenced all the same', () => a.submit('second'));
    const way = `redis-cli -u ${nodes.r3.url} hdel seq:node:admission config`;
    for (const words of [['status'], ['doctor'], ['repair', 'plan']]) {
      const ran = await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s', '--json']);
      expect(ran.stdout, words.join(' ')).toContain(way);
      expect(ran.stdout, words.join(' ')).toContain(`its configuration is ${version}`);
      expect(ran.stdout, 'what a leader cannot do').not.toContain('repair apply');
    }
    // Another term is not stopped by it, and does not take it over.
    a.child.kill('SIGKILL');
    const b = await start('b', nodes);
    await until('b to lead', b.leads);
    await until('a key to be sequenced by b', () => b.submit('third'));
    expect((await view(nodes.r1)).config).not.toContain(version);
    const [command = '', ...args] = way.split(' ');
    expect(spawnSync(command, args, { encoding: 'utf8' })).toMatchObject({ status: 0 });
    await until('r3 to be in step', () => inStep(nodes));
  },
  180_000,
);

test('another configuration of the same version → nobody follows it; the command that is named ends it', async () => {
  const { a, nodes } = await led();
  const [r1, r3] = [client(nodes.r1), client(nodes.r3)];
  const text = (await r3.hget(RECORD, 'config')) ?? '';
  // Whoever counted by it would count two of these two, and one of them may be a stranger.
  const rival = text.replace(/ r2=\S+/, '');
  await r3.hset(RECORD, 'config', rival);
  await until('a key to be sequenced all the same', () => a.submit('second'));
  const way = `redis-cli -u ${nodes.r3.url} hdel seq:node:admission config`;
  for (const words of [['status'], ['doctor'], ['repair', 'plan']]) {
    const ran = await runSeq(newHome(), [...words, ...flagsOf(nodes), '--node-timeout', '2s', '--json']);
    expect(ran.stdout, words.join(' ')).toContain(way);
    expect(ran.stdout, words.join(' ')).toContain('has other content than the one of the same version');
  }
  a.child.kill('SIGKILL');
  const b = await start('b', nodes);
  await until('b to lead', b.leads);
  await until('a key to be sequenced by b', () => b.submit('third'));
  expect([await r1.hget(RECORD, 'config'), await r3.hget(RECORD, 'config')]).toEqual([text, rival]);
  const [command = '', ...args] = way.split(' ');
  expect(spawnSync(command, args, { encoding: 'utf8' })).toMatchObject({ status: 0 });
  await until('r3 to be in step', () => inStep(nodes));
}, 180_000);

const generation = (is: string) => (text: string) => text.replace(/\.\d+$/, is);
const setting = (name: string, is: string) => (text: string) =>
  text.replace(new RegExp(`${name}=\\S+`), `${name}=${is}`);
/** What is edited in the record, how, and whether a node alone of three is the one that is right afterwards. */
const IN_RECORDS: [string, 'cluster' | 'config', (text: string) => string][] = [
  ['a generation of 2^53-1', 'cluster', generation(`.${END}`)],
  ['a generation of 2^31 + 1', 'cluster', generation('.2147483649')],
  ['a negative generation', 'cluster', generation('.-1')],
  ['a generation of letters', 'cluster', generation('.abc')],
  ['no generation', 'cluster', generation('')],
  ['a window of letters', 'config', setting('dedup-ms', 'abc')],
  ['a negative window', 'config', setting('dedup-ms', '-5')],
  ['a number of keys above the end', 'config', setting('dedup-items', END)],
  ['a largest block of nothing', 'config', setting('max-block', '0')],
  ['a largest block of 2^60', 'config', setting('max-block', '1152921504606846976')],
  ['a configuration without members', 'config', (text) => text.replace(/ \| .*/, ' |')],
];

/** Runs what `seq status` says, as somebody would who knows nothing else, until it names no command of redis-cli. */
async function obeyStatus(nodes: Three): Promise<string[]> {
  const ran: string[] = [];
  for (let round = 0; round < 5; round++) {
    const { stdout } = await runSeq(newHome(), ['status', ...flagsOf(nodes), '--node-timeout', '2s', '--json']);
    const { findings } = (JSON.parse(stdout) as { data: { findings: { next: string[] }[] } }).data;
    const commands = findings.flatMap(({ next }) => next).filter((line) => line.startsWith('redis-cli'));
    if (commands.length === 0) return ran;
    for (const line of commands) {
      const [command = '', ...args] = line.split(' ');
      expect(spawnSync(command, args, { encoding: 'utf8' }), line).toMatchObject({ status: 0 });
    }
    ran.push(...commands);
  }
  throw new Error(`status names commands without end: ${ran.join('\n')}`);
}

test.each([['a generation of 7', 'cluster', generation('.7')] as const, ...IN_RECORDS])(
  '%s on one node → the others go on, also under a new leader; what status names ends it',
  async (_, field, edit) => {
    const { a, nodes } = await led();
    const r3 = client(nodes.r3);
    await r3.hset(RECORD, field, edit((await r3.hget(RECORD, field)) ?? ''));
    await until('a key to be sequenced all the same', () => a.submit('second'));
    a.child.kill('SIGKILL');
    const b = await start('b', nodes);
    await until('a key to be sequenced by b', () => b.submit('third'));
    expect(await obeyStatus(nodes)).not.toEqual([]);
    await until('r3 to be in step', () => inStep(nodes));
  },
  180_000,
);

test.each(IN_RECORDS)(
  '%s on two nodes → nobody leads; what status names undoes it, and nothing is lost',
  async (_, field, edit) => {
    const { a, nodes } = await led();
    const receipt = await until('a receipt', () => a.submit('second'));
    for (const node of [nodes.r2, nodes.r3]) {
      const one = client(node);
      await one.hset(RECORD, field, edit((await one.hget(RECORD, field)) ?? ''));
    }
    a.child.kill('SIGKILL');
    const b = await start('b', nodes);
    expect(await obeyStatus(nodes)).not.toEqual([]);
    expect(await until('the key to be known', () => b.submit('second'))).toMatchObject({ height: receipt.height });
    await until('r3 to be in step', () => inStep(nodes));
  },
  180_000,
);

test('a generation of 7 on two nodes → as after a recovery: the sequencers end, and go on in it', async () => {
  const { a, nodes } = await led();
  const receipt = await until('a receipt', () => a.submit('second'));
  for (const node of [nodes.r2, nodes.r3]) {
    const one = client(node);
    await one.hset(RECORD, 'cluster', generation('.7')((await one.hget(RECORD, 'cluster')) ?? ''));
  }
  await until('a to end', async () => a.ended() ?? undefined);
  const b = await start('b', nodes);
  expect(await until('the key to be known', () => b.submit('second'))).toMatchObject({ height: receipt.height });
  expect(await obeyStatus(nodes)).toHaveLength(1);
  await until('r1 to be in step', () => inStep({ ...nodes, r1: nodes.r3, r3: nodes.r1 }));
}, 180_000);

test.each([END, CEILING])(
  'the timestamp of a pending block: %s → the next leader goes on',
  async (timestamp) => {
    const { a, nodes } = await led();
    a.child.kill('SIGKILL');
    const r3 = client(nodes.r3);
    const { head, headHash, epoch, cluster } = await view(nodes.r3);
    const block = { height: head + 1, parent: headHash, timestamp: Number(timestamp), data: Buffer.from('') };
    const entry = { ...block, data: '', epoch, hash: blockHash(block), owner: 'a/x' };
    expect(cluster).not.toBe('');
    await r3.xadd(
      STREAM,
      `${head + 1}-${epoch}`,
      ...Object.entries(entry).flatMap(([key, value]) => [key, `${value}`]),
    );
    await r3.hset(RECORD, 'head', head + 1, 'head_hash', entry.hash, 'head_epoch', epoch);
    const b = await start('b', nodes);
    await until('b to lead', b.leads);
    await until('a key to be sequenced', () => b.submit('second'));
    await until('r3 to be in step', () => inStep(nodes));
  },
  180_000,
);
