// Files and orders that somebody else wrote: bundles (`--from`), plans inside requests to the leader, input of `seq
// submit`, what the lab and a submission that was broken off left on disk. Whatever they hold, they are read as what
// they are or refused with a SeqError in bounded time; nothing throws anything else, and nothing of the refused text
// is quoted at length.
import '../support/fuzz-seed.js';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { BundleFile } from '../../src/core/bundle/file.js';
import { admitPlan, urlOfPlan } from '../../src/core/nodes/requests.js';
import { readOrder } from '../../src/core/sequencer/lead/repair-order.js';
import { readItems } from '../../src/core/submit/item-reader.js';
import { readState as readSubmission } from '../../src/core/submit/source.js';
import { SeqError } from '../../src/core/errors.js';
import { readState as readLab } from '../../src/lab/state.js';
import { rowsOf } from '../../src/lab/status.js';

const dir = mkdtempSync(join(tmpdir(), 'seq-fuzz-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const path = join(dir, 'bundle');

const HASH = 'a'.repeat(64);
const HEAD = {
  format: 'seq/bundle',
  version: 1,
  by: 'seq',
  madeAtMs: 1,
  cluster: 'c.1',
  expectedCluster: '',
  lane: '',
  context: null,
  nodesFrom: 'flags',
  nodeTimeoutMs: 100,
  nodes: [{ id: 'r1', url: 'redis://h:1' }],
  payloads: false,
};
const LINE = {
  height: 1,
  read: [0],
  blocks: [{ hash: HASH, parent: HASH, timestamp: 1, size: 3, dataSha256: HASH }],
  copies: [[0, 0, 1, 's/1']],
  damaged: [],
};
const LOOK = { reply: { outcome: 'unknown', step: 'call', cause: 'no answer' }, rttMs: null };
const FACTS = {
  facts: { ranges: [{ from: 1, to: 1 }], nodes: [{ probes: [LOOK, LOOK], audit: null, orphans: null, checkup: null }] },
};

function sealed(lines: unknown[]): string {
  const text = lines.map((line) => `${JSON.stringify(line) ?? 'null'}\n`).join('');
  return `${text}${JSON.stringify({ end: true, lines: lines.length, sha256: createHash('sha256').update(text).digest('hex') })}\n`;
}

/** 'read', or the code it was refused with. */
async function opened(content: string | Uint8Array): Promise<string> {
  writeFileSync(path, content);
  let file: BundleFile | undefined;
  try {
    file = await BundleFile.open(path);
    await file.lines(1, Math.min(file.highest, 10));
    return 'read';
  } catch (error) {
    if (!(error instanceof SeqError)) throw error;
    expect(error.message.length + (error.why ?? '').length).toBeLessThan(2000);
    return error.code;
  } finally {
    await file?.close();
  }
}

/** The value with another one somewhere in it. */
function bent(value: unknown, at: number, other: unknown): unknown {
  if (value === null || typeof value !== 'object') return other;
  const keys = Object.keys(value);
  if (keys.length === 0) return other;
  const key = keys[at % keys.length]!;
  const copy = structuredClone(value) as Record<string, unknown>;
  copy[key] = at % 3 === 0 ? other : bent(copy[key], Math.floor(at / keys.length), other);
  return copy;
}

describe('bundle', () => {
  test('a good one → read', async () => {
    expect(await opened(sealed([HEAD, LINE, FACTS]))).toBe('read');
  });
  test('fuzz: any bytes → refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
        expect(await opened(bytes)).not.toBe('read');
      }),
      { numRuns: 100 },
    );
  });
  test('fuzz: one byte changed or the end cut off → refused', async () => {
    const good = Buffer.from(sealed([HEAD, LINE, FACTS]));
    await fc.assert(
      fc.asyncProperty(
        fc.nat(good.length - 1),
        fc.integer({ min: 1, max: 255 }),
        fc.boolean(),
        async (at, flip, cut) => {
          const bytes = Buffer.from(good);
          bytes[at]! ^= flip;
          expect(await opened(cut ? good.subarray(0, at) : bytes)).not.toBe('read');
        },
      ),
      { numRuns: 200 },
    );
  });
  test('fuzz: any value in any place, under a digest that fits → read, or refused', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(0, 1, 2),
        fc.nat(1_000_000),
        fc.oneof(fc.anything(), fc.constantFrom(-1, 1e300, 2 ** 53, '\u001b[2J', '__proto__')),
        async (which, at, other) => {
          const lines: unknown[] = [HEAD, LINE, FACTS];
          try {
            lines[which] = JSON.parse(JSON.stringify(bent(lines[which], at, other)) ?? 'null');
          } catch {
            return; // no JSON can say that
          }
          expect(['read', 'NOT_A_BUNDLE', 'BUNDLE_VERSION', 'BUNDLE_DAMAGED', 'BUNDLE_TOO_LARGE']).toContain(
            await opened(sealed(lines)),
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});

test('fuzz: plans in requests, any text or JSON → understood, or null', () => {
  const words = fc.constantFrom(
    'digest',
    'limitMs',
    'nodes',
    'chosen',
    'incarnation',
    'why',
    'url',
    'id',
    'height',
    'hash',
  );
  const plan = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.json({ maxDepth: 4 }),
    fc.constantFrom('null', '0', '[]', '{"nodes":[null]}', '{"digest":"","limitMs":1,"nodes":[null],"chosen":[]}'),
    fc
      .dictionary(words, fc.oneof(fc.jsonValue(), fc.array(fc.dictionary(words, fc.jsonValue()))))
      .map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(plan, (text) => {
      const [order, admit, url] = [readOrder(text), admitPlan(text), urlOfPlan(text)];
      if (order) expect(order.nodes.every(({ id }) => typeof id === 'string')).toBe(true);
      if (admit) expect(typeof admit.incarnation).toBe('string');
      if (url !== null) expect(url.length).toBeLessThanOrEqual(512);
    }),
    { numRuns: 1500 },
  );
});

describe('input of submit', () => {
  async function items(bytes: Buffer, sizes: readonly number[], binary: boolean): Promise<string[]> {
    const got: string[] = [];
    async function* chunks(): AsyncGenerator<Buffer> {
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length]!;
        yield Buffer.from(bytes.subarray(at, at + size));
        at += size;
      }
    }
    try {
      for await (const some of readItems(chunks(), { binary, firstNumber: 1, limitOf: () => 50 })) {
        for (const { number, data } of some) {
          expect([number, data.length <= 50]).toEqual([got.length + 1, true]);
          got.push(Buffer.from(data).toString('hex'));
        }
      }
    } catch (error) {
      expect(error).toBeInstanceOf(SeqError);
      got.push((error as SeqError).code);
    }
    return got;
  }
  test(
    'fuzz: any bytes as lines or frames, cut anywhere → the same items as in one piece, up to the ' +
      'first that is too large or broken off',
    async () => {
      const frames = fc
        .array(
          fc.oneof(
            fc.uint8Array({ maxLength: 20 }).map((data) => Buffer.concat([Buffer.from([0, 0, 0, data.length]), data])),
            fc.uint8Array({ maxLength: 6 }).map((data) => Buffer.from(data)),
          ),
          { maxLength: 6 },
        )
        .map((all) => Buffer.concat(all));
      const lines = fc
        .array(fc.string({ maxLength: 70, unit: fc.constantFrom('a', '\r', '\n', '\0', 'é') }), { maxLength: 6 })
        .map((all) => Buffer.from(all.join('\n')));
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(frames, lines),
          fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }),
          fc.boolean(),
          async (bytes, sizes, binary) => {
            expect(await items(bytes, sizes, binary)).toEqual(await items(bytes, [bytes.length || 1], binary));
          },
        ),
        { numRuns: 500 },
      );
    },
  );
});

describe('what was left on disk', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 100, unit: 'binary' }),
    fc.json({ maxDepth: 3 }),
    fc.constantFrom(
      'null',
      '0',
      '[]',
      '{"version":1}',
      '{"version":1,"processes":[null]}',
      '{"version":1,"settings":null,"processes":[]}',
    ),
  );
  test(
    'fuzz: the state of a lab, any text or any value in any place → a state whose rows can be shown, ' + 'or 65',
    async () => {
      const good = {
        version: 1,
        phase: 'committed',
        settings: { nodes: 1, sequencers: 1 },
        processes: [
          { name: 'r1', kind: 'redis', port: 1, identity: { pid: 2 ** 22, startToken: 'x' } },
          { name: 'seq-a', kind: 'sequencer', port: 2, identity: null },
        ],
      };
      const changed = fc
        .tuple(fc.nat(1_000_000), fc.oneof(fc.jsonValue(), fc.constantFrom(null, -1, 0, 1e300, 'x')))
        .map(([at, other]) => JSON.stringify(bent(good, at, other)));
      await fc.assert(
        fc.asyncProperty(fc.oneof(text, changed), async (content) => {
          writeFileSync(join(dir, 'lab.json'), content);
          try {
            const state = readLab(dir);
            expect(rowsOf(state!)).toHaveLength(state!.processes.length);
          } catch (error) {
            expect([error instanceof SeqError, (error as SeqError).code, (error as SeqError).exit]).toEqual([
              true,
              'LAB_STATE_MALFORMED',
              65,
            ]);
          }
          await Promise.resolve();
        }),
        { numRuns: 500 },
      );
    },
  );
  test('fuzz: the state of a submission → sound, or none', async () => {
    const good = { version: 1, items: 3, bytes: 9, keyPrefix: 'f-1', sha256: HASH };
    const changed = fc
      .tuple(fc.nat(1_000_000), fc.oneof(fc.jsonValue(), fc.constantFrom(null, -1, 1e300, 'x')))
      .map(([at, other]) => JSON.stringify(bent(good, at, other)));
    await fc.assert(
      fc.asyncProperty(fc.oneof(text, changed), async (content) => {
        writeFileSync(join(dir, 'submission'), content);
        const state = await readSubmission(join(dir, 'submission'));
        if (state) expect([state.items >= 0, state.bytes >= 0, typeof state.keyPrefix]).toEqual([true, true, 'string']);
      }),
      { numRuns: 300 },
    );
  });
});
