// Somebody between the client and the sequencer: a proxy, a balancer, a login page. Only a sequencer's own JSON is its
// word. Everything else is named as what it is, with its status and its first words, and decides nothing.
import { afterEach, describe, expect, test } from 'vitest';
import { fetchFromPeer } from '../../src/core/nodes/peer-feed.js';
import { askStatus } from '../../src/core/nodes/sequencer-client.js';
import { startHttpServer, type HttpServer } from '../../src/core/serve/server.js';
import { peerArchive } from '../../src/core/stream/tail-peer.js';
import { submitItems, type SubmitOptions } from '../../src/core/submit/submit.js';
import { FakeSequencer } from '../support/fake-sequencer.js';
import { startHttpProxy, type HttpProxy, type OwnAnswer } from '../support/http-proxy.js';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

async function serve(api: FakeSequencer): Promise<HttpServer> {
  const server = await startHttpServer({
    api,
    listen: { host: '127.0.0.1', port: 0 },
    maxBlockBytes: 1 << 20,
    bounds: { closeMs: 100, holdMs: 100 },
  });
  closers.push(() => server.close());
  return server;
}

async function behind(api: FakeSequencer): Promise<HttpProxy> {
  const proxy = await startHttpProxy((await serve(api)).url);
  closers.push(() => proxy.close());
  return proxy;
}

function submit(url: string, text: string, options: Partial<SubmitOptions> = {}) {
  const input = (async function* () {
    yield Buffer.from(text);
  })();
  return submitItems({
    urls: async () => [url],
    giveUpMs: 5000,
    signal: new AbortController().signal,
    plan: async () => ({ input, binary: false, keyPrefix: 'p' }),
    ...options,
    timing: { statusMs: 1000, connectMs: 1000, watchMs: 50, retryMs: 10 },
  });
}
const texts = (api: FakeSequencer) => api.items.map((item) => item.text);

const HTML = { 'content-type': 'text/html' };
const page = (words: string) => `<html><head><title>${words}</title></head><body><h1>${words}</h1></body></html>`;
/** What proxies say by themselves, and how it is told. */
const OWN: [name: string, answer: OwnAnswer, told: RegExp][] = [
  ['301', { status: 301, headers: { location: 'https://seq.example/' } }, /301.*it names https:\/\/seq.example\//],
  ['a login page with 200', { status: 200, headers: HTML, body: page('Sign in') }, /200.*text\/html.*Sign in/],
  ['502', { status: 502, headers: HTML, body: page('Bad Gateway') }, /502.*Bad Gateway/],
  ['503', { status: 503, headers: { 'content-type': 'text/plain' }, body: 'no server' }, /503.*no server/],
  ['401 of its own', { status: 401, headers: HTML, body: page('Authorization Required') }, /401.*Authorization/],
  ['403', { status: 403, headers: HTML, body: page('Forbidden') }, /403.*Forbidden/],
  ['404', { status: 404, headers: HTML, body: page('Not Found') }, /404.*Not Found/],
  ['an empty body', { status: 200 }, /200.*without a word/],
  ['half a JSON', { status: 200, headers: { 'content-type': 'application/json' }, body: '{"hei' }, /200.*\{"hei/],
  [
    'JSON of its own',
    { status: 429, headers: { 'content-type': 'application/json' }, body: '{"message":"slow down"}' },
    /429.*slow down/,
  ],
];

describe('submit', () => {
  test.each(OWN)(
    'between: a proxy says %s to a batch → named, and sent again once it is gone',
    async (_n, own, told) => {
      const api = new FakeSequencer();
      const proxy = await behind(api);
      let times = 0;
      proxy.instead = ({ method }) => (method === 'POST' && (times += 1) <= 2 ? own : undefined);
      const waiting: string[] = [];
      const done = await submit(proxy.url, 'a\nb\n', { onProgress: (progress) => waiting.push(progress.waiting) });
      expect([done.items, texts(api)]).toEqual([2, ['a', 'b']]);
      expect(waiting.find((text) => text !== '')).toMatch(told);
      expect(waiting.find((text) => text !== '')).toMatch(/somebody in between/);
    },
  );

  test.each(OWN)('between: a proxy that says %s to everything → given up with its words', async (_name, own, told) => {
    const proxy = await behind(new FakeSequencer());
    proxy.instead = () => own;
    await expect(submit(proxy.url, 'a\n', { giveUpMs: 100 })).rejects.toMatchObject({
      code: 'NO_SEQUENCER',
      why: expect.stringMatching(told),
      changed: 'nothing',
    });
  });

  test('between: a proxy takes 4 KiB a request → smaller batches, and none is too large again and again', async () => {
    const api = new FakeSequencer();
    const proxy = await behind(api);
    let refused = 0;
    proxy.instead = ({ body }) =>
      body.length > 4096 && (refused += 1) > 0
        ? { status: 413, headers: HTML, body: page('Request Entity Too Large') }
        : undefined;
    const lines = Array.from({ length: 2000 }, (_, at) => `line ${at} `.padEnd(60, 'x'));
    const done = await submit(proxy.url, `${lines.join('\n')}\n`);
    expect([done.items, texts(api).length]).toEqual([2000, 2000]);
    expect(texts(api)).toEqual(lines);
    expect(refused).toBeLessThan(20);
  });

  test('between: a proxy takes fewer bytes than one line has → its limit is named, not the block', async () => {
    const api = new FakeSequencer();
    const proxy = await behind(api);
    proxy.instead = ({ body }) =>
      body.length > 512 ? { status: 413, headers: HTML, body: page('Request Entity Too Large') } : undefined;
    const failed = submit(proxy.url, `a\n${'x'.repeat(600)}\nb\n`);
    await expect(failed).rejects.toMatchObject({
      code: 'BODY_TOO_LARGE',
      exit: 65,
      message: expect.stringMatching(/line 2 .*somebody in between/),
      why: expect.stringMatching(/413.*Request Entity Too Large/),
      changed: 'some',
      next: [expect.stringMatching(/limit/), expect.anything()],
    });
    expect(texts(api)).toEqual(['a']);
  });

  test('between: receipts under another content type → they count', async () => {
    const api = new FakeSequencer();
    const proxy = await behind(api);
    proxy.spoil = ({ method }, answer) => {
      if (method === 'POST') answer.headers['content-type'] = 'text/plain';
    };
    expect(await submit(proxy.url, 'a\nb\n')).toMatchObject({ items: 2, retries: 0 });
  });

  test('between: the receipts are cut short every time → the fate of the rest is not known', async () => {
    const api = new FakeSequencer();
    const proxy = await behind(api);
    proxy.spoil = ({ method }, answer) => {
      if (method === 'POST') answer.body = answer.body.subarray(0, 5);
    };
    await expect(submit(proxy.url, 'a\nb\n', { giveUpMs: 200 })).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      changed: 'unknown',
    });
    expect(texts(api)).toEqual(['a', 'b']);
  });
});

describe('forwarding', () => {
  async function follower() {
    const leader = new FakeSequencer('seq-a');
    const proxy = await behind(leader);
    const api = new FakeSequencer('seq-b');
    api.state = { role: 'follower', epoch: 0, leaseMs: 0, leader: { id: 'seq-a', epoch: 7, url: proxy.url } };
    const server = await serve(api);
    const post = async (body: string, headers: Record<string, string> = {}) => {
      const response = await fetch(`${server.url}/v1/submit`, { method: 'POST', body, headers });
      const error = ((await response.json()) as { error: { code: string; why: string; retryable: boolean } }).error;
      return { status: response.status, ...error };
    };
    return { leader, proxy, server, post };
  }

  test.each([
    ...OWN.filter(([, { status }]) => status >= 300 && status < 500).map(
      ([name, own, told]) => [name, 'LEADER_ADDRESS', 503, own, told] as const,
    ),
    // It may have passed the item on before it gave up.
    ...OWN.filter(([, { status }]) => status < 300 || status >= 500).map(
      ([name, own, told]) => [name, 'OUTCOME_UNKNOWN', 504, own, told] as const,
    ),
  ])('between: two sequencers, a proxy says %s → %s', async (_name, code, status, own, told) => {
    const { leader, proxy, post } = await follower();
    proxy.instead = () => own;
    for (const headers of [{}, { 'idempotency-key': 'k' }] as Record<string, string>[]) {
      const answer = await post('x', headers);
      expect([answer.status, answer.code]).toEqual([status, code]);
      expect(answer.why).toMatch(told);
    }
    expect(leader.items).toEqual([]);
  });

  test('between: two sequencers, a proxy takes 4 KiB a request → 413 for a batch, and seq submit gets all through', async () => {
    const { leader, proxy, server, post } = await follower();
    proxy.instead = ({ body }) =>
      body.length > 4096 ? { status: 413, headers: HTML, body: page('Too Large') } : undefined;
    expect(await post('x'.repeat(5000))).toMatchObject({
      status: 413,
      code: 'BODY_TOO_LARGE',
      retryable: false,
      why: expect.stringMatching(/somebody in between.*413.*Too Large/),
    });
    const lines = Array.from({ length: 500 }, (_, at) => `line ${at} `.padEnd(60, 'x'));
    expect((await submit(server.url, `${lines.join('\n')}\n`)).items).toBe(500);
    expect(texts(leader)).toEqual(lines);
  });

  test.each([
    ['half a receipt', (body: Buffer) => body.subarray(0, 5)],
    ['nothing', () => Buffer.alloc(0)],
    ['a page', () => Buffer.from(page('Sign in'))],
  ])('between: the leader took it in and %s comes back → unknown, never handed on', async (_name, spoiled) => {
    const { leader, proxy, post } = await follower();
    proxy.spoil = (_request, answer) => void (answer.body = spoiled(answer.body));
    expect(await post('x')).toMatchObject({ status: 504, code: 'OUTCOME_UNKNOWN', retryable: false });
    expect(texts(leader)).toEqual(['x']);
  });

  test('between: a proxy drops the headers that it does not know → a receipt is a receipt', async () => {
    const { proxy, server } = await follower();
    proxy.spoil = (_request, answer) => void delete answer.headers['seq-id'];
    const response = await fetch(`${server.url}/v1/submit`, { method: 'POST', body: 'x' });
    expect([response.status, await response.json()]).toEqual([200, { height: 1, index: 0, epoch: 7 }]);
  });
});

describe('reading', () => {
  test.each(OWN)('between: a proxy says %s to a reader → unreachable, with its words', async (_name, own, told) => {
    const api = new FakeSequencer();
    for (const text of ['a', 'b', 'c']) api.push(Buffer.from(text));
    const proxy = await behind(api);
    proxy.instead = () => own;
    const read = async () => {
      const blocks = [];
      const after = { height: 0, hash: api.blocks[0]!.parent };
      const { signal } = new AbortController();
      for await (const block of fetchFromPeer({ url: proxy.url, after, to: 3, signal })) blocks.push(block);
      return blocks;
    };
    await expect(read()).rejects.toMatchObject({
      code: 'PEER_UNREACHABLE',
      retryable: true,
      message: expect.stringMatching(/somebody in between/),
      why: expect.stringMatching(told),
    });
    const status = await askStatus(proxy.url, {}, 1000);
    expect(status).toMatchObject({ answered: false, why: expect.stringMatching(told) });
    const archive = peerArchive('seq-a', proxy.url, { limitMs: 1000 });
    await expect(archive.read(1, 3, undefined)[Symbol.asyncIterator]().next()).rejects.toThrow(told);
    proxy.instead = () => undefined;
    expect(await read()).toHaveLength(3);
  });
});
