// Hostile HTTP: bodies and headers of submissions, a peer's feed, and block data. A refusal with a status, malformed data, or a value that is
// exactly what was sent; memory within its bounds whatever comes.
import '../support/fuzz-seed.js';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { decodeBlockData, encodeItems, itemCountOf, keyNamesOf, keyProblem, keysOf } from '../../src/core/chain/items.js';
import { fetchFromPeer } from '../../src/core/engine/peer.js';
import { SeqError } from '../../src/core/errors.js';
import { BodyReader } from '../../src/core/serve/body.js';
import { HttpError } from '../../src/core/serve/envelope.js';
import { blockLine } from '../../src/core/serve/feed.js';
import { httpLimits } from '../../src/core/serve/limits.js';
import { parseLines, parseSingle } from '../../src/core/serve/submission.js';
import { ChainMaker, keyed } from '../support/blocks.js';

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
  const item = fc.record({ key: fc.oneof(fc.string({ maxLength: 12, unit: 'binary' }), fc.anything()), data: fc.oneof(fc.string({ maxLength: 30, unit: 'binary' }), fc.anything()), base64: fc.oneof(fc.base64String({ maxLength: 40 }), fc.string({ maxLength: 10 })), Key: fc.constant('k') }, { requiredKeys: [] });
  const line = fc.oneof(item.map((value) => { try { return JSON.stringify(value) ?? ''; } catch { return ''; } }), fc.string({ maxLength: 40, unit: 'binary' }), fc.constantFrom('{"data":"\\ud800"}', '{"data":"a","data":"b"}', '{"__proto__":{"data":"x"}}', '{"data":"x"}\r', '', '[]', '{"data":"a","key":"\\u0000"}'));
  test('fuzz: NDJSON, any bytes → all items as they were sent, or a refusal; never some', () => {
    const body = fc.oneof(fc.array(line, { maxLength: 6 }).map((lines) => Buffer.from(lines.join('\n'))), fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)));
    fc.assert(fc.property(body, (bytes) => {
      const items = refusedOr(() => parseLines(bytes, limits));
      if (!items) return;
      for (const one of items) {
        expect(one.key === undefined || keyProblem(one.key) === null).toBe(true);
        expect(one.data.length).toBeLessThanOrEqual(4096);
      }
      // What is accepted can always be put into a block and read back.
      const back = decodeBlockData(encodeItems(items));
      expect(back.format === 'items' && back.items.map(({ key, data }) => [key, Buffer.from(data).toString('hex')])).toEqual(items.map(({ key, data }) => [key, Buffer.from(data).toString('hex')]));
    }), { numRuns: 1500 });
  });
  test('fuzz: a raw item with any key headers → that item, or a refusal', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 5000 }), fc.array(fc.string({ maxLength: 300, unit: 'binary' }), { maxLength: 3 }), (bytes, keys) => {
      const made = refusedOr(() => parseSingle(Buffer.from(bytes), keys, limits));
      if (made) expect([Buffer.from(made.data).equals(Buffer.from(bytes)), made.key]).toEqual([true, keys[0]]);
    }), { numRuns: 1000 });
  });
  test('fuzz: bodies that lie about their length, many at once → held memory within the bound, and all of it given back', async () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 8 });
    const declared = fc.oneof(fc.constant(undefined), fc.nat(300).map(String), fc.constantFrom('-5', '1e3', 'x', '', '99999999999999999999', '0x10'));
    await fc.assert(fc.asyncProperty(fc.array(fc.tuple(chunks, declared), { minLength: 1, maxLength: 5 }), async (requests) => {
      const reader = new BodyReader({ maxBodyBytes: 200, maxHeldBytes: 300 });
      await Promise.all(requests.map(async ([parts, length]) => {
        const stream = Object.assign(Readable.from(parts.map((part) => Buffer.from(part)), { objectMode: false }), { headers: length === undefined ? {} : { 'content-length': length } });
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
      }));
      expect(reader.heldBytes).toBe(0);
    }), { numRuns: 300 });
  });
});

describe('fuzz: block data', () => {
  test('fuzz: any bytes behind either tag → the same answer from every reader, and no exception', () => {
    const tagged = fc.tuple(fc.constantFrom('seq/items/1\0', 'seq/exec/1\0', 'seq/items/2\0', ''), fc.uint8Array({ maxLength: 120 })).map(([tag, rest]) => Buffer.concat([Buffer.from(tag), Buffer.from(rest)]));
    const bent = fc.tuple(fc.array(fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme-ascii' }), { maxLength: 5 }), fc.nat(), fc.nat(255)).map(([keys, at, byte]) => {
      const data = Buffer.from(encodeItems(keyed(...keys)));
      if (data.length > 0) data[at % data.length] = byte;
      return data;
    });
    fc.assert(fc.property(fc.oneof(tagged, bent), (data) => {
      const content = decodeBlockData(data);
      const count = content.format === 'items' ? content.items.length : content.format === 'exec' ? content.taken.length : 0;
      expect(itemCountOf(data)).toBe(count);
      expect(keysOf(data).map(({ key }) => key)).toEqual(keyNamesOf(data));
      for (const key of keyNamesOf(data)) expect(keyProblem(key)).toBeNull();
      if (content.format === 'malformed') expect(content.why.length).toBeLessThan(200);
    }), { numRuns: 2000 });
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
      answer({ status: (code) => void response.writeHead(code), send: (bytes) => void response.write(bytes), end: () => void response.end() });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => { server.closeAllConnections(); server.close(); });

  test('fuzz: lines that are no blocks, bent blocks, other statuses → only blocks of the real chain are handed out, in order', async () => {
    const maker = new ChainMaker();
    const start = maker.hash;
    const blocks = Array.from({ length: 6 }, (_, at) => maker.block(keyed(`k${at}`)));
    const lines = blocks.map((block) => blockLine(block));
    const junk = fc.oneof(fc.string({ maxLength: 60, unit: 'binary' }), fc.json({ maxDepth: 2 }), fc.constantFrom('{"error":{"message":1}}', '{"error":null}', '{"error":{"message":{"toString":1},"why":[]}}', '[]', 'null', '{"__proto__":1}'));
    const bend = fc.record({ at: fc.nat(5), field: fc.constantFrom('height', 'hash', 'parent', 'timestamp', 'epoch', 'data'), to: fc.anything() });
    await fc.assert(fc.asyncProperty(fc.constantFrom(200, 200, 200, 404, 500, 301), fc.option(bend), fc.option(fc.tuple(fc.nat(6), junk)), fc.integer({ min: 1, max: 4000 }), fc.boolean(), async (status, bent, odd, cut, anchored) => {
      const sent = [...lines];
      if (bent) {
        const value = { ...(JSON.parse(lines[bent.at]!) as object), [bent.field]: bent.to };
        try { sent[bent.at] = JSON.stringify(value); } catch { sent[bent.at] = '{'; }
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
        for await (const block of fetchFromPeer({ url, after: { height: 0, hash: start }, to: 6, signal: AbortSignal.timeout(5000), idleMs: 2000, ...(anchored ? { anchor: blocks[5]!.hash } : {}) })) got.push(block.hash);
        expect(got.length).toBe(6);
      } catch (error) {
        expect(error).toBeInstanceOf(SeqError);
        expect((error as SeqError).message.length).toBeLessThan(600);
        if (anchored) expect(got).toEqual([]);
      }
      expect(got).toEqual(blocks.slice(0, got.length).map(({ hash }) => hash));
    }), { numRuns: 120 });
  });
});
