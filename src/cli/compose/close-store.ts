// Closes the store of a sequencer that stops. A disk that hangs must not keep the process: what was acknowledged is
// synced, and a store that nobody closed opens like one after a power cut.
import type { SeqLog } from '../../core/log/log.js';
import { pause } from '../../core/nodes/pause.js';
import { systemClock } from '../../core/nodes/system-clock.js';
import type { ChainStore } from '../../core/ports.js';
import { threadHangs } from '../support/hung-threads.js';

const LIMIT_MS = 2000;

type Closable = Pick<ChainStore, 'close'>;

/** False: it does not answer. The process ends then. */
export async function closesInTime(store: Closable): Promise<boolean> {
  const over = new AbortController();
  let closed = false;
  const closing = store.close().then(() => {
    closed = true;
    over.abort();
  });
  await Promise.race([closing, pause(systemClock, LIMIT_MS, over.signal)]);
  if (!closed) closing.catch(() => {});
  return closed;
}

export async function closeStore(store: Closable, dir: string, log: SeqLog): Promise<void> {
  if (await closesInTime(store)) return;
  threadHangs();
  log.line('warn', `the disk of ${dir} does not answer: the process ends without closing its store`, {
    code: 'STORE_STALLED',
  });
}
