// The typed table of lua/. It has for every script its keys, its arguments by name, and the reader of its answer. A
// test compares the header of each Lua file with this table. Numbers are sent unchecked: the script refuses a number
// that is not whole, or not below 2^53.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { genesisHash } from '../chain/block.js';
import { InvariantError } from '../errors.js';
import type { ClusterIdentity } from '../ports.js';
import { whyStray } from '../protocol/configuration.js';
import type {
  AdmissionState,
  Block,
  CallResult,
  Expectation,
  HeadFacts,
  LeaderRequest,
  NodeCall,
  NodeView,
  Presence,
  ScriptName,
} from '../protocol/types.js';
import type { KeyName, NodeKeys } from './keys.js';
import { hintChannelOf } from './keys.js';
import { list, pttl, record, text, UnreadableReply, whole } from './replies.js';

export type Argument = string | Buffer;
type Call<S extends ScriptName> = Extract<NodeCall, { script: S }>;

export interface ScriptContext {
  identity: ClusterIdentity;
  nodeId: string;
  keys: NodeKeys;
}

interface ScriptSpec<S extends ScriptName> {
  keys: readonly KeyName[];
  /** Names of ARGV after cluster and node, in order; `…pairs` is any number of names and values. */
  args: readonly string[];
  build(call: Call<S>, context: ScriptContext): Argument[];
  parse(values: unknown[]): CallResult[S];
}

const BASE = ['lock', 'epoch', 'admission', 'stream'] as const satisfies readonly KeyName[];
const OWNED = ['owner', 'writer_epoch_text'] as const;

/** What the node wants to see again in the later calls of an admission. A record of version 0.1.0 has none. */
function challenged(value: unknown): { challenge?: string } {
  const challenge = value === undefined ? '' : text(value);
  return challenge === '' ? {} : { challenge };
}

function nothing(): Record<string, never> {
  return {};
}

function bytes(data: Uint8Array): Buffer {
  return Buffer.isBuffer(data) ? data : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

function optional(value: number | string | undefined): string {
  return value === undefined ? '' : String(value);
}

function expectation(expect: Expectation | undefined): [string, string] {
  return [expect?.leader === undefined ? '' : `=${expect.leader}`, optional(expect?.epoch)];
}

function blockFields(block: Block, entryEpoch: number): Argument[] {
  return [String(block.height), block.hash, block.parent, String(block.timestamp), String(entryEpoch)];
}

/** The parent of block 1 depends on the cluster, not on its generation: a recovered cluster continues the chain. */
function genesisOf(identity: ClusterIdentity): string {
  const dot = identity.cluster.lastIndexOf('.');
  return genesisHash(dot < 0 ? identity.cluster : identity.cluster.slice(0, dot), identity.lane);
}

function parseHead(values: unknown[]): HeadFacts {
  const [head, headEpoch, headHash, floor, floorHash] = values;
  return {
    head: whole(head),
    headEpoch: whole(headEpoch),
    headHash: text(headHash),
    floor: whole(floor),
    floorHash: text(floorHash),
  };
}

const REQUEST_KIND = /^[a-z][a-z0-9_-]{0,39}$/;

/** A later version may know other kinds. A leader refuses them by name, so a reader must not fail at them. */
function parseRequest(fields: Map<string, unknown>): LeaderRequest {
  const kind = text(fields.get('kind'));
  const of = (name: string): string => text(fields.get(name));
  return {
    id: of('id'),
    kind: REQUEST_KIND.test(kind) ? kind : 'unknown',
    to: of('to'),
    plan: of('plan'),
    by: of('by'),
    reason: of('reason'),
    epoch: whole(fields.get('epoch')),
  };
}

const PRESENCE_FIELDS = ['role', 'height', 'version', 'url', 'pid', 'config_digest'] as const;
const ROLES: ReadonlySet<string> = new Set(['follower', 'promoting', 'leader', 'stopping']);

function presencePairs(presence: Omit<Presence, 'pttlMs'>): string[] {
  const known: readonly string[] = PRESENCE_FIELDS;
  const pairs = [
    'role',
    presence.role,
    'height',
    String(presence.height),
    'version',
    presence.version,
    'url',
    presence.url,
    'pid',
    String(presence.pid),
    'config_digest',
    presence.configDigest,
  ];
  for (const [name, value] of Object.entries(presence.extra)) if (!known.includes(name)) pairs.push(name, value);
  return pairs;
}

/** Null for a record that cannot be read. A key that somebody else wrote must not make `inspect` fail. */
function parsePresence(raw: unknown): Presence | null {
  const [id, left, rawFields] = list(raw);
  const fields = record(rawFields);
  const of = (name: string): string => (fields.has(name) ? text(fields.get(name)) : '');
  const role = of('role');
  if (!ROLES.has(role) || !/^\d{1,15}$/.test(of('height'))) return null;
  const extra: Record<string, string> = {};
  const known: readonly string[] = PRESENCE_FIELDS;
  for (const [name, value] of fields) if (!known.includes(name)) extra[name] = text(value);
  return {
    id: text(id),
    role: role as Presence['role'],
    height: whole(of('height')),
    version: of('version'),
    url: of('url'),
    pid: /^\d{1,15}$/.test(of('pid')) ? Number(of('pid')) : 0,
    configDigest: of('config_digest'),
    pttlMs: pttl(left),
    extra,
  };
}

const ADMISSIONS: ReadonlySet<string> = new Set([
  'admitted',
  'pristine',
  'bootstrap',
  'admitting',
  'wiped',
  'restarted',
  'damaged',
  'foreign',
]);

function parseView(values: unknown[]): NodeView {
  const view = record(values);
  const admitted = record(view.get('record'));
  const of = (name: string): string => (admitted.has(name) ? text(admitted.get(name)) : '');
  // The record of a damaged or foreign node may hold anything. Its fields are shown where they can be read, and never
  // trusted.
  const lenient = (digits: string): number =>
    /^\d{1,15}$/.test(digits) ? Number(digits) : digits === '' ? 0 : safe(digits);
  const safe = (digits: string): number =>
    /^\d{16}$/.test(digits) && Number.isSafeInteger(Number(digits)) ? Number(digits) : 0;
  const admission = text(view.get('admission'));
  if (!ADMISSIONS.has(admission)) throw new UnreadableReply(`admission '${admission.slice(0, 40)}'`);
  const lock = text(view.get('lock'));
  const hold = record(view.get('hold'));
  const handover = text(view.get('handover'));
  const request = record(view.get('request'));
  const info: Record<string, string> = {};
  for (const [name, value] of record(view.get('info'))) info[name] = text(value);
  const epoch = lenient(text(view.get('epoch')));
  const stray = admission === 'admitted' ? whyStray(of('config'), epoch) : '';
  return {
    admission: stray === '' ? (admission as AdmissionState) : 'damaged',
    admissionWhy: stray === '' ? text(view.get('why')) : stray,
    ...(stray === '' ? {} : { strayConfig: of('config') }),
    cluster: of('cluster'),
    node: of('node'),
    ...(admitted.has('moved_to') ? { movedTo: of('moved_to') } : {}),
    incarnation: of('incarnation'),
    pending: of('pending'),
    ...challenged(of('challenge')),
    config: stray === '' ? of('config') : '',
    admittedRunId: of('run'),
    runId: text(view.get('run')),
    head: lenient(of('head')),
    headEpoch: lenient(of('head_epoch')),
    headHash: of('head_hash'),
    floor: lenient(of('floor')),
    floorHash: of('floor_hash'),
    lock: lock === '' ? null : { owner: lock, pttlMs: pttl(view.get('lock_pttl')) },
    epoch,
    claimant: of('claimant'),
    length: whole(view.get('length')),
    hold:
      hold.size === 0
        ? null
        : {
            by: text(hold.get('by') ?? ''),
            reason: text(hold.get('reason') ?? ''),
            pttlMs: pttl(view.get('hold_pttl')),
          },
    handover: handover === '' ? null : { to: handover, pttlMs: pttl(view.get('handover_pttl')) },
    request: request.size === 0 ? null : readable(() => parseRequest(request)),
    sequencers: list(view.get('sequencers'))
      .flatMap((one) => readable(() => parsePresence(one)) ?? [])
      .sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)),
    absent: list(view.get('absent'))
      .map((one) => list(one))
      .map(([id, seenAtMs]) => ({ id: text(id), seenAtMs: whole(seenAtMs) })),
    timeMs: whole(view.get('time_ms')),
    info,
  };
}

function readable<T>(read: () => T | null): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}

export const SCRIPTS: { readonly [S in ScriptName]: ScriptSpec<S> } = {
  promote_leader: {
    keys: [...BASE, 'hold', 'handover'],
    args: ['owner', 'expected_epoch', 'ttl_ms', 'previous_owner'],
    build: (call) => [call.owner, String(call.expectedEpoch), String(call.ttlMs), optional(call.previousOwner)],
    parse: ([epoch]) => ({ epoch: whole(epoch) }),
  },
  claim: {
    keys: BASE,
    args: [...OWNED, 'acquire_ttl_ms', 'config'],
    build: (call) => [call.owner, String(call.epoch), optional(call.acquireTtlMs), call.config ?? ''],
    parse: parseHead,
  },
  write_block: {
    keys: [...BASE, 'orphans', 'request'],
    args: [
      ...OWNED,
      'ttl_ms',
      'mode',
      'height_text',
      'hash',
      'parent',
      'timestamp_text',
      'entry_epoch_text',
      'trim_to_text',
      'trim_hash',
      'data',
    ],
    build: (call) => [
      call.owner,
      String(call.epoch),
      String(call.ttlMs),
      call.mode,
      ...blockFields(call.block, call.entryEpoch),
      optional(call.trim?.to),
      optional(call.trim?.hash),
      bytes(call.block.data),
    ],
    parse: ([head, ...pairs]) =>
      pairs.length === 0 ? { head: whole(head) } : { head: whole(head), ...waitingRequest(pairs) },
  },
  rebase: {
    keys: [...BASE, 'orphans'],
    args: [...OWNED, 'floor_text', 'new_floor_hash', 'nonce', 'keep_ms'],
    build: (call) => [
      call.owner,
      String(call.epoch),
      String(call.floor),
      call.floorHash,
      call.nonce,
      String(call.keepMs),
    ],
    parse: parseHead,
  },
  extend_lock: {
    keys: [...BASE, 'request'],
    args: [...OWNED, 'ttl_ms'],
    build: (call) => [call.owner, String(call.epoch), String(call.ttlMs)],
    parse: ([head, ...pairs]) => ({ head: whole(head), ...(pairs.length === 0 ? {} : waitingRequest(pairs)) }),
  },
  release_lock: {
    keys: ['lock', 'admission', 'handover'],
    args: ['owner', 'handover_to', 'handover_ttl_ms', 'channel'],
    build: (call, { identity }) => [
      call.owner,
      optional(call.handover?.to),
      optional(call.handover?.ttlMs),
      hintChannelOf(identity.lane),
    ],
    parse: nothing,
  },
  inspect: {
    keys: [...BASE, 'hold', 'handover', 'request', 'sequencers', 'sequencer', 'orphans'],
    args: ['brief'],
    build: (call) => [call.brief === true ? '1' : ''],
    parse: parseView,
  },
  raise_epoch: {
    keys: BASE,
    args: ['value_text', 'of_owner', 'highest_seen_text', 'may_depose'],
    build: (call) => [String(call.value), optional(call.ofOwner), String(call.highestSeen), call.mayDepose ? '1' : '0'],
    parse: ([epoch]) => ({ epoch: whole(epoch) }),
  },
  bootstrap_prepare: {
    keys: [...BASE, 'orphans'],
    args: ['nonce'],
    build: (call) => [call.nonce],
    parse: nothing,
  },
  bootstrap_commit: {
    keys: [...BASE, 'orphans'],
    args: ['nonce', 'genesis', 'config', 'challenge'],
    build: (call, { identity }) => [call.nonce, genesisOf(identity), call.config ?? '', call.challenge ?? ''],
    parse: nothing,
  },
  begin_admission: {
    keys: [...BASE, 'orphans'],
    args: [
      ...OWNED,
      'nonce',
      'floor_text',
      'new_floor_hash',
      'keep_ms',
      'replaces',
      'resume_head_text',
      'resume_hash',
      'config',
    ],
    build: (call) => [
      call.owner,
      String(call.epoch),
      call.nonce,
      String(call.floor),
      call.floorHash,
      String(call.keepMs),
      call.replaces ?? '',
      optional(call.resume?.head),
      call.resume?.hash ?? '',
      call.config ?? '',
    ],
    parse: ([head, challenge]) => ({ head: whole(head), ...challenged(challenge) }),
  },
  backfill: {
    keys: ['admission', 'stream'],
    args: [
      ...OWNED,
      'nonce',
      'height_text',
      'hash',
      'parent',
      'timestamp_text',
      'entry_epoch_text',
      'data',
      'challenge',
    ],
    build: (call) => [
      call.owner,
      String(call.epoch),
      call.nonce,
      ...blockFields(call.block, call.entryEpoch),
      bytes(call.block.data),
      call.challenge ?? '',
    ],
    parse: ([head]) => ({ head: whole(head) }),
  },
  admit: {
    keys: BASE,
    args: [...OWNED, 'nonce', 'ttl_ms', 'want_head_text', 'want_head_hash', 'challenge'],
    build: ({ owner, epoch, nonce, ttlMs, head, headHash, challenge }) => [
      owner,
      String(epoch),
      nonce,
      String(ttlMs),
      String(head),
      headHash,
      challenge ?? '',
    ],
    parse: parseHead,
  },
  recover_node: {
    keys: [...BASE, 'orphans'],
    args: [
      ...OWNED,
      'nonce',
      'expect',
      'keep',
      'head_text',
      'head_epoch_text',
      'head_hash',
      'floor_text',
      'floor_hash',
      'keep_ms',
      'config',
    ],
    build: ({ owner, epoch, nonce, expect, keep, facts, keepMs, config }) => [
      owner,
      String(epoch),
      nonce,
      expect,
      keep ? '1' : '0',
      String(facts.head),
      String(facts.headEpoch),
      facts.headHash,
      String(facts.floor),
      facts.floorHash,
      String(keepMs),
      config ?? '',
    ],
    parse: ([challenge]) => challenged(challenge),
  },
  retire_node: {
    keys: ['admission'],
    args: ['expect', 'moved_to'],
    build: (call) => [call.expect, call.movedTo],
    parse: nothing,
  },
  set_hold: {
    keys: [...BASE, 'hold'],
    args: ['by', 'reason', 'ttl_ms', 'expect_leader', 'expect_epoch'],
    build: (call) => [call.by, call.reason, String(call.ttlMs), ...expectation(call.expect)],
    parse: nothing,
  },
  clear_hold: {
    keys: [...BASE, 'hold'],
    args: ['expect_leader', 'expect_epoch'],
    build: (call) => expectation(call.expect),
    parse: nothing,
  },
  request_leader: {
    keys: [...BASE, 'request'],
    args: [
      'ttl_ms',
      'expect_leader',
      'expect_epoch',
      'id',
      'kind',
      'to',
      'plan',
      'by',
      'reason',
      'for_epoch',
      'channel',
    ],
    build: ({ request, ttlMs, expect }, { identity }) => [
      String(ttlMs),
      ...expectation(expect),
      request.id,
      request.kind,
      request.to,
      request.plan,
      request.by,
      request.reason,
      String(request.epoch),
      hintChannelOf(identity.lane),
    ],
    parse: nothing,
  },
  clear_request: {
    keys: [...BASE, 'request'],
    args: ['id'],
    build: (call) => [call.id],
    parse: nothing,
  },
  announce: {
    keys: ['admission', 'sequencers', 'sequencer'],
    args: ['ttl_ms', 'id', '…pairs'],
    build: (call) => [String(call.ttlMs), call.presence.id, ...presencePairs(call.presence)],
    parse: ([used, most, time]) => ({ usedMemory: whole(used), maxMemory: whole(most), timeMs: whole(time) }),
  },
  audit: {
    keys: ['admission', 'audit'],
    args: ['max_records', '…pairs'],
    build: (call) => [String(call.maxRecords), ...Object.entries(call.record).flat()],
    parse: nothing,
  },
  note_lanes: {
    keys: [...BASE, 'lanes'],
    args: ['version', 'fills', 'marks', '…pairs'],
    build: ({ version, fills, entries }) => [
      version,
      fills?.incarnation ?? '',
      fills?.marks === true ? '1' : '0',
      ...entries.flatMap(({ name, text: entry }) => [name, entry]),
    ],
    parse: ([changed]) => ({ changed: whole(changed) }),
  },
  read_lanes: {
    keys: [...BASE, 'lanes'],
    args: [],
    build: () => [],
    parse: ([epoch, config, mark, ...entries]) => ({
      epoch: whole(epoch),
      config: text(config),
      mark: text(mark),
      entries: [...record(entries)].map(([name, entry]) => ({ name, text: text(entry) })),
    }),
  },
  forget_lane: {
    keys: [...BASE, 'hold', 'handover', 'request', 'sequencers', 'sequencer', 'orphans', 'audit'],
    args: [],
    build: () => [],
    parse: nothing,
  },
};

function waitingRequest(pairs: unknown[]): { request?: LeaderRequest } {
  // An accepted write stays accepted when the request that came with it cannot be read.
  const request = readable(() => parseRequest(record(pairs)));
  return request === null ? {} : { request };
}

/** KEYS and ARGV of one call. */
export function keysAndArguments(call: NodeCall, context: ScriptContext): { keys: string[]; args: Argument[] } {
  const spec = SCRIPTS[call.script] as ScriptSpec<ScriptName>;
  const keys = spec.keys.map((name) => context.keys[name]);
  // Each sequencer has its own presence key. `inspect` gets the prefix, because it reads the keys through the index.
  if (call.script === 'announce') keys[2] = context.keys.sequencer + call.presence.id;
  return { keys, args: [context.identity.cluster, context.nodeId, ...spec.build(call, context)] };
}

export interface ScriptText {
  lua: string;
  sha: string;
}

/** Finds the package's lua/ directory, from src/ and from dist/. */
export function luaDirectory(): string {
  let dir = dirname(fileURLToPath(import.meta.url));
  for (let up = 0; up < 6; up += 1) {
    if (existsSync(join(dir, 'lua', 'write_block.lua'))) return join(dir, 'lua');
    dir = dirname(dir);
  }
  throw new InvariantError('the package is incomplete: its lua/ directory is missing');
}

let luaDir: string | undefined;
const texts = new Map<ScriptName, ScriptText>();

/** Reads the file once per process, when it is first needed. */
export function scriptText(name: ScriptName): ScriptText {
  let known = texts.get(name);
  if (known === undefined) {
    luaDir ??= luaDirectory();
    const lua = readFileSync(join(luaDir, `${name}.lua`), 'utf8');
    known = { lua, sha: createHash('sha1').update(lua).digest('hex') };
    texts.set(name, known);
  }
  return known;
}
