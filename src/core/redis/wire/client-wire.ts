// The plain wire: ioredis writes the commands and reads the answers. It does the same as `own-resp/own-wire.ts` and
// costs more processor time for each command (`npm run bench -- rent`).
import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';
import type { Part, Wire } from './wire.js';

export class ClientWire implements Wire {
  onMessage: ((channel: string, message: string) => void) | null = null;

  /** `redis` never queues and never resends: `connection.ts` switches both off. */
  constructor(readonly redis: Redis) {
    redis.on('message', (channel: string, message: string) => this.onMessage?.(channel, message));
  }

  send(name: string, args: readonly Part[]): Promise<unknown> {
    return this.redis.callBuffer(name, ...args);
  }

  together<T>(work: () => T): T {
    const socket = (this.redis as unknown as { stream: Socket }).stream;
    socket.cork();
    try {
      return work();
    } finally {
      socket.uncork();
    }
  }
}
