// The data of one node as a plain value: the keys of docs/PROTOCOL.md section 2, in a form that can be cloned and
// compared. Clones share entries, locks and every other nested object except `record`. So these are never changed in
// place, but replaced.
import { configurationText, firstConfiguration } from '../../src/core/protocol/configuration.js';
import type { Epoch, Hash, Height, LeaderRequest, Owner, Presence } from '../../src/core/protocol/types.js';

export interface MemoryEntry {
  readonly height: Height;
  readonly epoch: Epoch;
  readonly hash: Hash;
  readonly parent: Hash;
  readonly timestamp: number;
  readonly owner: Owner;
  readonly data: Uint8Array;
  /** Why a reader that checks the entry must call it damaged, or ''. Scripts cannot see it. */
  readonly damage: string;
}

interface MemoryLock {
  readonly owner: Owner;
  /** null: it never expires by itself (the exhaustive model frees locks itself). */
  readonly expiresAtMs: number | null;
}

/** `seq:node:admission`. The only nested object that scripts change in place. */
export interface MemoryRecord {
  cluster: string;
  node: string;
  run: string;
  incarnation: string;
  claimant: Owner;
  head: Height;
  headEpoch: Epoch;
  headHash: Hash;
  floor: Height;
  floorHash: Hash;
  /** The nonce of a re-admission under way, `bootstrap:<nonce>` of a bootstrap, or ''. */
  pending: string;
  pendingOwner: Owner;
  pendingEpoch: Epoch;
  /** Nonces of the admissions that were begun here. */
  usedNonces: readonly string[];
  /** Set while something is pending. Each memory has a different value. */
  challenge: string;
  /** The configuration that the node knows, or ''. */
  config: string;
  /** Set in a retired node only: its new address, 'removed' after the removal of its lane, or '-'. */
  movedTo?: string;
}

export interface MemoryNodeState {
  runId: string;
  /**
   * How often this server has lost its memory or got an older one back. Never reset, because challenges are made from
   * it.
   */
  lives: number;
  lock: MemoryLock | null;
  epoch: Epoch | null;
  record: MemoryRecord | null;
  /** The block stream, oldest first. */
  entries: MemoryEntry[];
  orphans: readonly { readonly entry: MemoryEntry; readonly supersededBy: Hash; readonly atMs: number }[];
  /** The newest stream that was set aside. */
  aside: { readonly nonce: string; readonly entries: readonly MemoryEntry[] } | null;
  hold: { readonly by: string; readonly reason: string; readonly expiresAtMs: number } | null;
  handover: { readonly to: string; readonly expiresAtMs: number } | null;
  request: { readonly request: LeaderRequest; readonly expiresAtMs: number } | null;
  sequencers: readonly { readonly presence: Omit<Presence, 'pttlMs'>; readonly expiresAtMs: number }[];
  /** When each sequencer was last announced. */
  seen: readonly { readonly id: string; readonly atMs: number }[];
  audit: readonly Record<string, string>[];
  /** The lane registry: lane → entry. */
  lanes: ReadonlyMap<string, string>;
  /** The memory that the lane registry belongs to. */
  lanesMark: string;
}

/** A server without any key of `seq`. */
export function emptyNodeState(runId: string, lives = 0): MemoryNodeState {
  return {
    runId,
    lives,
    lock: null,
    epoch: null,
    record: null,
    entries: [],
    orphans: [],
    aside: null,
    hold: null,
    handover: null,
    request: null,
    sequencers: [],
    seen: [],
    audit: [],
    lanes: new Map(),
    lanesMark: '',
  };
}

/** The first configuration of these nodes. `memory`: the nonce that the bootstrap gave to each. */
export function firstConfig(nodes: readonly { id: string; url: string }[], memory = 'boot'): string {
  return configurationText(firstConfiguration(nodes.map(({ id, url }) => ({ id, memory, url }))));
}

/** A node right after bootstrap: admitted, floor 0, epoch 0. */
export function newNodeState(
  id: string,
  cluster: string,
  genesis: Hash,
  runId = `run-${id}`,
  nonce = 'boot',
  config = '',
): MemoryNodeState {
  const state = emptyNodeState(runId);
  state.epoch = 0;
  state.record = { ...freshRecord(cluster, id, runId, genesis), incarnation: nonce, config };
  return state;
}

export function freshRecord(cluster: string, node: string, run: string, genesis: Hash): MemoryRecord {
  return {
    cluster,
    node,
    run,
    incarnation: '',
    claimant: '',
    head: 0,
    headEpoch: 0,
    headHash: genesis,
    floor: 0,
    floorHash: genesis,
    pending: '',
    pendingOwner: '',
    pendingEpoch: 0,
    usedNonces: [],
    challenge: '',
    config: '',
  };
}

export function cloneNodeState(s: MemoryNodeState): MemoryNodeState {
  const r = s.record;
  return {
    runId: s.runId,
    lives: s.lives,
    lock: s.lock,
    epoch: s.epoch,
    record:
      r === null
        ? null
        : {
            cluster: r.cluster,
            node: r.node,
            run: r.run,
            incarnation: r.incarnation,
            claimant: r.claimant,
            head: r.head,
            headEpoch: r.headEpoch,
            headHash: r.headHash,
            floor: r.floor,
            floorHash: r.floorHash,
            pending: r.pending,
            pendingOwner: r.pendingOwner,
            pendingEpoch: r.pendingEpoch,
            usedNonces: r.usedNonces,
            challenge: r.challenge,
            config: r.config,
            ...(r.movedTo === undefined ? {} : { movedTo: r.movedTo }),
          },
    entries: s.entries.slice(),
    orphans: s.orphans,
    aside: s.aside,
    hold: s.hold,
    handover: s.handover,
    request: s.request,
    sequencers: s.sequencers,
    seen: s.seen,
    audit: s.audit,
    lanes: s.lanes,
    lanesMark: s.lanesMark,
  };
}

/** FLUSHALL: every key is gone, and the process goes on. */
export function wipe(s: MemoryNodeState): void {
  Object.assign(s, emptyNodeState(s.runId, s.lives + 1));
}

/**
 * The server process starts again under a new run id. keep 'all': everything survives. 'none': nothing survives. A
 * number: that many of the newest entries are lost, and the record fits the rest, as after a snapshot.
 */
export function restart(s: MemoryNodeState, newRunId: string, options: { keep: 'all' | 'none' | number }): void {
  s.runId = newRunId;
  if (options.keep === 'all') return;
  if (options.keep === 'none') {
    wipe(s);
    return;
  }
  s.lives += 1;
  s.entries = s.entries.slice(0, Math.max(0, s.entries.length - options.keep));
  const record = s.record;
  if (record === null) return;
  const last = s.entries[s.entries.length - 1];
  record.head = last?.height ?? record.floor;
  record.headEpoch = last?.epoch ?? 0;
  record.headHash = last?.hash ?? record.floorHash;
}
