// The HTTP surface over real sockets on loopback: statuses, envelopes, bounds, forwarding, feeds, health, metrics,
// close.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { SeqError } from '../../src/core/errors.js';
import type { SubmitOutcome } from '../../src/core/ports.js';
import { checkListen, isLoopback, parseListen } from '../../src/core/serve/listen.js';
import { readTokenFile, TokenFile } from '../../src/core/serve/tokens.js';
import { startHttpServer, type HttpServer, type HttpServerOptions } from '../../src/core/serve/server.js';
import { makeAuthority } from '../support/certificates.js';
import { FakeSequencer, until } from '../support/fake-sequencer.js';

const running: HttpServer[] = [];
const sockets: Server[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((server) => server.close()));
  for (const server of sockets.splice(0)) server.close();
});

async function serve(api: FakeSequencer, options: Partial<HttpServerOptions> = {}): Promise<HttpServer> {
  const server = await startHttpServer({
    api,
    listen: { host: '127.0.0.1', port: 0 },
    maxBlockBytes: 1024,
    ...options,
    bounds: { closeMs: 300, holdMs: 50, ...options.bounds },
  });
  running.push(server);
  return server;
}

async function post(server: HttpServer, body: string | Buffer, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/v1/submit`, { method: 'POST', body, headers });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    lines: text
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
  };
}
const NDJSON = { 'content-type': 'application/x-ndjson' };
const get = async (server: HttpServer, path: string, headers: Record<string, string> = {}) => {
  const response = await fetch(server.url + path, { headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
};

describe('submit', () => {
  test('http: one raw item with a key → its receipt; again → the same receipt; other bytes → 409', async () => {
    const api = new FakeSequencer();
    const server = await serve(api);
    const bytes = Buffer.from([0, 255, 10, 13, 34]);
    const first = await post(server, bytes, { 'idempotency-key': 'k1' });
    expect([first.status, first.lines]).toEqual([200, [{ height: 1, index: 0, epoch: 7 }]]);
    expect(api.items[0]).toMatchObject({ key: 'k1', text: bytes.toString('latin1') });
    const again = await post(server, bytes, { 'idempotency-key': 'k1' });
    expect([again.status, again.text, again.headers.get('seq-duplicates')]).toEqual([200, first.text, '1']);
    const other = await post(server, 'x', { 'idempotency-key': 'k1' });
    expect([other.status, other.lines[0].error.code, other.lines[0].error.retryable]).toEqual([
      409,
      'KEY_CONFLICT',
      false,
    ]);
    expect(api.items).toHaveLength(1);
  });

  test.each(['content-length: 3000000', 'transfer-encoding: chunked'])(
    'http: no leader and a large body (%s) → 503 before a byte of it was read; a small malformed one → 400',
    async (header) => {
      const api = new FakeSequencer('seq-b');
      api.state = { role: 'follower', leader: null, ready: false };
      const server = await serve(api);
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
      socket.write(`POST /v1/submit HTTP/1.1\r\nhost: localhost\r\n${header}\r\n\r\n`);
      const [first] = (await once(socket, 'data')) as [Buffer];
      socket.destroy();
      expect(first.toString()).toMatch(/^HTTP\/1\.1 503 /);
      expect((await post(server, 'nonsense', NDJSON)).status).toBe(400);
    },
  );

  test('http: NDJSON of text and base64, CRLF, no last newline → one line per item in order', async () => {
    const api = new FakeSequencer();
    const reply = await post(
      await serve(api),
      '{"key":"a","data":"\\u0000é"}\r\n{"base64":"AP8="}\n{"data":""}',
      NDJSON,
    );
    expect([reply.status, reply.headers.get('content-type')?.split(';')[0], reply.lines]).toEqual([
      200,
      'application/x-ndjson',
      [0, 1, 2].map((index) => ({ height: 1, index, epoch: 7 })),
    ]);
    expect(api.items.map((item) => Buffer.from(item.text, 'latin1').toString('hex'))).toEqual(['00c3a9', '00ff', '']);
  });

  const outcomes: Record<string, SubmitOutcome> = {
    ok: { outcome: 'committed', receipt: { height: 3, index: 1, epoch: 7 }, duplicate: false },
    busy: { outcome: 'refused', reason: 'busy', why: 'inbox full', retryAfterMs: 2500 },
    stopping: { outcome: 'refused', reason: 'stopping', why: 'SIGTERM' },
    large: { outcome: 'refused', reason: 'too-large', why: 'w' },
    conflict: { outcome: 'refused', reason: 'key-conflict', why: 'w' },
    unknown: { outcome: 'unknown', why: 'the term was lost' },
  };
  test.each([
    ['busy', 503, 'BUSY', '3'],
    ['stopping', 503, 'STOPPING', '1'],
    ['large', 413, 'ITEM_TOO_LARGE', null],
    ['conflict', 409, 'KEY_CONFLICT', null],
    ['unknown', 504, 'OUTCOME_UNKNOWN', null],
  ])('http: single item %s → %i %s', async (name, status, code, retryAfter) => {
    const api = new FakeSequencer();
    api.intercept = () => [outcomes[name]!];
    const reply = await post(await serve(api), 'x', { 'idempotency-key': 'k' });
    expect([reply.status, reply.lines[0].error.code, reply.headers.get('retry-after')]).toEqual([
      status,
      code,
      retryAfter,
    ]);
    expect(reply.lines[0].error).toMatchObject({
      message: expect.any(String),
      why: expect.any(String),
      next: expect.any(Array),
    });
  });

  test.each([
    [['ok', 'ok'], 200],
    [['ok', 'unknown'], 207],
    [['busy', 'ok'], 207],
    [['unknown', 'busy'], 504],
    [['busy', 'unknown'], 503],
    [['conflict', 'conflict'], 409],
  ])('http: NDJSON %j → %i, one line each', async (names, status) => {
    const api = new FakeSequencer();
    api.intercept = () => names.map((name) => outcomes[name]!);
    const reply = await post(await serve(api), '{"key":"a","data":"1"}\n{"data":"2"}\n', NDJSON);
    expect([reply.status, reply.lines.length]).toEqual([status, 2]);
    for (const [at, name] of names.entries()) {
      if (name === 'ok') expect(reply.lines[at]).toEqual({ height: 3, index: 1, epoch: 7 });
      // Sending an unknown item again is safe with a key only.
      else if (name === 'unknown') expect(reply.lines[at].error.retryable).toBe(at === 0);
      else expect(reply.lines[at].error.code).toBe(name === 'busy' ? 'BUSY' : 'KEY_CONFLICT');
    }
  });

  test.each([
    ['a batch', 'application/json', '{"key":"a","data":"1"}\n{"key":"b","data":"2"}\n'],
    ['one line of a batch', 'application/json', '{"key":"a","data":"1"}'],
    ['what curl says of --data-binary', 'application/x-www-form-urlencoded', '{"key":"a","data":"1"}\n'],
    ['a suffix', 'application/vnd.x+json; charset=utf-8', '{"base64":"YQ=="}'],
    ['text', 'text/plain', '{"data":"1"}\r\n{"data":"2"}'],
    ['lines of other objects', 'application/json', '{"order":1}\n{"order":2}\n'],
  ])('http: %s sent as %s → 400 that names the type to send, nothing submitted', async (_name, type, body) => {
    const api = new FakeSequencer();
    const reply = await post(await serve(api), body, { 'content-type': type });
    expect([reply.status, reply.lines[0].error.code]).toEqual([400, 'MALFORMED']);
    expect(reply.lines[0].error.next.join(' ')).toContain('application/x-ndjson');
    expect(api.calls).toEqual([]);
  });

  test.each([
    ['a JSON document', 'application/json', '{"order":1,\n"data":2}'],
    ['an order that has more fields', 'application/json', '{"key":"a","data":"1","amount":3}'],
    ['bytes that say that they are one item', 'application/octet-stream', '{"key":"a","data":"1"}\n{"data":"2"}\n'],
    ['lines of objects that are text', 'text/plain', '{"order":1}\n{"order":2}\n'],
  ])('http: %s sent as %s → one item, its bytes as they are', async (_name, type, body) => {
    const api = new FakeSequencer();
    const reply = await post(await serve(api), body, { 'content-type': type });
    expect([reply.status, api.items.map((item) => item.text)]).toEqual([200, [body]]);
  });

  test('http: a key of UTF-8 in the header and in NDJSON → one key, the item is there once', async () => {
    const api = new FakeSequencer();
    const server = await serve(api);
    const key = 'bestellung-ü1';
    // A header is bytes: fetch takes them one a character.
    const header = Buffer.from(key, 'utf8').toString('latin1');
    const first = await post(server, 'x', { 'idempotency-key': header });
    const again = await post(server, `{"key":${JSON.stringify(key)},"data":"x"}`, NDJSON);
    expect([first.status, again.status, again.headers.get('seq-duplicates')]).toEqual([200, 200, '1']);
    expect(api.items.map((item) => item.key)).toEqual([key]);
    const latin = await post(server, 'y', { 'idempotency-key': key });
    expect([latin.status, latin.lines[0].error.code, api.items.length]).toEqual([400, 'MALFORMED', 1]);
  });

  test.each([
    ['not JSON', 'nope', 1],
    ['an array', '[1]', 1],
    ['a blank line', '{"data":"a"}\n\n{"data":"b"}', 2],
    ['unknown field', '{"data":"a"}\n{"Key":"k","data":"b"}', 2],
    ['both', '{"data":"a","base64":"YQ=="}', 1],
    ['neither', '{"key":"a"}', 1],
    ['number data', '{"data":1}', 1],
    ['loose base64', '{"base64":"YQ"}', 1],
    ['base64 with trailing bits', '{"base64":"YR=="}', 1],
    ['empty key', '{"key":"","data":"a"}', 1],
    ['null key', '{"key":null,"data":"a"}', 1],
    ['long key', `{"key":"${'k'.repeat(257)}","data":"a"}`, 1],
    ['half a surrogate pair', '{"data":"\\ud800"}', 1],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), undefined],
    ['nothing', '', undefined],
    ['prototype', '{"__proto__":1,"data":"a"}', 1],
  ])('http: NDJSON line %s → 400 and nothing submitted', async (_name, body, line) => {
    const api = new FakeSequencer();
    const reply = await post(await serve(api), body, NDJSON);
    expect([reply.status, reply.lines[0].error.code, reply.lines[0].error.line]).toEqual([400, 'MALFORMED', line]);
    expect(api.calls).toEqual([]);
  });

  test('http: items one byte over the limit, too many lines, too long a body → 413, nothing submitted', async () => {
    const api = new FakeSequencer();
    const server = await serve(api, { limits: { maxBatchItems: 3, maxBodyBytes: 5000 } });
    const most = 1024 - 64 - 1;
    expect((await post(server, 'x'.repeat(most), { 'idempotency-key': 'k' })).status).toBe(200);
    const over = await post(server, 'x'.repeat(most + 1), { 'idempotency-key': 'k' });
    expect([over.status, over.lines[0].error.code, over.lines[0].error.limit]).toEqual([413, 'ITEM_TOO_LARGE', most]);
    const line = await post(server, `{"key":"a","data":"1"}\n{"key":"b","data":"${'x'.repeat(most + 1)}"}`, NDJSON);
    expect([line.status, line.lines[0].error.line]).toEqual([413, 2]);
    expect((await post(server, '{"data":""}\n'.repeat(4), NDJSON)).lines[0].error.code).toBe('BATCH_TOO_LARGE');
    expect((await post(server, 'x'.repeat(5001), NDJSON)).lines[0].error.code).toBe('BODY_TOO_LARGE');
    expect(api.calls).toHaveLength(1);
  });

  test('http: two keys, compressed body, web page → refused', async () => {
    const server = await serve(new FakeSequencer());
    const raw = await exchange(
      server.port,
      'POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: a\r\nIdempotency-Key: ' +
        'b\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx',
    );
    expect(raw).toMatch(/^HTTP\/1.1 400 [\s\S]*MALFORMED/);
    expect((await post(server, 'x', { 'content-encoding': 'gzip' })).status).toBe(415);
    expect((await post(server, 'x', { origin: 'https://evil.example' })).status).toBe(403);
  });

  test('http: request bodies beyond what the server holds → 503 at once, memory is given back', async () => {
    const api = new FakeSequencer();
    let release: (() => void) | undefined;
    api.intercept = (items) =>
      new Promise<SubmitOutcome[]>((resolve) => {
        release = () => resolve(items.map(() => outcomes.ok!));
      });
    const server = await serve(api, { limits: { maxHeldBytes: 1000 } });
    const first = post(server, 'x'.repeat(900));
    await until(() => release !== undefined, 'the first to be held');
    const second = await post(server, 'x'.repeat(200));
    expect([second.status, second.lines[0].error.code, second.headers.get('retry-after')]).toEqual([503, 'BUSY', '1']);
    release!();
    expect((await first).status).toBe(200);
    api.intercept = () => undefined;
    expect((await post(server, 'x'.repeat(900))).status).toBe(200);
  });

  test('http: a submission that is never settled → 504 OUTCOME_UNKNOWN', async () => {
    const api = new FakeSequencer();
    api.intercept = () => new Promise(() => {});
    const reply = await post(await serve(api, { bounds: { submitMs: 50 } }), 'x', { 'idempotency-key': 'k' });
    expect([reply.status, reply.lines[0].error.code]).toEqual([504, 'OUTCOME_UNKNOWN']);
  });

  test('http: 20,000 items of 200 bytes in batches → well under 2 s of CPU', async () => {
    const api = new FakeSequencer();
    api.commit = (items) =>
      items.map((_item, index) => ({
        outcome: 'committed',
        receipt: { height: 1, index, epoch: 7 },
        duplicate: false,
      }));
    const server = await serve(api, { maxBlockBytes: 1 << 20 });
    const batch = Array.from(
      { length: 1000 },
      (_, at) => `{"key":"0123456789abcdef:${at}","data":"${'x'.repeat(200)}"}\n`,
    ).join('');
    const before = process.cpuUsage();
    for (let sent = 0; sent < 20; sent += 1) expect((await post(server, batch, NDJSON)).status).toBe(200);
    const { user, system } = process.cpuUsage(before);
    // The limit is processor time: ten times what a quiet machine needs. Work quadratic in the batch would take
    // minutes.
    expect((user + system) / 1e6).toBeLessThan(20);
  });
});

describe('forwarding', () => {
  async function pair(options: Partial<HttpServerOptions> = {}) {
    const leader = new FakeSequencer('seq-a');
    const leading = await serve(leader, options);
    const follower = new FakeSequencer('seq-b');
    follower.state = { role: 'follower', epoch: 0, leaseMs: 0, leader: { id: 'seq-a', epoch: 7, url: leading.url } };
    return { leader, leading, follower, following: await serve(follower, options) };
  }

  test('http: a follower passes both kinds on with key and type → the leader answers', async () => {
    const { leader, follower, following } = await pair();
    const one = await post(following, Buffer.from([1, 0, 2]), { 'idempotency-key': 'k' });
    expect([one.status, one.lines[0], one.headers.get('seq-leader')]).toEqual([
      200,
      { height: 1, index: 0, epoch: 7 },
      'seq-a',
    ]);
    const many = await post(following, '{"key":"k","data":"other"}\n{"data":"x"}', NDJSON);
    expect([many.status, many.lines[0].error.code, many.lines[1].height]).toEqual([207, 'KEY_CONFLICT', 2]);
    expect([leader.items.length, follower.calls.length]).toEqual([2, 0]);
    const key = 'bestellung-ü1';
    await post(following, 'z', { 'idempotency-key': Buffer.from(key, 'utf8').toString('latin1') });
    expect(leader.items.at(-1)?.key).toBe(key);
  });

  test('http: two that take each other for the leader → one hop, then 503', async () => {
    const { leader, leading, following } = await pair();
    leader.state = { role: 'follower', leader: { id: 'seq-b', epoch: 7, url: following.url } };
    for (const server of [leading, following]) {
      const reply = await post(server, 'x');
      expect([reply.status, reply.lines[0].error.code]).toEqual([503, 'NOT_LEADER']);
    }
  });

  test.each([
    ['no leader', { leader: null, why: 'the lease ended' }, 'NO_LEADER'],
    ['promoting', { role: 'promoting', leader: null }, 'NO_LEADER'],
    ['stopping', { role: 'stopping', leader: null }, 'STOPPING'],
    ['stopping, and nobody was seen to follow', { role: 'stopping', leader: null, ready: false }, 'STOPPING'],
    ['leader without url', { leader: { id: 'seq-a', epoch: 7, url: '' } }, 'NO_LEADER'],
    ['leader with a bad url', { leader: { id: 'seq-a', epoch: 7, url: 'file:///etc/passwd' } }, 'NO_LEADER'],
    ['leader gone', { leader: { id: 'seq-a', epoch: 7, url: 'http://127.0.0.1:1' } }, 'NO_LEADER'],
  ] as const)('http: follower, %s → 503 with the reason', async (_name, state, code) => {
    const { follower, following } = await pair();
    follower.state = { ...follower.state, ...state };
    const reply = await post(following, 'x');
    expect([reply.status, reply.lines[0].error.code, Number(reply.headers.get('retry-after')) > 0]).toEqual([
      503,
      code,
      true,
    ]);
    expect(reply.lines[0].error.why).not.toBe('');
  });

  test('http: leader loses the term before it takes anything in → passed on to the new one', async () => {
    const { leader, follower, leading, following } = await pair();
    leader.intercept = () => {
      leader.state = { role: 'follower', leader: { id: 'seq-b', epoch: 8, url: following.url } };
      follower.state = {};
      return [{ outcome: 'refused', reason: 'not-leader', why: 'fenced' }];
    };
    expect((await post(leading, 'x')).status).toBe(200);
    expect(follower.items).toHaveLength(1);
  });

  test(
    'http: nobody leads → kept; then this one leads → taken in, in the order of arrival; another one ' +
      'leads → passed on',
    async () => {
      const { follower, following, leading, leader } = await pair({ bounds: { holdMs: 20_000 } });
      const passing = follower.state;
      follower.state = { ...passing, leader: null };
      const kept = [];
      for (const text of ['a', 'b', 'c']) {
        kept.push(post(following, text));
        await until(() => follower.successorWaiters === kept.length, 'the submission is kept');
      }
      follower.become({});
      expect((await Promise.all(kept)).map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(follower.items.map(({ text }) => text)).toEqual(['a', 'b', 'c']);
      follower.become({ ...passing, leader: null });
      const other = post(following, 'd');
      await until(() => follower.successorWaiters === 1, 'the submission is kept');
      follower.become({ ...passing, leader: { id: 'seq-a', epoch: 8, url: leading.url } });
      expect([(await other).status, leader.items.map(({ text }) => text)]).toEqual([200, ['d']]);
    },
  );

  test(
    'http: kept, and then it cannot lead after all → 503 with the reason; the caller goes away → not ' +
      'taken in later',
    async () => {
      const { follower, following } = await pair({ bounds: { holdMs: 20_000 } });
      const nobody = { ...follower.state, leader: null };
      follower.state = nobody;
      const kept = post(following, 'x');
      await until(() => follower.successorWaiters === 1, 'the submission is kept');
      follower.become({ ...nobody, ready: false, why: 'too few nodes answer' });
      expect((await kept).lines[0].error).toMatchObject({ code: 'NO_LEADER', why: 'too few nodes answer' });
      follower.state = nobody;
      const leaving = new AbortController();
      const left = fetch(`${following.url}/v1/submit`, { method: 'POST', body: 'x', signal: leaving.signal }).catch(
        () => 'left',
      );
      await until(() => follower.successorWaiters === 1, 'the submission is kept');
      leaving.abort();
      expect(await left).toBe('left');
      await until(() => follower.successorWaiters === 0, 'it is given up');
      follower.become({});
      expect(follower.calls).toHaveLength(0);
    },
  );

  test.each([
    ['with keys', '{"key":"k1","data":"1"}\n{"key":"k2","data":"2"}', 200, 2],
    ['without', '{"key":"k1","data":"1"}\n{"data":"2"}', 504, 0],
  ] as const)(
    'http: the leader is cut off under a submission %s → sent again only where it is recognised',
    async (_name, body, status, taken) => {
      const { follower, following } = await pair({ bounds: { holdMs: 20_000 } });
      const dying = createServer((socket) => socket.once('data', () => socket.destroy()));
      sockets.push(dying);
      dying.listen(0, '127.0.0.1');
      await once(dying, 'listening');
      follower.state = {
        ...follower.state,
        leader: { id: 'seq-a', epoch: 7, url: `http://127.0.0.1:${(dying.address() as { port: number }).port}` },
      };
      const sent = post(following, body, NDJSON);
      if (taken > 0) {
        await until(() => follower.successorWaiters === 1 && follower.calls.length === 0, 'it is kept');
        follower.become({});
      }
      expect([(await sent).status, follower.items.length]).toEqual([status, taken]);
    },
  );

  test('http: more than may be kept → 503 BUSY, and what is kept stays', async () => {
    const { follower, following } = await pair({ bounds: { holdMs: 20_000 }, limits: { maxHeldBytes: 1000 } });
    follower.state = { ...follower.state, leader: null };
    const kept = post(following, 'x'.repeat(600));
    await until(() => follower.successorWaiters === 1, 'the submission is kept');
    const over = await post(following, 'y'.repeat(600));
    expect([over.status, over.lines[0].error.code, Number(over.headers.get('retry-after')) > 0]).toEqual([
      503,
      'BUSY',
      true,
    ]);
    follower.become({});
    expect((await kept).status).toBe(200);
  });

  test.each([
    ['leads', {}, 200],
    ['fails', { role: 'follower', leader: null }, 503],
  ] as const)('http: passed on to one that is being promoted, which then %s → %j', async (_name, then, status) => {
    const api = new FakeSequencer('seq-b');
    const server = await serve(api, { bounds: { holdMs: 20_000 } });
    api.state = { role: 'promoting', leader: null };
    const sent = post(server, 'x', { 'seq-hop': '1' });
    await until(() => api.successorWaiters === 1, 'it is kept');
    api.become(then);
    expect([(await sent).status, api.items.length]).toEqual([status, status === 200 ? 1 : 0]);
  });

  test('http: a leader that stops → what it did not take goes to its successor', async () => {
    const { leader, leading, follower, following } = await pair({ bounds: { holdMs: 20_000 } });
    leader.intercept = () => {
      leader.become({ role: 'stopping', leader: null });
      return [{ outcome: 'refused', reason: 'stopping', why: 'SIGTERM' }];
    };
    const sent = post(leading, 'x');
    await until(() => leader.successorWaiters === 1, 'it waits for a successor');
    follower.state = {};
    leader.become({ role: 'stopping', leader: { id: 'seq-b', epoch: 8, url: following.url } });
    expect([(await sent).status, follower.items.length]).toEqual([200, 1]);
  });

  test('http: the leader hangs and another one is seen → 504 at once; a reply cut short → 504', async () => {
    const { follower, following } = await pair();
    const mute = createServer((socket) => {
      socket.on('error', () => {});
      mode(socket);
    });
    let mode: (socket: import('node:net').Socket) => void = () =>
      follower.become({ ...follower.state, leader: { id: 'seq-c', epoch: 9, url: '' } });
    sockets.push(mute);
    mute.listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const url = `http://127.0.0.1:${(mute.address() as { port: number }).port}`;
    follower.state = { ...follower.state, leader: { id: 'seq-a', epoch: 7, url } };
    const hung = await post(following, 'x', { 'idempotency-key': 'k' });
    expect([hung.status, hung.lines[0].error.code, hung.lines[0].error.retryable]).toEqual([
      504,
      'OUTCOME_UNKNOWN',
      true,
    ]);
    follower.state = { ...follower.state, leader: { id: 'seq-a', epoch: 7, url } };
    mode = (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"hei');
    expect((await post(following, 'x')).lines[0].error).toMatchObject({ code: 'OUTCOME_UNKNOWN', retryable: false });
  });

  test('http: a shared token travels with the hop; another token at the leader → 503 FORWARD_DENIED', async () => {
    const { following, leader, follower } = await pair({ token: 'secret-token' });
    const auth = { authorization: 'Bearer secret-token' };
    expect((await post(following, 'x', auth)).status).toBe(200);
    expect(leader.items).toHaveLength(1);
    const other = await serve(new FakeSequencer('seq-a'), { token: 'another-token' });
    follower.state = { ...follower.state, leader: { id: 'seq-a', epoch: 7, url: other.url } };
    expect((await post(following, 'x', auth)).lines[0].error.code).toBe('FORWARD_DENIED');
  });
});

describe('reading', () => {
  test('http: a block by height; what is no height → 400; what is not there → 404 with head and floor', async () => {
    const api = new FakeSequencer();
    api.floor = 4;
    const block = api.push(Buffer.from([1, 255]));
    api.push(Buffer.from('b'));
    const server = await serve(api);
    const found = await get(server, '/v1/blocks/5');
    expect([found.status, found.json()]).toEqual([200, { ...block, data: 'Af8=' }]);
    for (const bad of ['1e3', '0x10', '-1', '0', '5.0', '+5', '9007199254740993', '99999999999999999', 'x', '5%20'])
      expect([bad, (await get(server, `/v1/blocks/${bad}`)).status]).toEqual([bad, 400]);
    for (const height of [4, 1, 7]) {
      const missing = await get(server, `/v1/blocks/${height}`);
      expect([missing.status, missing.json().error]).toEqual([
        404,
        expect.objectContaining({ code: 'NO_BLOCK', head: 6, floor: 4 }),
      ]);
    }
    for (const bad of ['', '?from=1e3', '?from=5&to=4', '?from=5&from=6'])
      expect((await get(server, `/v1/blocks${bad}`)).status).toBe(400);
    const below = await get(server, '/v1/blocks?from=2');
    expect([below.status, below.json().error]).toEqual([
      404,
      expect.objectContaining({ code: 'NOT_FOUND', head: 6, floor: 4 }),
    ]);
    expect(
      (await get(server, '/v1/blocks?from=5&to=6')).text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).height),
    ).toEqual([5, 6]);
  });

  test('http: a live feed delivers what comes later and ends cleanly on close', async () => {
    const api = new FakeSequencer();
    const server = await serve(api);
    const response = await fetch(`${server.url}/v1/blocks?from=2`);
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    for (const text of ['a', 'b', 'c']) api.push(Buffer.from(text));
    const reader = response.body!.getReader();
    let text = '';
    while (text.split('\n').length < 3) text += Buffer.from((await reader.read()).value!).toString();
    const closed = server.close();
    expect((await reader.read()).done).toBe(true);
    await closed;
    expect(
      text
        .trim()
        .split('\n')
        .map((line) => Buffer.from(JSON.parse(line).data, 'base64').toString()),
    ).toEqual(['b', 'c']);
  });

  test(
    'http: 100,000 blocks to a reader that does not read → the source is paused, memory stays ' +
      'bounded; then all arrive in order',
    async () => {
      const api = new FakeSequencer();
      const data = Buffer.alloc(200, 'x');
      for (let height = 1; height <= 100_000; height += 1)
        api.blocks.push({ height, hash: 'a'.repeat(64), parent: 'b'.repeat(64), timestamp: 1, data, epoch: 7 });
      let pulled = 0;
      const { follow } = api;
      api.follow = async function* (from, signal) {
        for await (const block of follow.call(api, from, signal)) {
          pulled += 1;
          yield block;
        }
      };
      const server = await serve(api);
      const response = await fetch(`${server.url}/v1/blocks?from=1&to=100000`);
      const before = process.memoryUsage().rss;
      let last = -1;
      let still = 0;
      // Fifty looks in a row, a quarter of a second: a machine that is busy elsewhere for a moment is not a source that
      // was paused.
      await until(() => {
        still = pulled === last ? still + 1 : 0;
        last = pulled;
        return still >= 50;
      }, 'the source to pause');
      expect(pulled).toBeLessThan(50_000);
      let rest = '';
      let expected = 1;
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        const lines = (rest + Buffer.from(chunk).toString()).split('\n');
        rest = lines.pop()!;
        for (const line of lines)
          if (JSON.parse(line).height !== expected++) throw new Error(`out of order at ${line.slice(0, 40)}`);
      }
      expect(expected).toBe(100_001);
      expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
    },
  );

  test('http: a reader that stalls for good is dropped, one that leaves frees its place, too many → 503', async () => {
    const api = new FakeSequencer();
    for (let at = 0; at < 40; at += 1) api.push(Buffer.alloc(1 << 20));
    const server = await serve(api, { bounds: { stallMs: 100 }, limits: { maxFeeds: 1 } });
    const patient = await serve(api, { bounds: { stallMs: 3_600_000 }, limits: { maxFeeds: 1 } });
    const feeds = async (of = server) => /^seq_feeds\{[^}]*\} (\d+)$/m.exec((await get(of, '/metrics')).text)?.[1];
    const leaving = new AbortController();
    await fetch(`${patient.url}/v1/blocks?from=1`, { signal: leaving.signal });
    expect(await feeds(patient)).toBe('1');
    expect((await get(patient, '/v1/blocks?from=1')).json().error.code).toBe('TOO_MANY_FEEDS');
    leaving.abort();
    await until(async () => (await feeds(patient)) === '0', 'the place to be free again');
    const stalled = await fetch(`${server.url}/v1/blocks?from=1`);
    await until(async () => (await feeds()) === '0', 'the stalled reader to be dropped');
    await expect(stalled.arrayBuffer()).rejects.toThrow();
  });

  test('http: head → confirmed, refused with the reason and the leader, or late', async () => {
    const api = new FakeSequencer();
    api.push(Buffer.from('a'));
    const server = await serve(api, { bounds: { headMs: 50 } });
    expect((await get(server, '/v1/head')).json()).toEqual({ height: 1, hash: api.hash, epoch: 7 });
    api.head = async () => ({ confirmed: false, why: 'not the leader' });
    api.state = { role: 'follower', leader: { id: 'seq-z', epoch: 8, url: 'http://10.0.0.1:7' } };
    const refused = await get(server, '/v1/head');
    expect([refused.status, refused.json().error]).toEqual([
      503,
      expect.objectContaining({
        code: 'NOT_CONFIRMED',
        why: 'not the leader',
        next: [expect.stringContaining('http://10.0.0.1:7/v1/head')],
      }),
    ]);
    api.head = () => new Promise(() => {});
    expect((await get(server, '/v1/head')).json().error.why).toContain('50 ms');
  });

  test.each([
    ['a leader', {}, [200, 200, 200]],
    ['a leader whose lease has run out', { leaseMs: 0 }, [200, 200, 503]],
    ['a warm follower', { role: 'follower', leaseMs: 0 }, [200, 200, 503]],
    ['a follower that lags', { role: 'follower', leaseMs: 0, ready: false, why: 'lags' }, [200, 503, 503]],
    ['a loop that hangs', { loopAgeMs: 60_000 }, [503, 200, 200]],
  ] as const)('http: %s → livez, readyz, leader', async (_name, state, expected) => {
    const api = new FakeSequencer();
    api.state = state;
    const server = await serve(api);
    expect(
      await Promise.all(['/livez', '/readyz', '/leader'].map(async (path) => (await get(server, path)).status)),
    ).toEqual(expected);
  });

  test('http: metrics show events and state under seq_', async () => {
    const api = new FakeSequencer();
    const server = await serve(api);
    server.observe({ type: 'role', from: 'promoting', to: 'leader', epoch: 7, reason: '' });
    server.observe({
      type: 'committed',
      height: 1,
      hash: '',
      epoch: 7,
      by: 'leader',
      items: 3,
      bytes: 10,
      commitMs: 0.3,
    });
    server.observe({ type: 'leadership-ended', epoch: 7, code: 'FENCED', reason: '', heldMs: 1 });
    server.observe({ type: 'alarm', code: 'CONFLICT', reason: '' });
    await post(server, 'x');
    await get(server, '/no/such/path');
    const { text, headers } = await get(server, '/metrics');
    // Every sample says of which cluster it is.
    expect(text.split('\n').filter((line) => /^seq_/.test(line) && !line.includes('cluster="test.1"'))).toEqual([]);
    const plain = text.replaceAll('{cluster="test.1"}', '').replaceAll(/,cluster="test.1"|cluster="test.1",/g, '');
    expect(headers.get('content-type')).toContain('text/plain');
    for (const line of [
      'seq_role{role="leader"} 1',
      'seq_role{role="follower"} 0',
      'seq_epoch 7',
      'seq_lease_seconds 2.5',
      'seq_committed_items_total 3',
      'seq_commit_seconds_bucket{le="0.0005"} 1',
      'seq_stepdowns_total{code="FENCED"} 1',
      'seq_elections_total{result="won"} 1',
      'seq_alarms_total{code="CONFLICT"} 1',
      'seq_node_state{node="r1",state="admitted"} 1',
      'seq_submissions_total{outcome="committed"} 1',
      'seq_committed_height 1',
      'seq_http_requests_total{route="/v1/submit",method="POST",status="200"} 1',
      'seq_http_requests_total{route="none",method="",status="404"} 1',
      'seq_http_request_seconds_count{route="/v1/submit"} 1',
    ])
      expect(plain).toContain(line);
    for (const line of text.split('\n'))
      expect(line === '' || line.startsWith('#') || line.startsWith('seq_')).toBe(true);
  });

  test('http: metrics time a takeover and the sync of each block', async () => {
    const server = await serve(new FakeSequencer());
    const committed = (height: number) =>
      server.observe({ type: 'committed', height, hash: '', epoch: 7, by: 'leader', items: 1, bytes: 1, commitMs: 1 });
    for (const [from, to] of [
      ['follower', 'promoting'],
      ['promoting', 'leader'],
    ] as const)
      server.observe({ type: 'role', from, to, epoch: 7, reason: '' });
    for (const height of [1, 2]) committed(height);
    server.observe({ type: 'stored', height: 1 });
    // A promotion that is lost is no takeover.
    server.observe({ type: 'role', from: 'leader', to: 'follower', epoch: 0, reason: '' });
    server.observe({ type: 'role', from: 'follower', to: 'promoting', epoch: 0, reason: '' });
    server.observe({ type: 'role', from: 'promoting', to: 'follower', epoch: 0, reason: '' });
    const text = (await get(server, '/metrics')).text;
    const counts = [...text.matchAll(/^seq_(takeover|store_sync)_seconds_count\{(.*)\} (\d+)$/gm)].map((match) =>
      [match[1], /phase="(\w+)"/.exec(match[2] ?? '')?.[1] ?? '', match[3]].join(' ').replace('  ', ' '),
    );
    expect(counts.sort()).toEqual(['store_sync 1', 'takeover claim 1', 'takeover first_block 1']);
  });

  test('http: status carries the limits that submit cuts its batches to', async () => {
    expect((await get(await serve(new FakeSequencer()), '/v1/status')).json()).toMatchObject({
      id: 'seq-a',
      role: 'leader',
      cluster: 'test.1',
      limits: { maxItemBytes: 1024 - 64 - 256, maxBatchItems: 20_000 },
    });
  });
});

describe('guarding', () => {
  test('http: a token → every route asks for it but /livez', async () => {
    const server = await serve(new FakeSequencer(), { token: 'secret-token' });
    for (const authorization of [undefined, 'Bearer wrong', 'Basic secret-token', 'Bearer ', 'secret-token']) {
      const reply = await get(server, '/v1/status', authorization ? { authorization } : {});
      expect([reply.status, reply.json().error.code, reply.headers.get('www-authenticate')]).toEqual([
        401,
        'TOKEN_NEEDED',
        'Bearer',
      ]);
    }
    expect((await post(server, 'x')).status).toBe(401);
    expect((await get(server, '/livez')).status).toBe(200);
    expect((await get(server, '/nowhere')).status).toBe(401);
    expect((await get(server, '/v1/status', { authorization: 'Bearer secret-token' })).status).toBe(200);
  });

  test.each<[string, number[]]>([
    ['everything-token', [200, 200, 200, 200]],
    ['second-token', [200, 200, 200, 200]],
    ['submit-token', [200, 200, 403, 403]],
    ['read-token', [403, 200, 200, 403]],
    ['metrics-token', [403, 200, 403, 200]],
    ['unknown-token', [401, 401, 401, 401]],
  ])('http: %s → %j for submit, status, block, metrics', async (token, wanted) => {
    const folder = mkdtempSync(join(tmpdir(), 'seq-http-'));
    try {
      const path = join(folder, 'tokens');
      writeFileSync(
        path,
        '# for all\neverything-token\nsecond-token submit,read,metrics\nsubmit-token submit\nread-token read\nmetrics-token metrics\n',
      );
      const file = new TokenFile(path);
      const api = new FakeSequencer();
      api.push(Buffer.from('a'));
      const server = await serve(api, { tokens: () => file.current() });
      const headers = { authorization: `Bearer ${token}` };
      const said = [(await post(server, 'x', headers)).status];
      for (const route of ['/v1/status', '/v1/blocks/1', '/metrics'])
        said.push((await get(server, route, headers)).status);
      expect(said).toEqual(wanted);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('http: tokens are replaced while two sequencers run → a follower forwards all the time, and the old one ends', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'seq-http-'));
    try {
      const [one, two] = [join(folder, 'one'), join(folder, 'two')];
      for (const path of [one, two]) writeFileSync(path, 'token-of-old\n');
      const [ofLeader, ofFollower] = [new TokenFile(one), new TokenFile(two)];
      const api = new FakeSequencer();
      const leader = await serve(api, { tokens: () => ofLeader.current() });
      const follower = new FakeSequencer('seq-b');
      follower.state = { role: 'follower', leader: { id: api.status().id, epoch: 7, url: leader.url } };
      const server = await serve(follower, { tokens: () => ofFollower.current() });
      const ask = async (token: string) => (await post(server, 'x', { authorization: `Bearer ${token}` })).status;
      /** Until the file's new content is in use. */
      const taken = (file: TokenFile, first: string, count: number) =>
        until(() => file.current()[0].token === first && file.current().length === count, 'the file to be read again');
      for (const [text, first, count, working] of [
        ['token-of-old\ntoken-of-new\n', 'token-of-old', 2, ['token-of-old', 'token-of-new']],
        ['token-of-new\ntoken-of-old\n', 'token-of-new', 2, ['token-of-old', 'token-of-new']],
        ['token-of-new\n', 'token-of-new', 1, ['token-of-new']],
      ] as const)
        for (const [path, file] of [
          [one, ofLeader],
          [two, ofFollower],
        ] as const) {
          writeFileSync(path, text);
          await taken(file, first, count);
          expect(await ask('token-of-new'), text).toBe(
            path === one && count === 2 && first === 'token-of-old' ? 401 : 200,
          );
          if (path === two) for (const token of working) expect(await ask(token)).toBe(200);
        }
      expect(await ask('token-of-old')).toBe(401);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test(
    'http: unknown route, wrong method, bad escapes, huge header, garbage → JSON errors, the server ' + 'lives',
    async () => {
      const server = await serve(new FakeSequencer());
      for (const [path, method] of [
        ['/', 'GET'],
        ['/v1/submit', 'GET'],
        ['/v1/blocks/1', 'DELETE'],
        ['/v1/head', 'POST'],
      ] as const) {
        const response = await fetch(server.url + path, { method });
        expect([path, response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
          path,
          404,
          'NO_ROUTE',
        ]);
      }
      expect(
        await exchange(server.port, 'GET /v1/blocks/%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'),
      ).toMatch(/^HTTP\/1.1 400 [\s\S]*"error"/);
      expect(
        await exchange(server.port, `GET / HTTP/1.1\r\nHost: localhost\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`),
      ).toMatch(/^HTTP\/1.1 431 [\s\S]*HEADERS_TOO_LARGE/);
      expect(await exchange(server.port, `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).toMatch(
        /^HTTP\/1.1 431 /,
      );
      expect(await exchange(server.port, '\x00\x01garbage\r\n\r\n')).toMatch(/^HTTP\/1.1 400 [\s\S]*MALFORMED/);
      expect(
        await exchange(server.port, 'POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n'),
      ).toMatch(/^HTTP\/1.1 400 /);
      expect((await get(server, '/livez')).status).toBe(200);
    },
  );

  test.each([
    ['127.0.0.1:7070', 200],
    ['localhost', 200],
    ['LOCALHOST:1', 200],
    ['[::1]:7070', 200],
    ['evil.example:7070', 403],
    ['127.0.0.1.evil.example', 403],
    ['10.0.0.1', 403],
  ])('http: without a token, Host %s → %i; with a token every name is answered', async (host, status) => {
    const raw = (path: string, more = '') =>
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`;
    const open = await serve(new FakeSequencer());
    for (const path of ['/v1/status', '/v1/blocks/1', '/metrics', '/readyz']) {
      const said = await exchange(open.port, raw(path));
      if (status === 403) expect(said).toMatch(/^HTTP\/1.1 403 [\s\S]*HOST_REFUSED/);
      else expect(said).not.toMatch(/^HTTP\/1.1 403 /);
    }
    const guarded = await serve(new FakeSequencer(), { token: 'secret-token' });
    expect(await exchange(guarded.port, raw('/v1/status', 'Authorization: Bearer secret-token\r\n'))).toMatch(
      /^HTTP\/1.1 200 /,
    );
  });

  test('http: HEAD of a feed → its headers, and no place is held', async () => {
    const api = new FakeSequencer();
    const server = await serve(api, { limits: { maxFeeds: 1 } });
    const head = await fetch(`${server.url}/v1/blocks?from=1`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
    expect((await fetch(`${server.url}/v1/blocks?from=x`, { method: 'HEAD' })).status).toBe(400);
    expect(/^seq_feeds\{[^}]*\} (\d+)$/m.exec((await get(server, '/metrics')).text)?.[1]).toBe('0');
  });

  test('http: a connection that says nothing → 408, then closed from our side, though the caller keeps its end open', async () => {
    const server = await serve(new FakeSequencer(), { bounds: { requestMs: 300 } });
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    let said = '';
    socket.on('data', (chunk: Buffer) => (said += chunk.toString()));
    socket.on('error', () => undefined);
    socket.write('GET /livez HTTP/1.1\r\nHost: local');
    await until(() => said.includes('408'), 'the answer');
    // Once our side is gone the kernel answers what the caller still writes with a reset.
    const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const writing = setInterval(() => socket.write('x'), 20);
    await gone;
    clearInterval(writing);
  });

  test('http: more silent connections than places → the longest idle one goes, and /livez answers', async () => {
    const api = new FakeSequencer();
    const server = await serve(api, { bounds: { connections: 4 } });
    const busy = await fetch(`${server.url}/v1/blocks?from=1`);
    const silent = [];
    let closed = 0;
    for (let at = 0; at < 12; at += 1) {
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.once('close', () => (closed += 1));
      await once(socket, 'connect');
      silent.push(socket);
    }
    expect(await exchange(server.port, 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')).toMatch(
      /^HTTP\/1.1 200 /,
    );
    // The feed holds one of four places. The health check took another.
    await until(() => closed >= 9, 'the idle ones to go');
    api.push(Buffer.from('a'));
    expect((await busy.body!.getReader().read()).done).toBe(false);
    for (const socket of silent) socket.destroy();
  });

  test('http: every place of the main port is taken by requests under way → health and metrics have their own', async () => {
    const api = new FakeSequencer();
    const server = await serve(api, { admin: { host: '127.0.0.1', port: 0 }, bounds: { connections: 4 } });
    const busy = await Promise.all([1, 2, 3, 4].map(() => fetch(`${server.url}/v1/blocks?from=1`)));
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow();
    const ask = async (path: string, method = 'GET') => (await fetch(server.adminUrl + path, { method })).status;
    for (const path of ['/livez', '/readyz', '/leader', '/metrics'])
      expect([path, await ask(path)]).toEqual([path, 200]);
    expect((await (await fetch(`${server.adminUrl}/metrics`)).text()).match(/^seq_feeds\{[^}]*\} (\d+)$/m)?.[1]).toBe(
      '4',
    );
    for (const [path, method] of [
      ['/v1/submit', 'POST'],
      ['/v1/blocks/1', 'GET'],
      ['/v1/status', 'GET'],
    ] as const)
      expect([path, await ask(path, method)]).toEqual([path, 404]);
    await Promise.all(busy.map((one) => one.body!.cancel()));
  });

  test('http: connections that never shake hands take every place of a TLS port → the oldest goes for who speaks', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'seq-http-'));
    makeAuthority(directory, 'ca');
    const pem = (name: string) => readFileSync(join(directory, name));
    const server = await serve(new FakeSequencer(), {
      tls: { cert: pem('ca.crt'), key: pem('ca.key') },
      bounds: { connections: 4 },
    });
    const silent = Array.from({ length: 12 }, () => connect(server.port, '127.0.0.1').on('error', () => undefined));
    await Promise.all(silent.map((socket) => once(socket, 'connect')));
    const spoken = connectTls({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false });
    await once(spoken, 'secureConnect');
    spoken.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    expect(String((await once(spoken, 'data'))[0])).toMatch(/^HTTP\/1.1 200 /);
    for (const socket of [...silent, spoken]) socket.destroy();
    rmSync(directory, { recursive: true });
  });

  test('http: a body that never ends → cut at the limit, nothing submitted', async () => {
    const api = new FakeSequencer();
    const server = await serve(api, { limits: { maxBodyBytes: 4096 }, bounds: { requestMs: 500 } });
    const endless = await exchange(
      server.port,
      (
        `POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: ` +
        `chunked\r\n\r\n${'1000\r\n'.padEnd(0x1000 + 6, 'x')}\r\n`
      ).repeat(1) + `${'1000\r\n'.padEnd(0x1000 + 6, 'x')}\r\n`,
      3000,
    );
    expect(endless).toMatch(/^HTTP\/1.1 413 /);
    const slow = await exchange(
      server.port,
      'POST /v1/submit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc',
      5000,
    );
    expect(slow).toMatch(/^(HTTP\/1.1 408 [\s\S]*|)$/);
    expect(api.calls).toEqual([]);
  });

  test.each([
    ['7070', '127.0.0.1', 7070],
    [':7070', '127.0.0.1', 7070],
    ['0.0.0.0:0', '0.0.0.0', 0],
    ['[::1]:80', '::1', 80],
    ['host.example:1', 'host.example', 1],
    ['', null, 0],
    ['host', null, 0],
    ['1.2.3.4:70000', null, 0],
    ['a:b', null, 0],
    ['::1:80', null, 0],
    ['a:-1', null, 0],
  ])('http: --http %j → %s %i', (text, host, port) => {
    if (host === null)
      expect(() => parseListen(text)).toThrow(expect.objectContaining({ code: 'HTTP_ADDRESS', exit: 78 }));
    else expect(parseListen(text)).toEqual({ host, port });
  });

  test('http: beyond loopback without token or TLS → 78 HTTP_NOT_LOOPBACK before anything is bound', async () => {
    for (const host of ['127.0.0.1', '127.8.9.1', 'localhost', '::1', '0:0:0:0:0:0:0:1', '::ffff:127.0.0.1'])
      expect([host, isLoopback(host)]).toEqual([host, true]);
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.evil.example', 'localhost.evil.example', '::2', '1::1', ''])
      expect([host, isLoopback(host)]).toEqual([host, false]);
    await expect(
      startHttpServer({ api: new FakeSequencer(), listen: { host: '0.0.0.0', port: 0 }, maxBlockBytes: 1024 }),
    ).rejects.toMatchObject({ code: 'HTTP_NOT_LOOPBACK', exit: 78 });
    checkListen({ host: '0.0.0.0', port: 1 }, { token: true, tls: false });
    checkListen({ host: '0.0.0.0', port: 1 }, { token: false, tls: true });
  });

  test('http: a port in use, an address of another machine → 78 with what to do', async () => {
    const server = await serve(new FakeSequencer());
    const refused = await startHttpServer({
      api: new FakeSequencer(),
      listen: { host: '127.0.0.1', port: server.port },
      maxBlockBytes: 1024,
    }).catch((error) => error as SeqError);
    expect(refused).toMatchObject({ code: 'PORT_IN_USE', exit: 78, changed: 'nothing' });
    await expect(
      startHttpServer({
        api: new FakeSequencer(),
        listen: { host: '192.0.2.1', port: 0 },
        maxBlockBytes: 1024,
        token: 'secret-token',
      }),
    ).rejects.toMatchObject({ code: 'HTTP_ADDRESS', exit: 78 });
  });

  test('http: token file missing, empty, with spaces, too large → 78', () => {
    const dir = mkdtempSync(join(tmpdir(), 'seq-token-'));
    try {
      const path = join(dir, 'token');
      expect(() => readTokenFile(path)).toThrow(expect.objectContaining({ code: 'HTTP_TOKEN_FILE', exit: 78 }));
      for (const text of ['', '\n', 'two words here', 'short', 'x'.repeat(5000)]) {
        writeFileSync(path, text);
        expect(() => readTokenFile(path)).toThrow(expect.objectContaining({ code: 'HTTP_TOKEN_FILE' }));
      }
      writeFileSync(path, 'secret-token\n');
      expect(readTokenFile(path)).toBe('secret-token');
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  test('http: close while a submission is under way → it is finished or cut within the bound', async () => {
    const api = new FakeSequencer();
    api.intercept = () => new Promise(() => {});
    const server = await serve(api);
    const pending = post(server, 'x').catch(() => 'cut');
    await until(() => api.calls.length === 1, 'the submission to arrive');
    await server.close();
    expect(await pending).toBe('cut');
  });
});

/** Sends raw bytes and returns everything that comes back until the server closes (or the limit). */
async function exchange(port: number, bytes: string, limitMs = 2000): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => {});
  socket.write(bytes, 'latin1');
  const timer = setTimeout(() => socket.destroy(), limitMs);
  await once(socket, 'close');
  clearTimeout(timer);
  return text;
}
