// What do the sequencers' stores hold at a height that a repair decides? What a store holds was acknowledged. A store
// answers "this block", "my chain ends below that height", or it gives no answer. A store without an answer may hold
// the block that would be set aside. So it is named, and the operator has to answer for it by name.
import { EXIT, SeqError } from '../errors.js';
import type { Hash, Height } from '../protocol/types.js';
import { NotReached, type Archive } from '../stream/tail-archive.js';

export interface StoreCopy {
  store: string;
  /** What --without-store calls it. */
  id: string;
  height: Height;
  /** Null when it does not hold the height, or did not answer. */
  hash: Hash | null;
  /** Why it shows no block. '' when it shows one. */
  why: string;
  answered: boolean;
}

/** The part of a repair's options that says what is known about silent stores. */
export interface SilentStores {
  /** Stores for which the operator answers, although they do not answer. */
  without?: readonly string[];
  /** The command as it was given, to be repeated with one more flag. */
  command?: string;
}

const STORE_MS = 2000;

export function askStores(
  archives: readonly Archive[],
  heights: readonly Height[],
  signal: AbortSignal | undefined,
): Promise<StoreCopy[]> {
  return Promise.all(archives.flatMap((archive) => heights.map((height) => askStore(archive, height, signal))));
}

async function askStore(archive: Archive, height: Height, signal: AbortSignal | undefined): Promise<StoreCopy> {
  const limit = AbortSignal.any([AbortSignal.timeout(STORE_MS), ...(signal === undefined ? [] : [signal])]);
  const none = { store: archive.name, id: archive.id ?? archive.name, height, hash: null };
  try {
    for await (const block of archive.read(height, height, limit))
      return { ...none, hash: block.hash, why: '', answered: true };
    return { ...none, why: 'it does not hold that height', answered: true };
  } catch (error) {
    const why = limit.aborted
      ? `no answer within ${STORE_MS} ms`
      : error instanceof Error
        ? error.message
        : String(error);
    return { ...none, why, answered: error instanceof NotReached };
  }
}

/** Throws when a store that did not answer is not named by the operator. Returns a sentence for each that is. */
export function refuseSilentStores(
  copies: readonly StoreCopy[],
  what: string,
  { without = [], command = '' }: SilentStores,
): string[] {
  const silent = copies.filter(({ answered }, at) => !answered && copies.findIndex(sameStore(copies[at]!)) === at);
  const unknown = silent.filter(({ id }) => !without.includes(id));
  if (unknown.length === 0)
    return silent.map(({ store, why }) => `${store} did not answer (${why}); you answer for it`);
  const flags = unknown.map(({ id }) => ` --without-store ${/^[\w./:-]+$/.test(id) ? id : `'${id}'`}`);
  throw new SeqError({
    code: 'STORE_SILENT',
    exit: EXIT.safety,
    message: `${what}: ${unknown.map(({ store, why }) => `${store} did not answer (${why})`).join('; ')}`,
    why:
      'a store may hold the block that would be set aside: its sequencer has acknowledged that block, and the chain ' +
      'would fork',
    changed: 'nothing',
    next: [
      'start these sequencers, or name their stores by --store or --peer, and try again',
      `${command}${flags.join('')}`.trim(),
    ],
    retryable: true,
  });
}

function sameStore(one: StoreCopy): (other: StoreCopy) => boolean {
  return (other) => other.store === one.store && !other.answered;
}
