// The in-memory twin of lua/: every script of docs/PROTOCOL.md section 4 as a synchronous function that changes a plain
// state. The exhaustive model, the simulator and the contract suite use it, and the contract suite compares it with
// real Redis. The order of the checks is part of the contract: cluster and node, admission, then the script's own
// checks. Nothing is written before the last check.
import {
  MAX_EPOCH_LEAP,
  MAX_NUMBER,
  recoveryExpectation,
  sequencerOf,
  type AdmissionState,
  type Block,
  type CallResult,
  type EntriesRead,
  type Epoch,
  type Expectation,
  type Hash,
  type HeadFacts,
  type Height,
  type NodeCall,
  type NodeReply,
  type NodeView,
  type Owner,
  type RefusalDetail,
  type RefusalReason,
  type Refused,
  type ReplyTo,
} from '../../src/core/protocol/types.js';
import { isRetired } from '../../src/core/generation.js';
import { compareVersions, whyStray, type Version } from '../../src/core/protocol/configuration.js';
import {
  emptyNodeState,
  freshRecord,
  type MemoryEntry,
  type MemoryNodeState,
  type MemoryRecord,
} from './memory-state.js';

export interface MemoryIdentity {
  /** `<clusterId>.<generation>`. */
  cluster: string;
  /** genesisHash(clusterId, lane). */
  genesis: Hash;
}

/** Switches single rules off, so that the model can show that each is needed. */
export interface Mutant {
  /** claim and write_block do not check who holds the lock. */
  noOwnerCheck?: boolean;
  /** A node accepts a lower epoch, and an equal one from any term. */
  noEpochCheck?: boolean;
  /** A node accepts a second term with an equal epoch. */
  noClaimantRule?: boolean;
  /** The node answers accepted instead of HEIGHT_EXISTS. */
  existsIsVote?: boolean;
  /** A node that lost its memory takes part again. */
  noAdmissionCheck?: boolean;
  /** An uncommitted head is never replaced. */
  noSupersede?: boolean;
  /** promote_leader does not check the expected epoch. */
  repeatPromotionAtAnyEpoch?: boolean;
  /** claim and begin_admission accept an earlier configuration than the node knows, and any memory. */
  noConfigCheck?: boolean;
  /** claim accepts a configuration that names another memory of this node. */
  noMemberCheck?: boolean;
  /** The run id alone identifies a server, without the replication id. */
  oldRunOnly?: boolean;
  /** begin_admission accepts used nonces. */
  reuseNonces?: boolean;
}

const NONE: Mutant = {};
const ORPHANS_KEPT = 100;
const NONCES_KEPT = 16;

type AnyReply = NodeReply<unknown>;

/** Runs one script on `state` at the node's time `nowMs`. Never throws, and never answers unknown. */
export function applyCall<C extends NodeCall>(
  state: MemoryNodeState,
  call: C,
  identity: MemoryIdentity,
  nodeId: string,
  nowMs: number,
  mutant: Mutant = NONE,
): ReplyTo<C> {
  return run(state, call, identity, nodeId, nowMs, mutant) as ReplyTo<C>;
}

function run(
  s: MemoryNodeState,
  call: NodeCall,
  identity: MemoryIdentity,
  nodeId: string,
  now: number,
  mutant: Mutant,
): AnyReply {
  expire(s, now);
  const bad = badArgument(call);
  if (bad !== null) return bad;
  if (call.script === 'inspect') return accepted(s, viewOf(s, identity, nodeId, now));
  if (call.script === 'recover_node') return recoverNode(s, call, identity, nodeId);
  if (call.script === 'forget_lane') return forgetLane(s, identity, nodeId);
  const foreign = wrongCluster(s, identity, nodeId);
  if (foreign !== null) return foreign;
  switch (call.script) {
    case 'release_lock':
      return releaseLock(s, call, now);
    case 'bootstrap_prepare':
      return bootstrapPrepare(s, call.nonce, identity, nodeId);
    case 'bootstrap_commit':
      return bootstrapCommit(s, call, identity);
    case 'retire_node':
      return retireNode(s, call);
    case 'begin_admission':
      return beginAdmission(s, call, identity, nodeId, mutant);
    case 'backfill':
      return backfill(s, call);
    case 'admit':
      return admit(s, call, now, mutant);
    case 'announce':
      return announce(s, call, now);
    case 'audit':
      return audit(s, call);
    default:
      break;
  }
  const notAdmitted = admissionRefusal(s, identity, nodeId, mutant);
  if (notAdmitted !== null) return notAdmitted;
  const record = s.record as MemoryRecord;
  switch (call.script) {
    case 'promote_leader':
      return promoteLeader(s, record, call, now, mutant);
    case 'claim':
      return claim(s, record, call, now, mutant);
    case 'write_block':
      return writeBlock(s, record, call, now, mutant);
    case 'rebase':
      return rebase(s, record, call, mutant);
    case 'extend_lock':
      return extendLock(s, record, call, now, mutant);
    case 'raise_epoch':
      return raiseEpoch(s, record, call);
    case 'set_hold':
      return setHold(s, call, now);
    case 'clear_hold':
      return clearHold(s, call);
    case 'request_leader':
      return requestLeader(s, call, now);
    case 'clear_request':
      return clearRequest(s, call.id);
    case 'note_lanes':
      return noteLanes(s, record, call);
    case 'read_lanes':
      return readLanes(s, record);
  }
}

// --- what every script shares

function accepted<T>(s: MemoryNodeState, value: T): NodeReply<T> {
  return { outcome: 'accepted', incarnation: s.record === null ? '' : s.record.incarnation, value };
}

function refused(reason: RefusalReason, detail: RefusalDetail = {}): Refused {
  return { outcome: 'refused', reason, detail };
}

const BAD_ENTRY_EPOCH = refused('BAD_ARGUMENT', { why: 'entry_epoch' });
const BAD_TRIM = refused('BAD_ARGUMENT', { why: 'trim' });

/** Checks sizes, and arguments that depend on each other. The Lua tests check the form of each argument. */
function badArgument(call: NodeCall): Refused | null {
  if ('epoch' in call && call.epoch > MAX_NUMBER) return refused('BAD_ARGUMENT', { why: 'epoch' });
  if (badConfig(call)) return refused('BAD_ARGUMENT', { why: 'config' });
  if (call.script === 'promote_leader' && call.expectedEpoch >= MAX_NUMBER)
    return refused('BAD_ARGUMENT', { why: 'expected_epoch' });
  if (call.script === 'write_block') {
    if (call.entryEpoch > call.epoch) return BAD_ENTRY_EPOCH;
    if (call.trim !== undefined && call.trim.to > call.block.height - 2) return BAD_TRIM;
  } else if (call.script === 'note_lanes') {
    return badLanes(call);
  } else if (call.script === 'backfill' && call.entryEpoch > call.epoch) {
    return BAD_ENTRY_EPOCH;
  } else if (call.script === 'raise_epoch' && call.value > Math.min(MAX_NUMBER, call.highestSeen + MAX_EPOCH_LEAP)) {
    return refused('BAD_ARGUMENT', { why: 'value' });
  }
  return null;
}

/** Scripts that compare configurations want one that has a version. */
function badConfig(call: NodeCall): boolean {
  if (!('config' in call) || call.config === undefined || call.config === '') return false;
  const compares = call.script === 'claim' || call.script === 'begin_admission';
  return call.config.length > 16_384 || (compares && !/^\d+\.\d+ /.test(call.config));
}

function badLanes({ version, fills, entries }: Call<'note_lanes'>): Refused | null {
  if (!/^\d*\.?\d*$/.test(version)) return refused('BAD_ARGUMENT', { why: 'version' });
  if (fills?.marks === true && fills.incarnation === '') return refused('BAD_ARGUMENT', { why: 'fills' });
  if ((entries.length === 0 && fills?.marks !== true) || entries.length > 128)
    return refused('BAD_ARGUMENT', { why: 'pairs' });
  for (const { name, text } of entries) {
    if (!/^[\w.-]{1,64}$/.test(name)) return refused('BAD_ARGUMENT', { why: 'lane' });
    const rank = laneRank(text);
    if (rank === null) return refused('BAD_ARGUMENT', { why: 'entry' });
  }
  return null;
}

function expire(s: MemoryNodeState, now: number): void {
  if (s.lock !== null && s.lock.expiresAtMs !== null && s.lock.expiresAtMs <= now) s.lock = null;
  if (s.hold !== null && s.hold.expiresAtMs <= now) s.hold = null;
  if (s.handover !== null && s.handover.expiresAtMs <= now) s.handover = null;
  if (s.request !== null && s.request.expiresAtMs <= now) s.request = null;
  for (const known of s.sequencers) {
    if (known.expiresAtMs <= now) {
      s.sequencers = s.sequencers.filter((one) => one.expiresAtMs > now);
      break;
    }
  }
}

function lockUntil(s: MemoryNodeState, owner: Owner, ttlMs: number, now: number): void {
  const expiresAtMs = ttlMs === Infinity ? null : now + ttlMs;
  if (s.lock === null || s.lock.owner !== owner || s.lock.expiresAtMs !== expiresAtMs) s.lock = { owner, expiresAtMs };
}

function pttl(expiresAtMs: number | null, now: number): number {
  return expiresAtMs === null ? -1 : Math.ceil(expiresAtMs - now);
}

function wrongCluster(s: MemoryNodeState, identity: MemoryIdentity, nodeId: string): Refused | null {
  const record = s.record;
  if (record === null) return null;
  if (record.cluster !== identity.cluster) return refused('WRONG_CLUSTER', { why: 'cluster', actual: record.cluster });
  if (record.node !== nodeId) return refused('WRONG_CLUSTER', { why: 'node', actual: record.node });
  return null;
}

/** The state of the node's memory, without a check of the record's cluster and node id. */
function memoryOf(s: MemoryNodeState): Exclude<AdmissionState, 'foreign'> {
  const record = s.record;
  if (record === null) return hasFormerKeys(s) ? 'wiped' : 'pristine';
  if (record.pending !== '') return record.pending.startsWith('bootstrap:') ? 'bootstrap' : 'admitting';
  if (record.run !== s.runId) return 'restarted';
  return s.epoch !== null && s.epoch <= MAX_NUMBER && streamAgrees(s, record) ? 'admitted' : 'damaged';
}

function streamAgrees(s: MemoryNodeState, record: MemoryRecord): boolean {
  if (s.entries.length !== record.head - record.floor) return false;
  if (s.entries.length === 0) return true;
  // All that real Redis can tell without reading a payload: no entry is above the head.
  const last = s.entries[s.entries.length - 1] as MemoryEntry;
  return last.height < record.head || (last.height === record.head && last.epoch <= record.headEpoch);
}

const NOT_ADMITTED: Record<string, Refused> = Object.fromEntries(
  ['wiped', 'restarted', 'damaged', 'bootstrap', 'admitting'].map((why) => [why, refused('NOT_ADMITTED', { why })]),
);

/** Whether two identities (`<run id>+<replication id>`) belong to one server process, whatever it was a replica of. */
export function sameServerRun(one: string, other: string): boolean {
  return one.split('+')[0] === other.split('+')[0];
}

function admissionRefusal(
  s: MemoryNodeState,
  identity: MemoryIdentity,
  nodeId: string,
  mutant: Mutant,
): Refused | null {
  if (mutant.oldRunOnly && s.record !== null && sameServerRun(s.record.run, s.runId)) s.record.run = s.runId;
  const memory = memoryOf(s);
  if (memory === 'admitted') return null;
  if (mutant.noAdmissionCheck) {
    if (s.record === null) s.record = freshRecord(identity.cluster, nodeId, s.runId, identity.genesis);
    s.record.run = s.runId;
    if (s.epoch === null) s.epoch = 0;
    return null;
  }
  return NOT_ADMITTED[memory === 'pristine' ? 'wiped' : memory] as Refused;
}

/** I3, and the owner check before it. */
function fencing(
  s: MemoryNodeState,
  record: MemoryRecord,
  owner: Owner,
  epoch: Epoch,
  mutant: Mutant,
  freeWillDo = false,
): Refused | null {
  if (!mutant.noOwnerCheck && (s.lock === null ? !freeWillDo : s.lock.owner !== owner)) {
    return refused('FENCING_ERROR', s.lock === null ? { check: 'lock' } : { check: 'lock', holder: s.lock.owner });
  }
  return mayAct(s, record, owner, epoch, mutant)
    ? null
    : refused('FENCING_ERROR', { check: 'epoch', epoch: s.epoch as Epoch });
}

function mayAct(s: MemoryNodeState, record: MemoryRecord, owner: Owner, epoch: Epoch, mutant: Mutant): boolean {
  const current = s.epoch as Epoch;
  if (epoch > current || mutant.noEpochCheck) return true;
  return epoch === current && (mutant.noClaimantRule === true || record.claimant === owner);
}

function promise(s: MemoryNodeState, record: MemoryRecord, owner: Owner, epoch: Epoch): void {
  if (epoch > (s.epoch as Epoch)) s.epoch = epoch;
  record.claimant = owner;
}

function headFacts(record: MemoryRecord): HeadFacts {
  return {
    head: record.head,
    headEpoch: record.headEpoch,
    headHash: record.headHash,
    floor: record.floor,
    floorHash: record.floorHash,
  };
}

function entryOf(block: Block, epoch: Epoch, owner: Owner): MemoryEntry {
  return {
    height: block.height,
    epoch,
    hash: block.hash,
    parent: block.parent,
    timestamp: block.timestamp,
    owner,
    data: block.data,
    damage: '',
  };
}

function setHead(record: MemoryRecord, height: Height, epoch: Epoch, hash: Hash): void {
  record.head = height;
  record.headEpoch = epoch;
  record.headHash = hash;
}

function setAside(s: MemoryNodeState, nonce: string): void {
  if (s.entries.length > 0) s.aside = { nonce, entries: s.entries };
  s.entries = [];
}

type Call<S extends NodeCall['script']> = Extract<NodeCall, { script: S }>;
type Reply<S extends NodeCall['script']> = NodeReply<CallResult[S]>;

// --- leadership

function promoteLeader(
  s: MemoryNodeState,
  record: MemoryRecord,
  call: Call<'promote_leader'>,
  now: number,
  mutant: Mutant,
): Reply<'promote_leader'> {
  const renewed = s.lock !== null && call.previousOwner !== undefined && s.lock.owner === call.previousOwner;
  if (!renewed) {
    if (s.hold !== null)
      return refused('HELD', { by: s.hold.by, why: s.hold.reason, pttlMs: pttl(s.hold.expiresAtMs, now) });
    if (s.handover !== null && s.handover.to !== sequencerOf(call.owner)) {
      return refused('HANDOVER', { to: s.handover.to, pttlMs: pttl(s.handover.expiresAtMs, now) });
    }
    if (s.lock !== null) return refused('LOCK_HELD', { holder: s.lock.owner, pttlMs: pttl(s.lock.expiresAtMs, now) });
  }
  const epoch = s.epoch as Epoch;
  if (epoch !== call.expectedEpoch && !mutant.repeatPromotionAtAnyEpoch) return refused('EPOCH_MOVED', { epoch });
  lockUntil(s, call.owner, call.ttlMs, now);
  s.epoch = epoch + 1;
  record.claimant = call.owner;
  return accepted(s, { epoch: epoch + 1 });
}

function claim(
  s: MemoryNodeState,
  record: MemoryRecord,
  call: Call<'claim'>,
  now: number,
  mutant: Mutant,
): Reply<'claim'> {
  const fenced = fencing(s, record, call.owner, call.epoch, mutant, call.acquireTtlMs !== undefined);
  if (fenced !== null) return fenced;
  const config = call.config ?? '';
  if (!mutant.noConfigCheck) {
    if (isEarlier(config, record.config)) return refused('CONFIG_STALE', { actual: record.config });
    if (contradicts(config, record.config)) return refused('CONFIG_STALE', { why: 'other', actual: record.config });
    const named = memoryIn(config, record.node);
    if (!mutant.noMemberCheck && named !== null && named !== record.incarnation)
      return refused('NOT_MEMBER', { actual: record.incarnation });
  }
  record.config = config;
  if (s.lock === null && call.acquireTtlMs !== undefined) lockUntil(s, call.owner, call.acquireTtlMs, now);
  promise(s, record, call.owner, call.epoch);
  return accepted(s, headFacts(record));
}

function extendLock(
  s: MemoryNodeState,
  record: MemoryRecord,
  call: Call<'extend_lock'>,
  now: number,
  mutant: Mutant,
): Reply<'extend_lock'> {
  const fenced = fencing(s, record, call.owner, call.epoch, mutant);
  if (fenced !== null) return fenced;
  // A node whose epoch this term has not raised has promised it nothing, so there is nothing to extend.
  if (call.epoch !== s.epoch || record.claimant !== call.owner)
    return refused('FENCING_ERROR', { check: 'epoch', epoch: s.epoch as Epoch });
  if (s.lock !== null) lockUntil(s, call.owner, call.ttlMs, now);
  const request = s.request?.request;
  return accepted(
    s,
    request === undefined || request.epoch !== call.epoch ? { head: record.head } : { head: record.head, request },
  );
}

/** Compares versions. '' is the earliest. */
/** As lua/ reads a configuration: by its text, of which it knows the version and where a member's memory stands. */
interface ConfigWords {
  version: Version | null;
  withoutAddresses: string;
}
const wordsKnown = new Map<string, ConfigWords>();

function wordsOf(text: string): ConfigWords {
  let words = wordsKnown.get(text);
  if (words === undefined) {
    if (wordsKnown.size > 1000) wordsKnown.clear();
    const [, epoch, turn] = /^(\d+)\.(\d+) /.exec(text) ?? [];
    const version = epoch === undefined ? null : { epoch: Number(epoch), turn: Number(turn) };
    words = { version, withoutAddresses: text.replace(/@\S+/g, '') };
    wordsKnown.set(text, words);
  }
  return words;
}

function isEarlier(one: string, other: string): boolean {
  const [mine, theirs] = [wordsOf(one).version, wordsOf(other).version];
  return theirs !== null && (mine === null || compareVersions(mine, theirs) < 0);
}

/** `one` is not earlier than `other`. */
function contradicts(one: string, other: string): boolean {
  return one !== other && !isEarlier(other, one) && wordsOf(one).withoutAddresses !== wordsOf(other).withoutAddresses;
}

/** The memory that the text names for this node. Null: it does not name the node. */
function memoryIn(config: string, node: string): string | null {
  const bar = config.indexOf('|');
  const at = config.indexOf(` ${node}=`, bar < 0 ? config.length - 1 : bar);
  return at < 0 ? null : /^[^@ ]*/.exec(config.slice(at + node.length + 2))![0];
}

function releaseLock(s: MemoryNodeState, call: Call<'release_lock'>, now: number): Reply<'release_lock'> {
  if (s.lock === null) return refused('FENCING_ERROR', { check: 'lock' });
  if (s.lock.owner !== call.owner) return refused('FENCING_ERROR', { check: 'lock', holder: s.lock.owner });
  s.lock = null;
  if (call.handover !== undefined) s.handover = { to: call.handover.to, expiresAtMs: now + call.handover.ttlMs };
  return accepted(s, {});
}

function raiseEpoch(s: MemoryNodeState, record: MemoryRecord, call: Call<'raise_epoch'>): Reply<'raise_epoch'> {
  const epoch = s.epoch as Epoch;
  if (epoch >= call.value) return accepted(s, { epoch });
  const forHolder = s.lock !== null && s.lock.owner === call.ofOwner;
  if (s.lock !== null && !forHolder && !call.mayDepose) return refused('WOULD_DEPOSE', { holder: s.lock.owner });
  s.epoch = call.value;
  record.claimant = forHolder ? (call.ofOwner as Owner) : '';
  return accepted(s, { epoch: call.value });
}

// --- blocks

function writeBlock(
  s: MemoryNodeState,
  record: MemoryRecord,
  call: Call<'write_block'>,
  now: number,
  mutant: Mutant,
): Reply<'write_block'> {
  const { block, entryEpoch } = call;
  const height = block.height;
  const fenced = fencing(s, record, call.owner, call.epoch, mutant);
  if (fenced !== null) return fenced;

  if (height <= record.floor) return refused('TRIMMED', { floor: record.floor });
  if (height > record.head + 1) return refused('GAP', { head: record.head });
  if (height === record.head + 1) {
    if (block.parent !== record.headHash) {
      return refused('PARENT_MISMATCH', { head: record.head, epoch: record.headEpoch, hash: record.headHash });
    }
    if (call.trim !== undefined) trim(s, record, call.trim.to, call.trim.hash);
    s.entries.push(entryOf(block, entryEpoch, call.owner));
    setHead(record, height, entryEpoch, block.hash);
  } else if (height < record.head) {
    const there = s.entries[height - record.floor - 1] as MemoryEntry;
    if (there.hash !== block.hash) return refused('CONFLICT', { epoch: there.epoch, hash: there.hash });
  } else if (record.headHash === block.hash) {
    if (record.headEpoch < entryEpoch) replaceHead(s, record, block, entryEpoch, call.owner);
  } else {
    if (record.headEpoch === entryEpoch) return refused('CONFLICT', { epoch: record.headEpoch, hash: record.headHash });
    if (record.headEpoch > entryEpoch || call.mode === 'append' || mutant.noSupersede) {
      if (mutant.existsIsVote) return accepted(s, { head: record.head });
      return refused('HEIGHT_EXISTS', { epoch: record.headEpoch, hash: record.headHash });
    }
    const there = s.entries[s.entries.length - 1] as MemoryEntry;
    if (there.parent !== block.parent) return refused('CONFLICT', { epoch: there.epoch, hash: there.hash });
    const orphans = s.orphans.length < ORPHANS_KEPT ? s.orphans : s.orphans.slice(1);
    s.orphans = [...orphans, { entry: there, supersededBy: block.hash, atMs: now }];
    replaceHead(s, record, block, entryEpoch, call.owner);
  }
  promise(s, record, call.owner, call.epoch);
  if (!mutant.noOwnerCheck || s.lock?.owner === call.owner) lockUntil(s, call.owner, call.ttlMs, now);
  // A term does not get a request that is meant for another term.
  const request = s.request?.request;
  return accepted(
    s,
    request === undefined || request.epoch !== call.epoch ? { head: record.head } : { head: record.head, request },
  );
}

function replaceHead(s: MemoryNodeState, record: MemoryRecord, block: Block, entryEpoch: Epoch, owner: Owner): void {
  s.entries[s.entries.length - 1] = entryOf(block, entryEpoch, owner);
  setHead(record, block.height, entryEpoch, block.hash);
}

function trim(s: MemoryNodeState, record: MemoryRecord, to: Height, hash: Hash): void {
  if (to <= record.floor) return;
  s.entries.splice(0, to - record.floor);
  record.floor = to;
  record.floorHash = hash;
}

function rebase(s: MemoryNodeState, record: MemoryRecord, call: Call<'rebase'>, mutant: Mutant): Reply<'rebase'> {
  const fenced = fencing(s, record, call.owner, call.epoch, mutant);
  if (fenced !== null) return fenced;
  if (record.head >= call.floor) return refused('NOT_BEHIND', { head: record.head });
  setAside(s, call.nonce);
  record.floor = call.floor;
  record.floorHash = call.floorHash;
  setHead(record, call.floor, 0, call.floorHash);
  promise(s, record, call.owner, call.epoch);
  return accepted(s, headFacts(record));
}

// --- admission (section 8)

function bootstrapPrepare(
  s: MemoryNodeState,
  nonce: string,
  identity: MemoryIdentity,
  nodeId: string,
): Reply<'bootstrap_prepare'> {
  const mark = `bootstrap:${nonce}`;
  if (s.record === null ? hasFormerKeys(s) : s.record.pending !== mark || hasFormerKeys(s)) {
    // An admitted node counts as admitted here, even if it is damaged.
    const memory = memoryOf(s);
    return refused('NOT_PRISTINE', { why: s.record === null ? 'wiped' : memory === 'damaged' ? 'admitted' : memory });
  }
  // A repeated call notes the present run id.
  const challenge = s.record?.challenge || challengeOf(s);
  s.record = { ...freshRecord(identity.cluster, nodeId, s.runId, ''), pending: mark, challenge };
  return accepted(s, {});
}

function hasFormerKeys(s: MemoryNodeState): boolean {
  return s.lock !== null || s.epoch !== null || s.entries.length > 0 || s.orphans.length > 0;
}

function bootstrapCommit(
  s: MemoryNodeState,
  { nonce, config = '', challenge = '' }: Call<'bootstrap_commit'>,
  identity: MemoryIdentity,
): Reply<'bootstrap_commit'> {
  const record = s.record;
  if (
    record !== null &&
    record.pending === '' &&
    record.incarnation === nonce &&
    record.run === s.runId &&
    s.epoch === 0
  )
    return accepted(s, {});
  if (record === null || record.pending !== `bootstrap:${nonce}` || !knows(record, challenge))
    return refused('STALE_NONCE', { actual: record?.pending ?? '' });
  if (record.run !== s.runId) return NOT_ADMITTED.restarted as Refused;
  if (hasFormerKeys(s)) return refused('NOT_PRISTINE', { why: 'wiped' });
  record.pending = '';
  record.challenge = '';
  record.incarnation = nonce;
  record.headHash = identity.genesis;
  record.floorHash = identity.genesis;
  if (config !== '') record.config = config;
  s.epoch = 0;
  return accepted(s, {});
}

function beginAdmission(
  s: MemoryNodeState,
  call: Call<'begin_admission'>,
  identity: MemoryIdentity,
  nodeId: string,
  mutant: Mutant,
): Reply<'begin_admission'> {
  const record = s.record;
  const config = call.config ?? '';
  if (record !== null) {
    if (!mutant.noConfigCheck && isEarlier(config, record.config))
      return refused('CONFIG_STALE', { actual: record.config });
    const used = record.incarnation === call.nonce || record.usedNonces.includes(call.nonce);
    if (used && !mutant.reuseNonces) return refused('STALE_NONCE', { actual: record.pending });
    const memory = memoryOf(s);
    if (memory === 'admitted') {
      // q other nodes know the new memory before it counts. So it does not matter who holds the lock here.
      const fenced =
        config === ''
          ? fencing(s, record, call.owner, call.epoch, mutant)
          : mayAct(s, record, call.owner, call.epoch, mutant)
            ? null
            : refused('FENCING_ERROR', { check: 'epoch', epoch: s.epoch as Epoch });
      if (fenced !== null) return fenced;
      if (call.replaces !== record.incarnation) return refused('STALE_NONCE', { actual: record.incarnation });
    } else if (record.pending !== '' && !unfinishedMayBeTaken(record, call)) {
      return refused('FENCING_ERROR', { check: 'epoch', epoch: record.pendingEpoch });
    }
  }
  // What is left of the old memory may include a higher epoch than this leader's. It must not fall (I3), unless it is
  // more than 2^32 above: such an epoch was written by hand, and is lost like the rest.
  if (outranks(s, call.epoch)) return refused('FENCING_ERROR', { check: 'epoch', epoch: s.epoch as Epoch });
  // Blocks that an unfinished admission filled in are committed elsewhere, so they are no evidence.
  const keeps =
    record !== null &&
    record.pending !== '' &&
    record.run === s.runId &&
    call.resume !== undefined &&
    record.head === call.resume.head &&
    record.headHash === call.resume.hash &&
    streamAgrees(s, record);
  if (keeps) {
    // the stream stays as it is
  } else if (record !== null && record.pending !== '' && !record.pending.startsWith('bootstrap:')) s.entries = [];
  else setAside(s, call.nonce);
  const used = record?.usedNonces ?? [];
  const challenge = challengeOf(s);
  const facts = keeps
    ? headFacts(record)
    : { head: call.floor, headEpoch: 0, headHash: call.floorHash, floor: call.floor, floorHash: call.floorHash };
  s.record = {
    ...freshRecord(identity.cluster, nodeId, s.runId, identity.genesis),
    claimant: record?.claimant ?? '',
    ...facts,
    pending: call.nonce,
    pendingOwner: call.owner,
    pendingEpoch: call.epoch,
    usedNonces: [...used, call.nonce].slice(-NONCES_KEPT),
    challenge,
    config,
  };
  return accepted(s, { head: facts.head, challenge });
}

function recoverNode(
  s: MemoryNodeState,
  call: Call<'recover_node'>,
  identity: MemoryIdentity,
  nodeId: string,
): Reply<'recover_node'> {
  const { record } = s;
  const { facts, nonce } = call;
  if (record !== null) {
    const family = (cluster: string): string => cluster.slice(0, cluster.lastIndexOf('.'));
    if (family(record.cluster) !== family(identity.cluster))
      return refused('WRONG_CLUSTER', { why: 'cluster', actual: record.cluster });
    if (record.node !== nodeId) return refused('WRONG_CLUSTER', { why: 'node', actual: record.node });
    if (record.incarnation === nonce || record.pending === nonce || record.usedNonces.includes(nonce))
      return refused('STALE_NONCE', { actual: record.pending });
  }
  const actual = recoveryExpectation({
    runId: s.runId,
    cluster: record?.cluster ?? '',
    incarnation: record?.incarnation ?? '',
    pending: record?.pending ?? '',
    epoch: s.epoch ?? 0,
    head: record?.head ?? 0,
    headEpoch: record?.headEpoch ?? 0,
    headHash: record?.headHash ?? '',
    length: s.entries.length,
  });
  if (actual !== call.expect) return refused('EXPECTATION', { why: 'moved', actual });
  if (epochOf(s) > call.epoch) return refused('FENCING_ERROR', { check: 'epoch', epoch: s.epoch as Epoch });
  if (call.keep) {
    const last = s.entries.at(-1);
    const ends = last === undefined || (last.height === facts.head && last.epoch === facts.headEpoch);
    if (s.entries.length !== facts.head - facts.floor || !ends)
      return refused('NOT_READY', { head: last?.height ?? 0 });
  } else {
    setAside(s, nonce);
  }
  s.record = {
    ...freshRecord(identity.cluster, nodeId, s.runId, identity.genesis),
    claimant: record?.claimant ?? '',
    ...facts,
    pending: nonce,
    pendingOwner: call.owner,
    pendingEpoch: call.epoch,
    usedNonces: [...(record?.usedNonces ?? []), nonce].slice(-NONCES_KEPT),
    challenge: challengeOf(s),
    config: call.config ?? '',
  };
  return accepted(s, { challenge: challengeOf(s) });
}

function retireNode(s: MemoryNodeState, call: Call<'retire_node'>): Reply<'retire_node'> {
  const { record } = s;
  if (record === null) return NOT_ADMITTED.wiped as Refused;
  const memory = record.pending || record.incarnation;
  if (memory !== call.expect) return refused('EXPECTATION', { why: 'incarnation', actual: memory });
  record.cluster = `retired:${record.cluster}`;
  record.movedTo = call.movedTo;
  return accepted(s, {});
}

/** A number that no term can have reached does not count as an epoch. */
function epochOf(s: MemoryNodeState): Epoch {
  return s.epoch !== null && s.epoch <= MAX_NUMBER ? s.epoch : 0;
}

function outranks(s: MemoryNodeState, epoch: Epoch): boolean {
  return epochOf(s) > epoch && epochOf(s) <= epoch + MAX_EPOCH_LEAP;
}

function unfinishedMayBeTaken(record: MemoryRecord, call: { owner: Owner; epoch: Epoch }): boolean {
  return call.epoch > record.pendingEpoch || (call.epoch === record.pendingEpoch && record.pendingOwner === call.owner);
}

/** A value that each memory has only once. A real node uses its clock, in µs. */
function challengeOf({ lives }: MemoryNodeState): string {
  return `life ${lives}`;
}

function knows(record: MemoryRecord, challenge = ''): boolean {
  return challenge === '' || challenge === record.challenge;
}

/** Whether the admission `nonce` is still under way, belongs to this term, and the server has not restarted since. */
function admissionUnderWay(
  s: MemoryNodeState,
  call: { nonce: string; owner: Owner; epoch: Epoch; challenge?: string },
): Refused | null {
  const record = s.record;
  if (record === null) return NOT_ADMITTED.wiped as Refused;
  if (record.pending !== call.nonce || !knows(record, call.challenge))
    return refused('STALE_NONCE', { actual: record.pending });
  if (record.pendingOwner !== call.owner || record.pendingEpoch !== call.epoch) {
    return refused('FENCING_ERROR', { check: 'epoch', epoch: record.pendingEpoch });
  }
  if (record.run !== s.runId) return NOT_ADMITTED.restarted as Refused;
  return streamAgrees(s, record) ? null : (NOT_ADMITTED.damaged as Refused);
}

function backfill(s: MemoryNodeState, call: Call<'backfill'>): Reply<'backfill'> {
  const { block, entryEpoch } = call;
  const stale = admissionUnderWay(s, call);
  if (stale !== null) return stale;
  const record = s.record as MemoryRecord;
  const height = block.height;
  if (height <= record.floor) return refused('TRIMMED', { floor: record.floor });
  if (height > record.head + 1) return refused('GAP', { head: record.head });
  if (height <= record.head) {
    const there = s.entries[height - record.floor - 1] as MemoryEntry;
    if (there.hash !== block.hash) return refused('CONFLICT', { epoch: there.epoch, hash: there.hash });
    return accepted(s, { head: record.head });
  }
  if (block.parent !== record.headHash) {
    return refused('PARENT_MISMATCH', { head: record.head, epoch: record.headEpoch, hash: record.headHash });
  }
  s.entries.push(entryOf(block, entryEpoch, call.owner));
  setHead(record, height, entryEpoch, block.hash);
  return accepted(s, { head: height });
}

function admit(s: MemoryNodeState, call: Call<'admit'>, now: number, mutant: Mutant): Reply<'admit'> {
  const stale = admissionUnderWay(s, call);
  if (stale !== null) return stale;
  const record = s.record as MemoryRecord;
  if (outranks(s, call.epoch) && !mutant.noEpochCheck)
    return refused('FENCING_ERROR', { check: 'epoch', epoch: s.epoch as Epoch });
  if (record.head !== call.head || record.headHash !== call.headHash)
    return refused('NOT_READY', { head: record.head, hash: record.headHash });
  record.pending = '';
  record.challenge = '';
  record.pendingOwner = '';
  record.pendingEpoch = 0;
  record.incarnation = call.nonce;
  record.claimant = call.owner;
  s.epoch = call.epoch;
  lockUntil(s, call.owner, call.ttlMs, now);
  return accepted(s, headFacts(record));
}

// --- operators

function unexpected(s: MemoryNodeState, expect: Expectation | undefined): Refused | null {
  if (expect === undefined) return null;
  const leader = s.lock === null ? '' : sequencerOf(s.lock.owner);
  if (expect.leader !== undefined && expect.leader !== leader)
    return refused('EXPECTATION', { why: 'leader', actual: leader });
  const epoch = s.epoch ?? 0;
  if (expect.epoch !== undefined && expect.epoch !== epoch)
    return refused('EXPECTATION', { why: 'epoch', actual: String(epoch) });
  return null;
}

function setHold(s: MemoryNodeState, call: Call<'set_hold'>, now: number): Reply<'set_hold'> {
  const other = unexpected(s, call.expect);
  if (other !== null) return other;
  s.hold = { by: call.by, reason: call.reason, expiresAtMs: now + call.ttlMs };
  return accepted(s, {});
}

function clearHold(s: MemoryNodeState, call: Call<'clear_hold'>): Reply<'clear_hold'> {
  const other = unexpected(s, call.expect);
  if (other !== null) return other;
  s.hold = null;
  return accepted(s, {});
}

function requestLeader(s: MemoryNodeState, call: Call<'request_leader'>, now: number): Reply<'request_leader'> {
  const other = unexpected(s, call.expect);
  if (other !== null) return other;
  s.request = { request: { ...call.request }, expiresAtMs: now + call.ttlMs };
  return accepted(s, {});
}

function clearRequest(s: MemoryNodeState, id: string): Reply<'clear_request'> {
  if (s.request !== null && s.request.request.id === id) s.request = null;
  return accepted(s, {});
}

function announce(s: MemoryNodeState, call: Call<'announce'>, now: number): Reply<'announce'> {
  const mine = { presence: { ...call.presence, extra: { ...call.presence.extra } }, expiresAtMs: now + call.ttlMs };
  s.sequencers = [...s.sequencers.filter((one) => one.presence.id !== call.presence.id), mine].sort((a, b) =>
    a.presence.id < b.presence.id ? -1 : 1,
  );
  s.seen = [...s.seen.filter((one) => one.id !== call.presence.id), { id: call.presence.id, atMs: Math.floor(now) }];
  return accepted(s, { usedMemory: 0, maxMemory: 0, timeMs: Math.floor(now) });
}

function audit(s: MemoryNodeState, call: Call<'audit'>): Reply<'audit'> {
  s.audit = [...s.audit, { ...call.record }].slice(-call.maxRecords);
  return accepted(s, {});
}

function forgetLane(s: MemoryNodeState, identity: MemoryIdentity, nodeId: string): Reply<'forget_lane'> {
  const foreign = wrongCluster(s, { ...identity, cluster: `retired:${identity.cluster}` }, nodeId);
  if (foreign !== null) return foreign;
  const { record, lanes, lanesMark, aside, runId, lives } = s;
  Object.assign(s, emptyNodeState(runId, lives), { lanes, lanesMark, aside });
  if (record === null) return accepted(s, {});
  const { cluster, node, run, incarnation, pending, challenge, movedTo = '' } = record;
  s.record = { ...freshRecord(cluster, node, run, ''), incarnation, pending, challenge, movedTo };
  return accepted(s, {});
}

const LANE_ENTRY = /^(\d+) (?:open|closed|removed) ([0-9a-f]+) at=(\d+) by=[!-~][ -~]*$/;

function laneRank(text: string | undefined): { version: number; writer: string } | null {
  const [, version, writer, at] = LANE_ENTRY.exec(text ?? '') ?? [];
  if (version === undefined || text!.length > 512) return null;
  const whole = (digits: string): boolean => /^(0|[1-9]\d{0,14})$/.test(digits) && Number(digits) <= MAX_NUMBER;
  return whole(version) && whole(at!) ? { version: Number(version), writer: writer! } : null;
}

function readLanes(s: MemoryNodeState, { config }: MemoryRecord): Reply<'read_lanes'> {
  const entries = [...s.lanes].map(([name, text]) => ({ name, text }));
  return accepted(s, { epoch: s.epoch as Epoch, config, mark: s.lanesMark, entries });
}

function noteLanes(
  s: MemoryNodeState,
  { config, incarnation }: MemoryRecord,
  { version, fills, entries }: Call<'note_lanes'>,
): Reply<'note_lanes'> {
  if (version !== config.replace(/ .*$/, '')) return refused('CONFIG_STALE', { actual: config });
  if (fills !== undefined && fills.incarnation !== '') {
    if (fills.incarnation !== incarnation) return refused('EXPECTATION', { why: 'incarnation', actual: incarnation });
  } else if (s.lanesMark !== incarnation && !incarnation.includes('.'))
    return refused('EXPECTATION', { why: 'lanes', actual: s.lanesMark });
  const lanes = new Map(s.lanes);
  let changed = 0;
  for (const { name, text } of entries) {
    const rank = laneRank(text)!;
    const known = laneRank(s.lanes.get(name));
    if (
      known !== null &&
      (rank.version < known.version || (rank.version === known.version && rank.writer <= known.writer))
    )
      continue;
    lanes.set(name, text);
    changed += 1;
  }
  if (changed > 0) s.lanes = lanes;
  if (fills?.marks === true) s.lanesMark = incarnation;
  return accepted(s, { changed });
}

// --- reading

function viewOf(s: MemoryNodeState, identity: MemoryIdentity, nodeId: string, now: number): NodeView {
  const record = s.record;
  // The cluster and node id are checked only as far as the caller knows them. A retired node is foreign to everybody.
  const foreign =
    (record !== null && isRetired(record)) ||
    wrongCluster(
      s,
      identity.cluster === '' ? { ...identity, cluster: s.record?.cluster ?? '' } : identity,
      nodeId === '' ? (s.record?.node ?? '') : nodeId,
    ) !== null;
  const memory = foreign ? 'foreign' : memoryOf(s);
  // The same check as for the answer of a real node: redis/scripts.ts.
  const stray = memory === 'admitted' && record !== null ? whyStray(record.config, s.epoch ?? 0) : '';
  // Written field by field: spreads here cost the simulator a tenth of its time.
  const view: NodeView = {
    head: record?.head ?? 0,
    headEpoch: record?.headEpoch ?? 0,
    headHash: record?.headHash ?? '',
    floor: record?.floor ?? 0,
    floorHash: record?.floorHash ?? '',
    admission: stray === '' ? memory : 'damaged',
    admissionWhy: stray,
    cluster: record?.cluster ?? '',
    node: record?.node ?? '',
    incarnation: record?.incarnation ?? '',
    pending: record?.pending ?? '',
    ...(record?.challenge ? { challenge: record.challenge } : {}),
    ...(record?.movedTo ? { movedTo: record.movedTo } : {}),
    config: stray === '' ? (record?.config ?? '') : '',
    admittedRunId: record?.run ?? '',
    runId: s.runId,
    lock: s.lock === null ? null : { owner: s.lock.owner, pttlMs: pttl(s.lock.expiresAtMs, now) },
    epoch: s.epoch ?? 0,
    claimant: record?.claimant ?? '',
    length: s.entries.length,
    hold: s.hold === null ? null : { by: s.hold.by, reason: s.hold.reason, pttlMs: pttl(s.hold.expiresAtMs, now) },
    handover: s.handover === null ? null : { to: s.handover.to, pttlMs: pttl(s.handover.expiresAtMs, now) },
    request: s.request === null ? null : { ...s.request.request },
    sequencers: s.sequencers.map(
      ({ presence: { id, role, height, version, url, pid, configDigest, extra }, expiresAtMs }) => ({
        id,
        role,
        height,
        version,
        url,
        pid,
        configDigest,
        pttlMs: pttl(expiresAtMs, now),
        extra,
      }),
    ),
    absent: s.seen
      .filter(({ id }) => !s.sequencers.some((one) => one.presence.id === id))
      .map(({ id, atMs }) => ({ id, seenAtMs: atMs })),
    timeMs: Math.floor(now),
    info: {},
  };
  if (stray !== '') view.strayConfig = record!.config;
  return view;
}

function entryId(entry: { height: Height; epoch: Epoch }): string {
  return `${entry.height}-${entry.epoch}`;
}

/** The entries from..to, as NodePort.read gives them. */
export function applyRead(
  s: MemoryNodeState,
  range: { from: Height; to: Height; limit: number; data: boolean; newestFirst?: boolean },
): EntriesRead {
  const start = firstAt(s.entries, range.from);
  const end = firstAt(s.entries, range.to + 1);
  const chosen = range.newestFirst
    ? s.entries.slice(Math.max(start, end - range.limit), Math.max(start, end)).reverse()
    : s.entries.slice(start, Math.min(end, start + range.limit));
  return present(chosen, range.data);
}

/** Entries with an id above `afterId` ('' = all), oldest first. */
export function entriesAfter(s: MemoryNodeState, afterId: string, limit: number): EntriesRead {
  const [height = -1, epoch = -1] = afterId === '' ? [] : afterId.split('-').map(Number);
  let start = firstAt(s.entries, height);
  const there = s.entries[start];
  if (there !== undefined && there.height === height && there.epoch <= epoch) start += 1;
  return present(s.entries.slice(start, start + limit), true);
}

/** The index of the first entry at or above this height. Each height has one entry. */
function firstAt(entries: readonly MemoryEntry[], height: Height): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle] as MemoryEntry).height < height) low = middle + 1;
    else high = middle;
  }
  return low;
}

function present(chosen: MemoryEntry[], withData: boolean): EntriesRead {
  const read: EntriesRead = { entries: [], damaged: [], lastId: '' };
  for (const entry of chosen) {
    read.lastId = entryId(entry);
    // Only a reader with the payload can see a wrong hash. Scripts and header reads cannot.
    if (entry.damage !== '' && withData) {
      read.damaged.push({ id: entryId(entry), height: entry.height, why: entry.damage });
      continue;
    }
    const { height, epoch, hash, parent, timestamp, owner, data } = entry;
    const header = { height, hash, parent, timestamp, epoch, owner, size: data.length };
    read.entries.push(withData ? { ...header, data } : header);
  }
  return read;
}
