// Blocks from whichever sequencer can be read, each height once, linked from the first to the last. A feed that ends or
// hangs costs nothing but the way to another one: the next feed begins behind the last block, and must link to it. So a
// sequencer of another chain is found at its first block, and its blocks are handed to nobody.
import { genesisHash } from '../core/chain/block.js';
import { SeqError } from '../core/errors.js';
import { familyOf } from '../core/generation.js';
import { fetchFromPeer } from '../core/nodes/peer-feed.js';
import type { StatusAnswer } from '../core/nodes/sequencer-client.js';
import type { CommittedBlock } from '../core/ports.js';
import type { Hash, Height } from '../core/protocol/types.js';
import { usage } from './errors.js';
import { Patience, noSequencer } from './retry.js';
import { refuseHopeless, whyNobody, type Sequencers } from './sequencers.js';
import type { FollowOptions } from './types.js';

const IDLE_MS = 30_000;
/** Another feed of the same sequencer, or another sequencer, may do better. */
const PASSING = new Set(['PEER_UNREACHABLE', 'PEER_SPOKE_GARBAGE']);

type Up = Extract<StatusAnswer, { answered: true }>;

/** The block before the next wanted one. */
interface Position {
  height: Height;
  hash: Hash | null;
}

export async function* followBlocks(
  sequencers: Sequencers,
  options: FollowOptions,
  giveUpMs: number,
): AsyncGenerator<CommittedBlock, void, undefined> {
  const signal = options.signal ?? new AbortController().signal;
  const patience = new Patience(giveUpMs, signal);
  /** Addresses whose sequencer does not have the next block any more, and what it said. */
  const lacking = new Map<string, SeqError>();
  let at = startOf(options);
  let trouble = '';
  /** The address that failed last: any other one is tried before it. */
  let failed = '';
  while (!signal.aborted && at.height < (options.to ?? Infinity)) {
    const answers = await sequencers.ask(signal);
    if (signal.aborted) return;
    refuseHopeless(answers);
    const source = sourceOf(answers, at, lacking, failed);
    if (source) {
      const { cluster, lane } = source.status;
      sequencers.meet(source.status);
      if (at.height === 0 && at.hash === null) at = { height: 0, hash: genesisHash(familyOf(cluster), lane) };
      const { height } = at;
      try {
        for await (const block of feedOf(source.url, at, sequencers, { ...options, signal })) {
          at = { height: block.height, hash: block.hash };
          patience.progress();
          lacking.clear();
          yield block;
          if (signal.aborted) return;
        }
        continue;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof SeqError)) throw error;
        // After a block of this feed, an error is one of the sequencer's moment: its next feed may go on.
        if (error.code === 'PEER_LACKS_BLOCKS') {
          if (at.height === height) lacking.set(source.url, error);
        } else if (!PASSING.has(error.code)) throw error;
        failed = source.url;
        trouble = `${error.message} (${error.why})`;
      }
    }
    const none = sequencers.urls.every((url) => lacking.has(url)) || (patience.isOver && lacking.size > 0);
    if (none) throw [...lacking.values()][0]!;
    if (patience.isOver) throw noSequencer(giveUpMs, trouble === '' ? whyNobody(answers) : trouble);
    await patience.wait();
  }
}

function startOf({ from, after, to }: FollowOptions): Position {
  const isHeight = (height: number | undefined, least: number) =>
    height === undefined || (Number.isSafeInteger(height) && height >= least);
  if (!isHeight(from, 1) || !isHeight(to, 1) || !isHeight(after?.height, 0))
    throw usage('a height is a whole number, from 1 on', 'follow({ from: 1 })');
  if (after !== undefined && !/^[0-9a-f]{64}$/.test(after.hash))
    throw usage('after.hash is not a hash of 64 hex digits', 'after: { height, hash } of the last block');
  if (after !== undefined && from !== undefined && from !== after.height + 1)
    throw usage(`from is ${from}, and after is block ${after.height}`, 'pass one of the two');
  return after ?? { height: (from ?? 1) - 1, hash: null };
}

/** The sequencer with the highest block among those that may have the next one. */
function sourceOf(
  answers: readonly StatusAnswer[],
  at: Position,
  lacking: ReadonlyMap<string, unknown>,
  failed: string,
): Up | undefined {
  const able = answers.filter((answer): answer is Up => answer.answered && !lacking.has(answer.url));
  const rank = ({ url, status }: Up) => (url === failed ? 0 : 2) + (status.height > at.height ? 1 : 0);
  return able.sort((a, b) => rank(b) - rank(a) || b.status.height - a.status.height)[0];
}

function feedOf(
  url: string,
  after: Position,
  { access }: Sequencers,
  { to, idleMs, signal }: FollowOptions & { signal: AbortSignal },
): AsyncGenerator<CommittedBlock> {
  const { token, tls } = access;
  return fetchFromPeer({
    url,
    after,
    idleMs: idleMs ?? IDLE_MS,
    signal,
    ...(to === undefined ? {} : { to }),
    ...(token === undefined ? {} : { token }),
    ...(tls === undefined ? {} : { tls }),
  });
}
