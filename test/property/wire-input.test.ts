// Hostile bytes on a connection to Redis: the reply parser gives the same replies however they are cut, or says that
// this is no Redis; what it holds is bounded; and a connection on which nonsense arrives settles every call that
// waits on it.
import '../support/fuzz-seed.js';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ReplyError, ReplyParser } from '../../src/core/redis/own-resp/reply-parser.js';
import { OwnWire } from '../../src/core/redis/own-resp/own-wire.js';

type Value = Buffer | number | null | { error: string } | Value[];
const value = fc.letrec<{ any: Value }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc.maxSafeInteger(),
    fc.constant(null),
    fc.string({ maxLength: 20, unit: fc.constantFrom('E', 'r', ' ', ':', '$', '*', 'é') }).map((error) => ({ error })),
    fc.array(tie('any'), { maxLength: 5 }),
  ),
})).any;
const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 });

function encoded(one: Value): Buffer {
  if (one === null) return Buffer.from('$-1\r\n');
  if (Buffer.isBuffer(one)) return Buffer.concat([Buffer.from(`$${one.length}\r\n`), one, Buffer.from('\r\n')]);
  if (typeof one === 'number') return Buffer.from(`:${Object.is(one, -0) ? 0 : one}\r\n`);
  return Array.isArray(one)
    ? Buffer.concat([Buffer.from(`*${one.length}\r\n`), ...one.map(encoded)])
    : Buffer.from(`-${one.error}\r\n`);
}

function plain(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return `b${reply.toString('hex')}`;
  if (reply instanceof ReplyError) return `e${reply.message}`;
  if (typeof reply === 'object' && reply !== null && 'error' in reply) return `e${String(reply.error)}`;
  return Array.isArray(reply) ? reply.map(plain) : Object.is(reply, -0) ? 0 : reply;
}

/** What was read before it was all there, or before it was no protocol any more. */
function read(bytes: Buffer, sizes: readonly number[]): { replies: unknown[]; broken: boolean } {
  const replies: unknown[] = [];
  const parser = new ReplyParser((reply) => replies.push(plain(reply)));
  try {
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const size = sizes[turn % sizes.length]!;
      parser.write(Buffer.from(bytes.subarray(at, at + size)));
      at += size;
    }
  } catch (error) {
    expect((error as Error).message).toMatch(/^Protocol error: .{0,80}$/);
    return { replies, broken: true };
  }
  return { replies, broken: false };
}

describe('fuzz: what a server sends', () => {
  test('fuzz: any replies, cut anywhere → those replies', () => {
    fc.assert(
      fc.property(fc.array(value, { maxLength: 5 }), cuts, (values, sizes) => {
        expect(read(Buffer.concat(values.map(encoded)), sizes)).toEqual({ replies: values.map(plain), broken: false });
      }),
      { numRuns: 500 },
    );
  });

  test(
    'fuzz: any bytes, or replies with some changed, cut anywhere → the same as in one piece: ' +
      'replies, more to come, or no Redis',
    () => {
      const bent = fc
        .tuple(
          fc.array(value, { minLength: 1, maxLength: 4 }),
          fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }),
        )
        .map(([values, changes]) => {
          const bytes = Buffer.concat(values.map(encoded));
          for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
          return bytes;
        });
      const soup = fc
        .array(
          fc.constantFrom(
            '*',
            '$',
            ':',
            '+',
            '-',
            '\r\n',
            '\r',
            '\n',
            '0',
            '1',
            '2',
            '-1',
            '99999999999999999999',
            'a',
            '1e3',
            ' ',
          ),
          { maxLength: 30 },
        )
        .map((parts) => Buffer.from(parts.join('')));
      fc.assert(
        fc.property(
          fc.oneof(
            bent,
            soup,
            fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
          ),
          cuts,
          (bytes, sizes) => {
            expect(read(bytes, sizes)).toEqual(read(bytes, [bytes.length || 1]));
          },
        ),
        { numRuns: 3000 },
      );
    },
  );

  test('fuzz: sizes that are claimed and never come → nothing is set aside for them', () => {
    const before = process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed;
    const parsers = fc
      .sample(
        fc.array(fc.constantFrom('*16777216\r\n', '$536870912\r\nx', '*1\r\n'), { minLength: 1, maxLength: 14 }),
        300,
      )
      .map((parts) => {
        const parser = new ReplyParser(() => undefined);
        try {
          parser.write(Buffer.from(parts.join('')));
        } catch {
          /* no Redis says that */
        }
        return parser;
      });
    expect(parsers).toHaveLength(300);
    expect(process.memoryUsage().arrayBuffers + process.memoryUsage().heapUsed - before).toBeLessThan(32 * 2 ** 20);
  });

  test.each([
    ['values', ':1\r\n'],
    ['bytes', `$100\r\n${'x'.repeat(100)}\r\n`],
  ])('a reply that never ends: too many %s → no Redis, however it is nested', (_, element) => {
    const parser = new ReplyParser(() => undefined, { items: 10_000, bytes: 100_000 });
    parser.write(Buffer.from('*16777216\r\n*16777216\r\n'));
    expect(() => {
      for (let i = 0; i < 20_000; i++) parser.write(Buffer.from(element));
    }).toThrow(/^Protocol error: more than \d+ (values|bytes) in one reply$/);
  });

  test('many replies, each within the bound → all are read', () => {
    let seen = 0;
    const parser = new ReplyParser(
      () => {
        seen += 1;
      },
      { items: 3, bytes: 10 },
    );
    for (let i = 0; i < 100; i++) parser.write(Buffer.from('*2\r\n$3\r\nabc\r\n:1\r\n$8\r\n12345678\r\n'));
    expect(seen).toBe(200);
  });
});

describe('fuzz: a connection', () => {
  let server: Server;
  let chunks: readonly Buffer[] = [];
  beforeAll(async () => {
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => {
        for (const chunk of chunks) socket.write(chunk);
        socket.end();
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => server.close());

  test(
    'fuzz: any bytes as answers, then the end → every call that waits is answered or rejected, and ' +
      'nothing is thrown beside them',
    async () => {
      const chunk = fc.oneof(
        value.map(encoded),
        fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
        fc
          .constantFrom('*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n', '+OK\r\n', '*1\r\n')
          .map((text) => Buffer.from(text)),
      );
      await fc.assert(
        fc.asyncProperty(
          fc.array(chunk, { maxLength: 6 }),
          fc.boolean(),
          fc.integer({ min: 1, max: 4 }),
          async (answers, listens, calls) => {
            chunks = answers;
            const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
            await once(socket, 'connect');
            const wire = new OwnWire({ stream: socket } as unknown as Redis);
            if (listens)
              wire.onMessage = (channel, message) => expect(typeof channel + typeof message).toBe('stringstring');
            const settled = await Promise.allSettled(Array.from({ length: calls }, () => wire.send('PING', [])));
            expect(settled).toHaveLength(calls);
            for (const one of settled) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(Error);
            await expect(wire.send('PING', [])).rejects.toBeInstanceOf(Error);
            socket.destroy();
          },
        ),
        { numRuns: 150 },
      );
    },
  );
});
