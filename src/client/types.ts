// What a program gives to the client and gets from it. Only types.
import type { ErrorCode } from '../core/error-codes.js';
import type { SequencerStatus } from '../core/ports.js';
import type { Epoch, Hash, Height } from '../core/protocol/types.js';

export interface ClientOptions {
  /** Addresses of the sequencers of one cluster: `http://HOST:PORT` or `https://…`. One that answers is enough. */
  urls: readonly string[];
  /** Sent as a bearer token (`--http-token-file` of the sequencers). */
  token?: string;
  /** PEM of the certificate authority, when no known one has signed the certificates of the sequencers. */
  ca?: string | Uint8Array;
  /** PEM of a certificate and its key, for sequencers that ask for one (`--http-client-ca`). */
  certificate?: { cert: string | Uint8Array; key: string | Uint8Array };
  /** `<cluster id>.<generation>`. Without it, the first sequencer that answers decides. */
  cluster?: string;
  /** The lane. Without it, the first sequencer that answers decides. The lane without a name is `''`. */
  lane?: string;
  /** How long a call goes on without any progress before it fails, ms. Default 60,000. `Infinity` never gives up. */
  giveUpMs?: number;
}

export interface CallOptions {
  /** Ends the call. `submit` and `head` reject with INTERRUPTED; `follow` and `followItems` end. */
  signal?: AbortSignal;
}

export interface NewItem {
  /** 1 to 256 bytes of printable text. An item that is submitted again under its key is sequenced once. */
  key: string;
  /** Text is sent as UTF-8. */
  data: string | Uint8Array;
}

/** The place of an item in the chain: it never changes. `index` counts from 0 within the block. */
export interface ItemReceipt {
  key: string;
  height: Height;
  index: number;
  /** The epoch of the leader that answered: at least the one under which the item was written. */
  epoch: Epoch;
}

export interface SubmitEachOptions extends CallOptions {
  /** Called with the receipt of every item, in the order of the items, each once. */
  onReceipt?(receipt: ItemReceipt): void;
}

export interface SubmitResult {
  /** How many items have their receipt: all that were given. */
  items: number;
  /** How many attempts had to be repeated. */
  retries: number;
}

export interface FollowOptions extends CallOptions {
  /**
   * The first height that is wanted, from 1. Its parent is proven for height 1 only. Default: the block after `after`,
   * or 1.
   */
  from?: Height;
  /** The last block that the caller has. The next block must link to it. */
  after?: { height: Height; hash: Hash };
  /** The last height that is wanted. Without it, blocks come as they are committed, and the loop has no end. */
  to?: Height;
  /** A sequencer that sends nothing for this long is left for another one, ms. Default 30,000. */
  idleMs?: number;
}

export interface FollowItemsOptions extends CallOptions {
  /** The first height that is wanted, from 1. Default 1. */
  from?: Height;
  /** The last item that the caller has processed. The items behind it follow. It replaces `from`. */
  after?: { height: Height; index: number };
  /** The last height that is wanted. */
  to?: Height;
  /** As in `FollowOptions`. */
  idleMs?: number;
}

/** One item of the chain. */
export interface ChainItem {
  height: Height;
  index: number;
  /** Undefined for an item that was submitted without a key. */
  key: string | undefined;
  /** `null` where a child process made the block (`--producer exec`): such a block keeps the digest alone. */
  data: Uint8Array | null;
  /** SHA-256 of the item's bytes, as 64 hex digits. */
  digest: string;
  /** The time of its block, ms since the Unix epoch. It never goes back. */
  timestamp: number;
}

/** The committed head, confirmed on a quorum after the call began. */
export interface ConfirmedHead {
  height: Height;
  hash: Hash;
  epoch: Epoch;
}

/** Sizes in bytes. */
export interface SequencerLimits {
  maxBlockBytes: number;
  maxItemBytes: number;
  maxKeyBytes: number;
  maxBatchItems: number;
  maxBodyBytes: number;
}

/** What one address answered. `why` is a sentence. `code` is there when a sequencer refused. */
export type SequencerAnswer =
  | { url: string; answered: true; status: SequencerStatus & { limits: SequencerLimits } }
  | { url: string; answered: false; why: string; code?: ErrorCode };
