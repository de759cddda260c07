// Files and orders that somebody else wrote: bundles (`--from`) and the plans inside requests to the leader. Whatever they hold, they are read as
// what they are or refused with a SeqError in bounded time; nothing throws anything else, and nothing of the refused text is quoted at length.
import '../support/fuzz-seed.js';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { BundleFile } from '../../src/core/bundle/file.js';
import { admitPlan, urlOfPlan } from '../../src/core/engine/requests.js';
import { readOrder } from '../../src/core/engine/repair-request.js';
import { SeqError } from '../../src/core/errors.js';

const dir = mkdtempSync(join(tmpdir(), 'seq-fuzz-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const path = join(dir, 'bundle');

const HASH = 'a'.repeat(64);
const HEAD = { format: 'seq/bundle', version: 1, by: 'seq', madeAtMs: 1, cluster: 'c.1', expectedCluster: '', lane: '', context: null, nodesFrom: 'flags', nodeTimeoutMs: 100, nodes: [{ id: 'r1', url: 'redis://h:1' }], payloads: false };
const LINE = { height: 1, read: [0], blocks: [{ hash: HASH, parent: HASH, timestamp: 1, size: 3, dataSha256: HASH }], copies: [[0, 0, 1, 's/1']], damaged: [] };
const LOOK = { reply: { outcome: 'unknown', step: 'call', cause: 'no answer' }, rttMs: null };
const FACTS = { facts: { ranges: [{ from: 1, to: 1 }], nodes: [{ looks: [LOOK, LOOK], audit: null, orphans: null, checkup: null }] } };

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
    await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), async (bytes) => {
      expect(await opened(bytes)).not.toBe('read');
    }), { numRuns: 100 });
  });
  test('fuzz: one byte changed or the end cut off → refused', async () => {
    const good = Buffer.from(sealed([HEAD, LINE, FACTS]));
    await fc.assert(fc.asyncProperty(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), fc.boolean(), async (at, flip, cut) => {
      const bytes = Buffer.from(good);
      bytes[at]! ^= flip;
      expect(await opened(cut ? good.subarray(0, at) : bytes)).not.toBe('read');
    }), { numRuns: 200 });
  });
  test('fuzz: any value in any place, under a digest that fits → read, or refused', async () => {
    await fc.assert(fc.asyncProperty(fc.constantFrom(0, 1, 2), fc.nat(1_000_000), fc.oneof(fc.anything(), fc.constantFrom(-1, 1e300, 2 ** 53, '\u001b[2J', '__proto__')), async (which, at, other) => {
      const lines: unknown[] = [HEAD, LINE, FACTS];
      try {
        lines[which] = JSON.parse(JSON.stringify(bent(lines[which], at, other)) ?? 'null');
      } catch {
        return; // no JSON can say that
      }
      expect(['read', 'NOT_A_BUNDLE', 'BUNDLE_VERSION', 'BUNDLE_DAMAGED', 'BUNDLE_TOO_LARGE']).toContain(await opened(sealed(lines)));
    }), { numRuns: 300 });
  });
});

test('fuzz: plans in requests, any text or JSON → understood, or null', () => {
  const words = fc.constantFrom('digest', 'limitMs', 'nodes', 'chosen', 'incarnation', 'why', 'url', 'id', 'height', 'hash');
  const plan = fc.oneof(fc.string({ unit: 'binary', maxLength: 200 }), fc.json({ maxDepth: 4 }), fc.constantFrom('null', '0', '[]', '{"nodes":[null]}', '{"digest":"","limitMs":1,"nodes":[null],"chosen":[]}'),
    fc.dictionary(words, fc.oneof(fc.jsonValue(), fc.array(fc.dictionary(words, fc.jsonValue())))).map((value) => JSON.stringify(value)));
  fc.assert(fc.property(plan, (text) => {
    const [order, admit, url] = [readOrder(text), admitPlan(text), urlOfPlan(text)];
    if (order) expect(order.nodes.every(({ id }) => typeof id === 'string')).toBe(true);
    if (admit) expect(typeof admit.incarnation).toBe('string');
    if (url !== null) expect(url.length).toBeLessThanOrEqual(512);
  }), { numRuns: 1500 });
});
