// What one term knows and what it may ask for: plain data, so that the model can copy, compare and explore it.
// A term is one promotion by one sequencer: one owner token, one epoch (docs/PROTOCOL.md sections 5 and 6).
import { memberOf, type Configuration } from './configuration.js';
import { newProgress, type NodeIndex, type NodeProgress, type Standing } from './node-progress.js';
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
  /** First pause before asking a node again that did not answer; doubles up to nodeTimeoutMs × 10. */
  retryMs: number;
  /** How often a node that is not ours is looked at again. */
  regainMs: number;
  /**
   * Whether a renewal is allowed for node i at time now is the driver's memory across terms: not before this time.
   */
  renewNotBefore: number[];
  /** Whether this leader re-admits nodes that lost their memory. */
  readmit: boolean;
  /** Per node, what an earlier term or somebody else found damaged there, under which incarnation. */
  damaged?: ({ incarnation: string; why: string } | null)[];
  /**
   * Whom this term counts: the newest configuration that its sequencer knew when it began. Without one any memory
   * counts.
   */
  configuration?: Configuration;
  /** Per index, the node's id in the configuration. Needed with one. */
  ids?: readonly string[];
  /** Most heights that promotion itself reads and applies; a follower further behind catches up first. */
  maxAdopt: number;
  /**
   * A repair's term: it proposes nothing of its own, and where it must prove that it leads it repeats its claim
   * (section 8).
   */
  quiet?: boolean;
  /**
   * What a person chose where blocks of one epoch stand against each other at the head: adopted there against
   * candidates of epochs up to `over`,
   * which are those that the person was shown. One of a higher epoch was proposed since, and may be committed.
   */
  chosen?: { block: Block; over: Epoch };
}

/** The local chain as the protocol needs it: committed blocks only. */
export interface LocalChain {
  head(): { height: Height; hash: Hash; timestamp: number };
  /** undefined below the store's first block or above its head; genesis at 0. */
  hashAt(height: Height): Hash | undefined;
  /**
   * The window's floor on the nodes once `height` is appended (exact retention), and its hash; undefined when nothing
   * is to be trimmed.
   */
  trimFor(next: Header & { size: number }): { to: Height; hash: Hash } | undefined;
  /** The floor of the window as it is now: where a node that lies below it is rebased to. */
  retainedFloor(): { height: Height; hash: Hash };
  /**
   * A block that was read from a node before, and whose hash was checked; not known to be committed. What it names
   * need not be read again.
   */
  seen?(height: Height, hash: Hash): Block | undefined;
}

type Phase = 'promoting' | 'claiming' | 'adopting' | 'settling' | 'leading' | 'ended';

export interface Inflight {
  block: Block;
  trim: { to: Height; hash: Hash } | undefined;
  /** Supersede lower epochs from the start: a block that is re-proposed. */
  repair: boolean;
  startedAt: number;
  /** Per node: when the accepted write was sent; −1 = not accepted. */
  ackedAt: number[];
}

export interface Candidate {
  hash: Hash;
  /** Infinity when it is an empty stream's floor: committed by definition. */
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
  /** What the nodes are known to have committed, as far as this term has established it. */
  committed: { height: Height; hash: Hash };
  inflight: Inflight | null;
  /** Adoption: the greatest head claimed, and its candidates by falling epoch. */
  adopt: { height: Height; candidates: Candidate[] } | null;
  /** Blocks still to be re-proposed before leading: from the adopted head, or from the store (loaded one by one). */
  settleTo: Height;
  /**
   * The share of time with a block in flight, smoothed over a quarter of a second; 0 … 1. Only paces the filling of
   * nodes.
   */
  load: number;
  committedAt: number;
  /**
   * Everything committed by this term, as what it costs to copy it (fill-pace.ts). Only paces the filling of nodes.
   */
  fresh: number;
  /** The next block waits for an admission until then; null = nothing waits. */
  gateUntil: number | null;
  stopping: { code: string; reason: string; by: number } | null;
  /** Whom this term counts. Every claim carries it; claims with this id or a later one carry it as it is now. */
  configuration: Configuration | null;
  configurationFrom: number;
  /** Of the next configuration that this term makes. */
  nextTurn: number;
  nextId: number;
  ended: TermEnd | null;
}

export interface TermEnd {
  /**
   * Stable: PROMOTION_LOST, CLAIM_LOST, CHOICE_OVERTAKEN, CHAIN_MISMATCH, BEHIND, FENCED, LEASE_EXPIRED, RENEW,
   * RECONFIGURED, or the stepdown's own code.
   */
  code: string;
  reason: string;
}

export type TermEvent =
  /**
   * The pre-vote: nodes that said in time that they are admitted and free (or held by previousOwner), with the epoch
   * each showed.
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
  /** The producer's block for committed+1, or a committed block of the store asked for with `load`. */
  | { type: 'proposal'; now: number; block: Block }
  /** Entries on a node, of this incarnation, are not what their hashes say. */
  | { type: 'damaged'; now: number; node: NodeIndex; incarnation: string; why: string }
  | { type: 'stepdown'; now: number; code: string; reason: string }
  /** An operator asked for it: look at this node at once, also when it was given up for this term. */
  | { type: 'fix'; now: number; node: NodeIndex }
  /**
   * An operator put another server in the node's place, at this address: the node is out, and stays out until q others
   * have noted a configuration that names a memory of the new server.
   */
  | { type: 'replaced'; now: number; node: NodeIndex; url: string }
  | { type: 'tick'; now: number };

export type Effect =
  | { type: 'call'; node: NodeIndex; id: number; call: NodeCall; bytes: number }
  /**
   * Send committed blocks from…to of the store in bounded batches (with `nonce`: to a node that is being
   * re-admitted); entryEpoch = committed epoch where known and not stampOwnEpoch, else ours.
   */
  | { type: 'backfill'; node: NodeIndex; id: number; from: Height; to: Height; stampOwnEpoch: boolean; nonce?: string }
  | { type: 'read'; node: NodeIndex; id: number; from: Height; to: Height }
  /** Feed the store's committed block back as a proposal. */
  | { type: 'load'; height: Height }
  /** Committed before this term, learnt from the nodes: in order, to the store. */
  | { type: 'adopted'; blocks: Block[] }
  | { type: 'leading'; epoch: Epoch }
  /** Ready for the block at `height`. */
  | { type: 'ready'; height: Height; parent: Hash }
  | { type: 'committed'; block: Block; epoch: Epoch; startedAt: number; copies: number }
  | { type: 'request'; request: LeaderRequest }
  | { type: 'node'; node: NodeIndex; standing: Standing; why: string }
  | { type: 'alarm'; code: string; reason: string; node?: NodeIndex; height?: Height }
  | { type: 'ended'; end: TermEnd };

/**
 * One step of a term: the state that its handlers change, the event's time, the local chain, and the effects so far.
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
    adopt: null,
    settleTo: 0,
    load: 0,
    committedAt: 0,
    fresh: 0,
    gateUntil: null,
    stopping: null,
    configuration: settings.configuration ?? null,
    configurationFrom: 0,
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
