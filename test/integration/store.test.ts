// The local chain on a real disk: what it keeps through kill -9, what it refuses, what others see of it while it is
// written.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { open } from 'lmdb';
import { blockHash, genesisHash } from '../../src/core/chain/block.js';
import { encodeExec, encodeItems, itemDigest } from '../../src/core/chain/items.js';
import { InvariantError, type SeqError } from '../../src/core/errors.js';
import type { ChainStore, CommittedBlock, DamagedBlock } from '../../src/core/ports.js';
import { openStoreReader } from '../../src/core/store/lmdb-reader.js';
import { openStore, type LmdbStore } from '../../src/core/store/lmdb-store.js';
import { encodeReceipt } from '../../src/core/store/records.js';
import { ChainMaker, keyed, text } from '../support/blocks.js';
import { compileProgram } from '../support/compile.js';
import { MemoryStore } from '../support/memory-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { CONTAINER, mayContain } from '../support/namespaces.js';

let base: string;
let dir: string;
const opened: { close(): Promise<void> }[] = [];
const children: ChildProcess[] = [];
const programs: string[] = [];

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'seq-store-'));
  dir = join(base, 'store');
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const one of opened.splice(0)) await one.close();
  rmSync(base, { recursive: true, force: true });
});
afterAll(() => programs.forEach((program) => rmSync(program, { force: true })));

async function store(options: Partial<Parameters<typeof openStore>[0]> = {}): Promise<LmdbStore> {
  const one = await openStore({ dir, cluster: 'c1', lane: '', ...options });
  opened.push(one);
  return one;
}
const readHead = async (at: string): Promise<number> => {
  const reader = openStoreReader(at);
  try {
    reader.get(50);
    return reader.head().height;
  } finally {
    await reader.close();
  }
};
const refused = async (
  attempt: Promise<unknown> | (() => unknown),
): Promise<{ code: string; exit: number; message: string }> => {
  try {
    await (typeof attempt === 'function' ? attempt() : attempt);
  } catch (error) {
    return error as never;
  }
  throw new Error('it was not refused');
};

const heightOf = (receipt: ReturnType<ChainStore['receipt']>): number | string | undefined =>
  typeof receipt === 'object' ? receipt.height : receipt;

/** The same table for the store on disk and for the one that tests and the simulator use. */
describe.each([
  ['lmdb', (options: object): Promise<ChainStore> => store(options)],
  [
    'memory',
    async (options: object): Promise<ChainStore> =>
      new MemoryStore({ cluster: 'c1', lane: '', clock: new ManualClock(), ...options }),
  ],
])('store (%s)', (_kind, make) => {
  test('store: empty → height 0, genesis hash', async () => {
    const chain = await make({});
    expect(chain.head()).toEqual({ height: 0, hash: genesisHash('c1', ''), timestamp: 0, epoch: 0 });
    for (const height of [0, 1, -1, 0.5, NaN]) expect(chain.get(height)).toBeUndefined();
    expect(chain.retainedFloor({ blocks: 10, bytes: 10 })).toBe(0);
  });

  test(
    'store: appended, not yet synced → head, get, header and receipt see it at once, and after the ' + 'sync',
    async () => {
      const chain = await make({});
      const maker = new ChainMaker();
      const one = maker.block([...keyed('a'), { data: text('no key') }, ...keyed('b')], { epoch: 7 });
      const two = maker.block(encodeExec([{ key: 'x', digest: itemDigest(text('x')) }], text('own')), { epoch: 8 });
      const done = [chain.append(one), chain.append(two)];
      const check = (): void => {
        expect(chain.head()).toEqual({ height: 2, hash: two.hash, timestamp: two.timestamp, epoch: 8 });
        expect({ ...chain.get(1)!, data: Buffer.from(chain.get(1)!.data).toString('hex') }).toEqual({
          ...one,
          data: Buffer.from(one.data).toString('hex'),
        });
        expect(chain.header(2)).toEqual({
          height: 2,
          hash: two.hash,
          parent: one.hash,
          timestamp: two.timestamp,
          epoch: 8,
          size: two.data.length,
        });
        expect(chain.receipt('b')).toEqual({ height: 1, index: 2, epoch: 7, digest: itemDigest(text('bytes of b')) });
        expect(chain.receipt('x')).toEqual({ height: 2, index: 0, epoch: 8, digest: itemDigest(text('x')) });
        expect(chain.receipt('c')).toBeUndefined();
      };
      check();
      await Promise.all(done);
      check();
    },
  );

  test(
    'store: gap, wrong parent, wrong hash, older than its parent → a bug is reported, nothing ' + 'appended',
    async () => {
      const chain = await make({});
      const maker = new ChainMaker();
      await chain.append(maker.block());
      const stranger = new ChainMaker('c2');
      stranger.block();
      const wrong = [
        { ...maker.block(), height: 3 },
        stranger.block(),
        { ...maker.block(), height: 2 },
        { ...new ChainMaker().block() },
      ];
      for (const block of wrong) expect(() => void chain.append(block)).toThrow(InvariantError);
      expect(chain.head().height).toBe(1);
    },
  );

  test('store: the same key in a later block → the first receipt stands', async () => {
    const chain = await make({});
    const maker = new ChainMaker();
    await chain.append(maker.block(keyed('a', 'a')));
    const second = chain.append(maker.block(keyed('b', 'a')));
    expect(chain.receipt('a')).toMatchObject({ height: 1, index: 0 });
    await second;
    expect(chain.receipt('a')).toMatchObject({ height: 1, index: 0 });
    expect(chain.receipt('b')).toMatchObject({ height: 2, index: 0 });
  });

  test(
    'store: window by items → whole blocks leave as soon as the rest covers it, and a key may come ' + 'back',
    async () => {
      const chain = await make({ keepItems: 4 });
      const maker = new ChainMaker();
      for (let height = 1; height <= 5; height++) await chain.append(maker.block(keyed(`${height}a`, `${height}b`)));
      expect(['1a', '2b', '3a', '3b', '4a', '5b'].map((key) => heightOf(chain.receipt(key)))).toEqual([
        undefined,
        undefined,
        undefined,
        undefined,
        4,
        5,
      ]);
      await chain.append(maker.block(keyed('1a')));
      expect(chain.receipt('1a')).toMatchObject({ height: 6, index: 0 });
      expect(heightOf(chain.receipt('4a'))).toBe(4);
      await chain.append(maker.block(keyed('7a')));
      expect(['4a', '5a', '1a', '7a'].map((key) => heightOf(chain.receipt(key)))).toEqual([undefined, 5, 6, 7]);
    },
  );

  test('store: window by time of the blocks → older ones leave', async () => {
    const chain = await make({ keepMs: 100 });
    const maker = new ChainMaker();
    await chain.append(maker.block(keyed('a'), { timestamp: 1000 }));
    await chain.append(maker.block(keyed('b'), { timestamp: 1050 }));
    await chain.append(maker.block([], { timestamp: 1100 }));
    expect(heightOf(chain.receipt('a'))).toBe(1);
    await chain.append(maker.block([], { timestamp: 1101 }));
    expect([chain.receipt('a'), heightOf(chain.receipt('b'))]).toEqual([undefined, 2]);
  });

  test('store: windowFloor → exact by blocks and by bytes, as the chain grows and under changed limits', async () => {
    const chain = await make({});
    const maker = new ChainMaker();
    const sizes = [100, 5, 50, 0, 200, 30, 30, 30, 1, 99];
    const exact = (head: number, limits: { blocks: number; bytes: number }): number => {
      let floor = head;
      for (
        let bytes = 0;
        floor > 0 && head - floor < limits.blocks && bytes + sizes[floor - 1]! <= limits.bytes;
        floor--
      )
        bytes += sizes[floor - 1]!;
      return floor;
    };
    const limits = [
      { blocks: 3, bytes: 1000 },
      { blocks: 100, bytes: 150 },
      { blocks: 4, bytes: 90 },
      { blocks: 100, bytes: 10_000 },
      { blocks: 1, bytes: 0 },
      { blocks: 0, bytes: 10 },
    ];
    for (const [at, size] of sizes.entries()) {
      await chain.append(maker.block(new Uint8Array(size)));
      for (const limit of limits)
        expect([at + 1, limit, chain.retainedFloor(limit)]).toEqual([at + 1, limit, exact(at + 1, limit)]);
    }
    // Asked for the first time when the chain is already long.
    for (const limit of [
      { blocks: 5, bytes: 130 },
      { blocks: 9, bytes: 130 },
      { blocks: 2, bytes: 99 },
    ])
      expect(chain.retainedFloor(limit)).toBe(exact(10, limit));
  });
});

describe('store: on disk', () => {
  test('store: closed and opened again → the same chain, receipts and window', async () => {
    const maker = new ChainMaker();
    const first = await store({ keepItems: 3 });
    const blocks = Array.from({ length: 5 }, (_, at) => maker.block(keyed(`k${at + 1}`), { epoch: at + 1 }));
    await Promise.all(blocks.map((block) => first.append(block)));
    await first.close();
    await first.close();
    const again = await store({ keepItems: 3 });
    expect(again.head()).toMatchObject({ height: 5, hash: maker.hash, epoch: 5 });
    expect(again.syncedHeight()).toBe(5);
    expect(blocks.every((block) => again.get(block.height)!.hash === blockHash(again.get(block.height)!))).toBe(true);
    expect([1, 2, 3, 4, 5].map((at) => heightOf(again.receipt(`k${at}`)))).toEqual([undefined, undefined, 3, 4, 5]);
    await again.append(maker.block(keyed('k6', 'k1')));
    expect(heightOf(again.receipt('k1'))).toBe(6);
    expect(await refused(first.append(maker.block()))).toMatchObject({ code: 'STORE_CLOSED' });
    expect(await refused(() => first.get(1))).toMatchObject({ code: 'STORE_CLOSED' });
    expect(first.head().height).toBe(5);
  });

  test('store: keys that left the window → removed from the disk too', async () => {
    const maker = new ChainMaker();
    const chain = await store({ keepItems: 10 });
    for (let height = 1; height <= 60; height++) await chain.append(maker.block(keyed(`a${height}`, `b${height}`)));
    await chain.close();
    const root = open({ path: join(dir, 'chain.mdb'), noSubdir: true, readOnly: true, maxDbs: 8 });
    const keys = root.openDB<Buffer, Buffer>('keys', { encoding: 'binary', keyEncoding: 'binary' });
    const left = [...keys.getKeys()].map(String);
    await root.close();
    expect(left.length).toBeLessThanOrEqual(14);
    expect(left).toEqual(expect.arrayContaining(['a60', 'b60', 'a56', 'b56']));
  });

  test('store: many appends in flight → few transactions, all synced in order', async () => {
    const chain = await store();
    const maker = new ChainMaker();
    const order: number[] = [];
    const start = performance.now();
    await Promise.all(
      Array.from({ length: 2000 }, () => maker.block(new Uint8Array(200))).map((block) =>
        chain.append(block).then(() => order.push(block.height)),
      ),
    );
    expect(performance.now() - start).toBeLessThan(5000);
    expect(order).toEqual(Array.from({ length: 2000 }, (_, at) => at + 1));
  });

  test('store: another cluster or lane → STORE_FOREIGN (76), untouched', async () => {
    await (await store()).close();
    expect(await refused(store({ cluster: 'c2' }))).toMatchObject({ code: 'STORE_FOREIGN', exit: 76 });
    expect(await refused(store({ lane: 'L' }))).toMatchObject({ code: 'STORE_FOREIGN', exit: 76 });
    expect((await store()).head().height).toBe(0);
  });

  test('store: open already → STORE_LOCKED (78); given back by close', async () => {
    const first = await store();
    expect(await refused(store())).toMatchObject({ code: 'STORE_LOCKED', exit: 78 });
    await first.close();
    await store();
  });

  test.each([
    ['a process that is gone', { pid: 2 ** 22 + 5, started: '1', boot: '', host: 'h' }],
    ['another process that has the pid now', { pid: process.pid, started: '1', boot: '', host: 'h' }],
    ['before the last boot', { pid: process.pid, started: '', boot: 'another-boot', host: 'h' }],
    ['nothing that can be read', 'garbage'],
  ])('store: lock left by %s → taken over', async (_name, holder) => {
    mkdirSync(dir);
    writeFileSync(join(dir, 'writer.lock'), typeof holder === 'string' ? holder : JSON.stringify(holder));
    await store();
    expect(JSON.parse(readFileSync(join(dir, 'writer.lock'), 'utf8'))).toMatchObject({ pid: process.pid });
    expect(readdirSync(dir).filter((name) => name.startsWith('writer.lock.'))).toEqual([]);
  });

  // Needs root, for the pid namespaces.
  test.skipIf(!mayContain).each([
    ['the kernel holds the lock', {}, ''],
    ['without the program flock', { PATH: '/nonexistent' }, 'STORE_LOCKED'],
  ])('store: in a container, %s → refused from elsewhere while it lives', async (_how, env, after) => {
    const first = writer({ before: CONTAINER, env });
    expect((await first.lines.next()).value).toMatch(/^open 0 /);
    const held = readFileSync(join(dir, 'writer.lock'), 'utf8');
    const second = writer({ before: CONTAINER, env });
    await second.ended;
    expect(second.said()).toMatch(/STORE_LOCKED/);
    expect(second.said()).toMatch(/process 1 of another container/);
    expect(await refused(store())).toMatchObject({ code: 'STORE_LOCKED', exit: 78 });
    expect(readFileSync(join(dir, 'writer.lock'), 'utf8')).toBe(held);
    expect(readdirSync(dir).filter((name) => name.startsWith('writer.lock.'))).toEqual([]);
    // A signal, not an orderly end. Where only a pid names the holder, no other namespace can know that it is gone.
    first.child.kill('SIGKILL');
    await first.ended;
    const again = await store().catch((error: SeqError) => error);
    expect('code' in again ? again.code : '').toBe(after);
    if ('code' in again)
      expect(again.next).toContain(`if no such process exists any more, remove ${join(dir, 'writer.lock')}`);
  });

  test('store: directory is a file, or not a database, or of a newer format → STORE_UNREADABLE (78)', async () => {
    writeFileSync(dir, 'a file');
    expect(await refused(store())).toMatchObject({ code: 'STORE_UNREADABLE', exit: 78 });
    rmSync(dir);
    mkdirSync(dir);
    writeFileSync(join(dir, 'chain.mdb'), Buffer.alloc(100_000, 'x'));
    expect(await refused(store())).toMatchObject({ code: 'STORE_UNREADABLE', exit: 78 });
    expect(readFileSync(join(dir, 'chain.mdb')).equals(Buffer.alloc(100_000, 'x'))).toBe(true);
    rmSync(dir, { recursive: true });
    await (await store()).close();
    const root = open({ path: join(dir, 'chain.mdb'), noSubdir: true, maxDbs: 8, overlappingSync: false });
    await root
      .openDB<Buffer, Buffer>('meta', { encoding: 'binary', keyEncoding: 'binary' })
      .put(Buffer.from('about'), Buffer.from('{"format":2,"cluster":"c1","lane":""}'));
    await root.close();
    const error = await refused(store());
    expect(error).toMatchObject({ code: 'STORE_UNREADABLE', exit: 78 });
    expect(error.message).toMatch(/format 2/);
    expect(existsSync(join(dir, 'writer.lock'))).toBe(false);
  });

  test(
    'store: a copy cut short anywhere → opens with its head, or STORE_UNREADABLE (78), for writing ' +
      'and for reading alike',
    async () => {
      const maker = new ChainMaker();
      const chain = await store();
      await Promise.all(Array.from({ length: 50 }, () => chain.append(maker.block(Buffer.alloc(3000, 'payload!')))));
      await chain.close();
      const good = readFileSync(join(dir, 'chain.mdb'));
      // LMDB itself says "index points to a 00 page" on stderr where it comes upon a page that was cut off.
      for (const pages of [1, 2, 3, 4, 5, 8, 16, 32, 60]) {
        for (const [how, open] of [
          ['read', readHead],
          ['written', async (at: string) => (await store({ dir: at })).head().height],
        ] as const) {
          // Each has its own folder, because a mapped file must not be replaced.
          const at = join(base, `${how}-${pages}`);
          mkdirSync(at);
          writeFileSync(join(at, 'chain.mdb'), good.subarray(0, Math.max(2, good.length / 4096 - pages) * 4096));
          const outcome = await open(at).catch((error: SeqError) => [error.code, error.exit]);
          expect([50, ['STORE_UNREADABLE', 78]], `cut by ${pages} pages, ${how}`).toContainEqual(outcome);
        }
      }
    },
  );

  test('store: a payload changed on disk, or a copy cut short → STORE_UNREADABLE (78), and no crash', async () => {
    const maker = new ChainMaker();
    const chain = await store();
    const marker = Buffer.alloc(3000, 'payload!');
    for (let height = 1; height <= 50; height++) await chain.append(maker.block(new Uint8Array(marker)));
    await chain.close();
    const path = join(dir, 'chain.mdb');
    copyFileSync(path, join(base, 'good'));
    const bytes = readFileSync(path);
    for (let at = bytes.indexOf('payload!'); at >= 0; at = bytes.indexOf('payload!', at + 8))
      bytes.write('PAYLOAD!', at);
    writeFileSync(path, bytes);
    expect(await refused(store())).toMatchObject({ code: 'STORE_UNREADABLE', exit: 78 });
    copyFileSync(join(base, 'good'), path);
    truncateSync(path, 5 * 4096);
    expect(await refused(store())).toMatchObject({ code: 'STORE_UNREADABLE', exit: 78 });
    copyFileSync(join(base, 'good'), path);
    expect((await store()).head().height).toBe(50);
  });
});

/** Starts the writing process; resolves with its lines as they come. */
function writer({ before = [], env = {} }: { before?: readonly string[]; env?: NodeJS.ProcessEnv } = {}): {
  child: ChildProcess;
  lines: AsyncIterator<string>;
  ended: Promise<void>;
  /** What it said on stderr. */
  said(): string;
} {
  if (programs.length === 0) programs.push(compileProgram('test/support/store-writer.ts'));
  const [program, ...args] = [...before, process.execPath, programs[0]!, dir, 'c1'];
  const child = spawn(program!, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  children.push(child);
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return { child, lines: createInterface({ input: child.stdout! })[Symbol.asyncIterator](), ended, said: () => said };
}
const nextLine = async (lines: AsyncIterator<string>): Promise<[string, number, string]> => {
  const { value, done } = await lines.next();
  if (done) throw new Error('the writer ended');
  const [word, height, hash] = (value as string).split(' ');
  return [word!, Number(height), hash!];
};

/** Changes one bit of the closed file, `offset` bytes into `bytes`. Returns how many places it changed. */
function flipBit(bytes: Uint8Array, offset: number): number {
  const path = join(dir, 'chain.mdb');
  const file = readFileSync(path);
  let flipped = 0;
  for (let at = file.indexOf(bytes); at >= 0; at = file.indexOf(bytes, at + 1), flipped++) file[at + offset]! ^= 1;
  writeFileSync(path, file);
  return flipped;
}

// Needs root, to mount a disk of 64 KiB.
test.skipIf(!mayContain).each([
  ['where the kernel holds the lock', process.env['PATH']],
  ['without the program flock', '/nonexistent'],
])('store: no room at the start, %s → room comes first; no drafts are left', async (_how, path) => {
  const disk = join(base, 'disk');
  mkdirSync(disk);
  expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).status).toBe(0);
  const before = process.env['PATH'];
  try {
    writeFileSync(join(disk, 'other'), new Uint8Array(64 * 1024));
    dir = join(disk, 'store');
    process.env['PATH'] = path;
    for (let attempt = 0; attempt < 3; attempt++)
      expect(await refused(store())).toMatchObject({
        exit: 78,
        next: [expect.stringMatching(/^make room on the disk of /) as string],
      });
    expect(readdirSync(dir).filter((name) => name.startsWith('writer.lock.'))).toEqual([]);
    rmSync(join(disk, 'other'));
  } finally {
    process.env['PATH'] = before;
    spawnSync('umount', [disk]);
  }
});

describe('store: a disk that changes bits', () => {
  const payload = (height: number) => text(`the payload of block ${height}, `.repeat(40));
  const written = async (): Promise<CommittedBlock[]> => {
    const maker = new ChainMaker();
    const chain = await store();
    const blocks = Array.from({ length: 200 }, (_, at) => maker.block(payload(at + 1), { epoch: 3 }));
    await Promise.all(blocks.map((block) => chain.append(block)));
    await chain.close();
    return blocks;
  };

  const headerOf = ({ hash, parent }: CommittedBlock) => Buffer.from(hash + parent, 'hex');
  test.each<[string, (block: CommittedBlock) => Uint8Array, number]>([
    ['its payload', ({ data }) => data, 100],
    ['the hash in its header', headerOf, 5],
    ['the parent in its header', headerOf, 40],
    ['the time in its header', headerOf, 71],
  ])(
    'store: one bit of %s → block 3 is given to nobody, told, and repaired only with its own bytes',
    async (_where, of, offset) => {
      const blocks = await written();
      expect(flipBit(of(blocks[2]!), offset)).toBeGreaterThan(0);
      const chain = await store();
      const told: DamagedBlock[] = [];
      chain.onDamage((damaged) => told.push(damaged));
      expect(chain.get(3)).toBeUndefined();
      expect(chain.get(3)).toBeUndefined();
      expect(told.filter(({ height }) => height === 3)).toEqual([
        { height: 3, why: 'its bytes do not match its hash' },
      ]);
      expect(chain.get(5)?.hash).toBe(blocks[4]!.hash);
      const reader = openStoreReader(dir);
      opened.push(reader);
      expect(await refused(() => reader.get(3))).toMatchObject({ code: 'STORE_DAMAGED' });

      const stranger = new ChainMaker('c2');
      const others = [1, 2, 3].map(() => stranger.block(payload(3), { epoch: 3 }));
      expect(await chain.repair(others[2]!)).toBe(false);
      expect(chain.get(3)).toBeUndefined();
      for (const height of [...chain.damaged.keys()]) {
        const block = blocks[height - 1]!;
        expect(await chain.repair({ ...block, data: text('other bytes') })).toBe(false);
        expect(await chain.repair(block)).toBe(true);
      }
      expect(chain.get(3)).toMatchObject({ hash: blocks[2]!.hash, parent: blocks[2]!.parent, epoch: 3 });
      expect(Buffer.from(chain.get(3)!.data)).toEqual(Buffer.from(blocks[2]!.data));
      expect(chain.damaged.size).toBe(0);
      await chain.close();
      const again = await store();
      expect(blocks.every(({ height, hash }) => again.get(height)?.hash === hash)).toBe(true);
    },
  );
});

describe('store: remembered keys on a disk that changes bits', () => {
  const keysOf = (height: number) => [`k${height}.0`, `k${height}.1`];
  const digestOf = (key: string) => itemDigest(text(`bytes of ${key}`));
  const receiptOf = (height: number, index: number): Buffer =>
    encodeReceipt({ height, index, epoch: 3, digest: digestOf(keysOf(height)[index]!) });
  const written = async (): Promise<void> => {
    const maker = new ChainMaker();
    const chain = await store();
    for (let height = 1; height <= 40; height++) {
      await chain.append(maker.block(keyed(...keysOf(height)), { epoch: 3 }));
    }
    await chain.close();
  };

  test.each<[string, number, object]>([
    ['height', 7, {}],
    ['height, above the head', 5, {}],
    ['epoch', 15, { epoch: 0 }],
    ['index', 19, {}],
    ['digest', 30, {}],
  ])('store: one bit of the %s of a receipt → the right receipt, from its block', async (_field, offset, but) => {
    await written();
    expect(flipBit(receiptOf(12, 1), offset)).toBeGreaterThan(0);
    const chain = await store();
    const right = { height: 12, index: 1, epoch: 3, digest: digestOf('k12.1') };
    expect(chain.receipt('k12.1')).toEqual({ ...right, ...but });
    expect(chain.receipt('k12.0')).toEqual({ ...right, index: 0, digest: digestOf('k12.0') });
    expect(chain.unprovenKeys).toBe(0);
    while (await chain.scrub());
    expect(chain.receipt('k12.1')).toEqual(right);
  });

  test('store: one bit of a key → found by the scrub and repaired; the key that it became is unproven, then unknown', async () => {
    await written();
    // The record of `k12.1` is found by its receipt: the key is right before it.
    expect(flipBit(Buffer.concat([Buffer.from('k12.1'), receiptOf(12, 1)]), 4)).toBeGreaterThan(0);
    const chain = await store();
    const repaired: [number, string][] = [];
    chain.onKeysRepaired((height, what) => repaired.push([height, what]));
    expect(chain.receipt('k12.0'), 'its own').toMatchObject({ height: 12, index: 0 });
    expect(chain.receipt('k12.1'), 'nobody can know that it is missing').toBeUndefined();
    while (await chain.scrub());
    expect(repaired).toEqual([[12, expect.stringMatching(/^a key was missing/)]]);
    expect(chain.receipt('k12.1')).toMatchObject({ height: 12, index: 1 });
    await chain.close();
    expect((await store()).receipt('k12.1')).toMatchObject({ height: 12, index: 1 });
  });

  test('store: a record that is of another key now → unproven, and unknown once the window was looked through', async () => {
    await written();
    expect(flipBit(Buffer.concat([Buffer.from('k40.1'), receiptOf(40, 1)]), 2)).toBeGreaterThan(0);
    const chain = await store();
    expect(chain.receipt('k41.1'), 'its name became that of the next block').toBe('unproven');
    expect(chain.unprovenKeys).toBe(1);
    while (await chain.scrub());
    expect(chain.receipt('k41.1')).toBeUndefined();
    expect(chain.receipt('k40.1')).toMatchObject({ height: 40, index: 1 });
    expect(chain.unprovenKeys).toBe(0);
  });

  test('store: any one bit of a small store → refused by name, or right blocks and receipts; no signal', async () => {
    await written();
    const program = compileProgram('test/support/store-flips.ts');
    const args = [program, join(dir, 'chain.mdb'), base, '20261129', '150'];
    const ended = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1e8 });
    rmSync(program);
    const lines = ended.stdout.trim().split('\n');
    expect([ended.status, ended.signal], lines.slice(-3).join('\n') + ended.stderr).toEqual([0, null]);
    expect(lines.filter((line) => line.includes('WRONG'))).toEqual([]);
    expect(lines.filter((line) => line.startsWith('flip'))).toHaveLength(150);
  });
});

test('store: of 100 GiB → opens, grows and is read, with hardly any memory', async () => {
  const maker = new ChainMaker();
  const first = await store();
  for (let height = 1; height <= 50; height++) await first.append(maker.block(keyed(`k${height}`)));
  await first.close();
  // The last page moves up, as if all between had been written: a sparse file takes no room on the disk.
  const path = join(dir, 'chain.mdb');
  const PAGE = 4096;
  const size = 100 * 1024 ** 3;
  const fd = openSync(path, 'r+');
  const last = Buffer.alloc(8);
  last.writeBigUInt64LE(BigInt(size / PAGE - 1));
  for (const meta of [0, PAGE]) writeSync(fd, last, 0, 8, meta + 144);
  ftruncateSync(fd, size);
  closeSync(fd);

  const before = process.memoryUsage().rss;
  const chain = await store();
  expect(chain.get(1)?.height).toBe(1);
  await chain.append(maker.block(keyed('k51')));
  expect(chain.get(51)?.hash).toBe(maker.hash);
  await chain.append(maker.block(new Uint8Array(1024 ** 2)));
  expect(chain.receipt('k7')).toMatchObject({ height: 7 });
  const reader = openStoreReader(dir);
  opened.push(reader);
  expect([reader.head().height, reader.get(52)?.hash, reader.get(1)?.height]).toEqual([52, maker.hash, 1]);
  expect(statSync(path).size).toBeGreaterThan(size);
  expect(process.memoryUsage().rss - before, 'memory').toBeLessThan(64 * 1024 ** 2);
  await chain.close();
  expect((await store()).head().height, 'opened again').toBe(52);
});

test('store: a damaged page beyond those that every start looks at → found by the start after a crash', async () => {
  const maker = new ChainMaker();
  const chain = await store();
  const [blocks, each] = [100, 2500];
  const key = (number: number): string => String(number).padStart(250, 'k');
  for (let height = 0; height < blocks; height++) {
    const items = Array.from({ length: each }, (_, at) => ({ key: key(height * each + at), data: text('x') }));
    await chain.append(maker.block(items));
  }
  const last = key(blocks * each - 1);
  const inLeaf = Buffer.concat([Buffer.from(last), encodeReceipt(chain.receipt(last) as never)]);
  await chain.close();
  const path = join(dir, 'chain.mdb');
  const file = readFileSync(path);
  // The keys in order are the last leaves of the last tree. The page of the last key says where its free space begins.
  const fd = openSync(path, 'r+');
  for (let at = file.indexOf(inLeaf); at >= 0; at = file.indexOf(inLeaf, at + 1)) {
    const free = Math.floor(at / 4096) * 4096 + 20;
    writeSync(fd, Buffer.from([file[free]! ^ 1]), 0, 1, free);
  }
  closeSync(fd);

  await (await store()).close();
  const lock = join(dir, 'writer.lock');
  writeFileSync(lock, JSON.stringify({ pid: 1, started: '1', boot: '', host: '', pids: '', by: 'kernel' }));
  for (const attempt of ['the first start after a crash', 'the second one, too'])
    expect(await refused(store()), attempt).toMatchObject({
      code: 'STORE_UNREADABLE',
      why: expect.stringMatching(/page \d+: its free space is from/),
    });
}, 120_000);

describe('store: two processes', () => {
  test(
    'store: kill -9 in the middle of appending, again and again → contiguous, verified, nothing ' +
      'acknowledged is lost',
    async () => {
      let last = 0;
      for (let round = 0; round < 6; round++) {
        const { child, lines, ended } = writer();
        const [word, from] = await nextLine(lines);
        expect(word).toBe('open');
        expect(from).toBeGreaterThanOrEqual(last);
        if (round === 0) expect(await refused(store())).toMatchObject({ code: 'STORE_LOCKED', exit: 78 });
        const acknowledged = new Map<number, string>();
        for (let count = 0; count < 37 + round * 53; count++) {
          const [, height, hash] = await nextLine(lines);
          acknowledged.set(height, hash);
        }
        child.kill('SIGKILL');
        await ended;
        const chain = await store();
        const head = chain.head();
        last = Math.max(...acknowledged.keys());
        expect(head.height).toBeGreaterThanOrEqual(last);
        for (const [height, hash] of acknowledged) expect(chain.header(height)?.hash).toBe(hash);
        let parent = genesisHash('c1', '');
        for (let height = 1; height <= head.height; height++) {
          const block = chain.get(height)!;
          expect(block.parent).toBe(parent);
          expect(blockHash(block)).toBe(block.hash);
          expect([0, 4].map((index) => chain.receipt(`k${height}.${index}`))).toMatchObject([
            { height, index: 0, epoch: 3 },
            { height, index: 4, epoch: 3 },
          ]);
          parent = block.hash;
        }
        expect(chain.receipt(`k${head.height + 1}.0`)).toBeUndefined();
        await chain.close();
      }
    },
  );

  test('store: read by another process while it is written → head grows, blocks verify, nothing is torn', async () => {
    const { lines } = writer();
    await nextLine(lines);
    await nextLine(lines);
    const reader = openStoreReader(dir);
    opened.push(reader);
    expect([reader.cluster, reader.lane]).toEqual(['c1', '']);
    let seen = 0;
    let parent = genesisHash('c1', '');
    for (let turn = 0; turn < 60; turn++) {
      const [, height] = await nextLine(lines);
      // What the writer called synced is there for every other process.
      expect(reader.head().height).toBeGreaterThanOrEqual(height);
      for (const block of reader.range(seen + 1)) {
        expect(block.parent).toBe(parent);
        expect(blockHash(block)).toBe(block.hash);
        [seen, parent] = [block.height, block.hash];
      }
    }
    expect(seen).toBeGreaterThan(50);
    expect([...reader.range(3, 5)].map((block) => block.height)).toEqual([3, 4, 5]);
    expect(reader.get(seen + 1_000_000)).toBeUndefined();
  });

  test('store: reader of nothing → STORE_NOT_FOUND (66), and nothing is made there', async () => {
    expect(await refused(() => openStoreReader(dir))).toMatchObject({ code: 'STORE_NOT_FOUND', exit: 66 });
    expect(existsSync(dir)).toBe(false);
  });
});

test('store (memory): crash → what was not synced is gone, what was is not', async () => {
  const clock = new ManualClock();
  const chain = new MemoryStore({ cluster: 'c1', lane: '', clock, syncMs: 5 });
  const maker = new ChainMaker();
  const outcomes: string[] = [];
  const watch = (name: string, done: Promise<void>): void =>
    void done.then(
      () => outcomes.push(`${name} synced`),
      () => outcomes.push(`${name} lost`),
    );
  watch('1', chain.append(maker.block(keyed('a'))));
  await clock.advance(5);
  watch('2', chain.append(maker.block(keyed('b'))));
  await clock.advance(4);
  expect(heightOf(chain.receipt('b'))).toBe(2);
  chain.crash();
  await clock.advance(10);
  expect(outcomes).toEqual(['1 synced']);
  expect([chain.head().height, heightOf(chain.receipt('a')), chain.receipt('b')]).toEqual([1, 1, undefined]);
});

test('store: 20,000 keyed items of 200 bytes in one block → appended and synced, in no quadratic time', async () => {
  const chain = await store();
  const maker = new ChainMaker();
  const data = encodeItems(
    Array.from({ length: 20_000 }, (_, line) => ({ key: `file-7f3a:${line}`, data: Buffer.alloc(200, line) })),
  );
  const block = maker.block(data);
  const start = performance.now();
  await chain.append(block);
  // Work that is quadratic in the items would take many minutes. The bench measures how long it really takes.
  expect(performance.now() - start).toBeLessThan(60_000);
});
