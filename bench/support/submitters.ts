// Submitters that work as `seq submit` does: the same client, one batch under way each. The next line is read
// meanwhile, and failures are retried with the same keys at any sequencer. Each has a line of 200 bytes every few
// milliseconds, so that work always waits for the leader.
import { submitItems } from '../../src/core/submit/submit.js';

const EVERY_MS = 4;
const GIVE_UP_MS = 60_000;
const LINE = `${'x'.repeat(199)}\n`;

async function* lines(signal: AbortSignal): AsyncGenerator<Buffer> {
  const line = Buffer.from(LINE);
  while (!signal.aborted) {
    yield line;
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

/**
 * Starts the submitters; returns the function that stops them. When a submitter ends by itself it has failed, and so
 * has the bench.
 */
export function startSubmitters(count: number, urls: () => string[]): () => Promise<void> {
  const over = new AbortController();
  const ended = Array.from({ length: count }, (_, at) =>
    submitItems({
      urls: async () => urls(),
      giveUpMs: GIVE_UP_MS,
      signal: over.signal,
      plan: async () => ({ input: lines(over.signal), binary: false, keyPrefix: `bench-${at}` }),
    }).then(
      () => undefined,
      (error: unknown) => (over.signal.aborted ? undefined : error),
    ),
  );
  return async () => {
    over.abort();
    const failure = (await Promise.all(ended)).find((error) => error !== undefined);
    if (failure !== undefined) throw failure;
  };
}
