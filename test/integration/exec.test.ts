// The exec producer with real child processes: what it tells them, what it makes of their answers, and every way they
// fail.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeBlockData, encodeExec, encodeItems, itemDigest, keysOf } from '../../src/core/chain/items.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import type { Item, Producer } from '../../src/core/ports.js';
import { execProducer, type ExecOptions } from '../../src/core/produce/exec.js';
import { ChainMaker, keyed, text } from '../support/blocks.js';
import { compileProgram } from '../support/compile.js';
import { MemoryStore } from '../support/memory-store.js';

const CHILD = fileURLToPath(new URL('../support/exec-child.mjs', import.meta.url));
const LEDGER = fileURLToPath(new URL('../../examples/ledger.mjs', import.meta.url));

let dir: string;
let log: string;
let store: MemoryStore;
let maker: ChainMaker;
let stderr: string[];
let failures: string[];
const producers: Producer[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'seq-exec-'));
  log = join(dir, 'log');
  store = new MemoryStore({ cluster: 'c1', lane: '', clock: systemClock });
  maker = new ChainMaker();
  stderr = [];
  failures = [];
});
afterEach(async () => {
  await Promise.all(producers.splice(0).map((producer) => producer.close()));
  rmSync(dir, { recursive: true, force: true });
});

function start(plan: object, options: Partial<ExecOptions> = {}): Producer {
  const producer = execProducer({
    command: process.execPath,
    args: [CHILD, JSON.stringify({ log, ...plan })],
    clock: systemClock,
    chain: store,
    maxBlockBytes: 4096,
    log: (line) => stderr.push(line),
    restartMs: 10,
    killAfterMs: 300,
    ...options,
  });
  producer.onFailure((why) => failures.push(why));
  producers.push(producer);
  return producer;
}
async function until<T>(what: string, probe: () => T | undefined | false | null): Promise<T> {
  const end = Date.now() + 120_000;
  for (;;) {
    const found = probe();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
const ready = (producer: Producer): Promise<unknown> => until('ready', () => producer.ready().ready);
const heard = (): string[] => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);
const told = (): string[] => heard().filter((line) => line.startsWith('committed'));
const ask = (producer: Producer, height: number, items: Item[] = [], deadlineMs = 5000) =>
  producer.produce({ height, parent: maker.hash, epoch: 3, deadlineMs, items });
async function grow(count: number, content: (height: number) => Uint8Array): Promise<void> {
  for (let at = 0; at < count; at++) await store.append(maker.block(content(maker.height + 1)));
}
const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

/** Offers the items as a leader does: what was not taken comes again with the next block. Returns what was set aside. */
async function sequence(
  producer: Producer,
  clients: Item[],
  blocks: number,
): Promise<{ taken: string[]; aside: string[] }> {
  const taken: string[] = [];
  const aside: string[] = [];
  for (let left = clients, at = 0; at < blocks; at++) {
    await ready(producer);
    const refused = left.filter((item) => producer.refusal?.(item) != null);
    aside.push(...refused.map((item) => `${item.key}: ${producer.refusal!(item)}`));
    left = left.filter((item) => !refused.includes(item));
    const made = await ask(producer, 1, left).catch(() => ({ taken: 0 }));
    taken.push(...left.slice(0, made.taken).map(({ key }) => key!));
    left = left.slice(made.taken);
  }
  return { taken, aside };
}

describe('exec: an item that makes the child fail', () => {
  test.each([
    ['first of five', ['poison', 'b', 'c', 'd', 'e']],
    ['in the middle', ['a', 'b', 'poison', 'd', 'e']],
    ['last', ['a', 'b', 'c', 'd', 'poison']],
    ['two of them', ['a', 'poison 1', 'c', 'poison 2', 'e']],
  ])('exec: %s → set aside with the reason, the others are taken in order', async (_, keys) => {
    const producer = start({ mode: 'poison' });
    const { taken, aside } = await sequence(producer, keyed(...keys), 25);
    const [poisons, good] = [keys.filter((key) => /poison/.test(key)), keys.filter((key) => !/poison/.test(key))];
    expect(taken).toEqual(good);
    expect(aside).toEqual(poisons.map((key) => `${key}: it ended with exit code 7`));
    expect(failures.length).toBe(2 + poisons.length);
  });

  test('exec: a child that fails at every block → nothing is set aside: the items are not the cause', async () => {
    const producer = start({ mode: 'exits' }, { coolDownMs: 10 });
    const { taken, aside } = await sequence(producer, keyed('a', 'b'), 8);
    expect([taken, aside]).toEqual([[], []]);
  });
});

describe('exec: the way of a block', () => {
  test('exec: asked → its data in our envelope, with key and digest of each item taken', async () => {
    const producer = start({});
    expect(producer.ready()).toMatchObject({ ready: false });
    await ready(producer);
    const made = await ask(producer, 1, [...keyed('a'), { data: text('no key') }]);
    expect(made.taken).toBe(2);
    const content = decodeBlockData(made.data);
    expect(content).toMatchObject({
      format: 'exec',
      taken: [{ key: 'a', digest: itemDigest(text('bytes of a')) }, { digest: itemDigest(text('no key')) }],
    });
    expect(content.format === 'exec' && Buffer.from(content.data).toString()).toBe('made 1: a=bytes of a,=no key');
    expect(keysOf(made.data)).toEqual(keysOf(encodeItems(keyed('a'))));
    expect(failures).toEqual([]);
    expect(stderr).toEqual(['child speaks']);
  });

  test(
    'exec: takes some of the items → only those are in the block; its data may fill the block to the ' + 'byte',
    async () => {
      const some = start({ mode: 'takes one' });
      await ready(some);
      const made = await ask(some, 1, keyed('a', 'b'));
      expect([made.taken, keysOf(made.data).map((item) => item.key)]).toEqual([1, ['a']]);
      const full = start({ mode: 'just fits' });
      await ready(full);
      expect((await ask(full, 1, keyed('a', 'b'))).data.length).toBe(4096);
      // There are more keys than half a block holds, so the rest waits for the next block.
      expect(
        (
          await ask(
            full,
            1,
            Array.from({ length: 500 }, (_, at) => ({ key: `key${at}`, data: text('') })),
          )
        ).data.length,
      ).toBeLessThanOrEqual(4096);
    },
  );

  test(
    'exec: committed blocks → told in order, once, without the envelope; the next question waits ' +
      'until they are applied',
    async () => {
      await grow(150, (height) => (height % 2 === 0 ? encodeExec([], text(`own ${height}`)) : new Uint8Array(0)));
      const producer = start({ hello: 100 });
      await ready(producer);
      const block = maker.block(encodeExec([{ key: 'k', digest: itemDigest(text('k')) }], text('own 151')));
      await store.append(block);
      const asked = ask(producer, 152);
      await producer.committed(block);
      expect(told()).toHaveLength(51);
      await asked;
      expect(told()).toEqual(
        Array.from(
          { length: 51 },
          (_, at) => `committed ${at + 101} ${(at + 101) % 2 === 0 || at === 50 ? `own ${at + 101}` : ''}`,
        ),
      );
      expect(heard().at(-1)).toBe('produce 152');
    },
  );

  test('exec: killed and started again → told of all that it lacks, from its hello on', async () => {
    await grow(3, (height) => encodeExec([], text(`own ${height}`)));
    const producer = start({ hello: 1 });
    await ready(producer);
    const first = Number(heard()[0]!.split(' ')[1]);
    process.kill(first, 'SIGKILL');
    await until('failure', () => failures[0]);
    expect(failures[0]).toMatch(/ended by SIGKILL/);
    const block = maker.block(encodeExec([], text('own 4')));
    await store.append(block);
    await producer.committed(block);
    await ready(producer);
    await until('told again', () => told().length === 5);
    expect(told().map((line) => line.split(' ')[1])).toEqual(['2', '3', '2', '3', '4']);
  });

  test(
    'exec: revoked with a block under way → the question is void, the late answer is not taken for ' + 'the next one',
    async () => {
      const producer = start({ mode: 'holds until revoked' });
      await ready(producer);
      const first = ask(producer, 1, keyed('old')).catch((error: unknown) => error);
      await until('asked', () => heard().includes('produce 1'));
      producer.revoked('fenced');
      expect(await first).toMatchObject({ code: 'PRODUCER_REVOKED', why: 'fenced' });
      const second = await ask(producer, 1, keyed('new'));
      expect(keysOf(second.data).map((item) => item.key)).toEqual(['new']);
      expect(heard()).toContain('revoked fenced');
      expect(failures).toEqual([]);
    },
  );
});

describe('exec: failures end the term with a reason; the child is started again', () => {
  test.each([
    ['exits', /ended with exit code 7/],
    ['killed', /ended by SIGKILL/],
    ['silent', /did not answer for block 1 within 150 ms/],
    ['not JSON', /not JSON: "hello world"/],
    ['not an object', /not an object/],
    ['unknown type', /unknown type "sing"/],
    ['long line', /a line longer than/],
    ['wrong height', /sent block 2 when asked for 1/],
    ['takes too many', /took 3 of 2/],
    ['takes a fraction', /number of taken items/],
    ['not base64', /not base64/],
    ['too large', /bytes; 4096 are allowed/],
  ])('exec: child %s → the question fails, not ready, then ready again', async (mode, why) => {
    const producer = start({ mode, once: join(dir, 'once') });
    await ready(producer);
    const error = await ask(producer, 1, keyed('a', 'b'), mode === 'silent' ? 150 : 5000).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 'PRODUCER_FAILED', why: expect.stringMatching(why) as string });
    expect(producer.ready()).toMatchObject({ ready: false, why: expect.stringMatching(why) as string });
    expect(failures).toHaveLength(1);
    await ready(producer);
    expect((await ask(producer, 1, keyed('a', 'b'))).taken).toBe(2);
    expect(heard().filter((line) => line.startsWith('start'))).toHaveLength(2);
  });

  test.each([
    ['other protocol', {}, /hello with protocol "2"/],
    ['silent hello', {}, /did not say hello within 200 ms/],
    ['ahead', { hello: 5 }, /block 5, but the chain here ends at 0/],
  ])('exec: hello, %s → failed with the reason', async (mode, plan, why) => {
    start({ mode, ...plan }, mode === 'silent hello' ? { helloMs: 200 } : {});
    expect(await until('failure', () => failures[0])).toMatch(why);
  });

  test.each([
    ['silent ack', /did not acknowledge block 1 within 200 ms/],
    ['acks twice', /not told of/],
  ])('exec: %s → failed with the reason; committed resolves all the same', async (mode, why) => {
    const producer = start({ mode }, { ackMs: 200 });
    await ready(producer);
    const block = maker.block();
    await store.append(block);
    await producer.committed(block);
    expect(await until('failure', () => failures[0])).toMatch(why);
  });

  test('exec: no such program → failed with the reason', async () => {
    const producer = start({}, { command: join(dir, 'no-such-program') });
    expect(await until('failure', () => failures[0])).toMatch(/could not be started: .*ENOENT/);
    expect(producer.ready().ready).toBe(false);
  });

  test('exec: five failures in a row → stays down for the cool-down, then one more try', async () => {
    // A child that lives longer than the cool-down ends the row of failures. On a busy machine a start alone takes a
    // second.
    const producer = start({ mode: 'exit at start' }, { coolDownMs: 4000 });
    await until('five', () => failures.length === 5);
    await until(
      'cooling',
      () =>
        !producer.ready().ready &&
        /5 times in a row; started again after 4000 ms/.test((producer.ready() as { why: string }).why),
    );
    const at = Date.now();
    await until('sixth', () => failures.length === 6);
    expect(Date.now() - at).toBeGreaterThan(300);
  });

  test('exec: noisy stderr → bounded lines in the log', async () => {
    const producer = start({ mode: 'noisy' });
    await ready(producer);
    await producer.close();
    expect(stderr.length).toBeLessThan(250);
    expect(Math.max(...stderr.map((line) => line.length))).toBeLessThanOrEqual(4200);
  });

  test('exec: closed → the child ends, also one that ignores SIGTERM; nothing is asked of it any more', async () => {
    const producer = start({ mode: 'ignores SIGTERM' });
    await ready(producer);
    const pid = Number(heard()[0]!.split(' ')[1]);
    await producer.close();
    await until('gone', () => isGone(pid));
    expect(await ask(producer, 1).catch((error: unknown) => error)).toMatchObject({ code: 'PRODUCER_FAILED' });
    expect(failures).toEqual([]);
  });
});

/** Runs the child after a process in its group and one in a session of its own. Both ignore SIGTERM. */
const FAMILY = [
  '(trap \'\' TERM; while :; do sleep 1; done) & echo $! >> "$0"',
  'setsid sh -c "trap \'\' TERM; echo \\$\\$ >> $0; while :; do sleep 1; done" &',
  'exec "$@"',
].join('\n');

describe('exec: what a child has started', () => {
  const pids = (): number[] =>
    (existsSync(join(dir, 'pids')) ? readFileSync(join(dir, 'pids'), 'utf8') : '')
      .split('\n')
      .filter(Boolean)
      .map(Number);
  const family = (plan: object): [string, string[]] => [
    '/bin/sh',
    ['-c', FAMILY, join(dir, 'pids'), process.execPath, CHILD, JSON.stringify({ log, ...plan })],
  ];

  test('exec: it is killed → all of it is gone before the next child starts', async () => {
    const [command, args] = family({});
    const producer = start({}, { command, args });
    await ready(producer);
    const first = await until('both', () => (pids().length === 2 ? pids() : undefined));
    expect(first.filter(isGone)).toEqual([]);
    process.kill(Number(heard()[0]!.split(' ')[1]), 'SIGKILL');
    await until('the next child', () => heard().filter((line) => line.startsWith('start')).length === 2);
    expect(
      first.filter((pid) => !isGone(pid)),
      'beside the next child',
    ).toEqual([]);
  });

  test('exec: closed → all of it is gone', async () => {
    const [command, args] = family({});
    const producer = start({}, { command, args });
    await ready(producer);
    const first = await until('both', () => (pids().length === 2 ? pids() : undefined));
    await producer.close();
    expect(first.filter((pid) => !isGone(pid))).toEqual([]);
  });

  test('exec: seq itself is killed → all of it ends', async () => {
    const program = compileProgram('test/support/exec-holder.ts');
    const [command, args] = family({});
    const holder = spawn(process.execPath, [program, command, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(holder.stdout, 'data');
      const first = await until('both', () => (pids().length === 2 ? pids() : undefined));
      const child = Number(heard()[0]!.split(' ')[1]);
      holder.kill('SIGKILL');
      await until('their end', () => [child, ...first].every(isGone));
    } finally {
      holder.kill('SIGKILL');
      rmSync(program, { force: true });
    }
  });
});

describe('ledger: the example', () => {
  const transfer = (from: string, to: string, amount: number): Item => ({
    data: text(JSON.stringify({ from, to, amount })),
  });
  const ledger = (name: string): Producer => start({}, { args: [LEDGER], env: { LEDGER_STATE: join(dir, name) } });
  const state = (name: string) =>
    JSON.parse(readFileSync(join(dir, name), 'utf8')) as {
      height: number;
      balances: Record<string, number>;
      accepted: number;
      refused: number;
    };
  const at = (name: string, height: number) =>
    until(`${name} at ${height}`, () => existsSync(join(dir, name)) && state(name).height === height);

  test(
    'ledger: two sequencers, the leader’s killed and replaced by the other → equal balances, no ' +
      'overdraft, sum zero',
    async () => {
      const all = [ledger('a'), ledger('b')];
      await Promise.all(all.map(ready));
      const commit = async (producer: Producer, items: Item[]): Promise<void> => {
        const made = await ask(producer, maker.height + 1, items);
        expect(made.taken).toBe(items.length);
        const block = maker.block(made.data);
        await store.append(block);
        await Promise.all(all.map((one) => one.committed(block)));
      };
      await commit(all[0]!, [
        transfer('world', 'alice', 100),
        transfer('alice', 'bob', 60),
        transfer('alice', 'carol', 41),
        { data: text('no transfer') },
      ]);
      await commit(all[0]!, []);
      const leader = all[0] as unknown as { child: { pid: number } };
      process.kill(leader.child.pid, 'SIGKILL');
      await until('failure', () => failures[0]);
      await commit(all[1]!, [
        transfer('bob', 'carol', 60),
        transfer('bob', 'carol', 1),
        transfer('carol', 'alice', 10),
      ]);
      await ready(all[0]!);
      await commit(all[0]!, [transfer('carol', 'dave', 50), transfer('carol', 'dave', 1)]);
      await Promise.all([at('a', 4), at('b', 4)]);
      expect(state('a')).toEqual(state('b'));
      expect(state('a')).toMatchObject({
        balances: { world: -100, alice: 50, bob: 0, carol: 0, dave: 50 },
        accepted: 5,
        refused: 4,
      });
      expect(Object.values(state('a').balances).reduce((sum, value) => sum + value, 0)).toBe(0);
    },
  );
});
