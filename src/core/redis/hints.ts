// Hints that a lock was released or a request arrived. They are messages that our scripts PUBLISH, and keyspace events
// of the lock (`E`, `x` and `g`: a release is a DEL) where the server sends them. A hint only makes a probe earlier
// (docs/PROTOCOL.md section 7). A lost hint costs time and nothing else.
import type { NodeHint } from '../ports.js';
import { Connection, send, type ConnectionSettings } from './connection.js';
import type { Wire } from './wire/wire.js';

export type Hint = NodeHint;

const SUBSCRIBE_LIMIT_MS = 1000;
const RETRY_MS = 500;

export class Hints {
  private readonly listeners = new Set<(hint: Hint) => void>();
  private readonly connection: Connection;
  private readonly channels: string[];
  private retry: NodeJS.Timeout | null = null;
  private closed = false;

  constructor(
    settings: ConnectionSettings,
    private readonly hintChannel: string,
    private readonly lockKey: string,
  ) {
    this.connection = new Connection(settings);
    this.connection.onLost(() => this.later());
    const { db } = settings.address;
    this.channels = [hintChannel, `__keyevent@${db}__:expired`, `__keyevent@${db}__:del`];
  }

  add(listener: (hint: Hint) => void): () => void {
    this.listeners.add(listener);
    if (this.listeners.size === 1) void this.subscribe();
    return () => {
      this.listeners.delete(listener);
      const client = this.connection.ready;
      if (this.listeners.size === 0 && client !== null) this.connection.drop(client);
    };
  }

  close(): void {
    this.closed = true;
    this.listeners.clear();
    if (this.retry !== null) clearTimeout(this.retry);
    this.connection.close();
  }

  private async subscribe(): Promise<void> {
    if (this.closed || this.listeners.size === 0) return;
    const answer = await this.connection.run(SUBSCRIBE_LIMIT_MS, async (client) => {
      this.listen(client);
      // One command for each channel: a user who may not read one channel still gets the others.
      const results = await Promise.allSettled(this.channels.map((channel) => send(client, 'subscribe', [channel])));
      if (results.every((one) => one.status === 'rejected')) throw (results[0] as PromiseRejectedResult).reason;
    });
    if (!answer.answered) this.later();
  }

  private listen(client: Wire): void {
    client.onMessage = (channel, message) => {
      if (channel === this.hintChannel) {
        if (message === 'released' || message === 'request') this.tell(message);
        else if (message === 'handed-over') this.tell('gone');
      } else if (message === this.lockKey) {
        this.tell('gone');
      }
    };
  }

  private tell(hint: Hint): void {
    for (const listener of [...this.listeners]) listener(hint);
  }

  private later(): void {
    if (this.closed || this.retry !== null || this.listeners.size === 0) return;
    this.retry = setTimeout(() => {
      this.retry = null;
      void this.subscribe();
    }, RETRY_MS);
    this.retry.unref();
  }
}
