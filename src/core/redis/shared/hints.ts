// The hints of many lanes over one connection (hints.ts has the hints of one lane). Each lane's channel is subscribed
// while somebody listens to it. A lost hint costs time and nothing else.
import { Connection, send, type ConnectionSettings } from '../connection.js';
import type { Hint } from '../hints.js';
import type { Wire } from '../wire/wire.js';

const SUBSCRIBE_LIMIT_MS = 1000;
const RETRY_MS = 500;

type Listener = (hint: Hint) => void;

export interface LaneHints {
  add(listener: Listener): () => void;
  close(): void;
}

export class SharedHints {
  private readonly listeners = new Map<string, Set<Listener>>();
  /** Lock → channel of its lane. */
  private readonly locks = new Map<string, string>();
  private readonly connection: Connection;
  private readonly events: string[];
  /** The channels that were subscribed, on this connection. */
  private subscribed: { client: Wire; channels: Set<string> } | null = null;
  private retry: NodeJS.Timeout | null = null;
  private asking = false;
  private again = false;
  private closed = false;

  constructor(settings: ConnectionSettings) {
    this.connection = new Connection(settings);
    this.connection.onLost(() => this.later());
    const { db } = settings.address;
    this.events = [`__keyevent@${db}__:expired`, `__keyevent@${db}__:del`];
  }

  lane(channel: string, lock: string): LaneHints {
    const mine = new Set<Listener>();
    const remove = (listener: Listener): void => {
      mine.delete(listener);
      const all = this.listeners.get(channel);
      all?.delete(listener);
      if (all?.size !== 0) return;
      this.listeners.delete(channel);
      this.locks.delete(lock);
      void this.subscribe();
    };
    return {
      add: (listener) => {
        const all = this.listeners.get(channel) ?? new Set();
        mine.add(listener);
        this.listeners.set(channel, all.add(listener));
        this.locks.set(lock, channel);
        void this.subscribe();
        return () => remove(listener);
      },
      close: () => [...mine].forEach(remove),
    };
  }

  close(): void {
    this.closed = true;
    this.listeners.clear();
    if (this.retry !== null) clearTimeout(this.retry);
    this.connection.close();
  }

  /** Makes the subscriptions what the listeners need. One round at a time: later changes are the next round's. */
  private async subscribe(): Promise<void> {
    this.again = true;
    if (this.asking) return;
    this.asking = true;
    while (this.again && !this.closed) {
      this.again = false;
      await Promise.resolve(); // many lanes that start together are one round
      if (this.listeners.size === 0 && this.subscribed === null) break;
      const answer = await this.connection.run(SUBSCRIBE_LIMIT_MS, (client) => this.change(client));
      if (!answer.answered) this.later();
    }
    this.asking = false;
  }

  private async change(client: Wire): Promise<void> {
    const first = this.subscribed?.client !== client;
    if (first) {
      this.subscribed = { client, channels: new Set() };
      client.onMessage = (channel, message) => this.heard(channel, message);
    }
    const { channels } = this.subscribed!;
    const added = [...this.listeners.keys()].filter((channel) => !channels.has(channel));
    const gone = [...channels].filter((channel) => !this.listeners.has(channel));
    for (const channel of added) channels.add(channel);
    for (const channel of gone) channels.delete(channel);
    // One command for each channel: a user who may not read one channel still gets the others.
    await Promise.allSettled(
      client.together(() => [
        ...[...(first ? this.events : []), ...added].map((channel) => send(client, 'subscribe', [channel])),
        ...gone.map((channel) => send(client, 'unsubscribe', [channel])),
      ]),
    );
  }

  private heard(channel: string, message: string): void {
    const lane = this.events.includes(channel) ? this.locks.get(message) : channel;
    const hint: Hint | null =
      lane !== channel || message === 'handed-over'
        ? 'gone'
        : message === 'released' || message === 'request'
          ? message
          : null;
    if (hint !== null) for (const listener of [...(this.listeners.get(lane ?? '') ?? [])]) listener(hint);
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
