// The file that `seq stream export` writes: the answers of the nodes as lines of JSON, to be read without the nodes.
// Line 1 names format and version. Then comes one line per height and pass of reading, then the facts about the nodes.
// The last line counts the lines and carries their SHA-256. A bundle is untrusted input: every line is checked against
// its form and these limits before it is used.
import { z } from 'zod';
import { EXIT, SeqError } from '../errors.js';
import type { NodeCheckup, OrphansRead } from '../ports.js';
import type { Epoch, Hash, Height, NodeReply, NodeView } from '../protocol/types.js';

export const FORMAT = 'seq/bundle';
export const VERSION = 1;
export const LIMITS = {
  fileBytes: 8 * 1024 ** 3,
  lineBytes: 256 * 1024 * 1024,
  headBytes: 64 * 1024,
  factsBytes: 64 * 1024 * 1024,
  lines: 8_000_000,
  nodes: 63,
  passes: 64,
};

/** Line 1. */
export interface BundleHead {
  format: typeof FORMAT;
  version: typeof VERSION;
  /** The program that wrote it, and when (ms, its clock). */
  by: string;
  madeAtMs: number;
  /** The names that the nodes were asked for. The flags in `next` commands are made from these. */
  cluster: string;
  expectedCluster: string;
  lane: string;
  context: string | null;
  nodesFrom: string;
  nodeTimeoutMs: number;
  nodes: { id: string; url: string }[];
  payloads: boolean;
}

/** One height. Nodes and blocks are referred to by their index in a list. */
export interface BundleLine {
  height: Height;
  /** The nodes that answered for this height. They did not hold anything that is missing from `copies`. */
  read: number[];
  /**
   * Each distinct block once, without its payload. It carries the SHA-256 of the data, from which the hash is computed.
   */
  blocks: { hash: Hash; parent: Hash; timestamp: number; size: number; data?: string; dataSha256?: string }[];
  copies: [node: number, block: number, epoch: Epoch, owner: string][];
  damaged: [node: number, id: string, why: string][];
}

interface BundleProbe {
  reply: NodeReply<NodeView>;
  rttMs: number | null;
}

/** The last line but one. */
export interface BundleFacts {
  facts: {
    /** Heights that were read. Nothing is known about other heights. */
    ranges: { from: Height; to: Height }[];
    nodes: {
      /** Two probes, one right after the other. Every command probes so. */
      probes: BundleProbe[];
      audit: NodeReply<Record<string, string>[]> | null;
      orphans: NodeReply<OrphansRead> | null;
      checkup: NodeReply<NodeCheckup> | null;
    }[];
  };
}

export interface BundleEnd {
  end: true;
  lines: number;
  sha256: string;
}

// --- forms
// ---------------------------------------------------------------------------------------------------------------------

const whole = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const signed = z.number().int().min(-2).max(Number.MAX_SAFE_INTEGER);
const ms = z.number().min(0).max(1e12);
// No control characters: a bundle must not be able to write to somebody's terminal.
// eslint-disable-next-line no-control-regex
const text = z
  .string()
  .max(256 * 1024)
  .regex(/^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$/);
const short = text.max(1024);
const words = z.record(short, text);

const unknown = z.object({
  outcome: z.literal('unknown'),
  step: z.enum(['resolve', 'connect', 'handshake', 'load', 'call', 'reply']),
  cause: text,
  limitMs: ms.optional(),
  alarm: z.boolean().optional(),
});
const refused = z.object({
  outcome: z.literal('refused'),
  reason: z.string().regex(/^[A-Z_]{1,32}$/),
  detail: z.object({
    check: z.enum(['lock', 'epoch']).optional(),
    holder: short.optional(),
    pttlMs: signed.optional(),
    epoch: whole.optional(),
    hash: short.optional(),
    head: whole.optional(),
    floor: whole.optional(),
    to: short.optional(),
    by: short.optional(),
    why: text.optional(),
    actual: short.optional(),
    message: text.optional(),
    grant: text.optional(),
  }),
});
const replyOf = <T extends z.ZodType>(value: T) =>
  z.discriminatedUnion('outcome', [
    z.object({ outcome: z.literal('accepted'), incarnation: short, value }),
    refused,
    unknown,
  ]);

const view = z.object({
  admission: z.enum(['admitted', 'pristine', 'bootstrap', 'admitting', 'wiped', 'restarted', 'damaged', 'foreign']),
  admissionWhy: text,
  cluster: short,
  node: short,
  incarnation: short,
  pending: short,
  config: z.string().max(16_384).default(''),
  admittedRunId: short,
  runId: short,
  head: whole,
  headEpoch: whole,
  headHash: short,
  floor: whole,
  floorHash: short,
  lock: z.object({ owner: short, pttlMs: signed }).nullable(),
  epoch: whole,
  claimant: short,
  length: whole,
  hold: z.object({ by: short, reason: text, pttlMs: signed }).nullable(),
  handover: z.object({ to: short, pttlMs: signed }).nullable(),
  request: z
    .object({
      id: short,
      kind: short,
      to: short,
      plan: text,
      by: short,
      reason: text,
      epoch: whole,
    })
    .nullable(),
  sequencers: z
    .array(
      z.object({
        id: short,
        role: z.enum(['follower', 'promoting', 'leader', 'stopping']),
        height: whole,
        version: short,
        url: short,
        pid: whole,
        configDigest: short,
        pttlMs: signed,
        extra: words,
      }),
    )
    .max(1024),
  absent: z
    .array(z.object({ id: short, seenAtMs: whole }))
    .max(1024)
    .default([]),
  timeMs: whole,
  info: words,
});
const orphans = z.object({
  superseded: z
    .array(
      z.object({
        id: short,
        height: whole.nullable(),
        epoch: whole.nullable(),
        hash: short,
        parent: short,
        owner: short,
        timestamp: whole.nullable(),
        size: whole,
        supersededBy: short,
        at: whole.nullable(),
        damage: text,
      }),
    )
    .max(10_000),
  total: whole,
  setAside: z
    .object({ nonce: short, entries: whole, from: whole.nullable(), to: whole.nullable(), expiresMs: whole.nullable() })
    .nullable(),
});
const checkup = z.object({
  info: words,
  config: words.nullable(),
  user: short,
  denied: z.array(text).max(10_000).nullable(),
  scriptsOnly: z.array(text).max(10_000).optional(),
  roundTripsMs: z.array(ms).max(1000),
  clockMs: z.number().min(-1e15).max(1e15),
  grant: text.default(''),
  aclRule: text,
});

const headForm = z.object({
  format: z.literal(FORMAT),
  version: z.literal(VERSION),
  by: short,
  madeAtMs: whole,
  cluster: short,
  expectedCluster: short,
  lane: z.string().regex(/^([a-z0-9-]{1,32})?$/),
  context: short.nullable(),
  nodesFrom: short,
  nodeTimeoutMs: ms,
  nodes: z
    .array(z.object({ id: short.min(1), url: short }))
    .min(1)
    .max(LIMITS.nodes),
  payloads: z.boolean(),
});
const factsForm = z.object({
  facts: z.object({
    ranges: z.array(z.object({ from: whole, to: whole })).max(16),
    nodes: z
      .array(
        z.object({
          probes: z.array(z.object({ reply: replyOf(view), rttMs: ms.nullable() })).length(2),
          audit: replyOf(z.array(words).max(100_000)).nullable(),
          orphans: replyOf(orphans).nullable(),
          checkup: replyOf(checkup).nullable(),
        }),
      )
      .max(LIMITS.nodes),
  }),
});
const endForm = z.object({ end: z.literal(true), lines: whole, sha256: z.string().regex(/^[0-9a-f]{64}$/) });

/** Each function reads one parsed line. It throws a sentence when the line has another form. */
export const asHead = (line: unknown): BundleHead => checked(headForm, line) as BundleHead;
export const asFacts = (line: unknown): BundleFacts => checked(factsForm, line) as unknown as BundleFacts;
export const asEnd = (line: unknown): BundleEnd => checked(endForm, line) as BundleEnd;

function checked(form: z.ZodType, line: unknown): unknown {
  const result = form.safeParse(line);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new Error(
    `${issue?.path.map(String).join('.') || 'the line'}: ${issue?.message ?? 'not of the expected form'}`,
  );
}

const HASH = /^[0-9a-f]{64}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
// eslint-disable-next-line no-control-regex
const PRINTABLE = /^[^\u0000-\u001f\u007f-\u009f]*$/;
const isWhole = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= 4096 && PRINTABLE.test(value);

/** Checked by hand, because a bundle may have a million of these lines. */
export function asLine(line: unknown, nodes: number): BundleLine {
  const { height, read, blocks, copies, damaged } = (line ?? {}) as Partial<Record<keyof BundleLine, unknown>>;
  const isNode = (value: unknown): boolean => isWhole(value) && value < nodes;
  if (!isWhole(height)) throw new Error('a line without a height');
  const wrong = (what: string): Error => new Error(`height ${height}: ${what}`);
  if (!Array.isArray(read) || !read.every(isNode) || new Set(read).size !== read.length)
    throw wrong('`read` is not a list of nodes');
  if (!Array.isArray(blocks) || !Array.isArray(copies) || !Array.isArray(damaged)) throw wrong('a list is missing');
  for (const block of blocks as Partial<BundleLine['blocks'][number]>[]) {
    const fine =
      block !== null &&
      typeof block === 'object' &&
      HASH.test(String(block.hash)) &&
      HASH.test(String(block.parent)) &&
      isWhole(block.timestamp) &&
      isWhole(block.size) &&
      (block.data === undefined
        ? HASH.test(String(block.dataSha256))
        : typeof block.data === 'string' && BASE64.test(block.data));
    if (!fine) throw wrong('a block that is not of the expected form');
  }
  for (const copy of copies as unknown[]) {
    const [node, block, epoch, owner] = Array.isArray(copy) ? (copy as unknown[]) : [];
    if (!isNode(node) || !isWhole(block) || block >= blocks.length || !isWhole(epoch) || !isText(owner))
      throw wrong('a copy that is not of the expected form');
  }
  for (const bad of damaged as unknown[]) {
    const [node, id, why] = Array.isArray(bad) ? (bad as unknown[]) : [];
    if (!isNode(node) || !isText(id) || !isText(why)) throw wrong('a damaged entry that is not of the expected form');
  }
  return line as BundleLine;
}

// --- errors
// --------------------------------------------------------------------------------------------------------------------

export type BundleCode = 'NOT_A_BUNDLE' | 'BUNDLE_VERSION' | 'BUNDLE_DAMAGED' | 'BUNDLE_TOO_LARGE';

const WHY: Record<BundleCode, [why: string, next: string]> = {
  NOT_A_BUNDLE: ['a bundle is the one file that `seq stream export` writes', 'seq stream export'],
  BUNDLE_VERSION: [`bundles of version ${VERSION} are read`, 'read it with the version of seq that wrote it'],
  BUNDLE_DAMAGED: [
    'it was cut short, changed, or not written to its end; nothing of it is shown, because what is ' +
      'missing cannot be told',
    'copy it again, or make a new one: seq stream export',
  ],
  BUNDLE_TOO_LARGE: [
    'a file from elsewhere is read within fixed bounds',
    'seq stream export --from HEIGHT --to HEIGHT, or --no-payloads',
  ],
};

export function bundleError(code: BundleCode, path: string, what: string): SeqError {
  const [why, next] = WHY[code];
  return new SeqError({ code, exit: EXIT.data, message: `${path}: ${what}`, why, changed: 'nothing', next: [next] });
}
