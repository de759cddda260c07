// Who makes the blocks of a lane, and in which format is their data? A lane agrees on both in one word
// (docs/PROTOCOL.md section 10): blocks of another producer would mean nothing to those who read the chain.

/** What a lane agrees on, for each producer. */
export const AGREED_PRODUCERS = { batch: 'batch:seq/items/1', exec: 'exec:seq/exec/1' } as const;

/** A word that a configuration may hold. A later version may know more of them. */
export const isProducerWord = (text: unknown): text is string =>
  typeof text === 'string' && /^[a-z][a-z0-9-]{0,31}:[a-z0-9/.-]{1,64}$/.test(text);

/** `exec (seq/exec/1)` */
export function producerText(word: string): string {
  const [name = '', format = ''] = word.split(':');
  return `${name} (${format})`;
}
