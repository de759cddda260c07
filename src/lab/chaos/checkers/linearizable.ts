// Is the history that of one append-only log? An append is a submitted item with its place; a read is `/v1/head`: a
// prefix, up to and with all items of a height. Places give the order that any explanation must have, so that no
// search is needed: the log is linearizable exactly when no operation that had ended before another began stands
// behind it in that order. Feeds and status may be behind (they are answered from one sequencer's store), never
// ahead: what they show was committed when they showed it.
import type { Anomaly, History } from '../history.js';
import { only } from '../history.js';
import { placesOf } from './items.js';

export interface Operation {
  what: string;
  /**
   * Between these two it took effect. `end` is Infinity for an item without an answer; `begin` too for a read that
   * may be stale.
   */
  begin: number;
  end: number;
  height: number;
  /** Within the height; a read stands behind all items of its height. */
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
  return outOfOrder(operationsOf(history)).map(({ what, witness }) => ({ checker: 'linearizable', what, witness }));
}

/** Pairs of which one had ended before the other began, and stands behind it in the log. */
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

/** > 0 when `a` stands behind `b` in the log. */
function behind(a: Operation, b: Operation): number {
  if (a.height !== b.height) return a.height - b.height;
  return a.index === b.index ? 0 : a.index > b.index ? 1 : -1;
}
