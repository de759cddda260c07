// Reads blocks below the nodes' retained range from a sequencer's feed or a local store (docs/PROTOCOL.md section 7).
// An archive alone proves nothing. Its chain must lead, hash by hash, to the block that the nodes prove (their floor).
// Before that, no block is handed out. So the range is read twice: first for its hashes (32 bytes a block are kept),
// then for its content.
import { blockHash } from '../chain/block.js';
import { EXIT, SeqError } from '../errors.js';
import type { CommittedBlock } from '../ports.js';
import type { Hash, Height } from '../protocol/types.js';

export interface Archive {
  /** Name for messages: `the store DIR`, `seq-b at URL`. */
  readonly name: string;
  /** What flags call it: the sequencer's id, else its address or directory. Absent: its name. */
  readonly id?: string;
  /**
   * Blocks from…to in order. If it ends early or throws, the archive does not have all of them. It throws NotReached
   * when its chain is known to end below `from`.
   */
  read(from: Height, to: Height, signal: AbortSignal | undefined): AsyncIterable<CommittedBlock>;
}

/** The archive's chain has not reached the height. */
export class NotReached extends Error {}

/** A range up to this size is kept in memory and not read twice. */
const KEEP_BYTES = 16 * 1024 * 1024;

export async function* readArchives(
  archives: readonly Archive[],
  range: { from: Height; to: Height; anchor: Hash; last: Height },
  signal: AbortSignal | undefined,
): AsyncGenerator<CommittedBlock> {
  const reasons: string[] = [];
  for (const archive of archives) {
    const chain = await verifyChain(archive, range, signal);
    if (chain.ok) {
      yield* chain.kept ?? readAgain(archive, chain.hashes, range, signal);
      return;
    }
    if (signal?.aborted) return;
    reasons.push(`${archive.name}: ${chain.why}`);
  }
  throw new SeqError({
    code: 'BELOW_FLOOR',
    exit: EXIT.notFound,
    message: `height ${range.from} is below the floor: the nodes keep ${range.to + 1} and above`,
    why:
      reasons.length > 0
        ? `nobody else gave it: ${reasons.join('; ')}`
        : 'no sequencer offers a feed, and no store was named',
    changed: 'nothing',
    next: [`seq stream tail --from ${range.to + 1}`, `seq stream tail --from ${range.from} --store DIR`],
  });
}

type Chain = { ok: true; hashes: Buffer; kept: CommittedBlock[] | null } | { ok: false; why: string };

/** Reads up to the anchor at `range.to`. The blocks that will be handed out end at `range.last`. */
async function verifyChain(
  archive: Archive,
  range: { from: Height; to: Height; anchor: Hash; last: Height },
  signal: AbortSignal | undefined,
): Promise<Chain> {
  let hashes: Buffer = Buffer.allocUnsafe(32 * Math.min(range.to - range.from + 1, 1024));
  let kept: CommittedBlock[] | null = [];
  let keptBytes = 0;
  let next = range.from;
  let parent: Hash | null = null;
  try {
    for await (const block of archive.read(range.from, range.to, signal)) {
      if (block.height !== next)
        return { ok: false, why: `it gave height ${block.height} where ${next} was asked for` };
      if (blockHash(block) !== block.hash)
        return { ok: false, why: `its block ${block.height} does not have the hash it names` };
      if (parent !== null && block.parent !== parent)
        return { ok: false, why: `its block ${block.height} does not link to the one before` };
      const at = 32 * (block.height - range.from);
      if (at + 32 > hashes.length) hashes = Buffer.concat([hashes, Buffer.allocUnsafe(hashes.length)]);
      hashes.write(block.hash, at, 32, 'hex');
      if (kept !== null && block.height <= range.last) {
        keptBytes += block.data.length + 512;
        if (keptBytes > KEEP_BYTES) kept = null;
        else kept.push(block);
      }
      parent = block.hash;
      next += 1;
      if (next > range.to) break;
    }
  } catch (error) {
    return { ok: false, why: error instanceof Error ? error.message : String(error) };
  }
  if (next <= range.to)
    return { ok: false, why: next === range.from ? 'it has no block there' : `it ends at height ${next - 1}` };
  if (parent !== range.anchor)
    return {
      ok: false,
      why: `its block ${range.to} is ${String(parent).slice(0, 12)}, the nodes prove ${range.anchor.slice(0, 12)}`,
    };
  return { ok: true, hashes, kept };
}

async function* readAgain(
  archive: Archive,
  hashes: Buffer,
  range: { from: Height; last: Height },
  signal: AbortSignal | undefined,
): AsyncGenerator<CommittedBlock> {
  let next = range.from;
  for await (const block of archive.read(range.from, range.last, signal)) {
    const at = 32 * (next - range.from);
    if (
      block.height !== next ||
      block.hash !== hashes.toString('hex', at, at + 32) ||
      blockHash(block) !== block.hash
    ) {
      throw changed(archive, next);
    }
    yield block;
    next += 1;
    if (next > range.last) return;
  }
  if (!signal?.aborted) throw changed(archive, next);
}

function changed(archive: Archive, height: Height): SeqError {
  return new SeqError({
    code: 'ARCHIVE_CHANGED',
    exit: EXIT.tryAgain,
    message: `${archive.name} did not give block ${height} a second time as it did the first`,
    why: 'it went away or changed between the check and the reading',
    changed: 'nothing',
    next: [`seq stream tail --from ${height}`],
    retryable: true,
  });
}
