// The client side of `seq submit` against real HTTP servers: order, once, failover, resume, limits, giving up.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readItems } from '../../src/core/submit/item-reader.js';
import {
  identifySource,
  keyPrefixOf,
  readSource,
  readState,
  statePath,
  writeState,
} from '../../src/core/submit/source.js';
import { submitItems, type Checkpoint, type SubmitOptions, type SubmitPlan } from '../../src/core/submit/submit.js';
import type { SubmitOutcome } from '../../src/core/ports.js';
import { startHttpServer, type HttpServer } from '../../src/core/serve/server.js';
import { FakeSequencer, until } from '../support/fake-sequencer.js';

const closers: (() => unknown)[] = [];
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'seq-submit-'));
});
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  rmSync(dir, { recursive: true, force: true });
});

async function serve(
  api: FakeSequencer,
  options: { maxBlockBytes?: number; token?: string; port?: number } = {},
): Promise<HttpServer> {
  const server = await startHttpServer({
    api,
    listen: { host: '127.0.0.1', port: options.port ?? 0 },
    maxBlockBytes: options.maxBlockBytes ?? 1 << 20,
    bounds: { closeMs: 100, holdMs: 100 },
    ...(options.token ? { token: options.token } : {}),
  });
  closers.push(() => server.close());
  return server;
}

async function* chunks(...parts: (string | Buffer)[]): AsyncGenerator<Buffer> {
  for (const part of parts) yield Buffer.from(part as string);
}

function submit(urls: string[], input: AsyncIterable<Buffer> | SubmitPlan, options: Partial<SubmitOptions> = {}) {
  const plan: SubmitPlan = 'input' in input ? input : { input, binary: false, keyPrefix: 'p' };
  return submitItems({
    urls: async () => urls,
    giveUpMs: 5000,
    signal: new AbortController().signal,
    plan: async () => plan,
    ...options,
    timing: { statusMs: 300, connectMs: 300, watchMs: 50, retryMs: 10, ...options.timing },
  });
}
const texts = (api: FakeSequencer) => api.items.map((item) => item.text);

describe('reading items', () => {
  const read = async (parts: (string | Buffer)[], binary = false, limit = 10) => {
    const seen: [number, string][] = [];
    try {
      for await (const items of readItems(chunks(...parts), { binary, firstNumber: 1, limitOf: () => limit }))
        for (const item of items) seen.push([item.number, item.data.toString('latin1')]);
    } catch (error) {
      return [seen, (error as { code: string; exit: number; message: string }).code, (error as Error).message];
    }
    return [seen];
  };
  test.each([
    [['a\nb\n'], ['a', 'b']],
    [['a\nb'], ['a', 'b']],
    [
      ['', '\n\n'],
      ['', ''],
    ],
    [[], []],
    [['\r\n'], ['\r']],
    [
      ['a', 'b', 'c\nd', '\n'],
      ['abc', 'd'],
    ],
    [['0123456789\n'], ['0123456789']],
  ])('submit: lines %j → %j', async (parts, expected) => {
    expect(await read(parts)).toEqual([expected.map((text, at) => [at + 1, text])]);
  });
  test(
    'submit: a line over the limit → its number, before it is read whole; what came before is handed ' + 'over',
    async () => {
      for (const parts of [['a\n01234567890\nb\n'], ['a\n012345', '67890']]) {
        const [seen, code, message] = await read(parts);
        expect([seen, code]).toEqual([[[1, 'a']], 'ITEM_TOO_LARGE']);
        expect(message).toContain('line 2');
      }
    },
  );
  const frame = (text: string) => {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(text.length);
    return Buffer.concat([head, Buffer.from(text)]);
  };
  test('submit: binary frames cut anywhere → the same frames; truncated or over-long → 65 by number', async () => {
    const whole = Buffer.concat([frame('a\nb'), frame(''), frame('xyz')]);
    const expected = [
      [1, 'a\nb'],
      [2, ''],
      [3, 'xyz'],
    ];
    for (let size = 1; size <= whole.length; size += 1) {
      const parts: Buffer[] = [];
      for (let at = 0; at < whole.length; at += size) parts.push(whole.subarray(at, at + size));
      expect(await read(parts, true)).toEqual([expected]);
    }
    for (let cut = 1; cut < whole.length; cut += 1) {
      const [seen, code] = await read([whole.subarray(0, cut)], true);
      if (cut === 7 || cut === 11) expect(code).toBeUndefined();
      else expect([code, (seen as unknown[]).length]).toEqual(['FRAME_TRUNCATED', cut < 7 ? 0 : cut < 11 ? 1 : 2]);
    }
    expect((await read([frame('ok'), Buffer.from([255, 255, 255, 255])], true)).slice(0, 2)).toEqual([
      [[1, 'ok']],
      'ITEM_TOO_LARGE',
    ]);
  });
});

describe('submitting', () => {
  test('submit: 20,000 lines of 200 bytes → all, in order, once, few requests', async () => {
    const api = new FakeSequencer();
    const lines = Array.from({ length: 20_000 }, (_, at) => `${at} `.padEnd(200, 'x'));
    const summary = await submit([(await serve(api)).url], chunks(`${lines.join('\n')}\n`));
    expect(summary).toMatchObject({
      items: 20_000,
      resumed: 0,
      duplicates: 0,
      retries: 0,
      bytes: 20_000 * 201,
      first: { height: 1, index: 0 },
    });
    expect(texts(api)).toEqual(lines);
    expect(summary.last).toEqual(api.items.at(-1)!.receipt);
    expect(api.calls.length).toBeLessThan(8);
  });

  test('submit: any bytes, empty lines, no last newline → exactly those bytes', async () => {
    const api = new FakeSequencer();
    const input = Buffer.concat([
      Buffer.from('\n"quo\\te"\r\n\u0000\u0001\n'),
      Buffer.from([0xff, 0xfe, 0x0a]),
      Buffer.from('\ufeffbom é 😀'),
    ]);
    await submit([(await serve(api)).url], chunks(input));
    expect(Buffer.from(texts(api).join('\n'), 'latin1').equals(input)).toBe(true);
    expect(api.items.map((item) => item.key)).toEqual([1, 2, 3, 4, 5].map((number) => `p:${number}`));
  });

  test('submit: the same input again → first receipts, counted as duplicates, nothing new', async () => {
    const api = new FakeSequencer();
    const { url } = await serve(api);
    const first = await submit([url], chunks('a\nb\nc\n'));
    const again = await submit([url], chunks('a\nb\nc\n'));
    expect([again.duplicates, again.first, again.last, api.items.length]).toEqual([3, first.first, first.last, 3]);
    await expect(submit([url], chunks('a\nX\nc\n'))).rejects.toMatchObject({
      code: 'KEY_CONFLICT',
      exit: 65,
      message: expect.stringContaining('line 2'),
    });
    expect(api.items).toHaveLength(3);
  });

  test('submit: a trickling pipe → each line goes as it comes', async () => {
    const api = new FakeSequencer();
    async function* slow() {
      for (const line of ['a\n', 'b\n', 'c\n']) {
        const before = api.items.length;
        yield Buffer.from(line);
        await until(() => api.items.length > before, `the item ${line}`);
      }
    }
    expect((await submit([(await serve(api)).url], slow())).items).toBe(3);
  });

  test(
    'submit: the leader dies half-way, its last batch half committed and unknown → the rest goes to ' +
      'the successor; once and in order',
    async () => {
      const [a, b] = [new FakeSequencer('seq-a'), new FakeSequencer('seq-b')];
      const [serverA, serverB] = [await serve(a), await serve(b)];
      b.state = { role: 'follower', leader: { id: 'seq-a', epoch: 7, url: serverA.url } };
      const lines = Array.from({ length: 12_000 }, (_, at) => `line ${at}`);
      a.intercept = (items) => {
        if (a.calls.length < 2) return undefined;
        a.commit(items.slice(0, 500));
        // The successor adopts the chain and its keys. The client never gets an answer for those 500 items.
        b.blocks.push(...a.blocks);
        b.items.push(...a.items);
        for (const [key, receipt] of a.keys) b.keys.set(key, receipt);
        b.state = {};
        void serverA.close();
        return new Promise<SubmitOutcome[]>(() => {});
      };
      const summary = await submit([serverA.url, serverB.url], chunks(lines.join('\n')));
      expect(texts(b)).toEqual(lines);
      expect([summary.items, summary.duplicates, summary.resent, summary.retries > 0]).toEqual([12_000, 0, 500, true]);
    },
  );

  test(
    'submit: the leader hangs (answers nothing any more) and another leads → given up on early, ' + 'nothing lost',
    async () => {
      const b = new FakeSequencer('seq-b');
      b.state = { role: 'follower', leader: null };
      const { url } = await serve(b);
      const a = new FakeSequencer('seq-a');
      let hung = false;
      const front = await serve(a);
      a.intercept = () => {
        hung = true;
        a.status = () => {
          throw new Error('hung');
        };
        b.state = {};
        return new Promise<SubmitOutcome[]>(() => {});
      };
      const began = performance.now();
      expect((await submit([front.url, url], chunks('a\nb\n'))).items).toBe(2);
      expect([hung, texts(b)]).toEqual([true, ['a', 'b']]);
      expect(performance.now() - began).toBeLessThan(3000);
    },
  );

  test('submit: busy, no leader, a suffix refused → the same keys again, order kept', async () => {
    const api = new FakeSequencer();
    const { url } = await serve(api);
    const refused = (reason: 'busy' | 'not-leader'): SubmitOutcome => ({
      outcome: 'refused',
      reason,
      why: 'w',
      retryAfterMs: 10,
    });
    api.intercept = (items) => {
      if (api.calls.length === 1) return items.map(() => refused('busy'));
      if (api.calls.length === 2) return items.map(() => ({ outcome: 'unknown', why: 'term lost' }));
      if (api.calls.length === 3)
        return [...api.commit(items.slice(0, 2)), ...items.slice(2).map(() => refused('busy'))];
      return undefined;
    };
    expect((await submit([url], chunks('a\nb\nc\nd\n'))).items).toBe(4);
    expect(texts(api)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('submit: a follower as the only address → forwarded', async () => {
    const [a, b] = [new FakeSequencer('seq-a'), new FakeSequencer('seq-b')];
    b.state = { role: 'follower', leader: { id: 'seq-a', epoch: 7, url: (await serve(a)).url } };
    expect((await submit([(await serve(b)).url], chunks('a\nb\n'))).items).toBe(2);
    expect(texts(a)).toEqual(['a', 'b']);
  });

  test('submit: an over-long line → what is before it is sequenced, its number is named, 65', async () => {
    const api = new FakeSequencer();
    const { url } = await serve(api, { maxBlockBytes: 1024 });
    const most = 1024 - 64 - 'p:2'.length;
    expect((await submit([url], chunks(`a\n${'x'.repeat(most)}\n`))).items).toBe(2);
    const other = { input: chunks(`a\nb\n${'x'.repeat(most + 1)}\nd\n`), binary: false, keyPrefix: 'q' };
    await expect(submit([url], other)).rejects.toMatchObject({
      code: 'ITEM_TOO_LARGE',
      exit: 65,
      changed: 'some',
      message: expect.stringContaining('line 3'),
    });
    expect(texts(api).slice(2)).toEqual(['a', 'b']);
  });

  test('submit: receipts out of order → said, never passed over', async () => {
    const api = new FakeSequencer();
    api.intercept = (items) =>
      items.map((_item, at) => ({
        outcome: 'committed',
        receipt: { height: 5 - at, index: 0, epoch: 7 },
        duplicate: false,
      }));
    await expect(submit([(await serve(api)).url], chunks('a\nb\n'))).rejects.toMatchObject({
      code: 'OUT_OF_ORDER',
      message: expect.stringContaining('line 2'),
    });
  });

  test.each([
    ['nobody listens', async () => ['http://127.0.0.1:1'], 'NO_SEQUENCER', 69, 'nothing'],
    ['no address announced', async () => [], 'NO_SEQUENCER', 69, 'nothing'],
    ['not a URL', async () => ['nonsense'], 'NO_SEQUENCER', 69, 'nothing'],
    [
      'no leader',
      async () => {
        const api = new FakeSequencer();
        api.state = { role: 'follower', leader: null };
        return [(await serve(api)).url];
      },
      'NO_PROGRESS',
      75,
      'nothing',
    ],
    [
      'busy for ever',
      async () => {
        const api = new FakeSequencer();
        api.intercept = (items) => items.map(() => ({ outcome: 'refused', reason: 'busy', why: 'w' }));
        return [(await serve(api)).url];
      },
      'NO_PROGRESS',
      75,
      'nothing',
    ],
    [
      'unknown for ever',
      async () => {
        const api = new FakeSequencer();
        api.intercept = (items) => items.map(() => ({ outcome: 'unknown', why: 'w' }));
        return [(await serve(api)).url];
      },
      'OUTCOME_UNKNOWN',
      80,
      'unknown',
    ],
    [
      'a token is wanted',
      async () => [(await serve(new FakeSequencer(), { token: 'secret-token' })).url],
      'TOKEN_NEEDED',
      77,
      'nothing',
    ],
    [
      'something else listens',
      async () => {
        const other = createServer((socket) => {
          socket.on('error', () => {});
          socket.end('SSH-2.0-OpenSSH\r\n');
        });
        closers.push(() => other.close());
        other.listen(0, '127.0.0.1');
        await once(other, 'listening');
        return [`http://127.0.0.1:${(other.address() as { port: number }).port}`];
      },
      'NO_SEQUENCER',
      69,
      'nothing',
    ],
  ] as const)('submit: %s → gives up with the reason', async (_name, urls, code, exit, changed) => {
    const known = await urls();
    await expect(submit([...known], chunks('a\n'), { giveUpMs: 200 })).rejects.toMatchObject({
      code,
      exit,
      changed,
      why: expect.stringMatching(/./),
    });
  });

  test('submit: two clusters behind the addresses → 76 before anything is sent to the other', async () => {
    const [a, b] = [new FakeSequencer('seq-a'), new FakeSequencer('seq-b')];
    b.state = { cluster: 'other.1' };
    const urls = [(await serve(a)).url];
    const second = (await serve(b)).url;
    a.intercept = () => {
      urls[0] = second;
      return [{ outcome: 'refused', reason: 'stopping', why: 'w' }];
    };
    await expect(submit(urls, chunks('a\n'), { urls: async () => urls })).rejects.toMatchObject({
      code: 'WRONG_CLUSTER',
      exit: 76,
    });
    expect(b.calls).toEqual([]);
  });

  test.each([
    ['a lane', { lane: 'other' }, { lane: 'wanted', cluster: 'test.1' }],
    ['a cluster', { cluster: 'other.1' }, { lane: '', cluster: 'test.1' }],
  ] as const)(
    'submit: an address leads to %s that is not meant, its leader answers first → nothing is sent to it',
    async (_name, state, wanted) => {
      const [stranger, ours] = [new FakeSequencer('seq-x'), new FakeSequencer('seq-a')];
      stranger.state = state;
      ours.state = { lane: wanted.lane };
      const urls = [(await serve(stranger)).url];
      const running = submit(urls, chunks('a\n'), { urls: async () => urls, wanted });
      urls.push((await serve(ours)).url);
      expect(await running).toMatchObject({ items: 1 });
      expect([stranger.calls.length, ours.calls.length]).toEqual([0, 1]);
      await expect(
        submit([], chunks('a\n'), { urls: async () => urls.slice(0, 1), wanted, onlyThese: true }),
      ).rejects.toMatchObject({ code: 'WRONG_CLUSTER', exit: 76, changed: 'nothing' });
      await expect(
        submit([], chunks('a\n'), { urls: async () => urls.slice(0, 1), wanted, giveUpMs: 100 }),
      ).rejects.toMatchObject({ code: 'NO_SEQUENCER', exit: 69, why: expect.stringContaining('seq-x is of') });
      expect(stranger.calls.length).toBe(0);
    },
  );

  test('submit: interrupted while a batch is under way → ends at once and says what is known', async () => {
    const api = new FakeSequencer();
    api.intercept = () => new Promise(() => {});
    const stop = new AbortController();
    const running = submit([(await serve(api)).url], chunks('a\n'), { signal: stop.signal });
    await until(() => api.calls.length === 1, 'the batch');
    const began = performance.now();
    stop.abort();
    await expect(running).rejects.toMatchObject({ code: 'INTERRUPTED', exit: 130 });
    expect(performance.now() - began).toBeLessThan(90);
  });
});

describe('resuming', () => {
  const lines = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, at) => `line ${from + at}\n`).join('');
  async function checkpointOf(url: string, text: string): Promise<Checkpoint> {
    let last: Checkpoint | undefined;
    await submit([url], chunks(text), {
      onCheckpoint: (checkpoint) => {
        last = checkpoint;
      },
    });
    return last!;
  }

  test(
    'submit: resumed → only what is missing is sent, numbering and first receipt go on; also when ' +
      'the file has grown',
    async () => {
      const api = new FakeSequencer();
      const { url } = await serve(api);
      const from = await checkpointOf(url, lines(0, 100));
      expect(from).toMatchObject({
        items: 100,
        bytes: lines(0, 100).length,
        sha256: createHash('sha256').update(lines(0, 100)).digest('hex'),
      });
      const before = api.calls.length;
      const summary = await submit([url], {
        input: chunks(...(lines(0, 100) + lines(100, 150)).match(/[\s\S]{1,37}/g)!),
        binary: false,
        keyPrefix: 'p',
        from,
      });
      expect(summary).toMatchObject({ items: 150, resumed: 100, duplicates: 0, first: { height: 1, index: 0 } });
      expect(
        api.calls
          .slice(before)
          .flat()
          .map((item) => item.key),
      ).toEqual(Array.from({ length: 50 }, (_, at) => `p:${101 + at}`));
      expect(texts(api).join('\n')).toBe(lines(0, 150).trimEnd());
      const nothing = await submit([url], { input: chunks(lines(0, 100)), binary: false, keyPrefix: 'p', from });
      expect([nothing.items, nothing.resumed, nothing.last]).toEqual([100, 100, from.last]);
    },
  );

  test(
    'submit: resumed input that is another, or shorter, or whose last half line went on → 65, ' + 'nothing sent',
    async () => {
      const api = new FakeSequencer();
      const { url } = await serve(api);
      const from = await checkpointOf(url, 'a\nb');
      expect([from.items, from.terminated]).toEqual([2, false]);
      const calls = api.calls.length;
      for (const text of ['a\nX\nc\n', 'a\n', 'a\nbc\n'])
        await expect(submit([url], { input: chunks(text), binary: false, keyPrefix: 'p', from })).rejects.toMatchObject(
          {
            code: 'INPUT_CHANGED',
            exit: 65,
          },
        );
      expect(api.calls.length).toBe(calls);
      const summary = await submit([url], { input: chunks('a\nb', '\nc\n'), binary: false, keyPrefix: 'p', from });
      expect([summary.items, summary.bytes, texts(api)]).toEqual([3, 6, ['a', 'b', 'c']]);
    },
  );

  test('submit: a file is its content, a pipe is new each time; state survives whole or not at all', async () => {
    const signal = new AbortController().signal;
    const [one, copy] = [join(dir, 'one'), join(dir, 'copy')];
    for (const path of [one, copy]) writeFileSync(path, 'a\nb\n');
    const source = await identifySource(one);
    expect(await keyPrefixOf(source, signal)).toBe(await keyPrefixOf(await identifySource(copy), signal));
    appendFileSync(one, 'c\n');
    expect(await keyPrefixOf(await identifySource(one), signal)).not.toBe(
      await keyPrefixOf(await identifySource(copy), signal),
    );
    let text = '';
    for await (const chunk of readSource(source)) text += chunk.toString();
    expect(text).toBe('a\nb\n');
    expect(await keyPrefixOf({ path: '', size: null }, signal)).not.toBe(
      await keyPrefixOf({ path: '', size: null }, signal),
    );
    await expect(identifySource(join(dir, 'none'))).rejects.toMatchObject({ code: 'FILE_NOT_FOUND', exit: 66 });
    await expect(identifySource(dir)).rejects.toMatchObject({ code: 'FILE_UNREADABLE', exit: 65 });
    const run = { cluster: 'c.1', lane: '', path: one, keyPrefix: undefined, binary: false, text: false };
    expect(statePath(dir, run)).not.toBe(statePath(dir, { ...run, cluster: 'c.2' }));
    expect(statePath(dir, run)).not.toBe(statePath(dir, { ...run, text: true }));
    const path = join(dir, 'state.json');
    expect(await readState(path)).toBeUndefined();
    const state = {
      ...run,
      version: 1 as const,
      keyPrefix: 'p',
      items: 1,
      bytes: 2,
      sha256: 'a'.repeat(64),
      terminated: true,
      first: null,
      last: null,
    };
    writeState(path, state);
    expect(await readState(path)).toEqual(state);
    writeFileSync(path, '{"version":1,');
    expect(await readState(path)).toBeUndefined();
  });
});
