// The parts and settings that one sequencer is made of (sequencer/sequencer.ts).
import type { ClientTls } from '../http-call.js';
import type { Limits, Timing } from '../config.js';
import type { EmitEvent } from '../events.js';
import type { ChainStore, Clock, ClusterIdentity, NodePort, Producer, Random } from '../ports.js';
import type { CatchUpOptions } from './follow/catch-up.js';
import type { Inbox } from './lead/inbox.js';

export interface SequencerOptions {
  id: string;
  /** Members that this process was not told of are added at the end. */
  nodes: NodePort[];
  /** Opens a member that this process was not told of, with the credentials of the others. */
  openNode?: (member: { id: string; url: string }) => Promise<NodePort>;
  /**
   * Whether `nodes` may become the first configuration of a cluster that knows none, because version 0.1.0 made it. Two
   * sequencers with different lists would each lead their own nodes: so an operator says it, for one of them. Absent:
   * it may.
   */
  adoptNodes?: boolean;
  /**
   * Its producer, as lanes agree on it. `adopts`: an operator says that it becomes the producer of the lane. Absent:
   * nobody compares.
   */
  agreedProducer?: { own: string; adopts: boolean };
  identity: ClusterIdentity;
  store: ChainStore;
  inbox: Inbox;
  producer: Producer;
  clock: Clock;
  random: Random;
  timing: Timing;
  limits: Limits;
  /** Bytes of items that fit into one block of this producer. */
  maxItemsBytes: number;
  eager: boolean;
  /** Without work, the lease is extended without a block. Absent: a block each block time. */
  rests?: boolean;
  /** false: a node is asked at its listed address alone while this process runs (lead/node-addresses.ts). */
  seeksNodes?: boolean;
  /** Re-admit nodes that lost their memory, when leading. */
  readmit: boolean;
  /** 0 promotes first. Each higher number waits one turn more. */
  priority: number;
  /** Of equal priorities the least of these goes first. Absent: the id itself. */
  turnKey?: (id: string) => string;
  /**
   * For a process of many lanes: a promotion needs a slot. Returns how to give it back; null when there is none, and
   * calls `free` once there may be one.
   */
  slot?: (free: () => void) => (() => void) | null;
  version: string;
  url: string;
  pid: number;
  /** Differs between any two processes. Absent: two processes of one id are not told apart. */
  instance?: string;
  extra: Record<string, string>;
  emit: EmitEvent;
  /** Peers named with --peer. Peers from presence records are asked, too. */
  peers: readonly string[];
  peerToken?: () => string;
  peerTls?: () => ClientTls;
  /** Fetches blocks that the nodes have trimmed. The default reads peers' feeds over HTTP. */
  catchUp?: (options: CatchUpOptions) => Promise<void>;
}
