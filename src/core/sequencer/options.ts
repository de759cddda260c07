// What one sequencer is made of and told (sequencer/sequencer.ts).
import type { Limits, Timing } from '../config.js';
import type { EmitEvent } from '../events.js';
import type { ChainStore, Clock, ClusterIdentity, NodePort, Producer, Random } from '../ports.js';
import type { CatchUpOptions } from './follow/catch-up.js';
import type { Inbox } from './lead/inbox.js';

export interface SequencerOptions {
  id: string;
  nodes: readonly NodePort[];
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
  /** Re-admit nodes that lost their memory, when leading. */
  readmit: boolean;
  /** 0 promotes first; each step waits one more turn. */
  priority: number;
  version: string;
  url: string;
  pid: number;
  configDigest: string;
  extra: Record<string, string>;
  emit: EmitEvent;
  /** Named peers (--peer); those that show themselves in presence records are asked too. */
  peers: readonly string[];
  peerToken?: string;
  peerCa?: string;
  /** How blocks that the nodes have trimmed are brought; over HTTP from peers' feeds unless said otherwise. */
  catchUp?: (options: CatchUpOptions) => Promise<void>;
}
