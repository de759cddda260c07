// What became of the submissions that this port took lately? A trace of one item reads it. Each request is one small
// record. The oldest ones are dropped, so that the memory has a bound.
import type { Item, SubmitOutcome } from '../ports.js';
import { failureFrom, failureOf } from './envelope.js';

/** A record holds the keys of its items, and a key has at most 256 bytes. */
const MOST_ITEMS = 16_384;
/** One item that was sent again and again does not make the answer longer than this. */
const MOST_FOUND = 20;

/** Times are ms since 1970 by the clock of this process. */
interface Submission {
  lane: string;
  keys: readonly (string | undefined)[];
  receivedMs: number;
  /** Another sequencer forwarded it. */
  forwarded: boolean;
  /** The leader that it was forwarded to. '' when this sequencer took it itself. */
  to: string;
  /** 0: not yet. */
  answeredMs: number;
  /** In the order of the items. null: it was forwarded, or refused as a whole. */
  outcomes: readonly SubmitOutcome[] | null;
  /** The code of the error that answered the whole request. '' for none. */
  error: string;
}

/** One item of a submission. */
export interface SubmittedItem {
  receivedMs: number;
  from: 'client' | 'sequencer';
  forwardedTo: string | null;
  answeredMs: number | null;
  /** `committed`, `duplicate`, `forwarded` (the leader's answer), or the code of the error. null: it waits. */
  answer: string | null;
}

export class RecentSubmissions {
  private records: Submission[] = [];
  private items = 0;

  constructor(private readonly wall: () => number = Date.now) {}

  /** `forwarded`: by another sequencer. The record is told what became of it. */
  begin(lane: string, items: readonly Item[], forwarded: boolean): Submission {
    const record: Submission = {
      lane,
      keys: items.map(({ key }) => key),
      receivedMs: this.wall(),
      forwarded,
      to: '',
      answeredMs: 0,
      outcomes: null,
      error: '',
    };
    this.records.push(record);
    this.items += items.length;
    if (this.items > 2 * MOST_ITEMS) this.forget();
    return record;
  }

  answered(record: Submission, by: { to: string } | { outcomes: readonly SubmitOutcome[] }): void {
    record.answeredMs = this.wall();
    if ('to' in by) record.to = by.to;
    else record.outcomes = by.outcomes;
  }

  failed(record: Submission, error: unknown): void {
    record.answeredMs = this.wall();
    record.error = failureFrom(error).code;
  }

  /** Since when every submission is remembered: ms since 1970. null: nothing was submitted. */
  get sinceMs(): number | null {
    return this.records[0]?.receivedMs ?? null;
  }

  /** The submissions of an item, the newest last. Its position finds an item without a key, too. */
  find(lane: string, wanted: { key?: string; height?: number; index?: number }): SubmittedItem[] {
    const found: SubmittedItem[] = [];
    for (let at = this.records.length - 1; at >= 0 && found.length < MOST_FOUND; at -= 1) {
      const record = this.records[at]!;
      if (record.lane !== lane) continue;
      const position = positionOf(record, wanted);
      if (position >= 0) found.push(itemOf(record, position));
    }
    return found.reverse();
  }

  /** Drops half of it at once: the cost of one item stays the same however much is remembered. */
  private forget(): void {
    let from = 0;
    while (this.items > MOST_ITEMS && from < this.records.length - 1) this.items -= this.records[from++]!.keys.length;
    this.records = this.records.slice(from);
  }
}

function positionOf(
  { keys, outcomes }: Submission,
  { key, height, index }: { key?: string; height?: number; index?: number },
) {
  if (key !== undefined) return keys.indexOf(key);
  return (outcomes ?? []).findIndex(
    (one) => one.outcome === 'committed' && one.receipt.height === height && one.receipt.index === index,
  );
}

function itemOf(record: Submission, position: number): SubmittedItem {
  const { keys, receivedMs, forwarded, to, answeredMs, outcomes, error } = record;
  const outcome = outcomes?.[position];
  return {
    receivedMs,
    from: forwarded ? 'sequencer' : 'client',
    forwardedTo: to === '' ? null : to,
    answeredMs: answeredMs === 0 ? null : answeredMs,
    answer:
      answeredMs === 0
        ? null
        : error !== ''
          ? error
          : outcome === undefined
            ? 'forwarded'
            : wordOf(outcome, keys[position]),
  };
}

function wordOf(outcome: SubmitOutcome, key: string | undefined): string {
  if (outcome.outcome !== 'committed') return failureOf(outcome, key !== undefined).code;
  return outcome.duplicate ? 'duplicate' : 'committed';
}
