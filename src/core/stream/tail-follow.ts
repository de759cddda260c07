// Yields the newest blocks as they are committed. It tails every node's stream. A block is handed out when q admitted
// nodes show the same (height, epoch, hash), or when an entry stands on top of it (I5). docs/PROTOCOL.md section 7. The
// configuration of the entry's own term says how many copies q are: the number of members may grow while a reader
// follows. On each node, the next read waits until the last batch has been judged. So a slow reader holds at most one
// small batch per node.
import { pause } from '../nodes/pause.js';
import type { CommittedBlock, NodePort } from '../ports.js';
import { parseConfiguration } from '../protocol/configuration.js';
import { enoughOf, type FollowedNode } from '../protocol/ledger.js';
import type { Entry, Epoch, Hash, Height } from '../protocol/types.js';
import { bounded } from '../nodes/ask-all.js';
import type { TailContext } from './tail-context.js';

const BATCH = 4;
/** How long one XREAD may wait. A head that was re-stamped or replaced is read again after this time. */
const WAIT_MS = 500;
const AFTER_FAILURE_MS = 200;

interface NodeTail {
  port: NodePort;
  /** Newest copy by height. Heights below `next` are dropped. */
  copies: Map<Height, Entry>;
  admitted: boolean;
  /** What the last `inspect` showed. Absent: no configuration is known (version 0.1.0). */
  shown?: NonNullable<FollowedNode['shown']>;
  /** The highest epoch that the configuration above speaks of: it was shown after the term of that epoch had begun. */
  shownEpoch: Epoch;
  /** The highest epoch of any entry so far. */
  highestEpoch: Epoch;
  release: () => void;
}

/**
 * Yields blocks from `next` on. It returns its position in three cases: the nodes are further than the tails can prove,
 * `to` was reached, or it was aborted.
 */
export async function* followHead(
  context: TailContext,
  from: { next: Height; parent: Hash | null; to: Height },
): AsyncGenerator<CommittedBlock, { next: Height; parent: Hash | null }> {
  let { next, parent } = from;
  let stopped = false;
  let wake = (): void => undefined;
  const ended = (): boolean => stopped || (context.signal?.aborted ?? false);
  const tails: NodeTail[] = context.nodes.map((port) => ({
    port,
    copies: new Map(),
    admitted: false,
    shownEpoch: 0,
    highestEpoch: 0,
    release: () => undefined,
  }));
  const onAbort = (): void => wake();
  context.signal?.addEventListener('abort', onAbort);

  const run = async (tail: NodeTail): Promise<void> => {
    let afterId = `${next}-0`;
    let incarnation = '';
    let generation = -1;
    while (!ended()) {
      if (!tail.admitted || generation !== tail.port.connectionGeneration) {
        generation = tail.port.connectionGeneration;
        const shown = await show(context, tail);
        if (shown !== incarnation) {
          tail.copies.clear();
          afterId = `${next}-0`;
          incarnation = shown;
        }
        if (!tail.admitted) {
          tail.copies.clear();
          if (!ended()) await pause(context.clock, AFTER_FAILURE_MS);
          continue;
        }
      }
      const read = await tail.port.tail(afterId, WAIT_MS, BATCH);
      if (ended()) return;
      // Another memory than the probe has shown: the node was re-admitted, or its connections reach two servers.
      if (read.outcome !== 'accepted' || read.incarnation !== incarnation) {
        tail.admitted = false;
        if (!ended()) await pause(context.clock, AFTER_FAILURE_MS);
        continue;
      }
      if (read.value.lastId === '') {
        // The stream is quiet. A new entry may have an id below that of a superseded one, and XREAD does not show that.
        const again = await bounded(
          tail.port.read({ from: next, to: next + 1, limit: 2, data: true }, context.limitMs),
          context.limitMs,
          context.clock,
        );
        if (again.outcome !== 'accepted' || again.incarnation !== incarnation) {
          tail.admitted = false;
          continue;
        }
        take(tail, again.value.entries, next);
      } else {
        afterId = read.value.lastId;
        take(tail, read.value.entries, next);
      }
      if (tail.copies.size === 0) continue;
      // The term of an entry may count by more members than this reader knows of. Its copies count only by what the
      // node has shown since. An answer that shows another memory discards them above.
      if (tail.highestEpoch > tail.shownEpoch && (await show(context, tail)) !== incarnation) {
        tail.admitted = false;
        continue;
      }
      const probed = new Promise<void>((resolve) => {
        tail.release = resolve;
      });
      wake();
      await probed;
    }
  };

  const runs = tails.map((tail) => run(tail).catch(() => undefined));
  try {
    while (!ended() && next <= from.to) {
      const block = committedAt(tails, next, context.configured);
      if (block !== null && (parent === null || block.parent === parent)) {
        yield {
          height: block.height,
          hash: block.hash,
          parent: block.parent,
          timestamp: block.timestamp,
          epoch: block.epoch,
          data: block.data as Uint8Array,
        };
        parent = block.hash;
        next += 1;
        for (const tail of tails)
          for (const height of tail.copies.keys()) if (height < next) tail.copies.delete(height);
        continue;
      }
      // An entry above is there, so `next` is committed (I5). But the tails did not bring `next` itself.
      if (block !== null || tails.some((t) => t.admitted && [...t.copies.keys()].some((height) => height > next)))
        return { next, parent };
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      for (const tail of tails) tail.release();
      await woken;
    }
    return { next, parent };
  } finally {
    stopped = true;
    context.signal?.removeEventListener('abort', onAbort);
    for (const tail of tails) tail.release();
    void Promise.all(runs);
  }
}

function take(tail: NodeTail, entries: readonly Entry[], next: Height): void {
  for (const entry of entries) {
    if (entry.height >= next) tail.copies.set(entry.height, entry);
    tail.highestEpoch = Math.max(tail.highestEpoch, entry.epoch);
  }
}

/** Asks whose memory the node has, and which configuration it knows. Returns '' when it does not count. */
async function show(context: TailContext, tail: NodeTail): Promise<string> {
  const { limitMs, clock } = context;
  const epoch = tail.highestEpoch;
  const probe = await bounded(tail.port.call({ script: 'inspect' }, limitMs), limitMs, clock);
  tail.admitted = probe.outcome === 'accepted' && probe.value.admission === 'admitted';
  if (probe.outcome !== 'accepted' || !tail.admitted) return '';
  const { incarnation, config, headEpoch } = probe.value;
  const configuration = parseConfiguration(config);
  if (configuration === null) delete tail.shown;
  else tail.shown = { configuration, incarnation };
  tail.shownEpoch = Math.max(epoch, headEpoch);
  return incarnation;
}

function committedAt(tails: readonly NodeTail[], height: Height, configured: number): Entry | null {
  const counted = tails.filter((t) => t.admitted);
  const here = counted.flatMap((tail) => {
    const entry = tail.copies.get(height);
    return entry === undefined ? [] : [{ tail, entry }];
  });
  const enough = enoughOf(
    counted.map(({ port, shown }) => ({ id: port.id, ...(shown && { shown }) })),
    configured,
  );
  for (const { entry } of here) {
    const same = here.filter(({ tail, entry: { hash, epoch } }) => {
      return hash === entry.hash && epoch === entry.epoch && epoch <= tail.shownEpoch;
    });
    if (
      enough(
        same.map(({ tail }) => tail.port.id),
        entry.epoch,
      )
    )
      return entry;
  }
  const above = counted.flatMap((t) => t.copies.get(height + 1) ?? [])[0];
  return above === undefined ? null : (here.find(({ entry }) => entry.hash === above.parent)?.entry ?? null);
}
