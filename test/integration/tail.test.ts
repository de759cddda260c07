// `seq stream tail`: only committed blocks, in order, once, from nodes that lag, lie, trim, hang or come back; and
// below the floor only what the hash chain ties to the nodes (docs/PROTOCOL.md sections 7 and 9).
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { itemText } from '../../src/cli/present/stream/tail-lines.js';
import { makeBlock } from '../../src/core/chain/block.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { tailBlocks, type TailOptions } from '../../src/core/stream/tail.js';
import type { Archive } from '../../src/core/stream/tail-archive.js';
import type { SeqError } from '../../src/core/errors.js';
import type { CommittedBlock, NodePort } from '../../src/core/ports.js';
import { RedisNode } from '../../src/core/redis/node.js';
import { startHttpServer } from '../../src/core/serve/server.js';
import { openStore } from '../../src/core/store/lmdb-store.js';
import { text } from '../support/blocks.js';
import { ChainWriter } from '../support/chain-writer.js';
import { FakeSequencer } from '../support/fake-sequencer.js';
import { MemoryNode, MemoryServer } from '../support/memory-node.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { PROGRAM, runSeq, seqEnvironment } from '../support/run-seq.js';

const CLUSTER = 'c0ffee00c0ffee00.1';
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function memory(n = 3): Promise<{ nodes: MemoryNode[]; writer: ChainWriter }> {
  const nodes = Array.from(
    { length: n },
    (_, i) =>
      new MemoryNode(
        new MemoryServer(`r${i + 1}`, () => performance.now()),
        { cluster: CLUSTER, lane: '' },
        systemClock,
      ),
  );
  const writer = new ChainWriter(nodes, CLUSTER);
  await writer.bootstrap();
  await writer.lead();
  closers.push(() => Promise.all(nodes.map((node) => node.close())));
  return { nodes, writer };
}

type Some = Partial<TailOptions> & { nodes: readonly NodePort[] };
async function heights(options: Some, most = Infinity): Promise<number[]> {
  const found: number[] = [];
  for await (const block of tailBlocks({ limitMs: 200, clock: systemClock, from: 'floor', ...options })) {
    found.push(block.height);
    if (found.length >= most) break;
  }
  return found;
}
const failing = (options: Some): Promise<SeqError> =>
  heights(options).then(
    (found) => {
      throw new Error(`it gave ${found.join()}`);
    },
    (error: SeqError) => error,
  );
const upTo = (to: number, from = 1) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const archiveOf = (blocks: readonly CommittedBlock[], name = 'an archive'): Archive => ({
  name,
  async *read(from, to) {
    yield* blocks.filter((b) => b.height >= from && b.height <= to);
  },
});

describe('tail: what is handed out', () => {
  test('tail: a head on one node of three → not printed; on two → printed', async () => {
    const { nodes, writer } = await memory();
    for (let i = 0; i < 5; i++) await writer.write();
    const block = await writer.write([], [nodes[0]!]);
    expect(await heights({ nodes })).toEqual(upTo(5));
    await writer.put(block, [nodes[1]!]);
    expect(await heights({ nodes })).toEqual(upTo(6));
  });

  test(
    'tail: the same block at the head under two epochs → not printed until one of them has a quorum ' +
      'or a successor',
    async () => {
      const { nodes, writer } = await memory();
      await writer.write();
      const block = await writer.write([], [nodes[0]!]);
      for (const node of nodes) await node.call({ script: 'release_lock', owner: writer.owner }, 100);
      writer.owner = 'seq-b/0000000000000002';
      await writer.lead([nodes[1]!, nodes[2]!]);
      await writer.put(block, [nodes[1]!]);
      expect(await heights({ nodes })).toEqual([1]);
      await writer.put(block, [nodes[2]!]);
      expect(await heights({ nodes })).toEqual([1, 2]);
    },
  );

  test('tail: an orphan at a node that lags → the committed block is printed, never the orphan', async () => {
    const { nodes, writer } = await memory();
    await writer.write();
    const orphan = makeBlock({ height: 2, parent: writer.chain.hash, timestamp: 9, data: text('orphan') });
    await nodes[0]!.call(
      {
        script: 'write_block',
        owner: writer.owner,
        epoch: 1,
        ttlMs: 60_000,
        mode: 'append',
        block: orphan,
        entryEpoch: 1,
      },
      100,
    );
    writer.epoch = 1;
    for (const node of nodes.slice(1)) await node.call({ script: 'release_lock', owner: writer.owner }, 100);
    writer.owner = 'seq-b/0000000000000002';
    await writer.lead(nodes.slice(1));
    for (let i = 0; i < 3; i++) await writer.write(text(`real ${i}`), nodes.slice(1));
    const datas: string[] = [];
    for await (const block of tailBlocks({ nodes, limitMs: 200, clock: systemClock, from: 2 }))
      datas.push(Buffer.from(block.data).toString());
    expect(datas).toEqual(['real 0', 'real 1', 'real 2']);
  });

  test.each([
    [{ from: 3 as const, to: 5 }, [3, 4, 5]],
    [{ from: 'head' as const }, [9]],
    [{ from: 10 }, []],
    [{ from: 'floor' as const, to: 2 }, [1, 2]],
  ])('tail: range %j → %j', async (range, expected) => {
    const { nodes, writer } = await memory();
    for (let i = 0; i < 9; i++) await writer.write();
    expect(await heights({ nodes, ...range })).toEqual(expected);
    expect(await failing({ nodes, from: 11 })).toMatchObject({ code: 'HEIGHT_NOT_FOUND', exit: 66 });
  });

  test(
    'tail: a damaged copy on one node → taken from another; on all → an error after the good prefix, ' + 'no gap',
    async () => {
      const { nodes, writer } = await memory();
      for (let i = 0; i < 9; i++) await writer.write();
      const damage = (node: MemoryNode) => {
        node.server.state.entries = node.server.state.entries.map((e) =>
          e.height === 4 ? { ...e, damage: 'bad hash' } : e,
        );
      };
      damage(nodes[0]!);
      damage(nodes[1]!);
      expect(await heights({ nodes })).toEqual(upTo(9));
      damage(nodes[2]!);
      const found: number[] = [];
      await expect(
        (async () => {
          for await (const b of tailBlocks({ nodes, limitMs: 200, clock: systemClock, from: 1 })) found.push(b.height);
        })(),
      ).rejects.toMatchObject({ code: 'BLOCK_UNREADABLE' });
      expect(found).toEqual([1, 2, 3]);
    },
  );

  test('tail: no quorum answers, or was never initialised → 69', async () => {
    const { nodes, writer } = await memory();
    await writer.write();
    nodes[0]!.server.restart('all');
    nodes[1]!.server.restart('all');
    expect(await failing({ nodes })).toMatchObject({ exit: 69, changed: 'nothing' });
  });
});

describe('tail: below the floor', () => {
  test(
    'tail: a node lags below what the others have trimmed → from the floor of those, BELOW_FLOOR ' +
      'under it, never unreadable; an archive bridges it',
    async () => {
      const { nodes, writer } = await memory();
      for (let i = 0; i < 5; i++) await writer.write();
      for (let i = 0; i < 15; i++) await writer.write([], nodes.slice(0, 2));
      await writer.write([], nodes.slice(0, 2), 10);
      expect(await heights({ nodes })).toEqual(upTo(21, 11));
      for (const from of [3, 5, 7, 10])
        expect(await failing({ nodes, from }), String(from)).toMatchObject({
          code: 'BELOW_FLOOR',
          exit: 66,
          message: expect.stringContaining('the nodes keep 11 and above'),
        });
      for (const from of [3, 7])
        expect(await heights({ nodes, from, archives: async () => [archiveOf(writer.blocks)] })).toEqual(
          upTo(21, from),
        );
    },
  );

  test(
    'tail: trimmed on every node → from an archive whose chain ends in the nodes; forged, short or ' +
      'missing ones are refused by name',
    async () => {
      const { nodes, writer } = await memory();
      for (let i = 0; i < 20; i++) await writer.write(text(`b${i}`));
      await writer.write([], nodes, 15);
      const good = archiveOf(writer.blocks, 'good');
      const forged = archiveOf(
        [...writer.blocks.slice(0, 9).map((b) => ({ ...b, data: text('x') })), ...writer.blocks.slice(9)],
        'forged',
      );
      let parent = writer.blocks[0]!.parent;
      const other = archiveOf(
        writer.blocks.map((b) => {
          const made = makeBlock({ ...b, parent, data: text('other') });
          parent = made.hash;
          return { ...made, epoch: 1 };
        }),
        'other chain',
      );
      const short = archiveOf(writer.blocks.slice(0, 12), 'short');
      expect(await heights({ nodes })).toEqual(upTo(21, 16));
      expect(await heights({ nodes, from: 1, archives: async () => [forged, other, short, good] })).toEqual(upTo(21));
      expect(await heights({ nodes, from: 3, to: 7, archives: async () => [good] })).toEqual(upTo(7, 3));
      const error = await failing({ nodes, from: 1, archives: async () => [forged, other, short] });
      expect(error).toMatchObject({ code: 'BELOW_FLOOR', exit: 66, message: expect.stringContaining('16 and above') });
      expect(error.why).toMatch(
        /forged: its block 1 .* hash.*other chain: its block 15 .* nodes prove.*short: it ends at height 12/,
      );
    },
  );

  test('tail: from a real feed and from a real store', async () => {
    const { nodes, writer } = await memory();
    for (let i = 0; i < 12; i++) await writer.write([{ key: `k${i}`, data: text(`item ${i}`) }]);
    await writer.write([], nodes, 8);
    const api = new FakeSequencer();
    api.blocks.push(...writer.blocks);
    const server = await startHttpServer({ api, listen: { host: '127.0.0.1', port: 0 }, maxBlockBytes: 1024 });
    closers.push(() => server.close());
    const { openArchives } = await import('../../src/cli/compose/archives.js');
    const dir = mkdtempSync(join(tmpdir(), 'seq-tail-store-'));
    closers.push(() => rmSync(dir, { recursive: true, force: true }));
    const store = await openStore({ dir, cluster: CLUSTER.slice(0, -2), lane: '' } as Parameters<typeof openStore>[0]);
    for (const block of writer.blocks) await store.append(block);
    await store.close();
    const archives =
      (from: { store?: string; peers?: string[] }) => (view: Parameters<NonNullable<TailOptions['archives']>>[0]) =>
        openArchives({
          store: from.store,
          peers: from.peers ?? [],
          announced: true,
          access: async () => ({ tls: {} }),
          view,
          onClose: (close) => closers.push(close),
        });
    expect(await heights({ nodes, from: 1, archives: archives({ peers: [server.url] }) })).toEqual(upTo(13));
    expect(await heights({ nodes, from: 4, archives: archives({ peers: [server.url] }) })).toEqual(upTo(13, 4));
    expect(await heights({ nodes, from: 2, archives: archives({ store: dir }) })).toEqual(upTo(13, 2));
    // Without either flag: the feeds that sequencers announce on the nodes.
    await nodes[1]!.call(
      {
        script: 'announce',
        ttlMs: 60_000,
        presence: {
          id: 'seq-b',
          role: 'leader',
          height: 13,
          version: '1',
          url: server.url,
          pid: 1,
          configDigest: '',
          extra: {},
        },
      },
      100,
    );
    expect(await heights({ nodes, from: 1, archives: archives({}) })).toEqual(upTo(13));
  });
});

describe('tail: following', () => {
  const tailer = (options: Some) => {
    const stop = new AbortController();
    const seen: number[] = [];
    const done = (async () => {
      for await (const b of tailBlocks({
        limitMs: 200,
        clock: systemClock,
        from: 'floor',
        follow: true,
        signal: stop.signal,
        ...options,
      }))
        seen.push(b.height);
    })();
    closers.push(async () => {
      stop.abort();
      await done.catch(() => undefined);
    });
    return { seen, stop, done };
  };

  test('tail: follows commits as they come; a block on one node waits for the second', async () => {
    const { nodes, writer } = await memory();
    for (let i = 0; i < 3; i++) await writer.write();
    const { seen, stop, done } = tailer({ nodes });
    await expect.poll(() => seen).toEqual(upTo(3));
    for (let i = 0; i < 40; i++) await writer.write();
    await expect.poll(() => seen).toEqual(upTo(43));
    const block = await writer.write([], [nodes[2]!]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(seen.at(-1)).toBe(43);
    await writer.put(block, [nodes[0]!]);
    await expect.poll(() => seen.at(-1)).toBe(44);
    stop.abort();
    await done;
  });

  test('tail: a node restarts, another is trimmed far ahead of the reader → nothing lost, nothing twice', async () => {
    const { nodes, writer } = await memory();
    await writer.write();
    const { seen } = tailer({ nodes });
    await expect.poll(() => seen).toEqual([1]);
    nodes[0]!.server.restart('none');
    for (let i = 0; i < 10; i++) await writer.write([], nodes.slice(1), i > 3 ? i - 2 : 0);
    await expect.poll(() => seen, { timeout: 120_000 }).toEqual(upTo(11));
  });

  test('tail: --to ends it', async () => {
    const { nodes, writer } = await memory();
    const { seen, done } = tailer({ nodes, from: 1, to: 4 });
    for (let i = 0; i < 6; i++) await writer.write();
    await done;
    expect(seen).toEqual([1, 2, 3, 4]);
  });
});

describe('tail: items as text', () => {
  test.each([
    ['plain words', 'plain words'],
    ['grüße ☂ 漢字', 'grüße ☂ 漢字'],
    ['', ''],
    ['a\tb', null],
    ['line\nline', null],
    ['\u001b[31m', null],
    ['\u0085', null],
    ['base64:AAAA', null],
    [Buffer.from([0xff, 0xfe]), null],
  ])('tail: item %j → shown as it is, or as base64 that reads back', (value, expected) => {
    const bytes = Buffer.from(value as string);
    const shown = itemText(bytes);
    if (expected !== null) expect(shown).toBe(expected);
    else expect(Buffer.from(shown.slice('base64:'.length), 'base64')).toEqual(bytes);
  });
});

describe('tail: real servers, from the shell', () => {
  async function real(
    n: number,
  ): Promise<{ servers: RedisServer[]; nodes: RedisNode[]; writer: ChainWriter; flags: string[] }> {
    const servers = await Promise.all(Array.from({ length: n }, () => startRedis()));
    closers.push(() =>
      Promise.all(
        servers.map((server) => {
          server.unpause();
          return server.stop();
        }),
      ),
    );
    const nodes = servers.map(
      (server, i) => new RedisNode({ id: `r${i + 1}`, url: server.url, identity: { cluster: CLUSTER, lane: '' } }),
    );
    closers.push(() => Promise.all(nodes.map((node) => node.close())));
    const writer = new ChainWriter(nodes, CLUSTER);
    await writer.bootstrap();
    await writer.lead();
    return {
      servers,
      nodes,
      writer,
      flags: [...servers.flatMap((server) => ['--node', server.url]), '--node-timeout', '1s'],
    };
  }

  test('tail: items and blocks in every format, one node hanging, follow on real streams', async () => {
    const { servers, writer, flags } = await real(3);
    await writer.write([{ key: 'k1', data: text('first') }, { data: new Uint8Array([0, 255]) }]);
    await writer.write();
    await writer.write([{ data: text('third "x"') }]);
    const tail = (...args: string[]) => runSeq(['stream', 'tail', ...args, ...flags]);
    expect((await tail('--items', '-o', 'plain')).stdout).toBe('1\t0\tfirst\n1\t1\tbase64:AP8=\n3\t0\tthird "x"\n');
    expect((await tail('--raw')).stdout).toBe(`first\n${Buffer.from([0, 255]).toString()}\nthird "x"\n`);
    expect((await tail('--items', '-o', 'csv', '--from', '3')).stdout).toBe('height,index,item\n3,0,"third ""x"""\n');
    const lines = (await tail('-o', 'ndjson')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map((b) => [b.height, b.hash, b.items])).toEqual(
      writer.blocks.map((b, i) => [String(b.height), b.hash, [2, 0, 1][i]]),
    );
    const document = JSON.parse((await tail('-o', 'json', '--items', '--limit', '2')).stdout);
    const { schemaProblems } = await import('../support/schema.js');
    expect([document.data.items.length, schemaProblems(document)]).toEqual([2, '']);
    expect((await tail('--from', '9')).code).toBe(66);
    expect((await tail('--from', '1e3')).code).toBe(64);
    servers[0]!.pause();
    const child = spawn(process.execPath, [PROGRAM, 'stream', 'tail', '--follow', '--items', '-o', 'plain', ...flags], {
      env: seqEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    closers.push(() => child.kill('SIGKILL'));
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    await expect.poll(() => out, { timeout: 120_000 }).toContain('third "x"\n');
    for (let i = 0; i < 5; i++) await writer.write([{ data: text(`live ${i}`) }], writer.nodes.slice(1));
    await expect.poll(() => out, { timeout: 120_000 }).toMatch(/live 0\n.*live 1\n.*live 2\n.*live 3\n.*live 4\n/);
    child.kill('SIGINT');
    expect(await new Promise((resolve) => child.on('close', resolve))).toBe(130);
  });

  test('tail: --follow | head -1, and nothing comes any more → ends with its reader', async () => {
    const { writer, flags } = await real(1);
    await writer.write([{ data: text('first') }, { data: text('second') }]);
    const pipe = spawn(
      '/bin/bash',
      [
        '-c',
        `"${process.execPath}" "${PROGRAM}" stream tail -f --items -o plain ${flags.join(' ')} | head -1; echo \${PIPESTATUS[0]}`,
      ],
      { env: seqEnvironment(), stdio: ['ignore', 'pipe', 'inherit'] },
    );
    closers.push(() => pipe.kill('SIGKILL'));
    let out = '';
    pipe.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    await new Promise((resolve) => pipe.on('close', resolve));
    expect(out).toBe('1\t0\tfirst\n0\n');
  });

  test(
    'tail: 1,000,000 items in 100 MB → every byte in order, below 200 MB of memory, and head -1 ends ' + 'quietly',
    async () => {
      const { writer, flags } = await real(1);
      const digest = createHash('sha256');
      for (let b = 0; b < 100; b++) {
        const items = Array.from({ length: 10_000 }, (_, i) => ({ data: text(`${b} ${i} `.padEnd(97, 'x')) }));
        for (const item of items) digest.update(item.data).update('\n');
        const block = await writer.write(items);
        writer.blocks.length = 0;
        expect(block.data.length).toBeLessThan(1024 * 1024);
      }
      const startedAt = performance.now();
      const child = spawn(process.execPath, [PROGRAM, 'stream', 'tail', '--raw', '--from', '1', ...flags], {
        env: seqEnvironment(),
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const got = createHash('sha256');
      let peak = 0;
      const rss = () =>
        Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
      child.stdout.on('data', (chunk: Buffer) => {
        got.update(chunk);
        try {
          peak = Math.max(peak, rss());
        } catch {
          /* not Linux, or just gone */
        }
      });
      expect(await new Promise((resolve) => child.on('close', resolve))).toBe(0);
      const ms = performance.now() - startedAt;
      expect(got.digest('hex')).toBe(digest.digest('hex'));
      expect(peak).toBeLessThan(200);
      if (process.env['SEQ_TEST_NUMBERS'])
        process.stderr.write(`tail: 1,000,000 items in ${Math.round(ms)} ms, ${Math.round(peak)} MB\n`);
      const head = spawn(
        '/bin/sh',
        ['-c', `"${process.execPath}" "${PROGRAM}" stream tail --items -o plain ${flags.join(' ')} | head -1`],
        { env: seqEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] },
      );
      let [out, err] = ['', ''];
      head.stdout.on('data', (chunk: Buffer) => {
        out += chunk.toString();
      });
      head.stderr.on('data', (chunk: Buffer) => {
        err += chunk.toString();
      });
      await new Promise((resolve) => head.on('close', resolve));
      expect([out.startsWith('1\t0\t0 0 xxx'), out.split('\n').length, err]).toEqual([true, 2, '']);
    },
  );
});
