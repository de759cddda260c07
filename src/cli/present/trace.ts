// What `seq trace` shows: where the item is, and what happened to it, in the order of time.
import { EXIT } from '../../core/errors.js';
import type { ItemTrace, TraceStep, WantedItem, Witness } from '../../core/report/trace.js';
import type { Result } from './result.js';
import { isoTime } from './text.js';

/** A difference of clocks that is worth a warning: the order of the steps may be wrong by that much. */
const CLOCK_WARNING_MS = 50;

export function traceResult(trace: ItemTrace, wanted: WantedItem): Result {
  const { item, key, steps, witnesses, silent } = trace;
  const { exit, ...verdict } = judge(trace, wanted);
  const first = steps[0]?.atMs;
  return {
    data: {
      key,
      item,
      steps: steps.map((step) => ({ ...step, at: isoTime(step.atMs) })),
      sequencers: witnesses,
      silent,
    },
    verdict,
    facts: item
      ? [
          ['block', item.height],
          ['item', `${item.index}${item.items === null ? '' : ` of 0 to ${item.items - 1}`}`],
          ['key', key ?? 'none'],
          ['hash', item.hash],
          ['block time', isoTime(item.timestamp)],
        ]
      : [],
    tables:
      first === undefined
        ? []
        : [
            {
              columns: [
                { key: 'at' },
                { key: 'after', align: 'right' },
                { key: 'sequencer' },
                { key: 'what' },
                { key: 'detail', prose: true },
              ],
              rows: steps.map((step) => rowOf(step, first)),
            },
          ],
    warnings: [
      ...silent.map(({ url, why }) => `${url} says nothing of it: ${why}`),
      ...witnesses.flatMap(clockWarning),
    ],
    next: nextOf(item, verdict.reasonCode, 'key' in wanted),
    exit,
  };
}

type Judged = NonNullable<Result['verdict']> & { exit: NonNullable<Result['exit']> };

function judge({ item, waits, leads, damaged, steps, witnesses, silent }: ItemTrace, wanted: WantedItem): Judged {
  const name = 'key' in wanted ? wanted.key : `item ${wanted.index} of block ${wanted.height}`;
  if (item !== null)
    return {
      verdict: 'OK',
      reasonCode: 'ITEM_FOUND',
      reason: 'key' in wanted ? `${name} is item ${item.index} of block ${item.height}` : `${name} is in the chain`,
      exit: EXIT.ok,
    };
  if (damaged.length > 0 || silent.length > 0 || !leads) {
    const why =
      damaged.length > 0
        ? `the store of ${damaged.join(', ')} is damaged there, and is being repaired`
        : witnesses.length === 0
          ? 'no sequencer answered'
          : silent.length > 0
            ? `${silent.length} of ${witnesses.length + silent.length} sequencers did not answer`
            : 'none of those that answered leads, and a follower may be behind';
    return {
      verdict: 'UNKNOWN',
      reasonCode: 'ITEM_UNKNOWN',
      reason: `${name} was not found, but ${why}`,
      exit: EXIT.unknown,
    };
  }
  if (waits)
    return {
      verdict: 'WARN',
      reasonCode: 'ITEM_WAITS',
      reason: `${name} was received and is in no block yet`,
      exit: EXIT.no,
    };
  return {
    verdict: 'WARN',
    reasonCode: 'ITEM_NOT_SEEN',
    reason: `no sequencer has ${name} in its chain${steps.length > 0 ? '' : ', or remembers that it came'}`,
    exit: EXIT.no,
  };
}

function nextOf(item: ItemTrace['item'], code: string, keyed: boolean): string[] {
  if (item !== null) return [`seq stream inspect --height ${item.height} --data`];
  const again = keyed ? ['submit it again under the same key: it is sequenced once'] : [];
  return code === 'ITEM_NOT_SEEN' && keyed ? again : ['seq status', ...(code === 'ITEM_UNKNOWN' ? again : [])];
}

function rowOf({ atMs, sequencer, what, detail }: TraceStep, firstMs: number) {
  return { at: isoTime(atMs), after: `${atMs - firstMs} ms`, sequencer, what, detail };
}

function clockWarning({ id, clockAheadMs, clockErrorMs }: Witness): string[] {
  const off = Math.abs(clockAheadMs);
  if (off <= clockErrorMs + CLOCK_WARNING_MS) return [];
  return [
    `the clock of ${id} is ${off} ms ${clockAheadMs > 0 ? 'ahead of' : 'behind'} this machine's; ` +
      `its times are corrected, within ${clockErrorMs} ms`,
  ];
}
