// How are commands and answers carried over one established connection? `own-resp/` does it for commits, in less
// processor time. `client-wire.ts` is the plain way, through ioredis (SEQ_DISABLE=own-resp). Both send a command at
// once and at most once: nothing is queued, nothing is resent (docs/PROTOCOL.md section 11).
import type { Redis } from 'ioredis';

/** One argument of a command. */
export type Part = string | Buffer | number;

export interface Wire {
  /** The client that opened the connection. */
  readonly redis: Redis;

  /** Called for each published message, after SUBSCRIBE. */
  onMessage: ((channel: string, message: string) => void) | null;

  /**
   * Sends one command now. Rejects at once when the connection is not open. Bulk and simple strings arrive as Buffers,
   * integers as numbers. An error that the server sent rejects, with the name `ReplyError`.
   */
  send(name: string, args: readonly Part[]): Promise<unknown>;

  /** Sends the commands of `work` in as few packets as possible. */
  together<T>(work: () => T): T;
}
