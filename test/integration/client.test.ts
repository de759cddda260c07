// What another program imports, against real HTTP servers: receipts, order, failover of a reader, other chains, errors
// with advice for a program.
import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { encodeExec, encodeItems, itemDigest } from '../../src/core/chain/items.js';
import type { CommittedBlock, SubmitOutcome } from '../../src/core/ports.js';
import { startHttpServer, type HttpServer } from '../../src/core/serve/server.js';
import { SeqError, SequencerClient, type ClientOptions } from '../../src/index.js';
import { FakeSequencer } from '../support/fake-sequencer.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function serve(api: FakeSequencer, options: { token?: string; port?: number } = {}): Promise<HttpServer> {
  const server = await startHttpServer({
    api,
    listen: { host: '127.0.0.1', port: options.port ?? 0 },
    maxBlockBytes: 4096,
    bounds: { closeMs: 50, holdMs: 50 },
    ...(options.token ? { token: options.token } : {}),
  });
  closers.push(() => server.close());
  return server;
}
async function raw(handle: RequestListener): Promise<string> {
  const server = createServer(handle);
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}
function clientOf(urls: string[], options: Partial<ClientOptions> = {}): SequencerClient {
  const client = new SequencerClient({ urls, ...options });
  closers.push(() => client.close());
  return client;
}
/** An address at which nobody listens. */
const NOBODY = 'http://127.0.0.1:1';
const items = (...keys: string[]) => keys.map((key) => ({ key, data: `data of ${key}` }));
async function failure(run: Promise<unknown>): Promise<SeqError> {
  const error = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SeqError);
  // Flags of commands are no advice for a program; those of the sequencers are.
  const flags = (error as SeqError).next.join(' ').match(/--[a-z-]+/g) ?? [];
  expect(flags.filter((flag) => !/^--(http|http-token-file|max-block-bytes)$/.test(flag))).toEqual([]);
  return error as SeqError;
}
async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const each of source) list.push(each);
  return list;
}

describe('submit', () => {
  test('client: submit → receipts in order; the same keys again → the same places, in any order', async () => {
    const api = new FakeSequencer();
    const client = clientOf([(await serve(api)).url]);
    const receipts = await client.submit(items('a', 'b', 'c'));
    expect(receipts).toEqual(['a', 'b', 'c'].map((key, index) => ({ key, height: 1, index, epoch: 7 })));
    const again = await client.submit(items('c', 'd', 'a'));
    expect(again.map(({ key, height, index }) => [key, height, index])).toEqual([
      ['c', 1, 2],
      ['d', 2, 0],
      ['a', 1, 0],
    ]);
    expect(await client.submit({ key: 'e', data: new Uint8Array([0, 255]) })).toMatchObject([{ height: 3, index: 0 }]);
    expect(api.items.map(({ key, text }) => [key, text]).at(-1)).toEqual(['e', '\u0000\u00ff']);
  });

  test('client: many items from a generator → each once, receipts in order, in several requests', async () => {
    const api = new FakeSequencer();
    const client = clientOf([NOBODY, (await serve(api)).url]);
    const source = async function* () {
      for (let at = 0; at < 9000; at += 1) yield { key: `k${at}`, data: String(at) };
    };
    const keys: string[] = [];
    const done = await client.submitEach(source(), { onReceipt: ({ key }) => keys.push(key) });
    expect(done).toEqual({ items: 9000, retries: 0 });
    expect(keys).toEqual(Array.from({ length: 9000 }, (_, at) => `k${at}`));
    expect(api.items.map(({ text }) => text)).toEqual(keys.map((key) => key.slice(1)));
    expect(api.calls.length).toBeGreaterThan(1);
  });

  test('client: an answer that is lost → sent again under the same key, sequenced once', async () => {
    const api = new FakeSequencer();
    let lost = 0;
    api.intercept = (given) => {
      if ((lost += 1) > 1) return undefined;
      api.commit(given);
      return given.map(() => ({ outcome: 'unknown', why: 'the term ended' }));
    };
    const client = clientOf([(await serve(api)).url]);
    expect(await client.submit(items('a'))).toMatchObject([{ key: 'a', height: 1, index: 0 }]);
    expect(api.items).toHaveLength(1);
  });

  test.each<[string, { key: string; data: string }[], object]>([
    ['an empty key', [{ key: '', data: 'x' }], { code: 'USAGE', changed: 'nothing' }],
    ['a key that does not print', [{ key: 'a\nb', data: 'x' }], { code: 'USAGE', changed: 'nothing' }],
    ['other bytes under a key', [{ key: 'used', data: 'other' }], { code: 'KEY_CONFLICT' }],
    ['more than fits', [{ key: 'big', data: 'x'.repeat(5000) }], { code: 'ITEM_TOO_LARGE', changed: 'nothing' }],
    [
      'the second item does not fit',
      [...items('first'), { key: 'big', data: 'x'.repeat(5000) }],
      { code: 'ITEM_TOO_LARGE', message: expect.stringContaining('item 2') as string },
    ],
  ])('client: submit of %s → its code, and what a program can do', async (_, given, expected) => {
    const api = new FakeSequencer();
    api.commit([{ key: 'used', data: Buffer.from('these') }]);
    const client = clientOf([(await serve(api)).url]);
    const error = await failure(client.submit(given));
    expect(error).toMatchObject(expected);
    expect(error.next.length).toBeGreaterThan(0);
  });

  test.each<[string, SubmitOutcome, string]>([
    ['is in the chain', { outcome: 'committed', receipt: { height: 1, index: 0, epoch: 7 }, duplicate: false }, 'some'],
    ['may be in the chain', { outcome: 'unknown', why: 'the term ended' }, 'unknown'],
    ['is in no block', { outcome: 'refused', reason: 'key-conflict', why: 'other bytes' }, 'nothing'],
  ])(
    'client: the first item is refused, and a later one of the request %s → changed says so',
    async (_, later, said) => {
      const api = new FakeSequencer();
      api.intercept = () => [{ outcome: 'refused', reason: 'key-conflict', why: 'other bytes' }, later];
      const error = await failure(clientOf([(await serve(api)).url]).submit(items('a', 'b')));
      expect(error).toMatchObject({ code: 'KEY_CONFLICT', changed: said });
    },
  );

  test('client: nobody, a stranger, no token, a signal → one code each', async () => {
    const open = (await serve(new FakeSequencer())).url;
    const closed = (await serve(new FakeSequencer(), { token: 'a-secret-token-of-32-characters!' })).url;
    const give = { giveUpMs: 0 };
    const other = { ...give, lane: 'other' };
    const stopped = AbortSignal.abort();
    const code = async (run: Promise<unknown>) => (await failure(run)).code;
    for (const act of ['submit', 'head', 'follow'] as const) {
      const call = (client: SequencerClient) =>
        act === 'submit' ? client.submit(items('a')) : act === 'head' ? client.head() : all(client.follow({ to: 1 }));
      expect([act, await code(call(clientOf([NOBODY], give)))]).toEqual([act, 'NO_SEQUENCER']);
      expect([act, await code(call(clientOf([open], other)))]).toEqual([act, 'WRONG_CLUSTER']);
      expect([act, await code(call(clientOf([closed], give)))]).toEqual([act, 'TOKEN_NEEDED']);
    }
    const client = clientOf([open]);
    expect(await code(client.submit(items('a'), { signal: stopped }))).toBe('INTERRUPTED');
    expect(await code(client.head({ signal: stopped }))).toBe('INTERRUPTED');
    expect(await all(client.follow({ signal: stopped }))).toEqual([]);
    for (const urls of [[], ['redis://127.0.0.1'], ['nonsense']])
      expect(() => new SequencerClient({ urls })).toThrow(SeqError);
  });
});

describe('follow', () => {
  const heights = (blocks: CommittedBlock[]) => blocks.map(({ height }) => height);
  /** Two sequencers with the same first blocks. */
  function pair(blocks: number): [FakeSequencer, FakeSequencer] {
    const [one, other] = [new FakeSequencer('seq-a'), new FakeSequencer('seq-b')];
    for (let at = 1; at <= blocks; at += 1) other.blocks.push(one.push(Buffer.from(`block ${at}`)));
    return [one, other];
  }

  test('client: the sequencer ends in mid-feed → another one goes on, each height once', async () => {
    const [one, other] = pair(4);
    one.push(Buffer.from('block 5'));
    const first = await serve(one);
    const client = clientOf([first.url, (await serve(other)).url]);
    const seen: number[] = [];
    for await (const { height } of client.follow({ to: 8 })) {
      seen.push(height);
      if (height !== 5) continue;
      void first.close();
      for (const block of [one.blocks[4]!]) other.blocks.push(block);
      for (let at = 6; at <= 8; at += 1) other.push(Buffer.from(`block ${at}`));
    }
    expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('client: the other sequencer has another block at a height that was read → CHAIN_MISMATCH, not its block', async () => {
    const [one, other] = pair(4);
    const first = await serve(one);
    const client = clientOf([first.url, (await serve(other)).url]);
    one.push(Buffer.from('block 5'));
    other.push(Buffer.from('another block 5'));
    const seen: CommittedBlock[] = [];
    const read = async () => {
      for await (const block of client.follow({ to: 6 })) {
        seen.push(block);
        if (block.height !== 5) continue;
        void first.close();
        other.push(Buffer.from('block 6 on it'));
      }
    };
    // Both are at height 5: the first address is read first.
    expect(await failure(read())).toMatchObject({ code: 'CHAIN_MISMATCH', changed: 'nothing' });
    expect(heights(seen)).toEqual([1, 2, 3, 4, 5]);
  });

  test('client: a first block that does not follow from the genesis of this cluster → CHAIN_MISMATCH', async () => {
    const [one] = pair(2);
    one.state = { cluster: 'elsewhere.1' };
    const client = clientOf([(await serve(one)).url]);
    expect(await failure(all(client.follow({ to: 2 })))).toMatchObject({ code: 'CHAIN_MISMATCH' });
    expect(heights(await all(client.follow({ from: 2, to: 2 })))).toEqual([2]);
  });

  test('client: behind a block that the caller has → the next ones; another hash → CHAIN_MISMATCH', async () => {
    const [one] = pair(4);
    const client = clientOf([(await serve(one)).url]);
    const { height, hash } = one.blocks[1]!;
    expect(heights(await all(client.follow({ after: { height, hash }, to: 4 })))).toEqual([3, 4]);
    const after = { height, hash: 'a'.repeat(64) };
    expect(await failure(all(client.follow({ after, to: 4 })))).toMatchObject({ code: 'CHAIN_MISMATCH' });
    for (const wrong of [
      { from: 0 },
      { from: 1.5 },
      { to: 0 },
      { after: { height: 1, hash: 'x' } },
      { after, from: 9 },
    ])
      expect(await failure(all(client.follow(wrong)))).toMatchObject({ code: 'USAGE' });
  });

  test('client: nobody has the block any more → PEER_LACKS_BLOCKS; one that has it is found', async () => {
    const [one, other] = pair(4);
    one.floor = 2;
    one.blocks.splice(0, 2);
    const [first, second] = [await serve(one), await serve(other)];
    expect(heights(await all(clientOf([first.url, second.url]).follow({ to: 4 })))).toEqual([1, 2, 3, 4]);
    const error = await failure(all(clientOf([first.url]).follow({ to: 4 })));
    expect(error).toMatchObject({ code: 'PEER_LACKS_BLOCKS', changed: 'nothing' });
  });

  test('client: a feed that sends nothing any more → left for another one', async () => {
    const [one, other] = pair(3);
    const status = { ...other.status(), id: 'seq-hung', height: 9, limits: { maxItemBytes: 1 } };
    let opened = 0;
    const hung = await raw((request, response) => {
      if (request.url === '/v1/status') return void response.end(JSON.stringify(status));
      opened += 1;
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
    });
    const client = clientOf([hung, (await serve(one)).url]);
    expect(heights(await all(client.follow({ to: 3, idleMs: 50 })))).toEqual([1, 2, 3]);
    expect(opened).toBe(1);
  });

  test('client: a live feed is left with its loop or its signal', async () => {
    const [one] = pair(2);
    const client = clientOf([(await serve(one)).url]);
    for await (const { height } of client.follow()) if (height === 2) break;
    const stop = new AbortController();
    const seen: number[] = [];
    for await (const { height } of client.follow({ signal: stop.signal })) {
      seen.push(height);
      if (height === 2) setImmediate(() => stop.abort());
    }
    expect(seen).toEqual([1, 2]);
  });
});

describe('items', () => {
  test('client: items of blocks, from a position on → each once, with its place', async () => {
    const api = new FakeSequencer();
    const data = (text: string) => Buffer.from(text);
    api.push(encodeItems([{ key: 'a', data: data('1') }, { data: data('2') }, { key: 'c', data: data('3') }]));
    api.push(new Uint8Array(0));
    api.push(encodeItems([{ key: 'd', data: data('4') }]));
    const digest = itemDigest(data('5'));
    api.push(encodeExec([{ key: 'e', digest }], data('what the child made')));
    const client = clientOf([(await serve(api)).url]);
    const places = async (options: Parameters<SequencerClient['followItems']>[0]) =>
      (await all(client.followItems({ to: 4, ...options }))).map(
        (item) => `${item.height}.${item.index} ${item.key} ${item.data === null ? '-' : Buffer.from(item.data)}`,
      );
    const whole = ['1.0 a 1', '1.1 undefined 2', '1.2 c 3', '3.0 d 4', '4.0 e -'];
    expect(await places({})).toEqual(whole);
    expect(await places({ from: 2 })).toEqual(whole.slice(3));
    expect(await places({ after: { height: 1, index: 1 } })).toEqual(whole.slice(2));
    expect(await places({ after: { height: 1, index: 2 } })).toEqual(whole.slice(3));
    expect((await all(client.followItems({ from: 4, to: 4 })))[0]).toMatchObject({ digest, timestamp: 1003 });
    api.push(data('no format'));
    expect(await failure(all(client.followItems({ from: 5, to: 5 })))).toMatchObject({ code: 'BLOCK_UNREADABLE' });
  });
});

describe('head and status', () => {
  test('client: the head of the leader, also where only a follower is known', async () => {
    const leader = new FakeSequencer('seq-a');
    leader.push(Buffer.from('block 1'));
    const { url } = await serve(leader);
    const follower = new FakeSequencer('seq-b');
    follower.become({ role: 'follower', leaseMs: 0, epoch: 0, leader: { id: 'seq-a', epoch: 7, url } });
    follower.head = async () => ({ confirmed: false, why: 'it follows' });
    const second = await serve(follower);
    const expected = { height: 1, hash: leader.hash, epoch: 7 };
    expect(await clientOf([second.url, url]).head()).toEqual(expected);
    expect(await clientOf([second.url]).head()).toEqual(expected);
  });

  test('client: a head that no quorum confirms, or nobody who leads → NOT_CONFIRMED with the reason', async () => {
    const api = new FakeSequencer();
    api.head = async () => ({ confirmed: false, why: '1 of 3 nodes answered' });
    const { url } = await serve(api);
    const error = await failure(clientOf([url], { giveUpMs: 0 }).head());
    expect(error).toMatchObject({ code: 'NOT_CONFIRMED', retryable: true });
    expect(error.why).toContain('1 of 3 nodes answered');
    api.become({ role: 'follower', leaseMs: 0, leader: null });
    expect((await failure(clientOf([url], { giveUpMs: 0 }).head())).why).toContain('seq-a is follower');
  });

  test('client: status → one answer for each address, never an error', async () => {
    const { url } = await serve(new FakeSequencer());
    const closed = (await serve(new FakeSequencer(), { token: 'a-secret-token-of-32-characters!' })).url;
    const answers = await clientOf([url, NOBODY, closed]).status();
    expect(answers).toMatchObject([
      { url, answered: true, status: { id: 'seq-a', role: 'leader', limits: { maxKeyBytes: 256 } } },
      { url: NOBODY, answered: false },
      { url: closed, answered: false, code: 'TOKEN_NEEDED' },
    ]);
  });
});
