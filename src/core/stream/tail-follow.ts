// Yields the newest blocks as they are committed. It tails every node's stream. A block is handed out when q admitted
// nodes show the same (height, epoch, hash), or when an entry stands on top of it (I5). docs/PROTOCOL.md section 7. The
// holders say what q is: entries of an epoch that a node had not shown before count only after an `inspect` of it. On
// each node, the next read waits until the last batch has been judged. So a slow reader holds at most one small batch
// per node.
import { pause } from '../nodes/pause.js';
import { compareVersions, type Configuration } from '../protocol/configuration.js';
import { enoughCopies, shownBy, type Enough, type Shown } from '../protocol/copies.js';
import type { CommittedBlock, NodePort } from '../ports.js';
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
  /** The memory and the connection that were seen at the last `inspect`. */
  incarnation: string;
  generation: number;
  /** The configuration that it showed then. Null: it knows none. */
  shown: Shown | null;
  /** Entries up to this epoch were on it then. Entries of later epochs do not count yet. */
  shownEpoch: Epoch;
  afterId: string;
  release: () => void;
}

export interface Followed {
  next: Height;
  parent: Hash | null;
  /** The newest configuration that a node showed. Null: none did. */
  configuration: Configuration | null;
}

/**
 * Yields blocks from `next` on. It returns its position in four cases: the nodes are further than the tails can prove,
 * other nodes are members now, `to` was reached, or it was aborted.
 */
export async function* followHead(
  context: TailContext,
  from: { next: Height; parent: Hash | null; to: Height },
): AsyncGenerator<CommittedBlock, Followed> {
  let { next, parent } = from;
  let { configuration = null } = context;
  let moved = false;
  let stopped = false;
  let wake = (): void => undefined;
  const ended = (): boolean => stopped || (context.signal?.aborted ?? false);
  const tails: NodeTail[] = context.nodes.map((port) => ({
    port,
    copies: new Map(),
    admitted: false,
    incarnation: '',
    generation: -1,
    shown: null,
    shownEpoch: 0,
    afterId: `${from.next}-0`,
    release: () => undefined,
  }));
  const onAbort = (): void => wake();
  context.signal?.addEventListener('abort', onAbort);

  /** Asks the node who it is, and by which configuration it counts. */
  const show = async (tail: NodeTail): Promise<void> => {
    tail.generation = tail.port.connectionGeneration;
    const read = highestEpoch(tail);
    const { limitMs, clock } = context;
    const reply = await bounded(tail.port.call({ script: 'inspect', brief: true }, limitMs), limitMs, clock);
    const view = reply.outcome === 'accepted' && reply.value.admission === 'admitted' ? reply.value : null;
    tail.admitted = view !== null;
    if (view === null || view.incarnation !== tail.incarnation) {
      tail.copies.clear();
      tail.afterId = `${next}-0`;
    }
    tail.incarnation = view?.incarnation ?? '';
    tail.shown = view && shownBy(view, read);
    tail.shownEpoch = view === null ? 0 : Math.max(view.headEpoch, read);
    if (tail.shown === null || !isLater(tail.shown.configuration, configuration)) return;
    moved ||= configuration !== null && !sameServers(tail.shown.configuration, configuration);
    configuration = tail.shown.configuration;
  };

  const run = async (tail: NodeTail): Promise<void> => {
    while (!ended()) {
      if (!tail.admitted || tail.generation !== tail.port.connectionGeneration) {
        await show(tail);
        if (!tail.admitted) {
          if (!ended()) await pause(context.clock, AFTER_FAILURE_MS);
          continue;
        }
      }
      const read = await tail.port.tail(tail.afterId, WAIT_MS, BATCH);
      if (ended()) return;
      // Another memory than the probe has shown: the node was re-admitted, or its connections reach two servers.
      if (read.outcome !== 'accepted' || read.incarnation !== tail.incarnation) {
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
        if (again.outcome !== 'accepted' || again.incarnation !== tail.incarnation) {
          tail.admitted = false;
          continue;
        }
        take(tail, again.value.entries, next);
      } else {
        tail.afterId = read.value.lastId;
        take(tail, read.value.entries, next);
      }
      // The term of a new epoch may count by more members than this reader knows of.
      if (highestEpoch(tail) > tail.shownEpoch) await show(tail);
      if (!moved && tail.copies.size === 0) continue;
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
      const enough = enoughCopies(new Map(tails.map(({ port, shown }) => [port.id, shown])), context.configured);
      const block = committedAt(tails, next, enough);
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
        return { next, parent, configuration };
      if (moved) return { next, parent, configuration };
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      for (const tail of tails) tail.release();
      await woken;
    }
    return { next, parent, configuration };
  } finally {
    stopped = true;
    context.signal?.removeEventListener('abort', onAbort);
    for (const tail of tails) tail.release();
    void Promise.all(runs);
  }
}

function take(tail: NodeTail, entries: readonly Entry[], next: Height): void {
  for (const entry of entries) if (entry.height >= next) tail.copies.set(entry.height, entry);
}

function highestEpoch(tail: NodeTail): Epoch {
  let highest = 0;
  for (const { epoch } of tail.copies.values()) highest = Math.max(highest, epoch);
  return highest;
}

function committedAt(tails: readonly NodeTail[], height: Height, enough: Enough): Entry | null {
  const counted = tails.filter((t) => t.admitted);
  const copiesAt = (at: Height): { id: string; entry: Entry }[] =>
    counted.flatMap(({ port, copies, shownEpoch }) => {
      const entry = copies.get(at);
      return entry === undefined || entry.epoch > shownEpoch ? [] : [{ id: port.id, entry }];
    });
  const here = copiesAt(height);
  for (const { entry } of here) {
    const same = here.filter((one) => one.entry.hash === entry.hash && one.entry.epoch === entry.epoch);
    if (
      enough(
        same.map(({ id }) => id),
        entry.epoch,
      )
    )
      return entry;
  }
  const above = copiesAt(height + 1)[0];
  return above === undefined ? null : (here.find(({ entry }) => entry.hash === above.entry.parent)?.entry ?? null);
}

function isLater(shown: Configuration, known: Configuration | null): boolean {
  return known === null || compareVersions(shown.version, known.version) > 0;
}

/** Whether both name the same members at the same addresses. */
function sameServers(a: Configuration, b: Configuration): boolean {
  const servers = ({ members }: Configuration): string => members.map(({ id, since }) => `${id}#${since}`).join(' ');
  return servers(a) === servers(b);
}
