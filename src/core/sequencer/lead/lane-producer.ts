// Does this sequencer make the blocks that its lane has agreed on (docs/PROTOCOL.md section 10)? A lane agrees on one
// producer and its format. Where it has not yet, because an older version made it or because nobody said, its blocks
// say. Then the first leader lets the nodes note it, like any other change of the agreed settings.
import type { ChainStore } from '../../ports.js';
import { decodeBlockData } from '../../chain/items.js';
import type { Configuration } from '../../protocol/configuration.js';
import { AGREED_PRODUCERS, producerText } from '../../protocol/producers.js';
import type { Height } from '../../protocol/types.js';
import type { TermDriver } from './term-driver.js';

/** So many blocks are searched for one that is not empty. */
const SEARCHED = 10_000;

export interface LaneProducerOptions {
  /** Its own producer, as lanes agree on it. */
  own: string;
  /** An operator says that this one becomes the producer of the lane. It is done once. */
  adopts: boolean;
  store: Pick<ChainStore, 'head' | 'header' | 'get'>;
  configuration(): Configuration | null;
}

export class LaneProducer {
  private adopts: boolean;
  /** What the blocks say, up to this height. */
  private said = { height: 0, word: '' };

  constructor(private readonly options: LaneProducerOptions) {
    this.adopts = options.adopts;
  }

  /** Why this sequencer must make no blocks here; '' when it may. `atHead`: its store has what was committed. */
  conflict(atHead: boolean): string {
    const { own, configuration } = this.options;
    const known = configuration();
    if (this.adopts || known === null || known.settings.producer === own) return '';
    const { producer } = known.settings;
    if (producer !== '')
      return `the producer of this lane is ${producerText(producer)}, and this one is ${producerText(own)}`;
    const made = atHead ? this.madeBy() : '';
    if (made === '' || made === own) return '';
    return `the blocks of this lane are of ${producerText(made)}, and this one is ${producerText(own)}`;
  }

  /** A leader calls it after each commit, until the nodes have noted its producer. */
  note(driver: TermDriver): void {
    const { own } = this.options;
    const { configuration, change } = driver.state;
    if (configuration === null || change !== null) return;
    if (configuration.settings.producer === own) this.adopts = false;
    else if (configuration.settings.producer === '' || this.adopts)
      driver.change({ kind: 'set', settings: { producer: own } }, -1);
  }

  /** The producer of the newest block that is not empty. '' when there is none among the newest ones. */
  private madeBy(): string {
    const { store } = this.options;
    const { height } = store.head();
    if (this.said.height !== height) this.said = { height, word: this.search(height) || this.said.word };
    return this.said.word;
  }

  private search(from: Height): string {
    const { store } = this.options;
    for (let at = from; at > this.said.height && at > from - SEARCHED; at--) {
      if ((store.header(at)?.size ?? 0) === 0) continue;
      const block = store.get(at);
      if (block !== undefined) return producerOf(block.data);
    }
    return '';
  }
}

/** Which producer has made this data. '': an empty block says nothing, and nobody knows malformed data. */
function producerOf(data: Uint8Array): string {
  const { format } = decodeBlockData(data);
  return format === 'malformed' ? '' : AGREED_PRODUCERS[format === 'items' ? 'batch' : 'exec'];
}
