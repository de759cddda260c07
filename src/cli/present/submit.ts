// The summary of `seq submit`: how many items, where the first and the last are, how fast. Items that were sequenced
// before are never counted as sent anew.
import type { SubmitSummary } from '../../core/submit/submit.js';
import type { Result } from './result.js';

/** `read`: the command that shows what was sequenced between two heights. */
export function submitResult(
  summary: SubmitSummary,
  keyPrefix: string,
  warnings: string[],
  read: (from: number, to: number) => string,
): Result {
  const { items, resumed, duplicates, resent, bytes, first, last, retries, elapsedMs } = summary;
  const fresh = items - resumed - duplicates;
  const perSecond = Math.round((items - resumed) / Math.max(0.001, elapsedMs / 1000));
  const at = (receipt: typeof first) =>
    receipt ? `(${receipt.height}, ${receipt.index}) in epoch ${receipt.epoch}` : null;
  const before = resumed + duplicates;
  const reason =
    items === 0
      ? 'the input is empty: there was nothing to submit'
      : before === items
        ? items === 1
          ? 'the one item had been sequenced before; it was not sequenced again'
          : `all ${items} items had been sequenced before; none was sequenced again`
        : `${items} ${items === 1 ? 'item is' : 'items are'} ` +
          `sequenced${before > 0 ? `, ${before} of them before this run` : ''}`;
  return {
    data: {
      items,
      sequenced: fresh,
      resumed,
      duplicates,
      resent,
      bytes,
      first,
      last,
      retries,
      elapsedMs: Math.round(elapsedMs),
      itemsPerSecond: perSecond,
      keyPrefix,
    },
    verdict: { verdict: 'OK', reason, reasonCode: items === 0 ? 'EMPTY' : fresh === 0 ? 'KNOWN' : 'SEQUENCED' },
    facts: [
      ['items', items],
      ['sequenced now', fresh],
      ['there before', before],
      ['first', at(first)],
      ['last', at(last)],
      ['rate', `${perSecond} items/s`],
      ['retries', retries],
      ...(resent > 0 ? [['resent and recognised', resent] as [string, number]] : []),
      ['keys', `${keyPrefix}:1 … ${keyPrefix}:${items}`],
    ],
    next:
      duplicates === items && items > 0
        ? ['to sequence the same content again on purpose: seq submit --key-prefix NAME FILE']
        : first
          ? [read(first.height, (last ?? first).height)]
          : [],
    warnings,
  };
}
