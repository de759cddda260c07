// Hostile texts on the command line, in files and from the producer's child: an error of ours or a value, in bounded
// time and memory, and no secret in anything that is said.
import '../support/fuzz-seed.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/cli/config/schema.js';
import { parseNodeFlag } from '../../src/cli/support/node-url.js';
import { formatDuration, parseCount, parseDuration, parseSize } from '../../src/cli/support/units.js';
import { SeqError } from '../../src/core/errors.js';
import { redactor } from '../../src/core/log/redact.js';
import { parseChildLine } from '../../src/core/produce/child-messages.js';
import { LineReader } from '../../src/core/produce/lines.js';
import { parseNodeUrl } from '../../src/core/redis/url.js';
import { parseListen } from '../../src/core/serve/listen.js';

const SECRET = 'sesame42';
/** All that an error shows anywhere. */
const shown = (error: SeqError): string =>
  JSON.stringify([
    error.message,
    error.why,
    error.next,
    error.stack,
    error.cause instanceof Error ? error.cause.message : error.cause,
  ]);

/** The value, or undefined when it was refused as it should be. */
function refusedOr<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SeqError)) throw error;
    expect(error.next.length).toBeGreaterThan(0);
    expect(shown(error)).not.toContain(SECRET);
    return undefined;
  }
}
const soup = (...words: string[]) =>
  fc
    .array(fc.oneof(fc.constantFrom(...words), fc.string({ maxLength: 6, unit: 'binary' })), { maxLength: 10 })
    .map((parts) => parts.join(''));

describe('fuzz: addresses', () => {
  const address = fc.oneof(
    soup(
      'redis://',
      'rediss://',
      'unix:/',
      'sentinel://',
      '@',
      ':',
      '/',
      'host',
      '6379',
      '0',
      '[::1]',
      '%',
      '%zz',
      '?db=',
      '#',
      ',',
      'n1=',
      ' ',
      '\n',
    ),
    fc
      .tuple(
        fc.constantFrom('', 'n1=', 'n 1='),
        fc.constantFrom(
          'redis://',
          'rediss://',
          'REDIS://',
          'unix:',
          'sentinel://',
          'redis:/',
          'redis:',
          'http://',
          '',
          '//',
          'redis:///',
        ),
        fc.constantFrom('', 'user', 'us er', 'us@er', 'us/er', '%zz', 'u:v'),
        fc.constantFrom(
          `:${SECRET}`,
          `:x${SECRET}`,
          `:${SECRET}@x`,
          `:p/${SECRET}`,
          `: ${SECRET}`,
          `:p#${SECRET}`,
          `:p?${SECRET}`,
        ),
        fc.constantFrom('@'),
        fc.constantFrom(
          'host:6379',
          'host',
          '',
          'ho st:1',
          'h:99999',
          'h:6379/x',
          '[::1]:6379/0',
          'h?x=1',
          '/sock',
          'h1:1,h2:2/main',
        ),
      )
      .map((parts) => parts.join('')),
    fc.constantFrom('redis://h:1?', 'redis://h/?x=1', 'unix:/s?', 'h:1/0?').map((text) => `${text}&password=${SECRET}`),
  );
  test('fuzz: --node, whatever it holds → an address without a secret, or a refusal that shows none', () => {
    fc.assert(
      fc.property(address, (text) => {
        const found = refusedOr(() => parseNodeFlag(text));
        expect(JSON.stringify(found) ?? '').not.toContain(SECRET);
        if (found)
          expect(
            refusedOr(() => parseNodeUrl(found.url.startsWith('sentinel') ? 'redis://h' : found.url)),
            `what is accepted can be opened: ${found.url}`,
          ).toBeDefined();
      }),
      { numRuns: 2000 },
    );
  });
  test('fuzz: node url of the engine → its redacted form and its errors show no password', () => {
    fc.assert(
      fc.property(address, (text) => {
        const found = refusedOr(() => parseNodeUrl(text));
        if (!found) return;
        if (found.transport !== 'unix') expect(found.redacted).not.toContain(SECRET);
        expect(found.port).toBeLessThanOrEqual(65535);
      }),
      { numRuns: 2000 },
    );
  });
  test('fuzz: --http → a host and a port, or a refusal', () => {
    fc.assert(
      fc.property(soup('127.0.0.1', '[::1]', 'localhost', ':', '0', '65535', '99999', '[', ']', ' '), (text) => {
        const found = refusedOr(() => parseListen(text));
        if (found)
          expect(Number.isInteger(found.port) && found.port >= 0 && found.port <= 65535 && found.host !== '').toBe(
            true,
          );
      }),
      { numRuns: 2000 },
    );
  });
});

describe('fuzz: durations, sizes, counts', () => {
  const value = soup(
    '1',
    '0',
    '9',
    '.',
    'e',
    'x',
    '-',
    '+',
    'ms',
    's',
    'm',
    'h',
    'd',
    'KiB',
    'MB',
    'B',
    ' ',
    '9007199254740993',
  );
  test.each([
    ['duration', parseDuration],
    ['size', parseSize],
    ['count', parseCount],
  ] as const)('fuzz: %s → a whole number within 2^53, or a refusal', (_, parse) => {
    fc.assert(
      fc.property(value, (text) => {
        const found = refusedOr(() => parse(text));
        if (found !== undefined) expect(Number.isSafeInteger(found) && found >= 0).toBe(true);
      }),
      { numRuns: 1500 },
    );
  });
  test('fuzz: a duration that is printed reads back', () => {
    fc.assert(
      fc.property(fc.nat(59_999), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
      { numRuns: 500 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 60, max: 10_000_000 }), (s) => {
        expect(parseDuration(formatDuration(s * 1000))).toBe(s * 1000);
      }),
      { numRuns: 500 },
    );
  });
  test('fuzz: long digits and long units → refused fast', () => {
    const startedAt = performance.now();
    for (const text of ['9'.repeat(100_000), '1ms'.repeat(30_000), `${'1'.repeat(50_000)}.${'1'.repeat(50_000)}x`])
      for (const parse of [parseDuration, parseSize, parseCount]) refusedOr(() => parse(text));
    // What is quadratic in the length takes many minutes.
    expect(performance.now() - startedAt).toBeLessThan(60_000);
  });
});

describe('fuzz: the config file', () => {
  const json = fc.json({ maxDepth: 4 });
  const yaml = fc.oneof(
    json,
    fc.string({ maxLength: 200, unit: 'binary' }),
    soup(
      'contexts:',
      '\n',
      '  ',
      ': ',
      '- ',
      'nodes:',
      'url:',
      'redis://h',
      'settings:',
      'ttl',
      '3s',
      '&a ',
      '*a',
      '{',
      '}',
      '[',
      ']',
      '!!',
      '!!js/function ',
      '"',
      "'",
      '|',
      '<<',
      '__proto__',
      'current:',
      '%YAML 1.1',
      '---',
      '?',
      '~',
      `password: ${SECRET}`,
    ),
    fc
      .record(
        {
          current: fc.anything(),
          contexts: fc.dictionary(
            fc.string({ maxLength: 8 }),
            fc.record(
              {
                nodes: fc.array(
                  fc.record({
                    url: fc.oneof(fc.string(), fc.constant(`redis://u:${SECRET}@h`), fc.constant('redis://h')),
                  }),
                ),
                settings: fc.dictionary(fc.constantFrom('ttl', 'x'), fc.string()),
              },
              { requiredKeys: [] },
            ),
          ),
        },
        { requiredKeys: [] },
      )
      .map((value) => {
        try {
          return JSON.stringify(value) ?? '';
        } catch {
          return '';
        }
      }),
  );
  test('fuzz: any text → a checked configuration, or a refusal without secrets', () => {
    fc.assert(
      fc.property(yaml, (text) => {
        const found = refusedOr(() => parseConfig(text, '/c.yaml'));
        if (found) expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
      }),
      { numRuns: 1500 },
    );
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
  test.each([
    ['a key that belongs to a tag', `!!password: ${SECRET}contexts:`],
    ['a key', `${SECRET}: 1`],
    ['a key of a context', `contexts: {a: {nodes: [{url: "redis://h"}], ${SECRET}: 1}}`],
    ['an alias', `contexts: *${SECRET}`],
    ['a key twice', `${SECRET}: 1\n${SECRET}: 2`],
    ['broken nesting', `a: [${SECRET}`],
  ])('config: a secret as %s → refused, not quoted', (_, text) => {
    expect(refusedOr(() => parseConfig(text, '/c.yaml'))).toBeUndefined();
  });
  test('fuzz: aliases that multiply → refused at once', () => {
    const lines = [
      'a0: &a0 [x,x,x,x,x,x,x,x,x]',
      ...Array.from(
        { length: 12 },
        (_, at) => `a${at + 1}: &a${at + 1} [${Array.from({ length: 9 }, () => `*a${at}`).join(',')}]`,
      ),
    ];
    const startedAt = performance.now();
    expect(refusedOr(() => parseConfig(lines.join('\n'), '/c.yaml'))).toBeUndefined();
    expect(refusedOr(() => parseConfig(`${'['.repeat(20_000)}`, '/c.yaml'))).toBeUndefined();
    expect(refusedOr(() => parseConfig('a: &a\n  b: *a\n', '/c.yaml'))).toBeUndefined();
    // An alias that is expanded nine to the twelfth times never ends.
    expect(performance.now() - startedAt).toBeLessThan(60_000);
  });
});

describe('fuzz: the producer’s child', () => {
  test('fuzz: any line → a message or garbage that quotes little of it', () => {
    const fields = fc.record(
      {
        type: fc.oneof(fc.constantFrom('hello', 'ack', 'block'), fc.anything()),
        protocol: fc.oneof(fc.constant(1), fc.anything()),
        height: fc.oneof(fc.nat(), fc.anything()),
        taken: fc.oneof(fc.nat(), fc.anything()),
        data: fc.oneof(fc.base64String(), fc.anything()),
      },
      { requiredKeys: [] },
    );
    const line = fc.oneof(
      fc.string({ maxLength: 500, unit: 'binary' }),
      fc.json(),
      fields.map((value) => {
        try {
          return JSON.stringify(value);
        } catch {
          return '{';
        }
      }),
      fc.constantFrom(
        'null',
        '[]',
        '{"type":{"toString":1}}',
        '{"type":"hello","protocol":{"toString":0}}',
        '{"__proto__":{"type":"ack"}}',
        `{"type":"${'x'.repeat(5000)}"}`,
      ),
    );
    fc.assert(
      fc.property(line, (text) => {
        const message = parseChildLine(text);
        if (message.type === 'garbage') expect(message.why.length).toBeLessThan(600);
        if (message.type === 'block' || message.type === 'hello')
          expect(Number.isSafeInteger(message.height) && message.height >= 0).toBe(true);
        if (message.type === 'block') expect(Number.isSafeInteger(message.taken)).toBe(true);
      }),
      { numRuns: 1500 },
    );
  });

  test(
    'fuzz: a stream cut anywhere → the lines within the bound, one report for each that is longer, ' +
      'nothing held back',
    () => {
      fc.assert(
        fc.property(
          fc.array(fc.string({ maxLength: 30, unit: fc.constantFrom('a', 'b', 'é', '\r') }), { maxLength: 12 }),
          fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 8 }),
          fc.integer({ min: 4, max: 24 }),
          (lines, cuts, most) => {
            const heard: string[] = [];
            const long: string[] = [];
            const reader = new LineReader(
              most,
              (line) => heard.push(line),
              (start) => long.push(start),
            );
            const all = Buffer.from(lines.map((line) => `${line}\n`).join(''));
            for (let at = 0, turn = 0; at < all.length; turn++) {
              const size = cuts[turn % cuts.length]!;
              reader.push(Buffer.from(all.subarray(at, at + size)));
              at += size;
            }
            expect(heard).toEqual(
              lines.filter((line) => Buffer.byteLength(line) <= most).map((line) => line.replace(/\r$/, '')),
            );
            expect(long).toHaveLength(lines.filter((line) => Buffer.byteLength(line) > most).length);
            for (const start of long) expect(Buffer.byteLength(start)).toBeLessThanOrEqual(3 * most);
          },
        ),
        { numRuns: 1000 },
      );
    },
  );

  test('fuzz: an endless line → reported once, memory stays', () => {
    let reports = 0;
    const reader = new LineReader(
      1000,
      () => {},
      () => {
        reports++;
      },
    );
    const before = process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
    for (let at = 0; at < 2000; at++) reader.push(Buffer.alloc(64 * 1024, 0x61));
    expect(reports).toBe(1);
    expect(process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
  });
});

test('fuzz: the log’s masking → no configured secret is left, wherever it stands', () => {
  const redact = redactor([SECRET]);
  const around = fc
    .tuple(
      fc.string({ maxLength: 20 }),
      fc.constantFrom('', 'password=', 'redis://u:', 'Bearer ', '"token":"'),
      fc.constantFrom(SECRET, encodeURIComponent(SECRET)),
      fc.string({ maxLength: 20 }),
    )
    .map((parts) => parts.join(''));
  const nested = fc.oneof(
    around,
    fc.record({ a: around, b: fc.array(around, { maxLength: 3 }) }),
    around.map((text) => new Error(text)),
  );
  fc.assert(
    fc.property(nested, (value) => {
      const clean = redact(value as unknown);
      expect(typeof clean === 'string' ? clean : JSON.stringify(clean)).not.toContain(SECRET);
    }),
    { numRuns: 2000 },
  );
});
