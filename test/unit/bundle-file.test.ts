// A bundle comes from elsewhere: whatever stands in the file, opening it ends as an answer or as one of its own
// errors, within bounds, and nothing of a file that is not whole is ever shown.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { BundleFile } from '../../src/core/bundle/file.js';
import { LIMITS } from '../../src/core/bundle/format.js';
import { BundleNode } from '../../src/core/bundle/node.js';
import { BundleWriter } from '../../src/core/bundle/writer.js';
import { EXIT, SeqError } from '../../src/core/errors.js';
import type { NodeView } from '../../src/core/protocol/types.js';
import { ChainMaker } from '../support/blocks.js';

const folder = mkdtempSync(join(tmpdir(), 'seq-bundle-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const chain = new ChainMaker('c1');
const blocks = [1, 2, 3].map(() => chain.block([{ data: Buffer.from('an item') }]));
const view: NodeView = {
  admission: 'admitted',
  admissionWhy: '',
  cluster: 'c1.1',
  node: 'r1',
  incarnation: 'i',
  pending: '',
  config: '',
  admittedRunId: 'x',
  runId: 'x',
  head: 3,
  headEpoch: 1,
  headHash: blocks[2]!.hash,
  floor: 0,
  floorHash: blocks[0]!.parent,
  lock: null,
  epoch: 1,
  claimant: 'seq-a/1',
  length: 3,
  hold: null,
  handover: null,
  request: null,
  sequencers: [],
  timeMs: 1,
  info: {},
};
const head = {
  format: 'seq/bundle',
  version: 1,
  by: 'test',
  madeAtMs: 1,
  cluster: 'c1.1',
  expectedCluster: '',
  lane: '',
  context: null,
  nodesFrom: '--node',
  nodeTimeoutMs: 100,
  nodes: [{ id: 'r1', url: 'redis://h' }],
  payloads: true,
};
const lineOf = ({ height, hash, parent, timestamp, data }: (typeof blocks)[number]) => ({
  height,
  read: [0],
  blocks: [{ hash, parent, timestamp, size: data.length, data: Buffer.from(data).toString('base64') }],
  copies: [[0, 0, 1, 'seq-a/1']],
  damaged: [],
});
const probe = { reply: { outcome: 'accepted', incarnation: 'i', value: view }, rttMs: 1 };
const facts = {
  facts: {
    ranges: [{ from: 0, to: Number.MAX_SAFE_INTEGER }],
    nodes: [{ probes: [probe, probe], audit: null, orphans: null, checkup: null }],
  },
};

/** The lines with a matching end record, so that any fault found is in the lines themselves. */
function sealed(lines: unknown[]): string {
  const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('');
  return `${text}${JSON.stringify({ end: true, lines: lines.length, sha256: createHash('sha256').update(text).digest('hex') })}\n`;
}
const whole = sealed([head, ...blocks.map(lineOf), facts]);
let count = 0;
function file(content: string | Buffer): string {
  const path = join(folder, `${count++}.bundle`);
  writeFileSync(path, content);
  return path;
}
async function outcome(path: string): Promise<string> {
  try {
    await (await BundleFile.open(path)).close();
    return 'opened';
  } catch (error) {
    if (!(error instanceof SeqError)) throw error;
    expect([EXIT.data, EXIT.notFound]).toContain(error.exit);
    expect([error.changed, error.why === '', error.next.length === 0]).toEqual(['nothing', false, false]);
    return error.code;
  }
}
const first = lineOf(blocks[0]!);
const changedView = (change: object) => ({
  facts: {
    ...facts.facts,
    nodes: [
      {
        ...facts.facts.nodes[0],
        probes: [probe, { ...probe, reply: { ...probe.reply, value: { ...view, ...change } } }],
      },
    ],
  },
});

describe('bundle file', () => {
  test('whole → opened, and its node answers', async () => {
    const opened = await BundleFile.open(file(whole));
    const node = new BundleNode(opened, 0);
    expect(await node.read({ from: 1, to: 9, limit: 10, data: true })).toMatchObject({
      outcome: 'accepted',
      incarnation: 'i',
      value: { entries: [{ height: 1 }, { height: 2 }, { height: 3 }], damaged: [], lastId: '3-1' },
    });
    expect(await node.read({ from: 1, to: 3, limit: 1, data: true, newestFirst: true })).toMatchObject({
      value: { entries: [{ height: 3, hash: blocks[2]!.hash }] },
    });
    expect(await node.call({ script: 'clear_hold' })).toMatchObject({ outcome: 'refused', reason: 'READONLY' });
    await opened.close();
  });

  test('cut after any byte → never opened', async () => {
    const found = new Set<string>();
    for (let at = 0; at < whole.length; at += 29) found.add(await outcome(file(whole.slice(0, at))));
    expect([...found].sort()).toEqual(['BUNDLE_DAMAGED', 'NOT_A_BUNDLE']);
  });

  test('any one byte changed → never opened as if it were whole', async () => {
    const found = new Set<string>();
    for (let at = 0; at < whole.length; at += 23) {
      const bytes = Buffer.from(whole);
      bytes[at] = bytes[at]! ^ 1;
      found.add(await outcome(file(bytes)));
    }
    expect([...found].filter((one) => !['BUNDLE_DAMAGED', 'NOT_A_BUNDLE', 'BUNDLE_VERSION'].includes(one))).toEqual([]);
  });

  test.each<[string, unknown[] | string | Buffer, string]>([
    ['empty', '', 'NOT_A_BUNDLE'],
    ['a line of something else', 'hello\n', 'NOT_A_BUNDLE'],
    ['another JSON', '{"a":1}\n', 'NOT_A_BUNDLE'],
    ['bytes without a line', Buffer.alloc(3_000_000), 'NOT_A_BUNDLE'],
    ['another version', sealed([{ ...head, version: 2 }, facts]), 'BUNDLE_VERSION'],
    ['a version that is a tale', sealed([{ ...head, version: 'x'.repeat(10_000) }, facts]), 'BUNDLE_VERSION'],
    ['no facts', [head, first], 'BUNDLE_DAMAGED'],
    ['facts twice', [head, facts, facts], 'BUNDLE_DAMAGED'],
    ['something behind the end', `${whole}{}\n`, 'BUNDLE_DAMAGED'],
    ['two bundles', whole + whole, 'BUNDLE_DAMAGED'],
    ['no nodes', [{ ...head, nodes: [] }, facts], 'BUNDLE_DAMAGED'],
    [
      'one id twice',
      [
        { ...head, nodes: [...head.nodes, ...head.nodes] },
        { facts: { ...facts.facts, nodes: [...facts.facts.nodes, ...facts.facts.nodes] } },
      ],
      'BUNDLE_DAMAGED',
    ],
    ['a lane that leads elsewhere', [{ ...head, lane: '../x' }, facts], 'BUNDLE_DAMAGED'],
    ['escape sequences in an id', [{ ...head, nodes: [{ id: 'r1\u001b[2J', url: 'x' }] }, facts], 'BUNDLE_DAMAGED'],
    [
      'escape sequences in an owner',
      [head, { ...first, copies: [[0, 0, 1, '\u001b]0;x\u0007']] }, facts],
      'BUNDLE_DAMAGED',
    ],
    ['escape sequences in a fact', [head, changedView({ admissionWhy: '\u009b31m' })], 'BUNDLE_DAMAGED'],
    ['a node that is not there', [head, { ...first, read: [1] }, facts], 'BUNDLE_DAMAGED'],
    ['a block that is not there', [head, { ...first, copies: [[0, 5, 1, 'a']] }, facts], 'BUNDLE_DAMAGED'],
    ['a height below zero', [head, { ...first, height: -1 }, facts], 'BUNDLE_DAMAGED'],
    ['a height beyond numbers', [head, { ...first, height: 2 ** 60 }, facts], 'BUNDLE_DAMAGED'],
    ['a head beyond numbers', [head, changedView({ head: 1e300 })], 'BUNDLE_DAMAGED'],
    ['lists that are none', [head, { ...first, copies: { length: 1e9 } }, facts], 'BUNDLE_DAMAGED'],
    ['__proto__', [head, '{"height":1,"__proto__":{"read":[0]}}', facts], 'BUNDLE_DAMAGED'],
    ['deep nesting', [head, `${'['.repeat(200_000)}${']'.repeat(200_000)}`, facts], 'BUNDLE_DAMAGED'],
    ['payloads that were not announced', [{ ...head, payloads: false }, first, facts], 'BUNDLE_DAMAGED'],
    [
      'heights that jump about',
      [head, ...Array.from({ length: LIMITS.passes + 1 }, (_, i) => ({ ...first, height: 2 * i + 1 })), facts],
      'BUNDLE_DAMAGED',
    ],
    ['a first line that is too long', `{"format":"seq/bundle","x":"${'y'.repeat(100_000)}`, 'NOT_A_BUNDLE'],
  ])('%s → %3$s', async (_, content, expected) => {
    expect(await outcome(file(Array.isArray(content) ? sealed(content) : content))).toBe(expected);
  });

  test("a hash that is not its content's, under a digest that fits → damaged, as a server's would be", async () => {
    const opened = await BundleFile.open(
      file(
        sealed([
          head,
          { ...first, blocks: [{ ...first.blocks[0], data: Buffer.from('forged').toString('base64') }] },
          ...blocks.slice(1).map(lineOf),
          facts,
        ]),
      ),
    );
    const read = await new BundleNode(opened, 0).read({ from: 1, to: 3, limit: 10, data: true });
    expect(read).toMatchObject({
      value: {
        entries: [{ height: 2 }, { height: 3 }],
        damaged: [{ height: 1, why: 'its hash is not that of its content' }],
      },
    });
    await opened.close();
  });

  test('a head far above everything that is there → unknown at once, not a search for it', async () => {
    const opened = await BundleFile.open(
      file(sealed([head, ...blocks.map(lineOf), changedView({ head: Number.MAX_SAFE_INTEGER })])),
    );
    expect(
      await new BundleNode(opened, 0).read({ from: 1, to: Number.MAX_SAFE_INTEGER, limit: 10, data: true }),
    ).toMatchObject({ outcome: 'unknown' });
    await opened.close();
  });

  test('paths: missing, a folder, a link to a device, a huge sparse file → each its error, at once', async () => {
    const link = join(folder, 'link');
    symlinkSync('/dev/zero', link);
    const sparse = file('');
    truncateSync(sparse, LIMITS.fileBytes + 1);
    expect(await Promise.all([join(folder, 'none'), folder, link, sparse].map(outcome))).toEqual([
      'FILE_NOT_FOUND',
      'NOT_A_BUNDLE',
      'NOT_A_BUNDLE',
      'BUNDLE_TOO_LARGE',
    ]);
  });

  test(
    'writer: secrets and control characters are taken out, a file that is there is never written ' +
      'over, nothing half done stays',
    async () => {
      const path = join(folder, 'written.bundle');
      const writer = await BundleWriter.create(path, head as never, ['s3cret-value']);
      await writer.write({ ...first, copies: [[0, 0, 1, 'seq-\u001ba/s3cret-value']] } as never);
      await writer.write({
        facts: {
          ...facts.facts,
          nodes: [
            {
              ...facts.facts.nodes[0],
              audit: {
                outcome: 'accepted',
                incarnation: '',
                value: [{ command: 'x redis://u:pw12@h token=abc', by: 's3cret-value' }],
              },
            },
          ],
        },
      } as never);
      await writer.finish();
      const opened = await BundleFile.open(path);
      expect(JSON.stringify(opened.facts)).not.toMatch(/s3cret|pw12|token=abc/);
      expect((await opened.lines(1, 1)).get(1)![0]!.copies[0]![3]).toBe('seq-\ufffda/***');
      await opened.close();
      await expect(BundleWriter.create(path, head as never, [])).rejects.toMatchObject({
        code: 'FILE_EXISTS',
        exit: EXIT.output,
      });
      const other = await BundleWriter.create(join(folder, 'other'), head as never, []);
      await other.abandon();
      expect(await outcome(join(folder, 'other'))).toBe('FILE_NOT_FOUND');
      await expect(BundleWriter.create(join(folder, 'no/where'), head as never, [])).rejects.toMatchObject({
        code: 'OUTPUT_FAILED',
      });
    },
  );
});
