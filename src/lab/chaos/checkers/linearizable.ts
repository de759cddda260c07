// Is the history that of one append-only log? An append is a submitted item with its place. A read is `/v1/head`: a
// prefix, up to and including all items of a height. The places fix the order that any explanation must have, so no
// search is needed. The log is linearizable exactly when this holds: no operation that ended before another began comes
// after it in that order. Feeds and status may be behind, because one sequencer's store answers them. They are never
// ahead: everything that they show was committed at that time. Read by key, the log has every keyed item once: an item
// that is twice in the chain is an anomaly, whoever was told what.
import type { Anomaly, History } from '../history.js';
import { only } from '../history.js';
import { placesOf } from './items.js';

export interface Operation {
  what: string;
  /**
   * The operation took effect between these two times. `end` is Infinity for an item without an answer. `begin` is
   * Infinity too for a read that may be stale.
   */
  begin: number;
  end: number;
  height: number;
  /** The index within the height. A read comes after all items of its height. */
  index: number;
  entry: unknown;
}

function operationsOf(history: History): Operation[] {
  const places = placesOf(history);
  const operations: Operation[] = [];
  for (const item of only(history, 'item')) {
    const at = item.receipt ?? places.get(item.token)?.[0];
    if (at === undefined) continue;
    operations.push({
      what: `${item.token} was appended at ${at.height}/${at.index}`,
      begin: item.sentAt,
      end: item.answeredAt ?? Infinity,
      height: at.height,
      index: at.index,
      entry: item,
    });
  }
  for (const head of only(history, 'head')) {
    operations.push({
      what: `${head.who} confirmed the head ${head.height}`,
      begin: head.from,
      end: head.t,
      height: head.height,
      index: Infinity,
      entry: head,
    });
  }
  for (const entry of [...only(history, 'status'), ...only(history, 'block')]) {
    const by = entry.is === 'status' ? `the status of ${entry.who}` : entry.reader;
    operations.push({
      what: `${by} showed block ${entry.height}`,
      begin: Infinity,
      end: entry.t,
      height: entry.height,
      index: Infinity,
      entry,
    });
  }
  return operations;
}

export function linearizable(history: History): Anomaly[] {
  const keyed = new Map<string, Append[]>();
  for (const { token, keyed: has } of only(history, 'item')) if (has) keyed.set(token, []);
  for (const { height, items } of history.chain)
    items.forEach(({ token }, index) => keyed.get(token)?.push({ height, index }));
  return [...outOfOrder(operationsOf(history)), ...appendedTwice(keyed)].map(({ what, witness }) => ({
    checker: 'linearizable',
    what,
    witness,
  }));
}

export interface Append {
  height: number;
  index: number;
}

/**
 * The log as a map: an append of a key that the log has already changes nothing. So a second place of a key is an
 * append that no order explains, also where nobody was told of it. `appends`: per key, its places in the chain.
 */
export function appendedTwice(appends: ReadonlyMap<string, readonly Append[]>): { what: string; witness: unknown[] }[] {
  return [...appends]
    .filter(([, places]) => places.length > 1)
    .map(([key, places]) => ({
      what:
        `${key} was appended ${places.length} times, ` +
        `at ${places.map((at) => `${at.height}/${at.index}`).join(', ')}`,
      witness: [...places],
    }));
}

/** Pairs in which one operation ended before the other began, and comes after it in the log. */
export function outOfOrder(operations: readonly Operation[]): { what: string; witness: unknown[] }[] {
  const byEnd = [...operations].sort((a, b) => a.end - b.end);
  const byBegin = operations.filter(({ begin }) => begin !== Infinity).sort((a, b) => a.begin - b.begin);
  const found: { what: string; witness: unknown[] }[] = [];
  let furthest: Operation | null = null;
  let at = 0;
  for (const next of byBegin) {
    for (; at < byEnd.length && byEnd[at]!.end < next.begin; at++) {
      if (furthest === null || behind(byEnd[at]!, furthest) > 0) furthest = byEnd[at]!;
    }
    if (furthest !== null && behind(furthest, next) > 0) {
      found.push({ what: `${furthest.what}, and afterwards ${next.what}`, witness: [furthest.entry, next.entry] });
    }
  }
  return found;
}

/** > 0 when `a` comes after `b` in the log. */
function behind(a: Operation, b: Operation): number {
  if (a.height !== b.height) return a.height - b.height;
  return a.index === b.index ? 0 : a.index > b.index ? 1 : -1;
}
