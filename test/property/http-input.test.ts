// Hostile HTTP: bodies and headers of submissions, a peer's feed, and block data. A refusal with a status, malformed
// data, or a value that is exactly what was sent; memory within its bounds whatever comes.
import '../support/fuzz-seed.js';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  decodeBlockData,
  encodeItems,
  itemCountOf,
  keyNamesOf,
  keyProblem,
  keysOf,
} from '../../src/core/chain/items.js';
import { fetchFromPeer } from '../../src/core/nodes/peer-feed.js';
import { chooseSequencer } from '../../src/core/nodes/sequencer-client.js';
import { SeqError } from '../../src/core/errors.js';
import { BodyReader } from '../../src/core/serve/body.js';
import { HttpError } from '../../src/core/serve/envelope.js';
import { blockLine } from '../../src/core/serve/feed.js';
import { httpLimits } from '../../src/core/serve/limits.js';
import { startHttpServer, type HttpServer } from '../../src/core/serve/server.js';
import { parseLines, parseSingle } from '../../src/core/serve/submission.js';
import { ChainMaker, keyed } from '../support/blocks.js';
import { FakeSequencer } from '../support/fake-sequencer.js';

const limits = httpLimits(4096);
function refusedOr<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    expect([400, 413]).toContain(error.failure.status);
    expect(JSON.stringify(error.failure).length).toBeLessThan(2000);
    return undefined;
  }
}

describe('fuzz: submissions', () => {
  const item = fc.record(
    {
      key: fc.oneof(fc.string({ maxLength: 12, unit: 'binary' }), fc.anything()),
      data: fc.oneof(fc.string({ maxLength: 30, unit: 'binary' }), fc.anything()),
      base64: fc.oneof(fc.base64String({ maxLength: 40 }), fc.string({ maxLength: 10 })),
      Key: fc.constant('k'),
    },
    { requiredKeys: [] },
  );
  const line = fc.oneof(
    item.map((value) => {
      try {
        return JSON.stringify(value) ?? '';
      } catch {
        return '';
      }
    }),
    fc.string({ maxLength: 40, unit: 'binary' }),
    fc.constantFrom(
      '{"data":"\\ud800"}',
      '{"data":"a","data":"b"}',
      '{"__proto__":{"data":"x"}}',
      '{"data":"x"}\r',
      '',
      '[]',
      '{"data":"a","key":"\\u0000"}',
    ),
  );
  test('fuzz: NDJSON, any bytes → all items as they were sent, or a refusal; never some', () => {
    const body = fc.oneof(
      fc.array(line, { maxLength: 6 }).map((lines) => Buffer.from(lines.join('\n'))),
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(body, (bytes) => {
        const items = refusedOr(() => parseLines(bytes, limits));
        if (!items) return;
        for (const one of items) {
          expect(one.key === undefined || keyProblem(one.key) === null).toBe(true);
          expect(one.data.length).toBeLessThanOrEqual(4096);
        }
        // What is accepted can always be put into a block and read back.
        const back = decodeBlockData(encodeItems(items));
        expect(
          back.format === 'items' && back.items.map(({ key, data }) => [key, Buffer.from(data).toString('hex')]),
        ).toEqual(items.map(({ key, data }) => [key, Buffer.from(data).toString('hex')]));
      }),
      { numRuns: 1500 },
    );
  });
  test('fuzz: a raw item with any key headers → that item, or a refusal', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 5000 }),
        fc.array(fc.string({ maxLength: 300, unit: 'binary' }), { maxLength: 3 }),
        (bytes, keys) => {
          // Node reads a header's bytes as latin1.
          const headers = keys.map((key) => Buffer.from(key, 'utf8').toString('latin1'));
          const made = refusedOr(() => parseSingle(Buffer.from(bytes), headers, limits));
          if (made) expect([Buffer.from(made.data).equals(Buffer.from(bytes)), made.key]).toEqual([true, keys[0]]);
        },
      ),
      { numRuns: 1000 },
    );
  });
  test(
    'fuzz: bodies that lie about their length, many at once → held memory within the bound, and all ' +
      'of it given back',
    async () => {
      const chunks = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 });
      const declared = fc.oneof(
        fc.constant(undefined),
        fc.nat(300).map(String),
        fc.constantFrom('-5', '1e3', 'x', '', '99999999999999999999', '0x10'),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(fc.tuple(chunks, declared), { minLength: 1, maxLength: 5 }), async (requests) => {
          const reader = new BodyReader({ maxBodyBytes: 200, maxHeldBytes: 300 });
          await Promise.all(
            requests.map(async ([parts, length]) => {
              const stream = Object.assign(
                Readable.from(
                  parts.map((part) => Buffer.from(part)),
                  { objectMode: false },
                ),
                { headers: length === undefined ? {} : { 'content-length': length } },
              );
              try {
                await reader.hold(stream as unknown as IncomingMessage, async (body) => {
                  expect(body.length).toBeLessThanOrEqual(200);
                  expect(reader.heldBytes).toBeGreaterThanOrEqual(body.length);
                  expect(reader.heldBytes).toBeLessThanOrEqual(300);
                  await Promise.resolve();
                });
              } catch (error) {
                expect(error).toBeInstanceOf(HttpError);
              }
            }),
          );
          expect(reader.heldBytes).toBe(0);
        }),
        { numRuns: 300 },
      );
    },
  );
});

describe('fuzz: block data', () => {
  test('fuzz: any bytes behind either tag → the same answer from every reader, and no exception', () => {
    const tagged = fc
      .tuple(fc.constantFrom('seq/items/1\0', 'seq/exec/1\0', 'seq/items/2\0', ''), fc.uint8Array({ maxLength: 120 }))
      .map(([tag, rest]) => Buffer.concat([Buffer.from(tag), Buffer.from(rest)]));
    const bent = fc
      .tuple(
        fc.array(fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme-ascii' }), { maxLength: 5 }),
        fc.nat(),
        fc.nat(255),
      )
      .map(([keys, at, byte]) => {
        const data = Buffer.from(encodeItems(keyed(...keys)));
        if (data.length > 0) data[at % data.length] = byte;
        return data;
      });
    fc.assert(
      fc.property(fc.oneof(tagged, bent), (data) => {
        const content = decodeBlockData(data);
        const count =
          content.format === 'items' ? content.items.length : content.format === 'exec' ? content.taken.length : 0;
        expect(itemCountOf(data)).toBe(count);
        expect(keysOf(data).map(({ key }) => key)).toEqual(keyNamesOf(data));
        for (const key of keyNamesOf(data)) expect(keyProblem(key)).toBeNull();
        if (content.format === 'malformed') expect(content.why.length).toBeLessThan(200);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('fuzz: a peer’s feed', () => {
  let server: Server;
  let answer: (respond: { status(code: number): void; send(text: Buffer): void; end(): void }) => void = () => {};
  let url = '';
  beforeAll(async () => {
    server = createServer((_, response) => {
      // A caller that has heard enough leaves in the middle.
      response.on('error', () => undefined);
      answer({
        status: (code) => void response.writeHead(code),
        send: (bytes) => void response.write(bytes),
        end: () => void response.end(),
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test(
    'fuzz: lines that are no blocks, bent blocks, other statuses → only blocks of the real chain are ' +
      'handed out, in order',
    async () => {
      const maker = new ChainMaker();
      const start = maker.hash;
      const blocks = Array.from({ length: 6 }, (_, at) => maker.block(keyed(`k${at}`)));
      const lines = blocks.map((block) => blockLine(block));
      const junk = fc.oneof(
        fc.string({ maxLength: 60, unit: 'binary' }),
        fc.json({ maxDepth: 2 }),
        fc.constantFrom(
          '{"error":{"message":1}}',
          '{"error":null}',
          '{"error":{"message":{"toString":1},"why":[]}}',
          '[]',
          'null',
          '{"__proto__":1}',
        ),
      );
      const bend = fc.record({
        at: fc.nat(5),
        field: fc.constantFrom('height', 'hash', 'parent', 'timestamp', 'epoch', 'data'),
        to: fc.anything(),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(200, 200, 200, 404, 500, 301),
          fc.option(bend),
          fc.option(fc.tuple(fc.nat(6), junk)),
          fc.integer({ min: 1, max: 4000 }),
          fc.boolean(),
          async (status, bent, odd, cut, anchored) => {
            const sent = [...lines];
            if (bent) {
              const value = { ...(JSON.parse(lines[bent.at]!) as object), [bent.field]: bent.to };
              try {
                sent[bent.at] = JSON.stringify(value);
              } catch {
                sent[bent.at] = '{';
              }
            }
            if (odd) sent.splice(odd[0], 0, odd[1]);
            answer = ({ status: say, send, end }) => {
              say(status);
              const all = Buffer.from(`${sent.join('\n')}\n`);
              for (let from = 0; from < all.length; from += cut) send(all.subarray(from, from + cut));
              end();
            };
            const got: string[] = [];
            try {
              for await (const block of fetchFromPeer({
                url,
                after: { height: 0, hash: start },
                to: 6,
                signal: AbortSignal.timeout(5000),
                idleMs: 2000,
                ...(anchored ? { anchor: blocks[5]!.hash } : {}),
              }))
                got.push(block.hash);
              expect(got.length).toBe(6);
            } catch (error) {
              expect(error).toBeInstanceOf(SeqError);
              expect((error as SeqError).message.length).toBeLessThan(600);
              if (anchored) expect(got).toEqual([]);
            }
            expect(got).toEqual(blocks.slice(0, got.length).map(({ hash }) => hash));
          },
        ),
        { numRuns: 120 },
      );
    },
  );
});

describe('fuzz: the HTTP server', () => {
  let server: HttpServer;
  beforeAll(async () => {
    server = await startHttpServer({
      api: new FakeSequencer(),
      listen: { host: '127.0.0.1', port: 0 },
      maxBlockBytes: 1024,
      bounds: { closeMs: 300 },
    });
  });
  afterAll(() => server.close());

  test(
    'fuzz: any bytes, any request line, path, query and headers → an answer below 500 but for what ' +
      'it cannot do now, or a closed connection; it serves on',
    async () => {
      const path = fc.oneof(
        fc.constantFrom(
          '/v1/submit',
          '/v1/blocks',
          '/v1/blocks/1',
          '/v1/head',
          '/v1/status',
          '/livez',
          '/metrics',
          '/',
        ),
        fc
          .string({ maxLength: 20, unit: fc.constantFrom('/', 'v', '1', '%', 'z', '.', '?', '=', '&', ';', '\\') })
          .map((text) => `/${text}`),
      );
      const query = fc.oneof(
        fc.constant(''),
        fc
          .tuple(
            fc.constantFrom('from', 'to', '__proto__', 'from[]'),
            fc.constantFrom('0', '1', '-1', '1e3', '99999999999999999999', '%00', '', 'x'),
          )
          .map(([name, value]) => `?${name}=${value}&to=1`),
      );
      const header = fc
        .tuple(
          fc.constantFrom(
            'content-length',
            'transfer-encoding',
            'content-type',
            'idempotency-key',
            'expect',
            'authorization',
            'connection',
            'accept',
            'x',
          ),
          fc.oneof(
            fc.constantFrom(
              '0',
              '5',
              '-1',
              '1e3',
              'chunked',
              'gzip',
              'application/x-ndjson',
              '100-continue',
              'Bearer x',
              'close',
              'k',
            ),
            fc.string({ maxLength: 30, unit: fc.constantFrom('a', ' ', ',', ';', '"', '\t', 'é', '\0') }),
          ),
        )
        .map((parts) => parts.join(': '));
      const request = fc
        .tuple(
          fc.constantFrom('GET', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'TRACE', 'G ET'),
          path,
          query,
          fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/9', ''),
          fc.array(header, { maxLength: 5 }),
          fc.string({ maxLength: 40, unit: 'binary' }),
        )
        .map(([method, where, asked, version, headers, body]) =>
          Buffer.from(
            `${method} ${where}${asked} ${version}\r\nhost: ` +
              `localhost\r\n${headers.map((one) => `${one}\r\n`).join('')}\r\n${body}`,
          ),
        );
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            { arbitrary: request, weight: 6 },
            { arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)), weight: 1 },
          ),
          async (bytes) => {
            const text = await new Promise<string>((resolve) => {
              const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
              let said = '';
              const quiet = setTimeout(() => socket.destroy(), 40); // it waits for the rest of a body or of a request
              socket.on('data', (chunk: Buffer) => {
                said += chunk.toString('latin1');
                if (said.length > 1_000_000) socket.destroy();
              });
              socket.on('error', () => undefined);
              socket.on('close', () => {
                clearTimeout(quiet);
                resolve(said);
              });
              socket.end(bytes);
            });
            for (const [, status] of text.matchAll(/^HTTP\/1\.1 (\d{3})/gm))
              expect(status, text.slice(0, 400)).toMatch(/^([1-4]\d\d|503|504|501|505)$/);
          },
        ),
        { numRuns: 200 },
      );
      expect((await fetch(`${server.url}/livez`)).status).toBe(200);
    },
    300_000,
  );
});

describe('fuzz: what a sequencer answers', () => {
  let server: Server;
  let body: Buffer = Buffer.alloc(0);
  let status = 200;
  let url = '';
  beforeAll(async () => {
    server = createServer((_, response) => {
      response.writeHead(status).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test('fuzz: any status, any JSON in any place of it → a sequencer to send to, or a bounded sentence', async () => {
    const good = {
      id: 's',
      cluster: 'c',
      role: 'leader',
      height: 1,
      leaseMs: 1,
      epoch: 1,
      leader: { id: 's', url: '', epoch: 1 },
      limits: { maxItemBytes: 1, maxBlockBytes: 1, maxKeyBytes: 1, maxBatchItems: 1, maxBodyBytes: 1 },
    };
    const bent = fc
      .tuple(fc.constantFrom(...Object.keys(good)), fc.jsonValue())
      .map(([name, value]) => JSON.stringify({ ...good, [name]: value }));
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(bent, fc.json(), fc.string({ maxLength: 60, unit: 'binary' })),
        fc.constantFrom(200, 200, 200, 404, 500, 503),
        async (text, code) => {
          body = Buffer.from(text);
          status = code;
          const { answers } = await chooseSequencer([url], {}, 2000, AbortSignal.timeout(4000));
          for (const answer of answers) if (!answer.answered) expect(answer.why.length).toBeLessThan(300);
        },
      ),
      { numRuns: 200 },
    );
  });
  test('an answer without end → given up, and said', async () => {
    body = Buffer.alloc(2 ** 20, 0x20);
    status = 200;
    const { answers } = await chooseSequencer([url], {}, 4000, AbortSignal.timeout(8000));
    expect(answers).toEqual([{ url, answered: false, why: expect.any(String) as string }]);
  });
});
