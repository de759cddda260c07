// What one term knows and which effects it may ask for. All of it is plain data, so that the model can copy, compare
// and explore it. A term is one promotion by one sequencer: one owner token, one epoch (docs/PROTOCOL.md sections 5 and
// 6).
import { memberOf, type Configuration, type MembersChange } from './configuration.js';
import { newProgress, type NodeIndex, type NodeProgress, type Standing } from './node-progress.js';
import type { StepdownCode, TermAlarmCode, TermEnd } from './term-codes.js';
import type {
  Block,
  EntriesRead,
  Epoch,
  Hash,
  Header,
  Height,
  LeaderRequest,
  NodeCall,
  NodeReply,
  Owner,
} from './types.js';

export interface TermSettings {
  owner: Owner;
  /** The token of the term being renewed, if this term continues one. */
  previousOwner?: Owner;
  nodes: number;
  quorum: number;
  ttlMs: number;
  /** ttl − ttl/100 − 2 ms. */
  usableLeaseMs: number;
  nodeTimeoutMs: number;
  /** How long promotion and claim wait for stragglers once a quorum has answered. */
  graceMs: number;
  /** The first pause before a node that did not answer is asked again. It doubles up to nodeTimeoutMs × 10. */
  retryMs: number;
  /** How often an unclaimed node is probed again. */
  regainMs: number;
  /** Node i allows no renewal before this time. The driver remembers these times across terms. */
  renewNotBefore: number[];
  /** Whether this leader re-admits nodes that lost their memory. */
  readmit: boolean;
  /** Per node: the damage that an earlier term or somebody else found there, and under which incarnation. */
  damaged?: ({ incarnation: string; why: string } | null)[];
  /**
   * The nodes and memories that this term counts: the newest configuration that its sequencer knew when the term began.
   * Without a configuration any memory counts.
   */
  configuration?: Configuration;
  /** Per index: the node's id in the configuration. Needed with a configuration. */
  ids?: readonly string[];
  /** The most heights that promotion itself reads and applies. A follower that is further behind catches up first. */
  maxAdopt: number;
  /**
   * A repair's term. It proposes nothing of its own. Where it must prove that it leads, it repeats its claim (section
   * 8).
   */
  quiet?: boolean;
  /**
   * The block that a person chose when blocks of one epoch conflict at the head. This term adopts it there against
   * candidates of epochs up to `over`, the highest epoch that the person was shown. A candidate of a higher epoch was
   * proposed since then, and may be committed.
   */
  chosen?: { block: Block; over: Epoch };
}

/** How a reason names a node: by its id, where the term knows the ids. */
export function nodeName({ ids }: Pick<TermSettings, 'ids'>, node: number): string {
  return ids?.[node] ?? `node ${node + 1}`;
}

/** The local chain, as the protocol needs it. It has committed blocks only. */
export interface LocalChain {
  head(): { height: Height; hash: Hash; timestamp: number };
  /** undefined below the store's first block or above its head. The genesis hash at 0. */
  hashAt(height: Height): Hash | undefined;
  /**
   * The floor of the retained range on the nodes after `height` is appended (exact retention), and its hash; undefined
   * when nothing is to be trimmed.
   */
  trimFor(next: Header & { size: number }): { to: Height; hash: Hash } | undefined;
  /** The present floor of the retained range. A node that lies below it is rebased to it. */
  retainedFloor(): { height: Height; hash: Hash };
  /**
   * A block that was read from a node before, with its hash checked. It is not known to be committed. The term need not
   * read the block again.
   */
  seen?(height: Height, hash: Hash): Block | undefined;
}

type Phase = 'promoting' | 'claiming' | 'adopting' | 'settling' | 'leading' | 'ended';

export interface Inflight {
  block: Block;
  trim: { to: Height; hash: Hash } | undefined;
  /** True for a block that is proposed again: it supersedes lower epochs from the start. */
  repair: boolean;
  startedAt: number;
  /** Per node: the time at which the accepted write was sent; −1 = not accepted. */
  ackedAt: number[];
}

export interface Candidate {
  hash: Hash;
  /** Infinity for the floor of an empty stream, which is committed by definition. */
  epoch: Epoch;
  nodes: NodeIndex[];
}

export interface TermState {
  settings: TermSettings;
  phase: Phase;
  epoch: Epoch;
  startedAt: number;
  leaseDeadline: number;
  graceUntil: number;
  nodes: NodeProgress[];
  /** The committed head of the nodes, as far as this term has established it. */
  committed: { height: Height; hash: Hash };
  inflight: Inflight | null;
  /**
   * The lease is being extended without a block. Per node: the time at which the accepted call was sent; −1 = not
   * accepted.
   */
  extending: { ackedAt: number[] } | null;
  /** A node was brought up since the last block was proposed. The next block trims it like the others. */
  uneven: boolean;
  /** Adoption: the greatest claimed head, and its candidates in order of falling epoch. */
  adopt: { height: Height; candidates: Candidate[] } | null;
  /**
   * The height up to which blocks are proposed again before the term leads. They come from the adopted head, or from
   * the store (loaded one by one).
   */
  settleTo: Height;
  /**
   * The share of time with a block in flight, smoothed over a quarter of a second; 0 … 1. Only paces the filling of
   * nodes.
   */
  load: number;
  committedAt: number;
  /** The cost of copying everything that this term has committed (fill-pace.ts). Only paces the filling of nodes. */
  fresh: number;
  /** The next block waits for an admission until this time; null = nothing waits. */
  gateUntil: number | null;
  stopping: { code: StepdownCode; reason: string; by: number } | null;
  /**
   * The nodes and memories that this term counts. Every claim carries it. Claims with the id `configurationFrom` or a
   * later one carry its present version.
   */
  configuration: Configuration | null;
  configurationFrom: number;
  /** A change of the members or of the agreed settings that is under way. */
  change: ChangeUnderWay | null;
  /** The turn of the next configuration that this term makes. */
  nextTurn: number;
  nextId: number;
  ended: TermEnd | null;
}

interface ChangeUnderWay {
  change: MembersChange;
  /** The server that is to become a member; −1: none. */
  candidate: NodeIndex;
  /** The configuration that the nodes are noting. Null: it is not made yet. */
  next: Configuration | null;
  /** The noting ends at this time. */
  by: number;
}

export type TermEvent =
  /**
   * The pre-vote: the nodes that answered in time that they are admitted and free (or held by previousOwner), with the
   * epoch that each showed.
   */
  | { type: 'start'; now: number; votes: { node: NodeIndex; epoch: Epoch }[] }
  | { type: 'reply'; now: number; node: NodeIndex; id: number; reply: NodeReply<unknown> }
  | {
      type: 'backfilled';
      now: number;
      node: NodeIndex;
      id: number;
      replies: NodeReply<{ head: Height; request?: LeaderRequest }>[];
      from: Header[];
      bytes: number;
    }
  | { type: 'read'; now: number; node: NodeIndex; id: number; reply: NodeReply<EntriesRead> }
  /** The producer's block for committed+1, or a committed block that `load` asked the store for. */
  | { type: 'proposal'; now: number; block: Block }
  /** On a node with this incarnation, entries do not match their hashes. */
  | { type: 'damaged'; now: number; node: NodeIndex; incarnation: string; why: string }
  | { type: 'stepdown'; now: number; code: StepdownCode; reason: string }
  /** An operator asked for a repair: probe this node at once, even if this term gave it up. */
  | { type: 'fix'; now: number; node: NodeIndex }
  /**
   * An operator put another server in the node's place, at this address. The node does not count until q other nodes
   * have noted a configuration that names a memory of the new server.
   */
  | { type: 'replaced'; now: number; node: NodeIndex; url: string }
  /**
   * An operator asked for one change of the members or of the agreed settings. `node`: the index of the server that is
   * added, −1 for none.
   */
  | { type: 'change'; now: number; change: MembersChange; node: NodeIndex }
  /** This process has opened one node more. It is the last one. */
  | { type: 'opened'; now: number; id: string }
  /** The lane may rest, and has no work: the lease is extended without a block. */
  | { type: 'extend'; now: number }
  | { type: 'tick'; now: number };

export type Effect =
  | { type: 'call'; node: NodeIndex; id: number; call: NodeCall; bytes: number }
  /**
   * Send the committed blocks from…to of the store in bounded batches. `nonce`: the node is being re-admitted.
   * entryEpoch is the committed epoch if it is known and stampOwnEpoch is false, else our epoch.
   */
  | {
      type: 'backfill';
      node: NodeIndex;
      id: number;
      from: Height;
      to: Height;
      stampOwnEpoch: boolean;
      nonce?: string;
      challenge?: string;
    }
  | { type: 'read'; node: NodeIndex; id: number; from: Height; to: Height }
  /** Return the store's committed block at this height as a proposal. */
  | { type: 'load'; height: Height }
  /** Blocks that were committed before this term, and learnt from the nodes. They go to the store, in order. */
  | { type: 'adopted'; blocks: Block[] }
  | { type: 'leading'; epoch: Epoch }
  /** The term is ready for the block at `height`. */
  | { type: 'ready'; height: Height; parent: Hash }
  | { type: 'committed'; block: Block; epoch: Epoch; startedAt: number; copies: number }
  | { type: 'request'; request: LeaderRequest }
  | { type: 'node'; node: NodeIndex; standing: Standing; why: string }
  | { type: 'alarm'; code: TermAlarmCode; reason: string; node?: NodeIndex; height?: Height }
  | { type: 'ended'; end: TermEnd };

/**
 * The context of one step: the state that its handlers change, the event's time, the local chain, and the effects so
 * far.
 */
export interface StepContext {
  readonly state: TermState;
  readonly now: number;
  readonly chain: LocalChain;
  readonly out: Effect[];
}

export function newTerm(settings: TermSettings, chain: LocalChain): TermState {
  const head = chain.head();
  return {
    settings,
    phase: 'promoting',
    epoch: 0,
    startedAt: 0,
    leaseDeadline: Infinity,
    graceUntil: Infinity,
    nodes: Array.from({ length: settings.nodes }, (_, node) => progressOf(settings, node)),
    committed: { height: head.height, hash: head.hash },
    inflight: null,
    extending: null,
    uneven: false,
    adopt: null,
    settleTo: 0,
    load: 0,
    committedAt: 0,
    fresh: 0,
    gateUntil: null,
    stopping: null,
    configuration: settings.configuration ?? null,
    configurationFrom: 0,
    change: null,
    nextTurn: 0,
    nextId: 1,
    ended: null,
  };
}

function progressOf({ configuration, ids }: TermSettings, node: NodeIndex): NodeProgress {
  if (configuration === undefined) return newProgress();
  const member = memberOf(configuration, ids![node]!);
  return newProgress(member?.memory ?? '', member === undefined);
}
