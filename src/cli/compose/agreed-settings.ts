// The settings that decide what a block means: the de-duplication window, how many keys it holds, the largest block,
// and the producer of the lane. They are part of the cluster's configuration, so that every sequencer uses the same
// values (docs/PROTOCOL.md section 10). With two different windows an item could be sequenced twice after a hand-over.
import { DEFAULT_LIMITS, MAX_BLOCK_BYTES } from '../../core/config.js';
import { AGREED_PRODUCERS, producerText } from '../../core/protocol/producers.js';
import { EXIT, SeqError } from '../../core/errors.js';
import { DEFAULT_AGREED, newest, type AgreedSettings } from '../../core/protocol/configuration.js';
import { otherProducer } from '../../core/sequencer/fatal-error.js';
import type { NodeView } from '../../core/protocol/types.js';
import { asChoice, asCount, asDuration, asSize, type Setting } from '../config/settings.js';
import { formatDuration, formatSize } from '../support/units.js';

export interface AgreedGiven {
  keepMs: Setting<number>;
  keepItems: Setting<number>;
  maxBlockBytes: Setting<number>;
  /** As a lane agrees on it. '': nobody says. */
  producer: Setting<string>;
}

const asProducer = asChoice(['', 'batch', 'exec'] as const);

type Get = <T>(flag: string, parse: (text: string, what: string) => T, fallback: T) => Setting<T>;

/** `producer`: the one that is meant when none is named. */
export function agreedGiven(get: Get, producer: '' | 'batch' | 'exec' = ''): AgreedGiven {
  const named = get('producer', asProducer, producer);
  const given = {
    keepMs: get('dedup-window', asDuration, DEFAULT_AGREED.dedupMs),
    keepItems: get('dedup-items', asCount, DEFAULT_AGREED.dedupItems),
    maxBlockBytes: get('max-block-bytes', asSize, DEFAULT_LIMITS.maxBlockBytes),
    producer: { ...named, value: named.value === '' ? '' : AGREED_PRODUCERS[named.value] },
  };
  const { value } = given.maxBlockBytes;
  if (value < 1024 || value > MAX_BLOCK_BYTES)
    throw new SeqError({
      code: 'BAD_BLOCK_SIZE',
      exit: EXIT.config,
      message: `--max-block-bytes is ${value}; it must be between 1KiB and 16MiB`,
      why: 'a block has to fit into one write within the node timeout',
      changed: 'nothing',
      next: ['seq run --help'],
    });
  return given;
}

/** The values that a new cluster starts with. */
export function firstSettings({ keepMs, keepItems, maxBlockBytes, producer }: AgreedGiven): AgreedSettings {
  return {
    dedupMs: keepMs.value,
    dedupItems: keepItems.value,
    maxBlockBytes: maxBlockBytes.value,
    producer: producer.value,
    other: {},
  };
}

/**
 * The cluster's settings; null when no node knows a configuration. Throws SETTINGS_DIFFER when a setting given here has
 * another value. `adoptProducer`: the lane takes the producer of this sequencer.
 */
export function agreedBy(
  given: AgreedGiven,
  views: readonly NodeView[],
  adoptProducer: boolean,
): AgreedSettings | null {
  const agreed = newest(...views.map(({ config }) => config))?.settings ?? null;
  if (agreed === null) return null;
  const differing = [
    differs('de-duplication window', given.keepMs, agreed.dedupMs, formatDuration),
    differs('number of remembered keys', given.keepItems, agreed.dedupItems, String),
    differs('largest block', given.maxBlockBytes, agreed.maxBlockBytes, formatSize),
  ].filter((text) => text !== '');
  if (differing.length > 0)
    throw new SeqError({
      code: 'SETTINGS_DIFFER',
      exit: EXIT.config,
      message: differing.join('; '),
      why: 'the cluster decided this when it was made; sequencers that differ in it would judge one item in two ways',
      changed: 'nothing',
      next: ["leave the setting out: a sequencer takes the cluster's", 'seq config show --origin'],
    });
  if (!adoptProducer) refuseProducer(given.producer, agreed.producer);
  return agreed;
}

/** A sequencer always has a producer, so it is compared also when nobody named one. */
function refuseProducer({ value, from, origin }: Setting<string>, agreed: string): void {
  if (value === '' || agreed === '' || value === agreed) return;
  throw otherProducer(
    `the producer of this lane is ${producerText(agreed)}, and ${producerText(value)} ` +
      (origin === 'default' ? 'by what this sequencer was started with' : `by ${from}`),
  );
}

function differs(what: string, given: Setting<number>, agreed: number, text: (value: number) => string): string {
  if (given.origin === 'default' || given.value === agreed) return '';
  return `the ${what} is ${text(agreed)} in this cluster, and ${text(given.value)} by ${given.from}`;
}
