// The client of a cluster for other programs: submit, follow, head, status. It speaks HTTP to the sequencers, and knows
// neither Redis nor the disk. Every failure is a SeqError with a stable code.
import { itemDigest, keyProblem, decodeBlockData } from '../core/chain/items.js';
import { isErrorCode } from '../core/error-codes.js';
import { EXIT, SeqError } from '../core/errors.js';
import { Agents, type ClientTls } from '../core/http-call.js';
import { askStatus, type RemoteStatus } from '../core/nodes/sequencer-client.js';
import type { CommittedBlock } from '../core/ports.js';
import { submitItems } from '../core/submit/submit.js';
import type { RawItem } from '../core/submit/item-reader.js';
import { usage, told } from './errors.js';
import { followBlocks } from './follow.js';
import { confirmedHead } from './head.js';
import { Sequencers } from './sequencers.js';
import type {
  CallOptions,
  ChainItem,
  ClientOptions,
  ConfirmedHead,
  FollowItemsOptions,
  FollowOptions,
  ItemReceipt,
  NewItem,
  SequencerAnswer,
  SubmitEachOptions,
  SubmitResult,
} from './types.js';

const GIVE_UP_MS = 60_000;
const STATUS_MS = 1000;
/** Calls of one client that may be under way at one sequencer. Further ones wait. */
const MAX_SOCKETS = 128;
const MAX_CHUNK_ITEMS = 4096;

/**
 * Talks to the sequencers of one cluster and one lane. It opens connections when they are needed; `close` ends them.
 *
 * Every method retries by itself, across failovers, until `giveUpMs` have passed without progress. What fails for good
 * rejects with `SeqError`: `code` is stable, and `retryable` says whether the same call may succeed later.
 */
export class SequencerClient {
  readonly #agents: Agents;
  readonly #sequencers: Sequencers;
  readonly #giveUpMs: number;

  /** Throws SeqError USAGE for options that cannot work. It asks nobody yet. */
  constructor(options: ClientOptions) {
    const tls = tlsOf(options);
    this.#giveUpMs = options.giveUpMs ?? GIVE_UP_MS;
    if (!(this.#giveUpMs >= 0)) throw usage('giveUpMs is not a number of milliseconds', 'giveUpMs: 60_000');
    this.#agents = new Agents(tls, MAX_SOCKETS);
    this.#sequencers = new Sequencers({
      urls: options.urls,
      access: {
        agents: this.#agents,
        ...(options.token === undefined ? {} : { token: options.token }),
        tls,
      },
      wanted: {
        ...(options.cluster === undefined ? {} : { cluster: options.cluster }),
        ...(options.lane === undefined ? {} : { lane: options.lane }),
      },
    });
  }

  /**
   * Puts items into the chain and waits until all are committed. Returns their receipts in the order of the items.
   * Items of one call are sequenced in their order. An item whose key was sequenced before keeps its first place.
   *
   * Rejects with USAGE (a key that cannot be one), ITEM_TOO_LARGE, KEY_CONFLICT (the key was used for other bytes),
   * OUTCOME_UNKNOWN, NO_PROGRESS or NO_SEQUENCER (gave up), WRONG_CLUSTER, TOKEN_NEEDED, INTERRUPTED. Some items may be
   * in the chain then: `changed` tells what is known. Submit the same items again, and none is sequenced twice.
   */
  async submit(items: NewItem | readonly NewItem[], options: CallOptions = {}): Promise<ItemReceipt[]> {
    const receipts: ItemReceipt[] = [];
    const given: readonly NewItem[] = 'key' in items ? [items] : items;
    await this.submitEach(given, { ...options, onReceipt: (receipt) => receipts.push(receipt) });
    return receipts;
  }

  /**
   * As `submit`, for many items: they are read as they are needed, at most some MiB ahead, and each receipt is handed
   * to `onReceipt`. Also rejects with what reading the items threw.
   */
  async submitEach(
    items: Iterable<NewItem> | AsyncIterable<NewItem>,
    options: SubmitEachOptions = {},
  ): Promise<SubmitResult> {
    const { token, tls } = this.#sequencers.access;
    try {
      const { items: count, retries } = await submitItems({
        urls: async () => [...this.#sequencers.urls],
        wanted: this.#sequencers.wanted,
        onlyThese: true,
        agents: this.#agents,
        giveUpMs: this.#giveUpMs,
        signal: options.signal ?? new AbortController().signal,
        plan: async (status) => {
          this.#sequencers.meet(status);
          return { items: (limits) => rawItems(items, limits) };
        },
        onReceipts: (raw, receipts) =>
          receipts.forEach(({ height, index, epoch }, at) =>
            options.onReceipt?.({ key: raw[at]!.key!, height, index, epoch }),
          ),
        ...(token === undefined ? {} : { token }),
        ...(tls === undefined ? {} : { tls }),
      });
      return { items: count, retries };
    } catch (error) {
      throw told(error);
    }
  }

  /**
   * Committed blocks in the order of their heights, each height once, live. It changes to another sequencer when one
   * ends or hangs, and goes on behind the last block. The hash of every block is computed again, and its parent must be
   * the block before it: a block of another chain is never handed out.
   *
   * Rejects with CHAIN_MISMATCH (a sequencer has another chain), PEER_LACKS_BLOCKS (no sequencer has the block any
   * more), NO_SEQUENCER (nobody could be read for `giveUpMs`), WRONG_CLUSTER, TOKEN_NEEDED, USAGE.
   */
  async *follow(options: FollowOptions = {}): AsyncGenerator<CommittedBlock, void, undefined> {
    try {
      yield* followBlocks(this.#sequencers, options, this.#giveUpMs);
    } catch (error) {
      throw told(error);
    }
  }

  /**
   * The items of committed blocks in the order of the chain, each once, live. The position (height, index) belongs to
   * one item for ever: save it with what the item changes, and pass it as `after` at the next start.
   *
   * Rejects as `follow` does, and with BLOCK_UNREADABLE for a block whose data has no format of this version.
   */
  async *followItems(options: FollowItemsOptions = {}): AsyncGenerator<ChainItem, void, undefined> {
    const { after, from, ...rest } = options;
    if (after !== undefined && !(Number.isSafeInteger(after.index) && after.index >= 0))
      throw usage('after.index is not a place in a block', 'after: { height, index } of the last item');
    for await (const block of this.follow({ ...rest, from: after?.height ?? from ?? 1 })) {
      const first = after !== undefined && block.height === after.height ? after.index + 1 : 0;
      yield* itemsOf(block).slice(first);
    }
  }

  /**
   * The committed head, confirmed on a quorum of nodes after this call began. Only the leader can answer, so it waits
   * for one.
   *
   * Rejects with NOT_CONFIRMED or NO_SEQUENCER (gave up), WRONG_CLUSTER, TOKEN_NEEDED, INTERRUPTED.
   */
  async head(options: CallOptions = {}): Promise<ConfirmedHead> {
    try {
      return await confirmedHead(this.#sequencers, this.#giveUpMs, options.signal ?? new AbortController().signal);
    } catch (error) {
      throw told(error);
    }
  }

  /** What each address answers now, asked once. It never rejects: an address that gives no answer says why. */
  async status(options: CallOptions = {}): Promise<SequencerAnswer[]> {
    const { urls, access } = this.#sequencers;
    return Promise.all(
      urls.map(async (url): Promise<SequencerAnswer> => {
        const answer = await askStatus(url, access, STATUS_MS, options.signal);
        if (answer.answered) return { url, answered: true, status: answer.status };
        const { why, code } = answer;
        return { url, answered: false, why, ...(code !== undefined && isErrorCode(code) ? { code } : {}) };
      }),
    );
  }

  /** Ends idle connections, and those of calls that are under way. */
  close(): void {
    this.#agents.close();
  }
}

/**
 * The items of one block. Throws SeqError BLOCK_UNREADABLE when its data has no format that this version knows.
 */
export function itemsOf(block: CommittedBlock): ChainItem[] {
  const content = decodeBlockData(block.data);
  const { height, timestamp } = block;
  if (content.format === 'malformed')
    throw new SeqError({
      code: 'BLOCK_UNREADABLE',
      exit: EXIT.data,
      message: `the data of block ${height} cannot be cut into items`,
      why: content.why,
      changed: 'nothing',
      next: ['read the blocks with follow() and their data yourself, or use the version of seq that wrote them'],
    });
  if (content.format === 'exec')
    return content.taken.map(({ key, digest }, index) => ({ height, index, key, data: null, digest, timestamp }));
  return content.items.map(({ key, data }, index) => ({
    height,
    index,
    key,
    data,
    digest: itemDigest(data),
    timestamp,
  }));
}

/** Checks each item, and hands them on in groups: all that an array has, one at a time from a stream. */
async function* rawItems(
  items: Iterable<NewItem> | AsyncIterable<NewItem>,
  limits: RemoteStatus['limits'],
): AsyncGenerator<RawItem[]> {
  let number = 0;
  if (Symbol.asyncIterator in items) {
    for await (const item of items) yield [rawItem(item, (number += 1), limits)];
    return;
  }
  let group: RawItem[] = [];
  for (const item of items) {
    group.push(rawItem(item, (number += 1), limits));
    if (group.length < MAX_CHUNK_ITEMS) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

function rawItem({ key, data }: NewItem, number: number, limits: RemoteStatus['limits']): RawItem {
  const problem = typeof key === 'string' ? keyProblem(key) : 'a key is text';
  if (problem !== null)
    throw usage(`item ${number}: ${problem}`, 'give each item a key of 1 to 256 bytes of printable text');
  const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : Buffer.from(data);
  const most = limits.maxItemBytes + limits.maxKeyBytes - Buffer.byteLength(key);
  if (bytes.length > most)
    throw new SeqError({
      code: 'ITEM_TOO_LARGE',
      exit: EXIT.data,
      message: `item ${number} has ${bytes.length} bytes; at most ${most} fit into one block`,
      why: 'one item has to fit into one block together with its key',
      changed: number > 1 ? 'some' : 'nothing',
      next: [],
    });
  return { number, key, data: bytes, consumed: bytes.length + 1 };
}

function tlsOf({ ca, certificate }: ClientOptions): ClientTls {
  const pem = (text: string | Uint8Array): string | Buffer => (typeof text === 'string' ? text : Buffer.from(text));
  return {
    ...(ca === undefined ? {} : { ca: pem(ca) }),
    ...(certificate === undefined ? {} : { cert: pem(certificate.cert), key: pem(certificate.key) }),
  };
}
